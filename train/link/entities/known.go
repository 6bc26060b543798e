package entities

import (
	"context"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/link/triples"
)

const (
	// PassBytes is the least memory for the queries that go through a table together, and
	// passBytesMost what is taken where it is free: each pass reads all rows.
	PassBytes, passBytesMost = 8 << 20, 256 << 20
	// streamBytes are the buffers with which edges are read in the order of their file.
	streamBytes = 8 << 20
	// foundBytes is what an edge takes until it is in an index.
	foundBytes = 12
	// indexBytes bounds what an edge takes in an index, and until it is there.
	indexBytes = 64
)

// KnownBytes bounds what known answers in one of some blocks take: edges have two ends.
func KnownBytes(edges, blocks int64) int64 { return 2 * indexBytes * edges / blocks }

// Known has the edges that are known to be true, those of all splits. It implements rank.Known,
// and is for one goroutine.
type Known interface {
	// In returns an index of the edges between a query of asked and an answer in a block, and maybe
	// of more edges. It is valid until the next call.
	In(ctx context.Context, block int, asked *triples.Index) (*triples.Index, error)
	// Answers returns the known answers of a query, in ascending order.
	Answers(ctx context.Context, q triples.Query) ([]uint32, error)
	// Without returns the edges of a list that no split has, in the order of the list.
	Without(ctx context.Context, list []triples.Triple) ([]triples.Triple, error)
	// PassBytes returns about the memory for queries that go through the table together.
	PassBytes() int64
	Close() error
}

// Indexed are known edges in an index in memory.
type Indexed struct{ *triples.Index }

// In returns the index.
func (x Indexed) In(context.Context, int, *triples.Index) (*triples.Index, error) {
	return x.Index, nil
}

// Answers returns the known answers of a query, in ascending order.
func (x Indexed) Answers(_ context.Context, q triples.Query) ([]uint32, error) {
	return x.Index.Answers(q), nil
}

// Without returns the edges of a list that are not in the index.
func (x Indexed) Without(_ context.Context, list []triples.Triple) ([]triples.Triple, error) {
	return slices.DeleteFunc(list, x.Has), nil
}

// PassBytes returns 0: a pass through a table in memory costs no reads.
func (Indexed) PassBytes() int64 { return 0 }

// Close does nothing: the index is its owner's.
func (Indexed) Close() error { return nil }

// OnDisk finds known edges as they are asked for: those of train in files, the others in memory.
type OnDisk struct {
	table  *Table
	train  edges
	count  int64 // of all edges
	others [][]triples.Triple
	budget *mem.Budget
	fixed  mem.Account // until Close
	passes mem.Account // of PassBytes
	known  mem.Account // of found and its index

	// asked are the queries of the last call of In; most says how many edges have an answer to them
	// in each block at most, and found has those of the blocks from first on.
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
	count := int64(0)
	for _, e := range s.Meta().EdgeSplits {
		if e.Name == "train" {
			count = int64(e.Count)
		}
	}
	k := newOnDisk(t, &streamed{s, dev}, count, others, budget)
	// Besides the buffers: a bit for each entity and end, and counts for each block.
	err := k.fixed.Add(streamBytes + int64(t.Count())/4 + 32*int64(t.blocks()))
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return k, nil
}

// Bucketed returns the known edges of a table by partition, whose edges of train are sorted into
// buckets of the same partitions. others are the edges of the other splits.
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

// PassBytes returns about the memory for queries that go through the table together: PassBytes and
// a part of what is free, which is taken until Close.
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
// Edges are read for as many blocks as half of the free memory has room for, from this one on.
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

// each calls fn with the edges of the other splits, and with those of train that read gives.
func (k *OnDisk) each(fn func(t triples.Triple), read func(fn func(t triples.Triple)) error) error {
	for _, set := range k.others {
		for _, t := range set {
			fn(t)
		}
	}
	return read(fn)
}

// answers calls fn with all edges that answer a query in a block from first to before end.
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

// find finds the edges of the blocks from one on: of as many as half of the free memory has room
// for, and of one at least.
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
