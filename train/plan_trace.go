package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
)

const (
	// traceEdges, traceBatches and traceBytes bound the trace of a plan: a second or two.
	traceEdges, traceBatches, traceBytes = 8 << 20, 64, 64 << 20
	// traceLeast is sampled however large batches are: reuse shows between batches.
	traceLeast = 4
	// pagedBatches are sampled to see what lists cost with a block cache.
	pagedBatches = 3
)

// trace is the first batches of a run, sampled to see what they will need.
type trace struct {
	arena   *mem.Arena
	batches [][]sample.NodeID
	edges   uint64
	// nodes are summed over the batches.
	nodes uint64
	// took, waited, listBytes and sampled are of the later half, which finds the block cache warm.
	took      time.Duration
	waited    time.Duration // of took, for reads
	listBytes uint64        // of topology read
	sampled   int           // batches
}

// record samples the first batches of the epoch and keeps their nodes.
func (in *inputs) record(ctx context.Context, c *Config, train []sample.NodeID,
	room int64) (t *trace, err error) {
	t = &trace{}
	t.arena, err = mem.NewArena(in.budget, "trace of accesses", min(room, traceBytes))
	if err != nil {
		return nil, err
	}
	if err := t.fill(ctx, in, c, train, traceBatches); err != nil {
		return nil, errors.Join(fmt.Errorf("train: sample batches to plan: %w", err), t.close())
	}
	return t, nil
}

// sampleFew samples a few batches and keeps what they cost alone.
func (in *inputs) sampleFew(ctx context.Context, c *Config, train []sample.NodeID) (*trace, error) {
	t := &trace{}
	if err := t.fill(ctx, in, c, train, pagedBatches); err != nil {
		return nil, fmt.Errorf("train: sample batches to plan: %w", err)
	}
	return t, nil
}

// fill samples until there is enough, or no room.
func (t *trace) fill(ctx context.Context, in *inputs, c *Config, train []sample.NodeID,
	most uint64) error {
	o, err := sample.EpochOrder(train, c.Seed, 0, c.Batch)
	if err != nil {
		return err
	}
	s, err := sample.NewSampler([]layout.Topology{in.topology},
		sample.Config{Fanout: c.Fanout, Seed: c.Seed, Budget: in.budget})
	if err != nil {
		return err
	}
	defer s.Close()
	var d sample.Dense
	var seeds []sample.NodeID
	var free []sample.NodeID
	if t.arena != nil {
		free = mem.View[sample.NodeID](t.arena.Bytes())
	}
	for i := range min(o.Batches(), most) {
		if i >= traceLeast && t.edges >= traceEdges {
			break
		}
		begun, bytes, waited := time.Now(), in.topology.Stats().BytesRead, in.dev.Stats().Wait
		whole := len(seeds)
		if seeds = o.Seeds(i, seeds[:0]); len(seeds) < whole {
			break // the last one is not like the others
		}
		if err := s.Sample(ctx, 0, i, seeds, &d); err != nil {
			return err
		}
		took := time.Since(begun)
		n := len(d.NodeIDs)
		if t.arena != nil {
			if n > len(free) {
				break
			}
			copy(free, d.NodeIDs)
			t.batches, free = append(t.batches, free[:n:n]), free[n:]
		}
		t.edges += uint64(len(d.Nbrs))
		t.nodes += uint64(n)
		// Counted from the half on, so far: what came before is forgotten.
		if i&(i-1) == 0 {
			t.took, t.waited, t.listBytes, t.sampled = 0, 0, 0, 0
		}
		t.took += took
		t.waited += in.dev.Stats().Wait - waited
		t.listBytes += in.topology.Stats().BytesRead - bytes
		t.sampled++
	}
	return nil
}

func (t *trace) close() error { return t.arena.Free() }

// footprint is how many nodes are in the batches first … end-1, together.
func (t *trace) footprint(seen *nodeSet, first, end int) int {
	clear(seen.words)
	for _, b := range t.batches[first:end] {
		for _, v := range b {
			seen.add(uint32(v))
		}
	}
	seen.number()
	return seen.count
}
