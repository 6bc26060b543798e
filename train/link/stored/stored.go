// Package stored ranks with the vectors of a checkpoint that are larger than memory: they are read
// block by block, and the edges that are known to be true from the files of the splits.
package stored

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

const (
	// blockBytes is about what a block of vectors takes.
	blockBytes = 8 << 20
	// frames is how many blocks are in memory: one that is used, and one that is read.
	frames = 2
	// streamBytes are the buffers with which edges are read.
	streamBytes = 8 << 20
	// passBytes is the memory that there is at least for the queries that go through the blocks
	// together, and passBytesMost what is taken where it is free. A pass reads all vectors.
	passBytes, passBytesMost = 8 << 20, 256 << 20
	// foundBytes is what a known edge takes until it is in an index.
	foundBytes = 12
)

// Config is what Rows are made of.
type Config struct {
	Store  *layout.Store
	Device blockdev.Device
	// State is the checkpoint, and Name the array in it, of Dim columns: a row for each node.
	State  *runs.StateFile
	Name   string
	Dim    int
	Budget *mem.Budget
	// BlockRows is how many rows a block has; 0 is about 8 MiB of them, in multiples of
	// rank.BlockRows, so that scores have the bits of a model in memory.
	BlockRows int
	// Others are the edges of the splits besides train.
	Others [][]triples.Triple
}

// Rows go through the vectors of a checkpoint, a block of nodes that follow one another at a time.
// They implement rank.Rows, and are for one goroutine.
type Rows struct {
	cfg    Config
	nodes  int
	each   int // rows of a block
	arena  *mem.Arena
	frames [frames][]float32
	fixed  mem.Account // of what is there until Close
	passes mem.Account // of Bytes

	// asked are the queries of the last call of Known, counts how many edges of train and others
	// have an answer to them in each block, and found those of the blocks from first on.
	asked  *triples.Asked
	counts []uint64
	first  int
	found  [][]triples.Triple
	known  mem.Account
}

// Open takes the memory, and reads the vectors once to check them. The caller closes the state
// after the rows.
func Open(ctx context.Context, cfg Config) (r *Rows, err error) {
	r = &Rows{cfg: cfg, nodes: int(cfg.Store.Meta().Nodes), known: mem.NewAccount(cfg.Budget,
		"known answers"), passes: mem.NewAccount(cfg.Budget, "queries"),
		fixed: mem.NewAccount(cfg.Budget, "reading edges")}
	if r.each = cfg.BlockRows; r.each == 0 {
		r.each = rank.BlockRows * max(1, blockBytes/(4*cfg.Dim*rank.BlockRows))
	}
	n := min(r.each, r.nodes) * cfg.Dim
	if r.arena, err = mem.NewArena(cfg.Budget, "blocks of vectors", frames*4*int64(n)); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	values := mem.View[float32](r.arena.Bytes())
	for i := range r.frames {
		r.frames[i] = values[i*n : (i+1)*n : (i+1)*n]
	}
	// Besides the buffers: a bit for each node and end, and a count for each block.
	err = r.fixed.Add(streamBytes + int64(r.nodes)/4 + 32*int64(r.parts()))
	if err == nil {
		err = cfg.State.Check(ctx, cfg.Name, r.nodes*cfg.Dim, r.frames[0])
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("train: %w", err), r.Close())
	}
	return r, nil
}

// Close gives the memory back.
func (r *Rows) Close() error {
	for _, a := range []*mem.Account{&r.fixed, &r.passes, &r.known} {
		a.Release()
	}
	return r.arena.Free()
}

// Bytes is about the memory of the queries that go through the blocks together: passBytes and a
// part of what is free, which is taken until Close.
func (r *Rows) Bytes() int64 {
	r.passes.Release()
	more := int64(passBytesMost - passBytes)
	if limit := r.cfg.Budget.Limit(); limit > 0 {
		more = min(more, (limit-r.cfg.Budget.Used()-r.knownBytes())/4)
	}
	if more <= passBytes || r.passes.Add(more) != nil {
		return passBytes
	}
	return more
}

// knownBytes is about what the known answers in a block take at most: edges have two ends.
func (r *Rows) knownBytes() int64 {
	edges := int64(0)
	for _, e := range r.cfg.Store.Meta().EdgeSplits {
		edges += int64(e.Count)
	}
	return mem.HeapCost(2 * (foundBytes + triples.Bytes(1)) * edges / int64(r.parts()))
}

// Count is the number of entities.
func (r *Rows) Count() int { return r.nodes }

// parts is the number of blocks.
func (r *Rows) parts() int { return (r.nodes + r.each - 1) / r.each }

// Place is the block of an entity, and its row there.
func (r *Rows) Place(e uint32) (part int, row uint64) {
	return int(e) / r.each, uint64(int(e) % r.each)
}

// Each calls fn with every block, and reads the next one while fn works.
func (r *Rows) Each(ctx context.Context, fn func(p *rank.Partition) error) error {
	begin := func(part int) chan error {
		done := make(chan error, 1)
		go func() {
			defer bug.Catch()
			done <- r.read(part*r.each, r.block(part))
		}()
		return done
	}
	next := begin(0)
	for part := range r.parts() {
		err := <-next
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if part+1 < r.parts() {
			next = begin(part + 1)
		}
		rows := r.block(part)
		err = fn(&rank.Partition{Number: part, Rows: rows, Count: len(rows) / r.cfg.Dim,
			Entity: func(row int) uint32 { return uint32(part*r.each + row) }})
		if err != nil {
			if part+1 < r.parts() {
				<-next
			}
			return err
		}
	}
	return nil
}

