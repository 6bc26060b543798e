package superbatch

import (
	"math"

	"gdb/layout/rowfile"
)

// Where phases take turns and sweeps go on beside training, superbatches come in pairs. While the
// rows of the first batches are swept for, the processor is idle; and no sweep can go on while
// these are not trained on. So a short superbatch comes first, the head. While its rows are swept
// for, the other is sampled and planned, and while it is trained on, the rows of the other are
// swept for.

// Where superbatches overlap, the first has nothing to be sampled beside: it is short, so that
// training begins early, and the next is sampled while it is trained on.

// wanted is what a superbatch is to be.
type wanted struct {
	first, until uint64 // steps, counted over all epochs: until is the end at the latest
	storage      int64  // bytes
	head         bool   // another follows that is made before this one is trained on
}

const (
	// headShare of a pair's batches is the head's at most, and of the batches that there are for
	// the first of superbatches that overlap its own.
	headShare = 4
	// headPasses over all features are what training on a head hides: a pass, and writing the rows.
	headPasses = 1.5
	// passBytes is the size of the reads of a pass.
	passBytes = 256 << 10
)

// pairs says whether superbatches come in pairs.
func (c *Config) pairs() bool { return c.SweepAhead && !c.Overlap && c.sweeps() }

// Head is how many batches of so many are the head of a pair, if features take so many bytes; 0 if
// they are too few for two superbatches.
func (c Costs) Head(batches int, features int64) int {
	most := float64(batches / headShare)
	if c.Step > 0 {
		pass := rowfile.ReadCost{Reads: uint64(features / passBytes), Bytes: features}
		most = min(most, math.Ceil(headPasses*c.Seconds(pass)/c.Step))
	}
	return int(most)
}

// First is how many of so many batches the first superbatch has, where superbatches overlap.
func First(batches uint64) uint64 { return max(1, batches/headShare) }

// want says what the superbatch is to be that begins with a step; before is the head that it
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
