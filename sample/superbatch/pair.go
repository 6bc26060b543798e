package superbatch

import (
	"math"

	"gdb/layout/rowfile"
)

// Where phases take turns and sweeps go on beside training, superbatches come in pairs. The
// processor is idle while the rows of the first batches are swept for, and a sweep can only hide
// behind training on other batches. So a short superbatch comes first, the head. While its rows are
// swept for, the second superbatch is sampled and planned; while the head is trained on, the rows
// of the second are swept for.

// Where superbatches overlap, the first has no training to be sampled beside. It is short, so that
// training begins early, and the next one is sampled while it is trained on.

// wanted says which steps a superbatch may hold and how much storage it may take.
type wanted struct {
	first, until uint64 // steps, counted over all epochs: it ends before until or earlier
	storage      int64  // bytes
	head         bool   // another superbatch is made before this one is trained on
}

const (
	// headShare bounds the head: at most one batch of this number is in the head of a pair, or in
	// the first of superbatches that overlap.
	headShare = 4
	// headPasses is how much training on a head should hide, in passes over all features: one to
	// read them and half a pass to write the rows.
	headPasses = 1.5
	// passBytes is the size of the reads of a pass, in bytes.
	passBytes = 256 << 10
)

// pairs reports whether superbatches come in pairs.
func (c *Config) pairs() bool { return c.SweepAhead && !c.Overlap && c.sweeps() }

// Head returns how many of the batches make the head of a pair, given the bytes of all features. It
// is 0 if there are too few batches for two superbatches.
func (c Costs) Head(batches int, features int64) int {
	most := float64(batches / headShare)
	if c.Step > 0 {
		pass := rowfile.ReadCost{Reads: uint64(features / passBytes), Bytes: features}
		most = min(most, math.Ceil(headPasses*c.Seconds(pass)/c.Step))
	}
	return int(most)
}

// First returns how many of the batches the first superbatch has, where superbatches overlap.
func First(batches uint64) uint64 { return max(1, batches/headShare) }

// want returns what the superbatch that begins at step first should be. before is the head that it
// follows, or nil.
func (b *builder) want(first uint64, before *superbatch) wanted {
	w := wanted{first: first, until: b.end, storage: b.storage}
	if b.cfg.Until != nil {
		w.until = min(w.until, max(first+1, b.cfg.Until(first/b.perEpoch)*b.perEpoch))
	}
	most := uint64(b.cfg.Batches)
	if before != nil {
		most -= min(most, before.end-before.first)
	}
	if b.cfg.Batches > 0 {
		w.until = min(w.until, first+max(1, most))
	}
	if b.cfg.Overlap && b.seq == 0 {
		w.until = first + First(w.until-first)
	}
	if before != nil || !b.cfg.pairs() {
		return w
	}
	features := int64(b.cfg.Nodes) * int64(b.cfg.Rows.Meta().RowBytes)
	if n := b.cfg.Costs.Head(int(w.until-first), features); n > 0 {
		w.head, w.until = true, first+uint64(n)
		w.storage -= BatchStorage(w.storage) // the other's
	}
	return w
}
