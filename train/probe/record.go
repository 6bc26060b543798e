package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/setting"
)

const (
	// traceEdges, traceBatches and traceBytes bound the trace of a plan, so that sampling it takes
	// less than a second.
	traceEdges, traceBatches, traceBytes = 8 << 20, 128, 64 << 20
	// traceLeast is how many batches are sampled however large they are, because reuse shows only
	// between batches.
	traceLeast = 4
	// pagedBatches is how many batches are sampled to learn what lists cost with a block cache.
	pagedBatches = 3
	// pagedEdges stands in for traceEdges where the topology is paged: there a batch of 400,000
	// edges may take a second.
	pagedEdges = 2 << 20
)

// thinMost bounds the accesses that policies are played over. Of a longer trace only the accesses
// to some nodes are played; with this many, misses are off by less than a hundredth.
const thinMost = 1 << 20

// record samples the first batches of a run and keeps their nodes in at most room bytes.
func (m *Probe) record(ctx context.Context, room int64) (t *trace, err error) {
	t = &trace{}
	t.arena, err = mem.NewArena(m.src.Budget, "trace of accesses", min(room, traceBytes))
	if err != nil {
		return nil, err
	}
	if err = t.fill(ctx, m, traceBatches); err == nil {
		err = m.leaveOut(ctx, t)
	}
	if err == nil {
		err = m.thin(t, thinMost)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("probe: sample batches to plan: %w", err), t.close())
	}
	return t, nil
}

// sampleFew samples a few batches and keeps only what they cost.
func (m *Probe) sampleFew(ctx context.Context) (*trace, error) {
	t := &trace{}
	if err := t.fill(ctx, m, pagedBatches); err != nil {
		return nil, fmt.Errorf("probe: sample batches to plan: %w", err)
	}
	return t, nil
}

// fill samples batches until there are enough, or no more room, or the run would be over.
func (t *trace) fill(ctx context.Context, m *Probe, most int) error {
	c := &m.cfg
	s, err := m.sampler()
	if err != nil {
		return err
	}
	defer s.Close()
	f := &traceFiller{trace: t, probe: m, sampler: s, most: most, edgesMost: traceEdges}
	if !m.src.Graph.Resident {
		f.edgesMost = pagedEdges
	}
	if t.arena != nil {
		f.free = mem.View[sample.NodeID](t.arena.Bytes())
	}
	for epoch := range uint64(m.facts.Epochs) {
		o, err := sample.EpochOrder(c.Seeds, c.Seed, epoch, m.facts.Batch)
		if err != nil {
			return err
		}
		if epoch == 1 {
			t.second = f.done
		}
		if more, err := f.epoch(ctx, o); err != nil || !more {
			return err
		}
	}
	t.whole = true
	return nil
}

// traceFiller samples the batches of a trace.
type traceFiller struct {
	*trace
	probe      *Probe
	sampler    *sample.Sampler
	most, done int // batches
	edgesMost  uint64
	dense      sample.Dense
	seeds      []sample.NodeID
	free       []sample.NodeID // the rest of the arena
}

