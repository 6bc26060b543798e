package probe

import (
	"errors"
	"time"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"
)

// sampledCost is what sampling took: took is the whole time, of which waited was spent waiting for
// reads; listBytes of lists were read.
type sampledCost struct {
	took, waited time.Duration
	listBytes    uint64
}

func (c *sampledCost) add(o sampledCost) {
	c.took, c.waited, c.listBytes = c.took+o.took, c.waited+o.waited, c.listBytes+o.listBytes
}

// pilotBatch is a sampled batch that the trace of a plan may use again.
type pilotBatch struct {
	epoch, index uint64
	nodes        []sample.NodeID
	hops         []uint32
	edges        int
	cost         sampledCost
}

// accesses are what policies are played over: all nodes of each batch of a trace or, of a long
// trace, those of one node in share, chosen by a hash of its id. A cache with as many times fewer
// rows finds the same part of these (C. A. Waldspurger, N. Park, A. Garthwaite, I. Ahmad, SHARDS).
type accesses struct {
	share int
	// batches hold, for each batch, the ranks of its nodes among those that are played; ids holds
	// the ids of the ranks. Both are nil for a trace that is played whole.
	batches [][]sample.NodeID
	ids     []sample.NodeID
	nodes   uint64 // different nodes that are played, or all of the graph
	arena   *mem.Arena
}

// takes reports whether a node is one of those that are played.
func (a *accesses) takes(v sample.NodeID) bool {
	return rng.Key(uint64(v))&uint64(a.share-1) == 0
}

// fill writes the taken accesses of all batches, as ranks in the set of played nodes.
func (a *accesses) fill(tr *trace, in *sample.NodeSet, taken int) {
	all := mem.View[sample.NodeID](a.arena.Bytes())
	free, ids := all[:taken], all[taken:]
	a.nodes = uint64(len(ids))
	for next := in.Nodes(in.Total()); len(ids) > 0; {
		ids = ids[len(next(ids)):]
	}
	a.ids = all[taken:]
	for _, b := range tr.asked {
		n := 0
		for _, v := range b {
			if a.takes(v) {
				free[n] = sample.NodeID(in.Row(uint32(v)))
				n++
			}
		}
		a.batches, free = append(a.batches, free[:n:n]), free[n:]
	}
}

// of returns the accesses of each batch of a trace that are played.
func (a *accesses) of(tr *trace) [][]sample.NodeID {
	if a.batches == nil {
		return tr.asked
	}
	return a.batches
}

func (a *accesses) close() error {
	arena := a.arena
	if a.arena = nil; arena == nil {
		return nil
	}
	return arena.Free()
}

// trace holds the first batches of a run, sampled to learn what the run will need.
type trace struct {
	arena   *mem.Arena
	batches [][]sample.NodeID
	hops    [][]uint32 // NodeIDOffsets of each batch
	edges   uint64
	// of holds the rows of each batch: its nodes or, if the source has split rows, pieces. nodes
	// and rows are the sums over all batches.
	of          [][]sample.NodeID
	nodes, rows uint64
	// asked holds the rows of each batch that are asked of a cache, missed in all; a device keeps
	// the other rows. Without a device it is the same as of.
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

func (t *trace) close() error {
	err := errors.Join(t.played.close(), t.arena.Free())
	if t.missing != nil {
		err = errors.Join(err, t.missing.Free())
	}
	return err
}

// leave sets the nodes that are asked for to those that are not in kept.
func (t *trace) leave(kept *sample.NodeSet, budget *mem.Budget) (err error) {
	t.asked, t.missed = nil, 0
	for _, b := range t.batches {
		for _, v := range b {
			if !kept.Has(uint32(v)) {
				t.missed++
			}
		}
	}
	t.missing, err = mem.NewArena(budget, "trace of rows", 4*int64(max(1, t.missed)))
	if err != nil {
		return err
	}
	free := mem.View[sample.NodeID](t.missing.Bytes())
	for _, b := range t.batches {
		n := 0
		for _, v := range b {
			if !kept.Has(uint32(v)) {
				free[n] = v
				n++
			}
		}
		t.asked, free = append(t.asked, free[:n:n]), free[n:]
	}
	return nil
}

// onDevice returns the share of a trace's rows that a device keeps.
func (t *trace) onDevice() float64 { return 1 - float64(t.missed)/float64(max(1, t.rows)) }
