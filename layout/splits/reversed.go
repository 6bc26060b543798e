package splits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	f, err := c.open(ctx, split)
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
	f, err := c.open(ctx, edgefile.Splits[train])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
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

func (c *reverses) open(ctx context.Context, split string) (*edgefile.File, error) {
	spec := edgefile.SpecOf(c.s.Meta(), edgefile.Kind(split))
	return edgefile.OpenFile(ctx, c.s, c.dev, edgefile.Path(split), spec)
}

// typeOf returns the type of edge i, 0 if edges have none.
func typeOf(e edgefile.Edges, i int) uint64 {
	if len(e.Rel) == 0 {
		return 0
	}
	return uint64(e.Rel[i])
}
