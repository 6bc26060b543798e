package paged

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/train/embedding/partfile"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// passBytes is the memory that there is at least for the queries that go through the partitions
// together, and passBytesMost what is taken where it is free. A pass reads all vectors and edges.
const passBytes, passBytesMost = 8 << 20, 256 << 20

// Rows go through the vectors of all entities, partition by partition. They implement rank.Rows,
// and are for one goroutine.
type Rows struct {
	dir    *partfile.Dir
	sets   *partition.Buckets
	m      partition.Map
	frames [][]float32 // that a partition is read to
	budget *mem.Budget
	others [][]triples.Triple // edges that are known to be true besides those of train
	known  mem.Account
	passes mem.Account    // of Bytes
	asked  *triples.Asked // of the last call of Known; nil before the first
	arena  *mem.Arena     // of the frames; nil if they are another's
	close  func() error   // of what was opened with them
}

// Rows empties the buffer, and uses its memory until the next Load. others are the edges of the
// splits besides train. With best, the vectors are those of the best evaluation.
func (s *Source) Rows(ctx context.Context, others [][]triples.Triple, best bool) (*Rows, error) {
	if err := s.buf.Empty(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	s.set = -1
	spec := s.dir.Spec()
	r := &Rows{dir: s.dir, sets: s.sets, m: spec.Map, frames: s.buf.Frames(),
		budget: s.cfg.Budget, others: others}
	if best {
		r.dir = s.dir.Best()
	}
	return r, nil
}

// rowsFrames is how many partitions Rows have in memory: one that is used, and one that is read.
const rowsFrames = 2

// OpenRows opens the vectors of a record to read them only. Their edges are sorted into buckets if
// they are not: note says so.
func OpenRows(ctx context.Context, cfg Config, record []byte,
	others [][]triples.Triple) (r *Rows, note string, err error) {
	spec, err := cfg.Plan.spec(cfg.Store.Meta())
	if err != nil {
		return nil, "", err
	}
	spec.Init = cfg.Init
	r = &Rows{m: spec.Map, budget: cfg.Budget, others: others}
	r.dir, err = partfile.View(cfg.Store.FS(), cfg.Path, cfg.Device, spec, record)
	if err != nil {
		return nil, "", err
	}
	if r.sets, note, err = openBuckets(ctx, &cfg); err != nil {
		return nil, "", err
	}
	r.close = r.sets.Close
	n := spec.FrameRows() * spec.Columns
	r.arena, err = mem.NewArena(cfg.Budget, "partitions", int64(rowsFrames*4*n))
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("train: %w", err), r.Close())
	}
	values := mem.View[float32](r.arena.Bytes())
	for i := range rowsFrames {
		r.frames = append(r.frames, values[i*n:(i+1)*n:(i+1)*n])
	}
	return r, note, nil
}

// Close frees the memory of OpenRows.
func (r *Rows) Close() (err error) {
	if r.arena != nil {
		err = r.arena.Free()
	}
	r.known.Release()
	r.passes.Release()
	if r.close != nil {
		err = errors.Join(err, r.close())
	}
	return err
}

// Bytes is about the memory of the queries that go through the partitions together: passBytes and a
// part of what is free, which is taken until Close.
func (r *Rows) Bytes() int64 {
	r.passes.Release()
	r.passes = mem.NewAccount(r.budget, "queries")
	more := int64(passBytesMost - passBytes)
	if limit := r.budget.Limit(); limit > 0 {
		known := mem.HeapCost(knownBytes(int64(r.sets.Edges()), int64(r.m.Parts())))
		more = min(more, (limit-r.budget.Used()-known)/4)
	}
	if more <= 0 || r.passes.Add(mem.HeapCost(more)) != nil {
		return passBytes
	}
	return passBytes + more
}

// Count is the number of entities.
func (r *Rows) Count() int { return int(r.m.Spec().Nodes) }

// Place is the partition of an entity, and its row there.
func (r *Rows) Place(e uint32) (part int, row uint64) { return r.m.Place(layout.NodeID(e)) }

// Each calls fn with every partition, and reads the next one while fn works.
func (r *Rows) Each(ctx context.Context, fn func(p *rank.Partition) error) error {
	all := make([]int, r.m.Parts())
	for i := range all {
		all[i] = i
	}
	return r.each(ctx, all, fn)
}

// each calls fn with some partitions.
func (r *Rows) each(ctx context.Context, parts []int, fn func(p *rank.Partition) error) error {
	begin := func(i int) chan error {
		done := make(chan error, 1)
		go func() {
			defer bug.Catch()
			_, err := r.dir.Read(ctx, parts[i], [][]float32{r.frames[i%len(r.frames)]})
			done <- err
		}()
		return done
	}
	var next chan error
	for i, part := range parts {
		if next == nil {
			next = begin(i)
		}
		err := <-next
		if next = nil; err != nil {
			return err
		}
		if i+1 < len(parts) && len(r.frames) > 1 {
			next = begin(i + 1)
		}
		err = fn(&rank.Partition{Number: part, Rows: r.frames[i%len(r.frames)],
			Count: int(r.m.Size(part)), Entity: func(row int) uint32 {
				return uint32(r.m.Node(part, uint64(row)))
			}})
		if err != nil {
			if next != nil {
				<-next
			}
			return err
		}
	}
	return nil
}

