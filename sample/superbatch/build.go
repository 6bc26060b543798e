package superbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/sample"
)

const (
	// planBytesPerAccess bounds the bytes on disk per access, besides the batch and the record of
	// accesses: its next use and its part of the plan.
	planBytesPerAccess = 12
	// planHeapPerNode is the heap that planning takes per node of the largest batch, in bytes. It
	// holds three batches with ids, next uses, sources and what is kept of them, the records that
	// these are read from and written to, and the slots that two batches hold.
	planHeapPerNode = 140
	// batchesAtOnce is the number of batches that planning reads together.
	batchesAtOnce = 2
)

// superbatch is a run of sampled and planned batches, stored in runtime files.
//
// The goroutine that builds it owns it until it is handed over; then the Loader does. A goroutine
// that makes a span reads it meanwhile.
type superbatch struct {
	want      wanted
	first     uint64 // the first step, counted over all epochs
	end       uint64 // the step after the last
	perEpoch  uint64 // batches
	nodes     uint64 // nodes of the graph
	id        identity
	index     []stepRefs
	held      mem.Account // index
	nodesMost int         // nodes of the largest batch
	rowsMost  int         // most rows of a batch
	innerMost int         // most nodes of a batch outside the outermost delta
	edgesMost int
	slots     int // slots that its changes may use
	readsMost int // most rows that a batch reads
	batches   *fileReader
	plans     *fileReader
	gone      *remover
	span      *span // how missing rows are read, nil until decided
	upcoming  *spanAhead
}

// stepRefs locate the records of one batch, and say how many rows it reads.
type stepRefs struct {
	nodes, edges, plan ref
	reads              uint32
}

// close gives the memory back and begins to remove the files. It may be called at any stage, and
// again.
func (s *superbatch) close() {
	if s.upcoming != nil {
		s.upcoming.stop().close()
	}
	s.upcoming = nil
	s.endSpan()
	for _, r := range []*fileReader{s.batches, s.plans} {
		if r != nil {
			s.gone.Begin(r.Drop)
		}
	}
	s.batches, s.plans, s.index = nil, nil, nil
	s.held.Release()
}

// builder samples and plans superbatches, one after the other.
type builder struct {
	cfg      *Config
	ranges   ranges
	dir      string
	perEpoch uint64 // batches
	end      uint64 // the step after the last
	cache    *cacheState
	seq      uint64
	storage  int64 // bytes for one superbatch, or a pair
	gone     remover

	sampled  sample.Counters
	planning sample.Clock
	sweeping sample.Clock
}

// firstSeq is the number of the first superbatch that is made.
const firstSeq = 1