// epoch samples the batches of an epoch, and returns whether more may follow.
func (f *traceFiller) epoch(ctx context.Context, o *sample.Order) (more bool, err error) {
	for i := range o.Batches() {
		if f.done == f.most || f.done >= traceLeast && f.edges >= f.edgesMost {
			return false, nil
		}
		whole := len(f.seeds)
		if f.seeds = o.Seeds(i, f.seeds[:0]); len(f.seeds) < whole {
			f.seeds = f.seeds[:whole] // the last one is not like the others
			continue
		}
		if more, err := f.batch(ctx, o.Epoch(), i); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// batch adds one batch, sampled now or by the pilot, and returns whether there was room for it.
func (f *traceFiller) batch(ctx context.Context, epoch, index uint64) (bool, error) {
	b, ok := f.piloted(epoch, index)
	if !ok {
		meter := f.probe.meterSampling()
		if err := f.sampler.Sample(ctx, epoch, index, f.seeds, &f.dense); err != nil {
			return false, err
		}
		b = pilotBatch{epoch, index, f.dense.NodeIDs, f.dense.NodeIDOffsets, len(f.dense.Nbrs),
			meter()}
	}
	n := len(b.nodes)
	if f.arena != nil {
		split, pieces, asked := f.probe.src.Split, 0, b.nodes
		timed := f.probe.src.Seeding != nil
		if timed {
			asked = once(b.nodes)
			pieces = len(asked)
		}
		if split != nil {
			pieces = split.Count(asked)
		}
		if n+pieces > len(f.free) {
			return false, nil
		}
		copy(f.free, b.nodes)
		f.batches, f.free = append(f.batches, f.free[:n:n]), f.free[n:]
		rows := f.batches[f.done]
		switch {
		case split != nil:
			rows = split.Append(asked, f.free[:0:pieces])
		case timed:
			rows = append(f.free[:0:pieces], asked...)
		}
		f.of, f.free = append(f.of, rows), f.free[pieces:]
		f.rows += uint64(len(rows))
		f.hops = append(f.hops, slices.Clone(b.hops))
	}
	f.edges += uint64(b.edges)
	f.nodes += uint64(n)
	// Counted from the half on, so far: what came before is forgotten.
	if f.done&(f.done-1) == 0 {
		f.cost, f.sampled = sampledCost{}, 0
	}
	f.cost.add(b.cost)
	f.sampled++
	f.done++
	return true, nil
}

// once returns nodes, of which a batch as of times may have one several times, each once: its row
// is read once.
func once(nodes []sample.NodeID) []sample.NodeID {
	nodes = slices.Clone(nodes)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// piloted returns the batch if the pilot sampled it from a topology that was open in the same way.
func (f *traceFiller) piloted(epoch, index uint64) (b pilotBatch, ok bool) {
	m := f.probe
	i := f.done
	if f.arena == nil || i >= len(m.pilots) || m.piloted != m.src.Graph {
		return b, false
	}
	b = m.pilots[i]
	return b, b.epoch == epoch && b.index == index
}

// leaveOut finds the nodes of a trace whose rows are asked of a cache: all but those that
// a device keeps.
func (m *Probe) leaveOut(ctx context.Context, t *trace) error {
	t.asked, t.missed = t.of, t.rows
	rows := int(m.facts.DeviceRows())
	if rows == 0 {
		return nil
	}
	kept, err := sample.NewNodeSet(m.src.Meta.Nodes, m.src.Budget)
	if err != nil {
		return err
	}
	hot, err := m.src.HottestAbout(ctx, rows)
	for _, v := range hot {
		kept.Add(uint32(v))
	}
	if err == nil {
		err = t.leave(kept, m.src.Budget)
	}
	if m.facts.Cache == setting.CacheBelady { // superbatches gather all rows
		t.asked = t.of
	}
	return errors.Join(err, kept.Free())
}

// thin selects the accesses of a trace that policies are played over, about most of them at most.
func (m *Probe) thin(tr *trace, most uint64) error {
	a := &tr.played
	*a = accesses{share: 1, nodes: m.src.RowCount()}
	for tr.rows/uint64(a.share) > most {
		a.share *= 2
	}
	if a.share == 1 {
		return nil
	}
	in, err := sample.NewNodeSet(m.src.RowCount(), m.src.Budget)
	if err != nil {
		return err
	}
	taken := 0
	for _, b := range tr.asked {
		for _, v := range b {
			if a.takes(v) {
				in.Add(uint32(v))
				taken++
			}
		}
	}
	in.Number()
	a.arena, err = mem.NewArena(m.src.Budget, "thinned trace", 4*int64(taken+in.Count()))
	if err == nil {
		a.fill(tr, in, taken)
	}
	return errors.Join(err, in.Free())
}
