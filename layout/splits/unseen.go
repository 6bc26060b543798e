package splits

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
)

// CountUnseen counts, for each split except train, the nodes and types that have no edge in train.
// It takes up to memory bytes for two bits per node of a range of nodes, and reads the files once
// for each range.
func CountUnseen(ctx context.Context, s *layout.Store, splits []kv.EdgeSplitMeta, memory int64,
	budget *mem.Budget) (err error) {
	nodes := s.Meta().Nodes
	rangeNodes := min(nodes, uint64(max(memory/2, 8))*8)
	words := int64(rangeNodes+63) / 64
	arena, err := mem.NewArena(budget, "nodes of edge splits", 2*8*words)
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return errors.Join(err, arena.Free())
	}
	defer func() { err = errors.Join(err, dev.Close(), arena.Free()) }()
	sets := mem.View[uint64](arena.Bytes())
	u := &unseen{s: s, dev: dev, seen: sets[:words], met: sets[words:],
		seenTypes: make([]bool, len(s.Meta().EdgeTypes))}
	for first := uint64(0); first < nodes; first += rangeNodes {
		u.first, u.end = first, min(first+rangeNodes, nodes)
		if err := u.count(ctx, splits); err != nil {
			return err
		}
	}
	return nil
}

// unseen counts in one range of nodes.
type unseen struct {
	s         *layout.Store
	dev       blockdev.Device
	first     uint64 // node
	end       uint64
	seen, met []uint64 // nodes of train, and of the current split, as bits
	seenTypes []bool
}

func (u *unseen) count(ctx context.Context, splits []kv.EdgeSplitMeta) error {
	clear(u.seen)
	if err := u.mark(ctx, edgefile.Splits[train], u.seen, u.seenTypes); err != nil {
		return err
	}
	for i := range splits {
		if splits[i].Name == edgefile.Splits[train] {
			continue
		}
		clear(u.met)
		types := make([]bool, len(u.seenTypes))
		if err := u.mark(ctx, splits[i].Name, u.met, types); err != nil {
			return err
		}
		for w, met := range u.met {
			splits[i].UnseenNodes += uint64(bits.OnesCount64(met &^ u.seen[w]))
		}
		splits[i].UnseenTypes = 0
		for t, met := range types {
			if met && !u.seenTypes[t] {
				splits[i].UnseenTypes++
			}
		}
	}
	return nil
}

// mark sets the bits of the nodes and types of a split's edges.
func (u *unseen) mark(ctx context.Context, split string, set []uint64, types []bool) (err error) {
	spec := edgefile.SpecOf(u.s.Meta(), edgefile.Kind(split))
	f, err := edgefile.OpenFile(ctx, u.s, u.dev, edgefile.Path(split), spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
		for i, src := range e.Src {
			u.set(set, uint64(src))
			u.set(set, uint64(e.Dst[i]))
		}
		for _, t := range e.Rel {
			types[t] = true
		}
		return nil
	})
}

// set sets the bit of a node, if it is in the range.
func (u *unseen) set(set []uint64, v uint64) {
	if v >= u.first && v < u.end {
		set[(v-u.first)/64] |= 1 << ((v - u.first) % 64)
	}
}