// build samples and plans superbatch w. After an error, files may be left in the loader's
// directory, which is removed when the loader is closed.
func (b *builder) build(ctx context.Context, w wanted) (*superbatch, error) {
	b.seq++
	if err := b.gone.Wait(); err != nil {
		return nil, err
	}
	s := b.newSuperbatch(w)
	if err := b.fill(ctx, s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// newSuperbatch returns superbatch w without batches.
func (b *builder) newSuperbatch(w wanted) *superbatch {
	return &superbatch{want: w, first: w.first, perEpoch: b.perEpoch, nodes: b.cfg.Nodes,
		id: b.identity(b.seq), gone: &b.gone,
		held: mem.NewAccount(b.cfg.Budget, "superbatch index")}
}

// listMost returns the length of the longest list of a batch's nodes or of their rows.
func (s *superbatch) listMost() int { return max(s.nodesMost, s.rowsMost) }

// identity returns where the runtime files with number seq lie.
func (b *builder) identity(seq uint64) identity {
	return identity{FS: b.cfg.FS, Dir: b.dir, UUID: b.cfg.UUID, Seq: seq}
}

// fill samples and plans superbatch s.
func (b *builder) fill(ctx context.Context, s *superbatch) error {
	a, err := newAccesses(s.id, b.ranges, whole(b.cfg.AccessBytes), b.cfg.Budget)
	if err != nil {
		return err
	}
	defer a.Free()
	if err := b.withGraph(ctx, func() error { return b.sample(ctx, s, a) }); err != nil {
		return fmt.Errorf("superbatch: sample batches from step %d: %w", s.first, err)
	}
	b.cfg.giveHeapBack() // batches that were drawn together may have taken most of it
	b.cache.Most = min(b.cache.Most, b.cfg.slotsFor(s, b.cfg.Rows.Meta().Dim))
	s.slots = b.cache.Most
	begun := time.Now()
	if err := b.plan(ctx, s, a); err != nil {
		return fmt.Errorf("superbatch: plan steps %d to %d: %w", s.first, s.end, err)
	}
	b.planning.Done.Add(s.end - s.first)
	b.planning.Busy.Add(int64(time.Since(begun)))
	return nil
}

// whole rounds bytes down to a multiple of 2 MiB, the unit in which arenas are taken.
func whole(bytes int64) int64 { return max(0, bytes) &^ (2<<20 - 1) }

// withGraph calls work while the topology is in memory, and releases it after.
func (b *builder) withGraph(ctx context.Context, work func() error) (err error) {
	if b.cfg.Graph == nil {
		return work()
	}
	release, err := b.cfg.Graph(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return work()
}

// sample writes the batches and their accesses to runtime files.
func (b *builder) sample(ctx context.Context, s *superbatch, a *accesses) (err error) {
	w, err := s.id.Create(kindBatches)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	if err := a.Add(b.cache.Rows()); err != nil {
		return err
	}
	out := &batchWriter{cfg: b.cfg, s: s, w: w, a: a, share: s.want.storage,
		scratch: mem.NewAccount(b.cfg.Budget, "superbatch records")}
	defer out.scratch.Release()
	if b.cfg.sweeps() {
		out.share /= filesShare
	}
	if err := b.sampleAll(ctx, out); err != nil {
		return err
	}
	if err := errors.Join(a.Finish(), w.Finish()); err != nil {
		return err
	}
	s.batches, err = s.id.Open(ctx, b.cfg.Device, kindBatches)
	return err
}

// sampleAll samples batches until their storage is full or the last wanted one was written.
func (b *builder) sampleAll(ctx context.Context, out *batchWriter) (err error) {
	drawer, err := b.cfg.Drawer(b.cfg.Workers, b.perEpoch, out.s.first, out.s.want.until)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drawer.Close()) }()
	for out.s.end = out.s.first; out.s.end < out.s.want.until && !out.full; {
		if err := b.sampleEpoch(ctx, out, drawer); err != nil {
			return err
		}
	}
	return nil
}

// lasting lets pipelines use a Drawer without closing it: several use one after the other.
type lasting struct{ sample.Drawer }

func (lasting) Close() error { return nil }

// sampleEpoch samples batches until the epoch or the superbatch ends, or storage is full.
func (b *builder) sampleEpoch(ctx context.Context, out *batchWriter,
	drawer sample.Drawer) (err error) {
	end, until := out.s.end, out.s.want.until
	epoch, batch := end/b.perEpoch, end%b.perEpoch
	order, err := b.cfg.Order(epoch)
	if err != nil {
		return err
	}
	p, err := sample.NewPipeline(ctx, sample.PipelineConfig{
		Drawer: func(int) (sample.Drawer, error) { return lasting{drawer}, nil }, Order: order,
		StartBatch: batch, EndBatch: min(batch+until-end, b.perEpoch),
		Workers: b.cfg.Workers, Ready: 1, Budget: b.cfg.Budget,
		Counters: &b.sampled})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for !out.full {
		d, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		d.Epoch = epoch // its order may be that of another
		err = out.add(d)
		d.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// batchWriter writes sampled batches to the runtime files of a superbatch.
type batchWriter struct {
	cfg     *Config
	rows    []sample.NodeID // of a batch, if they are pieces
	s       *superbatch
	w       *fileWriter
	a       *accesses
	share   int64 // bytes of storage for these files, if they hold more than one batch
	largest int64 // bytes on disk of the largest batch, with its accesses and plan
	full    bool
	enc     codec.Enc
	degrees []uint32
	scratch mem.Account // enc and degrees
}

// add writes one batch, and sets o.full if there is no room for another.
func (o *batchWriter) add(d *sample.Batch) (err error) {
	before, nodes := o.w.Size+o.a.File.Total(), len(d.Dense.NodeIDs)
	var r stepRefs
	o.enc.B = o.enc.B[:0]
	encodeNodes(&o.enc, d)
	if r.nodes, err = o.w.Append(o.enc.B); err != nil {
		return err
	}
	o.enc.B = o.enc.B[:0]
	o.degrees = encodeEdges(&o.enc, &d.Dense, o.degrees)
	if r.edges, err = o.w.Append(o.enc.B); err != nil {
		return err
	}
	rows := o.cfg.rowsOf(d, &o.rows)
	if err := o.a.Add(rows); err != nil {
		return err
	}
	s := o.s
	if s.index, err = push(&s.held, s.index, r); err != nil {
		return err
	}
	held := int64(cap(o.enc.B) + 4*(cap(o.degrees)+cap(o.rows)))
	if err := o.scratch.Add(held - o.scratch.Bytes()); err != nil {
		return err
	}
	s.end++
	s.nodesMost, s.rowsMost = max(s.nodesMost, nodes), max(s.rowsMost, len(rows))
	s.edgesMost = max(s.edgesMost, len(d.Dense.Nbrs))
	s.innerMost = max(s.innerMost, nodes-int(d.Dense.NodeIDOffsets[1]))
	files := o.w.Size + o.a.File.Total()
	o.largest = max(o.largest, files-before+planBytesPerAccess*int64(len(rows)))
	used := files + planBytesPerAccess*int64(o.a.Total)
	o.full = used+o.largest > o.room(used) || len(s.index) == batchesMost || o.a.Full()
	if used > s.want.storage {
		return fmt.Errorf("%d batches take %s on disk with their plan, %s are given: raise the "+
			"storage of superbatches, or take another --cache", len(s.index),
			mem.FormatSize(used), mem.FormatSize(s.want.storage))
	}
	return nil
}

// tailShare says how far files may grow beyond their share, a quarter of it, if that is enough for
// all batches that are wanted. The few batches left over would otherwise be a superbatch of their
// own, for which the topology is loaded and rows are swept once more.
const tailShare = 4

// room returns how many bytes the files may take, given that they take used bytes now.
func (o *batchWriter) room(used int64) int64 {
	most := min(o.share+o.share/tailShare, o.s.want.storage)
	if used+int64(o.s.want.until-o.s.end)*o.largest <= most {
		return most
	}
	return o.share
}

// plan finds the next use of each access, then decides for each batch which rows the cache keeps.
func (b *builder) plan(ctx context.Context, s *superbatch, a *accesses) (err error) {
	next, err := findNextUses(ctx, s.id, b.cfg.Device, a, nextOptions{
		Memory: whole(min(b.cfg.NextBytes, a.NextMost())), Workers: b.cfg.Workers}, b.cfg.Budget)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, next.Free()) }()
	a.Free()
	b.gone.Begin(func() error { return s.id.Remove(kindAccesses) })
	if err := b.decide(ctx, s, next); err != nil {
		return err
	}
	b.gone.Begin(func() error { return s.id.Remove(kindNext) })
	s.plans, err = s.id.Open(ctx, b.cfg.Device, kindPlan)
	return err
}

// parts returns where the three records of batch i lie that training reads: nodes, edges and plan.
func (s *superbatch) parts(i int) []record {
	r := s.index[i]
	return []record{{File: s.batches, At: r.nodes},
		{File: s.batches, At: r.edges}, {File: s.plans, At: r.plan}}
}

// decodeNodes decodes the first record of batch i.
func (s *superbatch) decodeNodes(payload []byte, i int, to *sample.Batch) error {
	step := s.first + uint64(i)
	err := decodeNodes(payload, to, step/s.perEpoch, step%s.perEpoch, s.nodes)
	if err != nil {
		return s.batches.Damage(s.index[i].nodes.Off(), "%v", err)
	}
	return nil
}

// decodeEdges decodes the second record of batch i, after the first, and fills in its seeds.
func (s *superbatch) decodeEdges(payload []byte, i int, to *sample.Batch) error {
	if err := decodeEdges(payload, &to.Dense); err != nil {
		return s.batches.Damage(s.index[i].edges.Off(), "%v", err)
	}
	first := to.Dense.NodeIDOffsets[to.Dense.Layers()]
	to.Seeds = append(to.Seeds[:0], to.Dense.NodeIDs[first:]...)
	return nil
}

// decodeChanges decodes the changes of batch i, which has the given number of rows, to c.
func (s *superbatch) decodeChanges(payload []byte, i, rows int, c *changes) error {
	if err := c.Decode(payload, rows, s.slots); err != nil {
		return s.plans.Damage(s.index[i].plan.Off(), "%v", err)
	}
	return nil
}

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
	features := int64(b.cfg.rowCount()) * int64(b.cfg.Rows.Meta().RowBytes)
	if n := b.cfg.Costs.Head(int(w.until-first), features); n > 0 {
		w.head, w.until = true, first+uint64(n)
		w.storage -= BatchStorage(w.storage) // the other's
	}
	return w
}