// Gather writes the rows of some entities: it goes through the partitions that have them.
func (r *Rows) Gather(ctx context.Context, to []float32, entities []uint32) error {
	columns := r.dir.Spec().Columns
	type want struct{ part, row, at uint32 }
	wanted := make([]want, len(entities))
	for i, e := range entities {
		part, row := r.Place(e)
		wanted[i] = want{uint32(part), uint32(row), uint32(i)}
	}
	slices.SortFunc(wanted, func(a, b want) int {
		return int(int64(uint64(a.part)<<32|uint64(a.row)) - int64(uint64(b.part)<<32|
			uint64(b.row)))
	})
	var parts []int
	for i, w := range wanted {
		if i == 0 || w.part != wanted[i-1].part {
			parts = append(parts, int(w.part))
		}
	}
	return r.each(ctx, parts, func(p *rank.Partition) error {
		for len(wanted) > 0 && int(wanted[0].part) == p.Number {
			w := wanted[0]
			copy(to[int(w.at)*columns:][:columns], p.Rows[int(w.row)*columns:][:columns])
			wanted = wanted[1:]
		}
		return nil
	})
}

// Known has the edges of all splits between a query of asked and a partition that has the answer.
// It is valid until the next call.
func (r *Rows) Known(ctx context.Context, part int, asked *triples.Index) (*triples.Index, error) {
	r.known.Release()
	r.known = mem.NewAccount(r.budget, "known answers")
	if r.asked == nil || r.asked.Index != asked {
		r.asked = triples.NewAsked(asked, r.Count())
	}
	var found []triples.Triple
	add := func(t triples.Triple, toPart, fromPart bool) {
		if toPart && r.asked.ForTail(t) || fromPart && r.asked.ForHead(t) {
			found = append(found, t)
		}
	}
	for _, set := range r.others {
		for _, t := range set {
			from, _ := r.Place(t.Head)
			to, _ := r.Place(t.Tail)
			add(t, to == part, from == part)
		}
	}
	err := r.sets.Read(ctx, r.bucketsOf(part), func(k partition.Bucket, e edgefile.Edges) error {
		for i := range e.Src {
			add(tripleOf(&e, i), int(k.To) == part, int(k.From) == part)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.known.Add(triples.Bytes(int64(len(found)))); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return triples.NewIndex(found), nil
}

// tripleOf is edge i of some.
func tripleOf(e *edgefile.Edges, i int) triples.Triple {
	t := triples.Triple{Head: e.Src[i], Tail: e.Dst[i]}
	if e.Rel != nil {
		t.Relation = uint32(e.Rel[i])
	}
	return t
}

// bucketsOf are those between a partition and all.
func (r *Rows) bucketsOf(part int) (out []partition.Bucket) {
	for other := range r.m.Parts() {
		k := partition.Bucket{From: uint16(part), To: uint16(other)}
		if out = append(out, k); other != part {
			out = append(out, partition.Bucket{From: k.To, To: k.From})
		}
	}
	return out
}

// Answers are the known answers of a query in all splits, in ascending order.
func (r *Rows) Answers(ctx context.Context, q triples.Query) ([]uint32, error) {
	var out []uint32
	add := func(e triples.Triple) {
		switch {
		case e.Relation != q.Relation:
		case q.Head && e.Tail == q.Entity:
			out = append(out, e.Head)
		case !q.Head && e.Head == q.Entity:
			out = append(out, e.Tail)
		}
	}
	for _, set := range r.others {
		for _, e := range set {
			add(e)
		}
	}
	part, _ := r.Place(q.Entity)
	err := r.sets.Read(ctx, r.bucketsOf(part), func(_ partition.Bucket, e edgefile.Edges) error {
		for i := range e.Src {
			add(tripleOf(&e, i))
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// Without are the edges of a list that no split has, in the order of the list.
func (r *Rows) Without(ctx context.Context, list []triples.Triple) ([]triples.Triple, error) {
	has := map[triples.Triple]bool{}
	for _, e := range list {
		has[e] = false
	}
	note := func(e triples.Triple) {
		if _, asked := has[e]; asked {
			has[e] = true
		}
	}
	for _, set := range r.others {
		for _, e := range set {
			note(e)
		}
	}
	wanted := map[partition.Bucket]bool{}
	var from []partition.Bucket
	for _, e := range list {
		head, _ := r.Place(e.Head)
		tail, _ := r.Place(e.Tail)
		k := partition.Bucket{From: uint16(head), To: uint16(tail)}
		if !wanted[k] {
			wanted[k], from = true, append(from, k)
		}
	}
	err := r.sets.Read(ctx, from, func(_ partition.Bucket, e edgefile.Edges) error {
		for i := range e.Src {
			note(tripleOf(&e, i))
		}
		return nil
	})
	return slices.DeleteFunc(list, func(e triples.Triple) bool { return has[e] }), err
}
