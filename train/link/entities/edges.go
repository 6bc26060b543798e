package entities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/train/link/triples"
)

// edges gives the edges of train, which are read when they are asked for.
type edges interface {
	// near calls fn with all edges that have an end in the blocks from first up to end. It may call
	// fn with other edges too.
	near(ctx context.Context, first, end int, fn func(t triples.Triple)) error
	// like calls fn with all edges whose ends are in the same blocks as the ends of an edge of
	// list. It may call fn with other edges too.
	like(ctx context.Context, list []triples.Triple, fn func(t triples.Triple)) error
	// together returns the most blocks for which near may be called at once.
	together() int
}

// Split calls fn with the edges of a split, in the order of their file.
func Split(ctx context.Context, s *layout.Store, dev blockdev.Device, split string,
	fn func(t triples.Triple)) error {
	f, err := edgefile.Open(ctx, s, dev, split)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	err = f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
		for i := range e.Src {
			fn(tripleOf(&e, i))
		}
		return nil
	})
	return errors.Join(err, f.Close())
}

// tripleOf returns edge i of e.
func tripleOf(e *edgefile.Edges, i int) triples.Triple {
	t := triples.Triple{Head: e.Src[i], Tail: e.Dst[i]}
	if e.Rel != nil {
		t.Relation = uint32(e.Rel[i])
	}
	return t
}

// streamed gives the edges of a file, all of which are read for each question.
type streamed struct {
	store *layout.Store
	dev   blockdev.Device
}

func (s *streamed) near(ctx context.Context, _, _ int, fn func(t triples.Triple)) error {
	return Split(ctx, s.store, s.dev, "train", fn)
}

func (s *streamed) like(ctx context.Context, _ []triples.Triple, fn func(t triples.Triple)) error {
	return Split(ctx, s.store, s.dev, "train", fn)
}

func (s *streamed) together() int { return 1 << 30 }

// bucketed gives edges that are sorted by the partitions of their ends.
type bucketed struct {
	sets *partition.Buckets
	m    partition.Map
}

// blocksTogether bounds the list of buckets that a question reads: for each block it has twice as
// many as there are partitions.
const blocksTogether = 256

func (b *bucketed) together() int { return blocksTogether }

func (b *bucketed) near(ctx context.Context, first, end int, fn func(t triples.Triple)) error {
	if first == 0 && end == b.m.Parts() {
		return b.all(ctx, fn)
	}
	var list []partition.Bucket
	for part := first; part < end; part++ {
		for other := range b.m.Parts() {
			k := partition.Bucket{From: uint16(part), To: uint16(other)}
			list = append(list, k)
			if other < first || other >= end { // else it comes as another's
				list = append(list, partition.Bucket{From: k.To, To: k.From})
			}
		}
	}
	return b.read(ctx, list, fn)
}

// all calls fn with all edges, from one partition after the other.
func (b *bucketed) all(ctx context.Context, fn func(t triples.Triple)) error {
	list := make([]partition.Bucket, b.m.Parts())
	for from := range b.m.Parts() {
		for to := range list {
			list[to] = partition.Bucket{From: uint16(from), To: uint16(to)}
		}
		if err := b.read(ctx, list, fn); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucketed) like(ctx context.Context, list []triples.Triple,
	fn func(t triples.Triple)) error {
	wanted := map[partition.Bucket]bool{}
	var from []partition.Bucket
	for _, e := range list {
		head, _ := b.m.Place(layout.NodeID(e.Head))
		tail, _ := b.m.Place(layout.NodeID(e.Tail))
		k := partition.Bucket{From: uint16(head), To: uint16(tail)}
		if !wanted[k] {
			wanted[k], from = true, append(from, k)
		}
	}
	return b.read(ctx, from, fn)
}

func (b *bucketed) read(ctx context.Context, list []partition.Bucket,
	fn func(t triples.Triple)) error {
	return b.sets.Read(ctx, list, func(_ partition.Bucket, e edgefile.Edges) error {
		for i := range e.Src {
			fn(tripleOf(&e, i))
		}
		return nil
	})
}

// answersIn appends the end of an edge that answers a query, if it does.
func answersIn(out []uint32, q triples.Query, t triples.Triple) []uint32 {
	switch {
	case t.Relation != q.Relation:
	case q.Head && t.Tail == q.Entity:
		return append(out, t.Head)
	case !q.Head && t.Head == q.Entity:
		return append(out, t.Tail)
	}
	return out
}

// sortedSet sorts entities and drops duplicates.
func sortedSet(x []uint32) []uint32 {
	slices.Sort(x)
	return slices.Compact(x)
}
