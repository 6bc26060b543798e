package splits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
)

// CountReversed counts, for each split except train, the edges whose reverse, of the same type, is
// in train. It takes up to memory bytes for part of a split's edges, sorted as train is, and reads
// train once for each part.
func CountReversed(ctx context.Context, s *layout.Store, splits []kv.EdgeSplitMeta, memory int64,
	budget *mem.Budget) (err error) {
	most := 0
	for _, split := range splits {
		if split.Name != edgefile.Splits[train] {
			most = max(most, int(split.Count))
		}
	}
	size := int(unsafe.Sizeof(turned{}))
	most = min(most, max(int(memory/2)/size, 1))
	bytes := mem.HeapCost(int64(most * size))
	if err := budget.Reserve("edges of edge splits", bytes); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	defer budget.Release(bytes)
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	c := &reverses{s: s, dev: dev, part: make([]turned, most)}
	for i := range splits {
		if splits[i].Name == edgefile.Splits[train] {
			continue
		}
		if splits[i].Reversed, err = c.of(ctx, splits[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// turned is the reverse of an edge, comparable in the order of the files: by destination, source
// and type.
type turned struct {
	pair uint64 // destination (32) | source (32)
	typ  uint64
}

func (a turned) compare(b turned) int {
	return cmp.Or(cmp.Compare(a.pair, b.pair), cmp.Compare(a.typ, b.typ))
}

// reverses counts the edges of splits whose reverse is in train.
type reverses struct {
	s    *layout.Store
	dev  blockdev.Device
	part []turned // room for part of a split
}

// of counts such edges in one split.
func (c *reverses) of(ctx context.Context, split string) (count uint64, err error) {
	f, err := openSplit(ctx, c.s, c.dev, split)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for first := uint64(0); first < f.Count(); first += uint64(len(c.part)) {
		part := c.part[:0]
		end := min(first+uint64(len(c.part)), f.Count())
		err := f.Stream(ctx, first, end, func(_ uint64, e edgefile.Edges) error {
			for i := range e.Src {
				part = append(part, turned{uint64(e.Src[i])<<32 | uint64(e.Dst[i]), typeOf(e, i)})
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		slices.SortFunc(part, turned.compare)
		n, err := c.inTrain(ctx, part)
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

// inTrain counts the edges of a sorted part that are in train, by going through both once, side by
// side.
func (c *reverses) inTrain(ctx context.Context, part []turned) (count uint64, err error) {
	err = eachEdge(ctx, c.s, c.dev, edgefile.Splits[train], func(_ uint64, e edgefile.Edges) error {
		for i := range e.Src {
			edge := turned{uint64(e.Dst[i])<<32 | uint64(e.Src[i]), typeOf(e, i)}
			for len(part) > 0 {
				order := part[0].compare(edge)
				if order > 0 {
					break
				}
				if order == 0 && e.Src[i] != e.Dst[i] {
					count++
				}
				part = part[1:]
			}
		}
		return nil
	})
	return count, err
}

// openSplit opens the file of a split that the catalog need not list yet.
func openSplit(ctx context.Context, s *layout.Store, dev blockdev.Device, split string) (
	*edgefile.File, error) {
	return edgefile.OpenFile(ctx, s, dev, edgefile.Path(split),
		edgefile.SpecOf(s.Meta(), edgefile.Kind(split)))
}

// eachEdge calls fn with all edges of a split, as File.Stream does.
func eachEdge(ctx context.Context, s *layout.Store, dev blockdev.Device, split string,
	fn func(at uint64, e edgefile.Edges) error) error {
	f, err := openSplit(ctx, s, dev, split)
	if err != nil {
		return err
	}
	return errors.Join(f.Stream(ctx, 0, f.Count(), fn), f.Close())
}

// typeOf returns the type of edge i, 0 if edges have none.
func typeOf(e edgefile.Edges, i int) uint64 {
	if len(e.Rel) == 0 {
		return 0
	}
	return uint64(e.Rel[i])
}

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
func (u *unseen) mark(ctx context.Context, split string, set []uint64, types []bool) error {
	return eachEdge(ctx, u.s, u.dev, split, func(_ uint64, e edgefile.Edges) error {
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