// block is the memory of a block's rows.
func (r *Rows) block(part int) []float32 {
	rows := min(r.each, r.nodes-part*r.each)
	return r.frames[part%frames][:rows*r.cfg.Dim]
}

// read reads rows from one on.
func (r *Rows) read(first int, to []float32) error {
	return r.cfg.State.Read(r.cfg.Name, first*r.cfg.Dim, to)
}

// nearRows is how many rows there may be between two that are read together.
const nearRows = 256

// Gather writes the rows of some entities: those that are near each other come with one read.
func (r *Rows) Gather(ctx context.Context, to []float32, entities []uint32) error {
	order := make([]int, len(entities))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(entities[a]) - int(entities[b]) })
	dim := r.cfg.Dim
	for len(order) > 0 {
		first := int(entities[order[0]])
		n, last := 1, first
		for n < len(order) {
			e := int(entities[order[n]])
			if e-last > nearRows || e-first >= len(r.frames[0])/dim {
				break
			}
			n, last = n+1, e
		}
		rows := r.frames[0][:(last-first+1)*dim]
		if err := errors.Join(ctx.Err(), r.read(first, rows)); err != nil {
			return err
		}
		for _, i := range order[:n] {
			copy(to[i*dim:][:dim], rows[(int(entities[i])-first)*dim:])
		}
		order = order[n:]
	}
	return nil
}

// edges calls fn with the edges of all splits.
func (r *Rows) edges(ctx context.Context, fn func(t triples.Triple)) error {
	for _, set := range r.cfg.Others {
		for _, t := range set {
			fn(t)
		}
	}
	return Train(ctx, r.cfg.Store, r.cfg.Device, fn)
}

// Train calls fn with the edges of train, in the order of their file.
func Train(ctx context.Context, s *layout.Store, dev blockdev.Device,
	fn func(t triples.Triple)) error {
	f, err := edgefile.Open(ctx, s, dev, "train")
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	err = f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
		for i, head := range e.Src {
			t := triples.Triple{Head: head, Tail: e.Dst[i]}
			if e.Rel != nil {
				t.Relation = uint32(e.Rel[i])
			}
			fn(t)
		}
		return nil
	})
	return errors.Join(err, f.Close())
}

// Known has the edges of all splits between a query of asked and a block that has the answer. It is
// valid until the next call. The edges are gone through once for as many blocks as there is memory
// for, from this one on.
func (r *Rows) Known(ctx context.Context, part int, asked *triples.Index) (*triples.Index, error) {
	if r.asked == nil || r.asked.Index != asked {
		r.asked, r.found = triples.NewAsked(asked, r.nodes), nil
		r.counts = make([]uint64, r.parts())
		err := r.answers(ctx, func(part int, _ triples.Triple) { r.counts[part]++ })
		if err != nil {
			return nil, err
		}
	}
	if part < r.first || part >= r.first+len(r.found) {
		if err := r.find(ctx, part); err != nil {
			return nil, err
		}
	}
	return triples.NewIndex(r.found[part-r.first]), nil
}

// answers calls fn with all edges that answer a query, and the block of the answer.
func (r *Rows) answers(ctx context.Context, fn func(part int, t triples.Triple)) error {
	return r.edges(ctx, func(t triples.Triple) {
		tail, head := -1, -1
		if r.asked.ForTail(t) {
			tail = int(t.Tail) / r.each
			fn(tail, t)
		}
		if r.asked.ForHead(t) {
			if head = int(t.Head) / r.each; head != tail {
				fn(head, t)
			}
		}
	})
}

// find finds the edges of the blocks from one on: of as many as half of the free memory holds, and
// of one at least.
func (r *Rows) find(ctx context.Context, part int) error {
	r.found = nil
	r.known.Release()
	free := int64(1) << 40
	if limit := r.cfg.Budget.Limit(); limit > 0 {
		free = (limit - r.cfg.Budget.Used()) / 2
	}
	end, count, largest := part, uint64(0), uint64(0)
	bytes := func() int64 { return foundBytes*int64(count) + triples.Bytes(int64(largest)) }
	for ; end < r.parts(); end++ {
		before, most := count, largest
		count, largest = count+r.counts[end], max(largest, r.counts[end])
		if end > part && mem.HeapCost(bytes()) > free {
			count, largest = before, most
			break
		}
	}
	if err := r.known.Add(bytes()); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	r.first = part
	for _, n := range r.counts[part:end] {
		r.found = append(r.found, make([]triples.Triple, 0, n))
	}
	return r.answers(ctx, func(part int, t triples.Triple) {
		if i := part - r.first; i >= 0 && i < len(r.found) {
			r.found[i] = append(r.found[i], t)
		}
	})
}

// Answers are the known answers of a query in all splits, in ascending order.
func (r *Rows) Answers(ctx context.Context, q triples.Query) (out []uint32, err error) {
	err = r.edges(ctx, func(t triples.Triple) {
		switch {
		case t.Relation != q.Relation:
		case q.Head && t.Tail == q.Entity:
			out = append(out, t.Head)
		case !q.Head && t.Head == q.Entity:
			out = append(out, t.Tail)
		}
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// Without are the edges of a list that no split has, in the order of the list.
func (r *Rows) Without(ctx context.Context, list []triples.Triple) ([]triples.Triple, error) {
	has := map[triples.Triple]bool{}
	for _, t := range list {
		has[t] = false
	}
	err := r.edges(ctx, func(t triples.Triple) {
		if _, asked := has[t]; asked {
			has[t] = true
		}
	})
	return slices.DeleteFunc(list, func(t triples.Triple) bool { return has[t] }), err
}
