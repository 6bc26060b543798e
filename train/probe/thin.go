package probe

import (
	"errors"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"
)

// thinMost bounds the accesses that policies are played over. Of a longer trace only the accesses
// to some nodes are played; with this many, misses are off by less than a hundredth.
const thinMost = 1 << 20

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

// thin selects the accesses of a trace that policies are played over, about most of them at most.
func (m *Probe) thin(tr *trace, most uint64) error {
	a := &tr.played
	*a = accesses{share: 1, nodes: m.src.Meta.Nodes}
	for tr.nodes/uint64(a.share) > most {
		a.share *= 2
	}
	if a.share == 1 {
		return nil
	}
	in, err := sample.NewNodeSet(m.src.Meta.Nodes, m.src.Budget)
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
