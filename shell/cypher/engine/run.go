package engine

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"

	"gdb/internal/bug"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/group"
	"gdb/shell/cypher/vector"
)

// morselNodes is how many first nodes a thread takes at once.
const morselNodes = 1024

// sink takes batches of matches, of one thread.
type sink interface {
	// take takes the rows of a part of the first nodes; parts are numbered in their order.
	take(part int, b *batch) error
	// end is called when all rows of a part have come.
	end(part int) error
}

// run runs a plan on some threads, each with a sink of its own.
func (pl *plan) run(ctx context.Context, env *vector.Env, threads int, newSink func() sink) error {
	if err := pl.sweep(ctx, env); err != nil {
		return err
	}
	parts := pl.parts()
	return pl.share(ctx, len(parts), threads, func(ctx context.Context) (func(int) error, func()) {
		w := pl.newWorker(ctx, env, newSink())
		return func(i int) error { return w.part(i, parts[i]) }, w.release
	})
}

// share works on n parts on some threads. begin returns what a thread does with a part, and what it
// does at the end.
func (pl *plan) share(ctx context.Context, n, threads int,
	begin func(ctx context.Context) (work func(part int) error, end func())) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pl.begun.Store(0)
	var wait sync.WaitGroup
	for range min(max(threads, 1), max(n, 1)) {
		work, end := begin(ctx)
		defer end()
		wait.Go(func() {
			defer bug.Catch()
			for {
				i := int(pl.begun.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := work(i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// parts returns the first nodes, in parts: ranges, or places of anchors; or numbers of the rows of
// clauses before.
func (pl *plan) parts() []Range {
	if pl.p.in != nil {
		return pl.rowParts()
	}
	n := pl.p.nodes[pl.steps[0].node]
	if n.anchored {
		all := everything(uint64(len(n.anchor)))
		if pl.reads { // each block once, if there are few
			return all.split(uint32(pl.most))
		}
		return all.split(morselRows)
	}
	if pl.reads {
		most := max(morselNodes, n.set.Len()/(4*max(pl.src.Threads(), 1)))
		return n.set.split(uint32(min(most, pl.most)))
	}
	return n.set.split(morselNodes)
}

// worker runs the steps of a plan in one thread. Each step has one batch, which it fills and hands
// on.
type worker struct {
	*plan
	ctx    context.Context
	env    *vector.Env
	sink   sink
	number int // of the part
	outs   []*batch
	from   [][]int32  // rows of the batch before, of each step's rows
	found  [][]uint32 // the new node of each step's rows
	ents   [][][]uint32
	marks  []*adjacency.Mark
	lists  workerLists
	owners []uint32 // scratch
	held   int64    // memory that is counted
	count  *counter
	keep   []bool
	common [][]uint32 // of each step
	at     [][]uint32 // entries of each step's legs: steps run within those before
	hops   uint32     // of the rows of distances that are found
}

func (pl *plan) newWorker(ctx context.Context, env *vector.Env, s sink) *worker {
	w := &worker{plan: pl, ctx: ctx, env: env, sink: s, keep: make([]bool, pl.most),
		lists: pl.workerLists()}
	w.count = &counter{p: pl.p, env: env, lists: w.lists, nodes: pl.src.Nodes(),
		marks: map[*factor]*adjacency.Mark{}, paths: map[*ring]*adjacency.Paths{},
		last: map[*factor]counted{}, ctx: ctx, grow: w.grow}
	for _, st := range pl.steps {
		w.outs = append(w.outs, pl.newBatch(st))
		w.from = append(w.from, make([]int32, 0, pl.most))
		w.found = append(w.found, make([]uint32, 0, pl.most))
		w.ents = append(w.ents, make([][]uint32, len(st.legs)))
		w.at = append(w.at, make([]uint32, len(st.legs)))
		w.common = append(w.common, nil)
		w.marks = append(w.marks, pl.mark(st))
	}
	return w
}

// newBatch returns a batch for what a step keeps.
func (pl *plan) newBatch(s *step) *batch {
	b := &batch{p: pl.p, src: pl.src, nodes: make([][]uint32, len(pl.p.nodes)),
		ents: make([][]uint32, len(pl.p.rels)), times: make([]int64, pl.most)}
	for _, i := range s.keepNodes {
		b.nodes[i] = make([]uint32, pl.most)
	}
	for _, i := range s.keepRels {
		b.ents[i] = make([]uint32, pl.most)
	}
	if pl.p.in != nil {
		b.row = make([]uint32, pl.most)
	}
	return b
}

// mark returns what a step marks lists in; nil if it intersects none.
func (pl *plan) mark(s *step) *adjacency.Mark {
	if len(s.legs) < 2 || s.node < 0 {
		return nil
	}
	return adjacency.NewMark(pl.src.Nodes())
}

// part finds the matches that begin at the nodes of a part.
func (w *worker) part(number int, of Range) error {
	w.number = number
	var err error
	switch {
	case w.p.in != nil:
		err = w.given(of)
	case w.unlisted():
		err = w.sum(of)
	default:
		if err = w.within(0, nil, 0, of); err == nil {
			err = w.flush(0, nil)
		}
	}
	if err != nil {
		return err
	}
	return w.sink.end(number)
}

// unlisted reports whether all that is wanted of the first nodes is how many there are, or how long
// their lists are together.
func (pl *plan) unlisted() bool {
	s := pl.steps[0]
	n := pl.p.nodes[s.node]
	if len(pl.steps) > 1 || n.needed || len(s.cross)+len(s.conflicts) > 0 || n.anchored ||
		n.check != nil || n.set.Bits != nil || len(s.factors) > 1 {
		return false
	}
	return len(s.factors) == 0 || s.factors[0].isDegree() && s.factors[0].legs[0].lists != nil
}

// sum hands on a row that counts for all nodes of a range.
func (w *worker) sum(of Range) error {
	s, out := w.steps[0], w.outs[0]
	n := int64(of.End - of.From)
	s.found.Add(n)
	if len(s.factors) > 0 {
		n = s.factors[0].legs[0].lists.Degrees(of.From, of.End)
	}
	if n == 0 {
		return nil
	}
	s.out.Add(1)
	out.n, out.times[0] = 1, n
	return w.sink.take(w.number, out)
}

// within takes the nodes of a range, of anchors by their places, that the node of step k may be.
func (w *worker) within(k int, in *batch, row int, of Range) error {
	if n := w.p.nodes[w.steps[k].node]; n.anchored {
		for _, v := range n.anchor[of.From:of.End] {
			if err := w.try(k, in, row, v); err != nil {
				return err
			}
		}
		return nil
	}
	for v := of.From; v < of.End; v++ {
		if err := w.try(k, in, row, v); err != nil {
			return err
		}
	}
	return nil
}

// try adds a row for a value of the node of step k, if it may have it.
func (w *worker) try(k int, in *batch, row int, v uint32) error {
	n := w.p.nodes[w.steps[k].node]
	if ok, err := n.passes(w.env, v); err != nil || !ok {
		return err
	}
	if !n.isAnchor(v) {
		return nil
	}
	return w.add(k, in, row, v)
}

func (w *worker) add(k int, in *batch, row int, v uint32) error {
	w.from[k] = append(w.from[k], int32(row))
	w.found[k] = append(w.found[k], v)
	if len(w.found[k]) == w.most {
		return w.flush(k, in)
	}
	return nil
}

// addAll adds a row for each value of the node of step k.
func (w *worker) addAll(k int, in *batch, row int, vs []uint32) error {
	for len(vs) > 0 {
		n := min(len(vs), w.most-len(w.found[k]))
		w.found[k] = append(w.found[k], vs[:n]...)
		for range n {
			w.from[k] = append(w.from[k], int32(row))
		}
		if vs = vs[n:]; len(w.found[k]) == w.most {
			if err := w.flush(k, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// extend finds the values of the node of step k for all rows of the step before.
func (w *worker) extend(k int, in *batch) error {
	if k == len(w.steps) {
		return w.sink.take(w.number, in)
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	s := w.steps[k]
	err := w.with(s.legs, w.marks[k], in, func(from, to int) error {
		for row := from; row < to; row++ {
			if err := w.one(k, in, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.flush(k, in)
}

// one finds the values of the node of step k for a row.
func (w *worker) one(k int, in *batch, row int) error {
	s := w.steps[k]
	switch {
	case w.p.shortest != nil && s.node == pathEnd:
		return w.reached(k, in, row)
	case w.p.shortest != nil && s.node == pathLength:
		return w.add(k, in, row, w.hops)
	case s.node < 0:
		return w.combine(k, in, row, vector.NoNode, 0)
	case len(s.legs) == 0 && w.p.nodes[s.node].by != nil:
		return w.look(k, in, row)
	case len(s.legs) == 0:
		return w.all(k, in, row)
	case len(s.legs) == 1:
		return w.hop(k, in, row)
	}
	return w.close(k, in, row)
}

// all takes all values that the node may have.
func (w *worker) all(k int, in *batch, row int) error {
	n := w.p.nodes[w.steps[k].node]
	if n.anchored {
		return w.within(k, in, row, Range{0, uint32(len(n.anchor))})
	}
	for _, r := range n.set.Ranges {
		if err := w.within(k, in, row, r); err != nil {
			return err
		}
	}
	return nil
}

// hop takes the neighbors of a node.
func (w *worker) hop(k int, in *batch, row int) error {
	s := w.steps[k]
	r := s.legs[0]
	l := w.lists[r.id]
	lo, hi := l.Of(in.nodes[r.owner][row])
	if lo == hi {
		return nil
	}
	n := w.p.nodes[s.node]
	all := n.check == nil && !n.anchored && n.set.Covers(r.outline.Least, r.outline.Most)
	entries := s.entries[0]
	if all && !entries {
		return w.addAll(k, in, row, l.Nbr[lo:hi])
	}
	for i := lo; i < hi; i++ {
		v := l.Nbr[i]
		if !all {
			if ok, err := n.passes(w.env, v); err != nil {
				return err
			} else if !ok || !n.isAnchor(v) {
				continue
			}
		}
		if entries {
			if err := w.entry(k, 0, i); err != nil {
				return err
			}
		}
		if err := w.add(k, in, row, v); err != nil {
			return err
		}
	}
	return nil
}

// close takes the nodes that are in the lists of all legs.
func (w *worker) close(k int, in *batch, row int) error {
	s := w.steps[k]
	spans := func(i int) adjacency.Span {
		return w.lists.span(s.legs[i], in.nodes[s.legs[i].owner][row])
	}
	w.common[k] = w.marks[k].Intersect(spans(0), spans(1), w.common[k][:0])
	n := w.p.nodes[s.node]
	for _, v := range w.common[k] {
		if ok, err := n.passes(w.env, v); err != nil {
			return err
		} else if !ok || !n.isAnchor(v) {
			continue
		}
		if err := w.combine(k, in, row, v, 0); err != nil {
			return err
		}
	}
	return nil
}

// combine adds a row for each choice of entries of a node in the lists of the legs from the i-th
// on. Legs of a step without a node lead to nodes that are there.
func (w *worker) combine(k int, in *batch, row int, v uint32, i int) error {
	s := w.steps[k]
	if i == len(s.legs) {
		for j := range s.legs {
			if s.entries[j] {
				if err := w.entry(k, j, w.at[k][j]); err != nil {
					return err
				}
			}
		}
		return w.add(k, in, row, v)
	}
	to := v
	if s.node < 0 {
		to = in.nodes[s.legs[i].other()][row]
	}
	lo, hi := w.lists[s.legs[i].id].Find(in.nodes[s.legs[i].owner][row], to)
	for e := lo; e < hi; e++ {
		w.at[k][i] = e
		if err := w.combine(k, in, row, v, i+1); err != nil {
			return err
		}
	}
	return nil
}

// flush makes rows of what step k has found, drops those that do not match, and hands the others
// on.
func (w *worker) flush(k int, in *batch) error {
	s, out := w.steps[k], w.outs[k]
	from, found := w.from[k], w.found[k]
	if len(found) == 0 {
		return nil
	}
	out.n = len(found)
	for _, i := range s.keepNodes {
		if i == s.node {
			copy(out.nodes[i], found)
			continue
		}
		src, dst := in.nodes[i], out.nodes[i]
		for j, f := range from {
			dst[j] = src[f]
		}
	}
	for _, i := range s.keepRels {
		leg := slices.Index(s.legs, w.p.rels[i])
		if leg >= 0 {
			copy(out.ents[i], w.ents[k][leg])
			w.ents[k][leg] = w.ents[k][leg][:0]
			continue
		}
		src, dst := in.ents[i], out.ents[i]
		for j, f := range from {
			dst[j] = src[f]
		}
	}
	for j, f := range from {
		out.times[j] = 1
		if in != nil {
			out.times[j] = in.times[f]
		}
	}
	if out.row != nil {
		out.in = in.in
		for j, f := range from {
			out.row[j] = in.row[f]
		}
	}
	w.from[k], w.found[k] = from[:0], found[:0]
	return w.hand(k, out)
}

// hand hands on the rows of step k that match.
func (w *worker) hand(k int, out *batch) error {
	s := w.steps[k]
	err := w.drop(s, out)
	s.out.Add(int64(out.n))
	if err != nil || out.n == 0 {
		return err
	}
	return w.extend(k+1, out)
}

// drop takes out the rows that do not match, and multiplies the others with their factors.
func (w *worker) drop(s *step, b *batch) error {
	if p := w.pieces; p != nil && p.of > 1 && s == w.steps[p.step] {
		if err := p.filter(w.env, b, w.keep); err != nil {
			return err
		}
	}
	for _, c := range s.conflicts {
		for i := range b.n {
			w.keep[i] = !w.same(c, b, i)
		}
		b.compact(w.keep)
	}
	for _, c := range s.cross {
		if err := w.filter(c, b); err != nil {
			return err
		}
	}
	s.found.Add(int64(b.n))
	for _, f := range s.factors {
		if err := w.multiply(f, b); err != nil {
			return err
		}
		b.compact(w.keep)
	}
	return nil
}

// multiply multiplies rows with a factor, and keeps those that it does not make 0.
func (w *worker) multiply(f *factor, b *batch) error {
	return w.with(f.reads(), w.count.marks[f], b, func(from, to int) error {
		for i := from; i < to; i++ {
			n, err := w.count.count(f, b, i)
			if err == nil {
				b.times[i], err = multiply(b.times[i], n)
			}
			if err != nil {
				return err
			}
			w.keep[i] = n > 0
		}
		return nil
	})
}

func multiply(a, b int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, group.ErrMany
	}
	return int64(lo), nil
}

// same reports whether two relationships of a row are one. Entries are kept where ends do not say
// it.
func (w *worker) same(c [2]int, b *batch, row int) bool {
	if b.ents[c[0]] != nil && b.ents[c[1]] != nil {
		return b.identity(c[0], row) == b.identity(c[1], row)
	}
	return w.ends(c[0], b, row) == w.ends(c[1], b, row)
}

// ends returns the nodes that a relationship leads from and to, the lesser first if edges are
// undirected.
func (w *worker) ends(i int, b *batch, row int) Range {
	r := w.p.rels[i]
	x, y := b.nodes[r.from][row], b.nodes[r.to][row]
	if x > y && w.src.Undirected() {
		x, y = y, x
	}
	return Range{x, y}
}

// filter drops the rows for which a condition is not true.
func (w *worker) filter(c *condition, b *batch) error {
	switch {
	case c.edge != nil:
		l := w.lists[c.edge.id]
		err := w.with([]*rel{c.edge}, nil, b, func(from, to int) error {
			for i := from; i < to; i++ {
				lo, hi := l.Find(b.nodes[c.edge.owner][i], b.nodes[c.edge.other()][i])
				w.keep[i] = (lo < hi) != c.not
			}
			return nil
		})
		if err != nil {
			return err
		}
	case c.unequal:
		x, y := b.nodes[c.nodes[0]], b.nodes[c.nodes[1]]
		for i := range b.n {
			w.keep[i] = x[i] != y[i]
		}
	default:
		if err := w.env.Filter(c.x, b, w.keep[:b.n]); err != nil {
			return err
		}
	}
	b.compact(w.keep)
	return nil
}

// compact keeps the rows that are to be kept.
func (b *batch) compact(keep []bool) {
	n := 0
	for i := range b.n {
		if !keep[i] {
			continue
		}
		if n != i {
			for _, col := range b.nodes {
				if col != nil {
					col[n] = col[i]
				}
			}
			for _, col := range b.ents {
				if col != nil {
					col[n] = col[i]
				}
			}
			b.times[n] = b.times[i]
			if b.row != nil {
				b.row[n] = b.row[i]
			}
		}
		n++
	}
	b.n = n
}
