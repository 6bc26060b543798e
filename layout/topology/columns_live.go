package topology

import (
	"context"
	"errors"
	"slices"

	"gdb/internal/mem"
)

// Columns calls fn with parts of the merged lists of the last Degrees: the entries of the base in
// the parts that its reader has, each with the entries of levels that stand before them, and the
// entries of levels that come last. Of a list that levels have a part of, all of the base is read,
// whatever Skip says of the parts that it becomes.
func (s *liveSession) Columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	r, ok := s.base.(ColumnReader)
	switch {
	case !ok:
		return Unread("weights and times")
	case s.plain:
		return r.Columns(ctx, want, fn)
	}
	c := &s.merging
	c.begin(s)
	of := Columns{Weights: want.Weights, Times: want.Times}
	if want.Skip != nil {
		of.Skip = func(k int, from uint32) bool {
			i := c.ofBase[k]
			return s.lists[i] == none && want.skips(i, from)
		}
	}
	err := r.Columns(ctx, of, func(p Part) error {
		return c.part(s, int(c.ofBase[p.List]), p, want, fn)
	})
	if err != nil {
		return err
	}
	for i := range s.lists {
		if err := c.rest(s, i, want, fn); err != nil {
			return err
		}
	}
	return errors.Join(s.account(), ctx.Err())
}

// columnMerge merges columns of the lists of a frontier.
type columnMerge struct {
	next   []uint64 // of each list, the first entry of the levels that was not passed yet
	ofBase []uint32 // which lists the base has
	columnBuffer
}

func (c *columnMerge) bytes() int64 {
	return 8*int64(cap(c.next)) + 4*int64(cap(c.ofBase)) + c.columnBuffer.bytes()
}

// begin sets where the entries of the lists of a frontier begin.
func (c *columnMerge) begin(s *liveSession) {
	c.next = mem.Resize(c.next, len(s.lists))
	c.ofBase = c.ofBase[:0]
	for i, list := range s.lists {
		if list != none {
			c.next[i], _ = s.l.added.span(list)
		}
		if list == none || list < s.l.added.inBase {
			c.ofBase = append(c.ofBase, uint32(i))
		}
	}
}

// part passes a part of the base of list i, merged with the entries of levels before its end.
func (c *columnMerge) part(s *liveSession, i int, p Part, want Columns,
	fn func(p Part) error) error {
	list, a := s.lists[i], s.l.added
	if p.List = i; list == none {
		return fn(p)
	}
	first, _ := a.span(list)
	lost := a.lostOf(list)
	k, _ := slices.BinarySearch(lost, p.From)
	stay := p.From - uint32(k) // entries of the base before this one that stay
	from := stay + uint32(c.next[i]-first)
	c.weights, c.times = c.weights[:0], c.times[:0]
	for j := range max(len(p.Weights), len(p.Times)) {
		if k < len(lost) && lost[k] == p.From+uint32(j) {
			k++
			continue
		}
		c.upTo(s, i, stay, want)
		if want.Weights {
			c.weights = append(c.weights, p.Weights[j])
		}
		if want.Times {
			c.times = append(c.times, p.Times[j])
		}
		stay++
	}
	return c.pass(i, from, want, fn)
}

// upTo takes the entries of levels that stand before entry number stay of the base in list i.
func (c *columnMerge) upTo(s *liveSession, i int, stay uint32, want Columns) {
	a := s.l.added
	first, to := a.span(s.lists[i])
	for ; c.next[i] < to && a.places[c.next[i]] <= stay+uint32(c.next[i]-first); c.next[i]++ {
		if want.Weights {
			c.weights = append(c.weights, a.weights[c.next[i]])
		}
		if want.Times {
			c.times = append(c.times, a.times[c.next[i]])
		}
	}
}

// rest passes the entries of levels in list i that come after all of the base.
func (c *columnMerge) rest(s *liveSession, i int, want Columns, fn func(p Part) error) error {
	list, a := s.lists[i], s.l.added
	if list == none {
		return nil
	}
	next := c.next[i]
	_, to := a.span(list)
	if next == to {
		return nil
	}
	p := Part{List: i, From: a.places[next]}
	if want.skips(uint32(i), p.From) {
		return nil
	}
	if want.Weights {
		p.Weights = a.weights[next:to]
	}
	if want.Times {
		p.Times = a.times[next:to]
	}
	return fn(p)
}

// pass passes the entries that were taken, unless there are none.
func (c *columnMerge) pass(i int, from uint32, want Columns, fn func(p Part) error) error {
	if max(len(c.weights), len(c.times)) == 0 || want.skips(uint32(i), from) {
		return nil
	}
	p := Part{List: i, From: from}
	if want.Weights {
		p.Weights = c.weights
	}
	if want.Times {
		p.Times = c.times
	}
	return fn(p)
}
