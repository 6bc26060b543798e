package entities

import (
	"context"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

const (
	// PassBytes is the least memory for the queries that go through a table together, and
	// passBytesMost the most that is taken if it is free. More is better, because each pass
	// reads all rows.
	PassBytes, passBytesMost = 8 << 20, 256 << 20
	// streamBytes is the size of the buffers with which edges are read in the order of their file.
	streamBytes = 8 << 20
	// foundBytes is what an edge takes until it is in an index.
	foundBytes = 12
	// indexBytes bounds what an edge takes in an index, and until it is there.
	indexBytes = 64
)

// KnownBytes bounds what the known answers in one of a number of blocks take. An edge may count for
// both of its ends.
func KnownBytes(edges, blocks int64) int64 { return 2 * indexBytes * edges / blocks }

// Known gives the edges of all splits, which are known to be true. It implements rank.Known, and
// may be used by one goroutine.
type Known interface {
	rank.Known
	// Answers returns the known answers of a query, in ascending order.
	Answers(ctx context.Context, q triples.Query) ([]uint32, error)
	// Without returns the edges of a list that no split has, in the order of the list.
	Without(ctx context.Context, list []triples.Triple) ([]triples.Triple, error)
	// PassBytes returns about the memory for queries that go through the table together.
	PassBytes() int64
	Close() error
}

// Indexed gives known edges from an index in memory.
type Indexed struct{ *triples.Index }

// In returns the index.
func (x Indexed) In(context.Context, int, *triples.Index) (*triples.Index, error) {
	return x.Index, nil
}

// Answers returns the known answers of a query, in ascending order.
func (x Indexed) Answers(_ context.Context, q triples.Query) ([]uint32, error) {
	return x.Index.Answers(q), nil
}

// Without returns the edges of a list that are not in the index. It changes the list.
func (x Indexed) Without(_ context.Context, list []triples.Triple) ([]triples.Triple, error) {
	return slices.DeleteFunc(list, x.Has), nil
}

// PassBytes returns 0, because a pass through a table in memory costs no reads.
func (Indexed) PassBytes() int64 { return 0 }

// Close does nothing: the index belongs to its owner.
func (Indexed) Close() error { return nil }

// OnDisk finds known edges when they are asked for: edges of train in files, the others in memory.
type OnDisk struct {
	table  *Table
	train  edges
	count  int64 // edges of all splits
	others [][]triples.Triple
	budget *mem.Budget
	fixed  mem.Account // held until Close
	passes mem.Account // held for PassBytes
	known  mem.Account // held for found and its index

	// asked holds the queries of the last call of In. most bounds, for each block, how many edges
	// have an answer to them in it. found holds these edges for the blocks from first on.
	asked *triples.Asked
	most  []uint64
	first int
	found [][]triples.Triple
}

func newOnDisk(t *Table, train edges, count int64, others [][]triples.Triple,
	budget *mem.Budget) *OnDisk {
	for _, set := range others {
		count += int64(len(set))
	}
	return &OnDisk{table: t, train: train, count: count, others: others, budget: budget,
		fixed:  mem.NewAccount(budget, "reading edges"),
		passes: mem.NewAccount(budget, "queries"), known: mem.NewAccount(budget, "known answers")}
}

// Streamed returns the known edges of a store; each question reads all edges of train. others are
// the edges of the other splits.
func Streamed(t *Table, s *layout.Store, dev blockdev.Device, others [][]triples.Triple,
	budget *mem.Budget) (*OnDisk, error) {
	k := newOnDisk(t, &streamed{s, dev}, int64(s.Meta().SplitEdges("train")), others, budget)
	// Besides the buffers: a bit for each entity and end, and counts for each block.
	err := k.fixed.Add(streamBytes + int64(t.Count())/4 + 32*int64(t.blocks()))
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return k, nil
}

// Bucketed returns the known edges for a table of partitions; the edges of train are sorted into
// buckets by the same partitions. others are the edges of the other splits.
func Bucketed(t *Table, sets *partition.Buckets, others [][]triples.Triple,
	budget *mem.Budget) *OnDisk {
	return newOnDisk(t, &bucketed{sets, sets.Map()}, int64(sets.Edges()), others, budget)
}

// Close gives the memory back.
func (k *OnDisk) Close() error {
	for _, a := range []*mem.Account{&k.fixed, &k.passes, &k.known} {
		a.Release()
	}
	return nil
}

// PassBytes returns about the memory for queries that go through the table together: the least, and
// a part of what is free, which is held until Close.
func (k *OnDisk) PassBytes() int64 {
	k.passes.Release()
	more := int64(passBytesMost - PassBytes)
	if limit := k.budget.Limit(); limit > 0 {
		known := mem.HeapCost(KnownBytes(k.count, int64(k.table.blocks())) + PassBytes)
		more = min(more, (limit-k.budget.Used()-known)/4)
	}
	if more <= 0 || k.passes.Add(mem.HeapCost(more)) != nil {
		return PassBytes
	}
	return PassBytes + more
}

// In returns an index of the edges of all splits between a query of asked and an answer in a block.
// It reads edges for as many blocks as half of the free memory has room for, from this one on.
func (k *OnDisk) In(ctx context.Context, block int, asked *triples.Index) (*triples.Index, error) {
	if k.asked == nil || k.asked.Index != asked {
		k.asked, k.found = triples.NewAsked(asked, k.table.Count()), nil
		k.most = make([]uint64, k.table.blocks())
		err := k.answers(ctx, 0, len(k.most), func(block int, _ triples.Triple) { k.most[block]++ })
		if err != nil {
			return nil, err
		}
	}
	if block < k.first || block >= k.first+len(k.found) {
		if err := k.find(ctx, block); err != nil {
			return nil, err
		}
	}
	return triples.NewIndex(k.found[block-k.first]), nil
}

// each calls fn with the edges of the other splits, and then lets read call it with edges of train.
func (k *OnDisk) each(fn func(t triples.Triple), read func(fn func(t triples.Triple)) error) error {
	for _, set := range k.others {
		for _, t := range set {
			fn(t)
		}
	}
	return read(fn)
}

// answers calls fn with all edges that answer a query in one of the blocks from first up to end.
func (k *OnDisk) answers(ctx context.Context, first, end int,
	fn func(block int, t triples.Triple)) error {
	inside := func(block int, t triples.Triple) {
		if block >= first && block < end {
			fn(block, t)
		}
	}
	note := func(t triples.Triple) {
		tail := -1
		if k.asked.ForTail(t) {
			tail, _ = k.table.Place(t.Tail)
			inside(tail, t)
		}
		if k.asked.ForHead(t) {
			if head, _ := k.table.Place(t.Head); head != tail {
				inside(head, t)
			}
		}
	}
	return k.each(note, func(fn func(t triples.Triple)) error {
		return k.train.near(ctx, first, end, fn)
	})
}

// find reads the edges of blocks from block on: of as many as half of the free memory has room for,
// and at least of one.
func (k *OnDisk) find(ctx context.Context, block int) error {
	k.found = nil
	k.known.Release()
	free := int64(1) << 40
	if limit := k.budget.Limit(); limit > 0 {
		free = (limit - k.budget.Used()) / 2
	}
	end, count, largest := block, uint64(0), uint64(0)
	bytes := func() int64 { return foundBytes*int64(count) + triples.Bytes(int64(largest)) }
	for ; end < min(len(k.most), block+k.train.together()); end++ {
		before, most := count, largest
		count, largest = count+k.most[end], max(largest, k.most[end])
		if end > block && mem.HeapCost(bytes()) > free {
			count, largest = before, most
			break
		}
	}
	if err := k.known.Add(bytes()); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	k.first = block
	for _, n := range k.most[block:end] {
		k.found = append(k.found, make([]triples.Triple, 0, n))
	}
	return k.answers(ctx, block, end, func(of int, t triples.Triple) {
		k.found[of-block] = append(k.found[of-block], t)
	})
}

// Answers returns the known answers of a query in all splits, in ascending order.
func (k *OnDisk) Answers(ctx context.Context, q triples.Query) (out []uint32, err error) {
	block, _ := k.table.Place(q.Entity)
	err = k.each(func(t triples.Triple) { out = answersIn(out, q, t) },
		func(fn func(t triples.Triple)) error { return k.train.near(ctx, block, block+1, fn) })
	return sortedSet(out), err
}

// Without returns the edges of a list that no split has, in the order of the list.
func (k *OnDisk) Without(ctx context.Context, list []triples.Triple) ([]triples.Triple, error) {
	has := map[triples.Triple]bool{}
	for _, t := range list {
		has[t] = false
	}
	note := func(t triples.Triple) {
		if _, asked := has[t]; asked {
			has[t] = true
		}
	}
	err := k.each(note, func(fn func(t triples.Triple)) error {
		return k.train.like(ctx, list, fn)
	})
	return slices.DeleteFunc(list, func(t triples.Triple) bool { return has[t] }), err
}
