package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gdb/internal/mem"
	"gdb/sample"
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

// trace holds the first batches of a run, sampled to learn what the run will need.
type trace struct {
	arena   *mem.Arena
	batches [][]sample.NodeID
	hops    [][]uint32 // NodeIDOffsets of each batch
	edges   uint64
	// nodes is the sum of the batches' nodes.
	nodes uint64
	// asked holds the nodes of each batch whose rows are asked of a cache, missed in all; a device
	// keeps the other rows. Without a device it is the same as batches.
	asked   [][]sample.NodeID
	missed  uint64
	missing *mem.Arena // memory of asked; nil if that is the same as batches
	played  accesses
	second  int  // the first batch of the second epoch, or 0
	whole   bool // the trace has all batches of the run, but partial ones
	// cost and sampled count the later half of the batches, which finds the block cache warm.
	cost    sampledCost
	sampled int // batches
}

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
	s, err := m.src.Sampler(c.Fanout, c.Seed)
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
		if n > len(f.free) {
			return false, nil
		}
		copy(f.free, b.nodes)
		f.batches, f.free = append(f.batches, f.free[:n:n]), f.free[n:]
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

// sampledCost is what sampling took: took is the whole time, of which waited was spent waiting for
// reads; listBytes of lists were read.
type sampledCost struct {
	took, waited time.Duration
	listBytes    uint64
}

func (c *sampledCost) add(o sampledCost) {
	c.took, c.waited, c.listBytes = c.took+o.took, c.waited+o.waited, c.listBytes+o.listBytes
}

// meterSampling starts to measure, and returns a function that ends it and returns the cost.
func (m *Probe) meterSampling() func() sampledCost {
	src := m.src
	begun, bytes, waited := time.Now(), src.Topology.Stats().BytesRead, src.Device.Stats().Wait
	return func() sampledCost {
		return sampledCost{took: time.Since(begun), waited: src.Device.Stats().Wait - waited,
			listBytes: src.Topology.Stats().BytesRead - bytes}
	}
}

func (t *trace) close() error {
	err := errors.Join(t.played.close(), t.arena.Free())
	if t.missing != nil {
		err = errors.Join(err, t.missing.Free())
	}
	return err
}
