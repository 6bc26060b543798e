package engine

import (
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/vector"
)

// workerLists are the lists of the relationships of a pattern, by their ids: in memory, or of one
// worker, which reads those of the rows of a batch.
type workerLists []*adjacency.Lists

func (pl *plan) workerLists() (out workerLists) {
	for _, r := range pl.rels() {
		l := r.lists
		if l == nil {
			l = r.turn
		}
		if l == nil {
			l = &adjacency.Lists{}
		}
		out = append(out, l)
	}
	return out
}

// rels returns all relationships of the pattern, also those of conditions.
func (pl *plan) rels() []*rel {
	out := slices.Clone(pl.p.rels)
	for _, c := range pl.p.cross {
		if c.edge != nil {
			out = append(out, c.edge)
		}
	}
	return out
}

// span returns the list of an owner.
func (ls workerLists) span(r *rel, owner uint32) adjacency.Span {
	l := ls[r.id]
	lo, hi := l.Of(owner)
	return adjacency.Span{Nbr: l.Nbr[lo:hi], Node: owner}
}

// want names the lists of a relationship.
func (r *rel) want() Want { return Want{r.side, r.types} }

// wants returns all lists that a plan may have in memory.
func (pl *plan) wants() (out []Want) {
	for _, r := range pl.rels() {
		out = append(out, r.want())
	}
	return out
}

// lists estimates how many lists a plan follows.
func (pl *plan) lists() (n float64) {
	for i, s := range pl.steps {
		if i > 0 {
			n += pl.steps[i-1].rows * float64(len(s.legs))
		}
		n += s.rows * float64(len(s.reads()))
		for _, f := range s.factors {
			if f.ring != nil {
				n += float64(pl.p.nodes[f.node].set.Len())
			}
			for _, part := range f.below() {
				n += float64(pl.p.nodes[part.legs[0].owner].set.Len())
			}
		}
	}
	return n
}

// These bound the rows of a batch for which lists are read: with more of them, more of those that
// are in a block are wanted at once.
const (
	readRowsLeast = 256
	readRowsMost  = 1 << 17
	rowBytes      = 16 // and 4 for each node and relationship
)

// sizes chooses, by the memory that is left, how many rows batches have for which lists are read,
// and how much memory lists take.
func (pl *plan) sizes() error {
	threads := int64(max(pl.src.Threads(), 1))
	rels := int64(max(len(pl.rels()), 1))
	free := pl.src.Free()
	pl.room = max(free/2/threads/rels, 4<<10)
	row := rowBytes + 4*int64(len(pl.p.nodes)+len(pl.p.rels))
	rows := free / 8 / threads / int64(len(pl.steps)+1) / row
	pl.most = int(min(max(rows, readRowsLeast), readRowsMost, pl.expected()))
	return pl.src.Grow(row * int64(pl.most) * int64(len(pl.steps)+1) * threads)
}

// expectedTimes is how many times more rows than estimated a batch has room for: the memory of many
// takes longer to clear than a few rows take to find.
const expectedTimes = 4

// expected returns how many rows a batch has at most by what steps are estimated to hand on.
func (pl *plan) expected() int64 {
	rows := 0.0
	for _, s := range pl.steps {
		rows = max(rows, s.rows)
	}
	if len(pl.steps) == 0 { // a search
		return readRowsMost
	}
	return int64(max(batchRows, min(expectedTimes*rows, readRowsMost)))
}

// reads returns the relationships whose lists a factor wants.
func (f *factor) reads() []*rel {
	return append(slices.Clone(f.legs), f.minus...)
}

// with calls fn with parts of the rows of a batch, once the lists of relationships are there that
// these follow: all rows, or as many as there is memory for the lists of. m marks some of them.
func (w *worker) with(rels []*rel, m *adjacency.Mark, b *batch, fn func(from, to int) error) error {
	if !w.reads || len(rels) == 0 {
		return fn(0, b.n)
	}
	for from, to := 0, b.n; from < b.n; {
		if m != nil {
			m.Forget()
		}
		err := w.readAll(rels, b, from, to)
		var short *mem.LimitError
		if errors.As(err, &short) && to-from > 1 {
			to = from + (to-from)/2
			continue
		}
		if err == nil {
			err = fn(from, to)
		}
		if err != nil {
			return err
		}
		from, to = to, min(to+2*(to-from), b.n)
	}
	return nil
}

// readAll reads the lists of relationships for some rows.
func (w *worker) readAll(rels []*rel, b *batch, from, to int) error {
	for _, r := range rels {
		if r.lists != nil || r.turn != nil {
			continue
		}
		w.owners = append(w.owners[:0], b.nodes[r.owner][from:to]...)
		slices.Sort(w.owners)
		w.owners = slices.Compact(w.owners)
		if n := len(w.owners); w.owners[n-1] == vector.NoNode {
			w.owners = w.owners[:n-1]
		}
		l := w.lists[r.id]
		if l.HasAll(w.owners) {
			continue
		}
		had := l.Bytes()
		err := w.src.Read(w.ctx, r.want(), w.owners, l, w.room)
		w.held += l.Bytes() - had
		if err != nil {
			return err
		}
	}
	return nil
}

// grow counts memory that the worker takes.
func (w *worker) grow(bytes int64) error {
	err := w.src.Grow(bytes)
	if err == nil {
		w.held += bytes
	}
	return err
}

// release no longer counts what lists and counts have taken.
func (w *worker) release() {
	_ = w.src.Grow(-w.held) // giving back cannot fail
	w.held = 0
}

// entry notes an entry of the j-th leg of step k.
func (w *worker) entry(k, j int, i uint32) error {
	r := w.steps[k].legs[j]
	e, err := r.entry(w.lists[r.id], i)
	w.ents[k][j] = append(w.ents[k][j], e)
	return err
}

// entry returns what identityOf takes for an entry.
func (r *rel) entry(l *adjacency.Lists, i uint32) (uint32, error) {
	if r.lists != nil {
		return i, nil
	}
	return r.outline.Code(l, i)
}

// onFile says which lists a step reads, for EXPLAIN.
func (pl *plan) onFile(rels []*rel) string {
	if !pl.reads || !slices.ContainsFunc(rels, func(r *rel) bool { return r.lists == nil }) {
		return ""
	}
	if pl.turns != nil {
		return fmt.Sprintf(", from the file, about %.0f times", pl.turns.runs)
	}
	return ", from the file"
}
