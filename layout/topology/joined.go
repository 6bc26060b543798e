package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// joined reads a typed store by node: the list of a node is its lists by all relations, one after
// the other, and an entry's type is the relation of its list.
type joined struct {
	Reader  // of each list by itself
	numbers *layout.NodeLists
	budget  *mem.Budget
}

// join makes a reader by node of one of lists.
func join(r Reader, numbers *layout.NodeLists, budget *mem.Budget) Reader {
	if numbers == nil {
		return r
	}
	return &joined{Reader: r, numbers: numbers, budget: budget}
}

// ByList returns the reader of a typed store's single lists, by their numbers. Of other readers it
// returns t itself, and no numbers: each node has one list.
func ByList(t Reader) (Reader, *layout.NodeLists) {
	switch t := t.(type) {
	case *joined:
		return t.Reader, t.numbers
	case *Windows:
		return t, t.numbers
	}
	return t, nil
}

// Nodes returns the number of nodes.
func (j *joined) Nodes() uint64 { return j.numbers.Nodes() }

// NewSession returns a session for one goroutine.
func (j *joined) NewSession() Session {
	s := &joinedSession{numbers: j.numbers, under: j.Reader.NewSession(),
		held: mem.NewAccount(j.budget, "lists by relation")}
	if under, ok := s.under.(TimedSession); ok {
		return &joinedTimed{joinedSession: s, under: under}
	}
	return s
}

// joinedTimed reads all lists of a node as of its time: they stand in the order of their numbers,
// and only the entries of each in the order of time.
type joinedTimed struct {
	*joinedSession
	under TimedSession
	times []int64 // of nodes
	of    []int64 // of their lists
}

// AsOf sets the times of the nodes of the next Degrees.
func (s *joinedTimed) AsOf(times []int64) {
	if s.times = times; times == nil {
		s.under.AsOf(nil)
	}
}

// Degrees writes how many entries of all lists of each node count.
func (s *joinedTimed) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	if s.times != nil {
		if err := s.expand(nodes); err != nil {
			return err
		}
		s.of = s.of[:0]
		for i, t := range s.times {
			first, end := s.joinedSession.of(i)
			for ; first < end; first++ {
				s.of = append(s.of, t)
			}
		}
		s.under.AsOf(s.of)
	}
	return s.joinedSession.Degrees(ctx, nodes, deg)
}

// joinedSession takes, beside the session of lists, 12 bytes for each list of a frontier, and 16
// for each position that Gather takes.
type joinedSession struct {
	numbers *layout.NodeLists
	under   Session
	held    mem.Account

	// lists has the lists of the frontier, of node i those up to ends[i]; deg has their lengths.
	lists []layout.NodeID
	ends  []uint32
	deg   []uint32

	// Entries that are asked for, list by list: their positions in lists, and where they are in
	// what is asked for.
	off, pos, place []uint32
	nbrs            []layout.NodeID
	weights         []float32
	relations       []uint16 // of lists

	whole listfile.Lists
}

func (s *joinedSession) bytes() int64 {
	return 4*int64(cap(s.lists)+cap(s.ends)+cap(s.deg)+cap(s.off)+cap(s.pos)+cap(s.place)+
		cap(s.nbrs)+cap(s.weights)) + 2*int64(cap(s.relations))
}

// expand finds the lists of nodes.
func (s *joinedSession) expand(nodes []layout.NodeID) (err error) {
	s.lists, s.ends, err = s.numbers.Expand(nodes, s.lists[:0], s.ends[:0])
	s.relations = mem.Resize(s.relations, len(s.lists))
	s.numbers.Relations(s.lists, func(i int, r uint16) { s.relations[i] = r })
	return errors.Join(err, s.held.AtLeast(s.bytes()))
}

// of returns which lists of the frontier belong to node i.
func (s *joinedSession) of(i int) (first, end uint32) {
	if i > 0 {
		first = s.ends[i-1]
	}
	return first, s.ends[i]
}

// Degrees writes how many entries all lists of each node have.
func (s *joinedSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	if err := s.expand(nodes); err != nil {
		return err
	}
	s.deg = mem.Resize(s.deg, len(s.lists))
	if err := s.under.Degrees(ctx, s.lists, s.deg); err != nil {
		return err
	}
	for i := range nodes {
		sum := uint64(0)
		for first, end := s.of(i); first < end; first++ {
			sum += uint64(s.deg[first])
		}
		if deg[i] = uint32(sum); sum>>32 != 0 {
			return fmt.Errorf("layout: node %d has 2^32 neighbors or more", nodes[i])
		}
	}
	return ctx.Err()
}

// split finds the lists of the positions that are asked for. The positions of a node may be in any
// order.
func (s *joinedSession) split(off, pos []uint32) error {
	n := int(off[len(off)-1] - off[0])
	s.off, s.pos, s.place = mem.Resize(s.off, len(s.lists)+1), mem.Resize(s.pos, n),
		mem.Resize(s.place, n)
	clear(s.off)
	list := func(first, x uint32) (k, at uint32) {
		for k = first; x >= s.deg[k]; k++ {
			x -= s.deg[k]
		}
		return k, x
	}
	for i := range len(off) - 1 {
		first, _ := s.of(i)
		for _, x := range pos[off[i]:off[i+1]] {
			k, _ := list(first, x)
			s.off[k+1]++
		}
	}
	for k := range s.lists {
		s.off[k+1] += s.off[k]
	}
	for i := range len(off) - 1 {
		first, _ := s.of(i)
		for e := off[i]; e < off[i+1]; e++ {
			k, x := list(first, pos[e])
			s.pos[s.off[k]], s.place[s.off[k]] = x, e
			s.off[k]++ // now where the next one of list k goes; in the end, where list k ends
		}
	}
	copy(s.off[1:], s.off[:len(s.lists)])
	s.off[0] = 0
	return s.held.AtLeast(s.bytes())
}

// Gather writes entries by their positions among all of a node.
func (s *joinedSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	if err := s.split(off, pos); err != nil {
		return err
	}
	s.nbrs = mem.Resize(s.nbrs, len(s.pos))
	if err := s.under.Gather(ctx, s.off, s.pos, s.nbrs); err != nil {
		return err
	}
	for k, e := range s.place {
		out[e] = s.nbrs[k]
	}
	return ctx.Err()
}

// GatherAttributes writes weights and types of entries by their positions among all of a node.
func (s *joinedSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	if err := s.split(off, pos); err != nil {
		return err
	}
	if to.Weights != nil {
		r, ok := s.under.(AttributeReader)
		if !ok {
			return errors.New("layout: this topology cannot read the weights of edges")
		}
		s.weights = mem.Resize(s.weights, len(s.pos))
		err := r.GatherAttributes(ctx, s.off, s.pos, Attributes{Weights: s.weights})
		if err != nil {
			return err
		}
		for k, e := range s.place {
			to.Weights[e] = s.weights[k]
		}
	}
	if to.Places != nil {
		return errors.New("layout: places of entries are those in the list of a relation")
	}
	if to.Types != nil {
		for i, r := range s.relations {
			for _, e := range s.place[s.off[i]:s.off[i+1]] {
				to.Types[e] = uint32(r)
			}
		}
	}
	return ctx.Err()
}

// Columns reads the first list of each node, then the second, and so on, so that the parts of a
// node come in order.
func (s *joinedSession) Columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	r, ok := s.under.(ColumnReader)
	if !ok {
		return errors.New("layout: this topology cannot read the weights and times of edges")
	}
	var lists []layout.NodeID
	var at []int
	base, deg := make([]uint32, len(s.ends)), []uint32(nil)
	for k := range s.numbers.Most() {
		lists, at = lists[:0], at[:0]
		for i := range s.ends {
			if first, end := s.of(i); first+uint32(k) < end {
				lists, at = append(lists, s.lists[first+uint32(k)]), append(at, i)
			}
		}
		deg = mem.Resize(deg, len(lists))
		if err := r.Degrees(ctx, lists, deg); err != nil {
			return err
		}
		of := want
		if want.Skip != nil {
			of.Skip = func(i int, from uint32) bool { return want.Skip(at[i], base[at[i]]+from) }
		}
		err := r.Columns(ctx, of, func(p Part) error {
			p.List = at[p.List]
			p.From += base[p.List]
			return fn(p)
		})
		if err != nil {
			return err
		}
		for j, i := range at {
			base[i] += deg[j]
		}
	}
	return s.under.Degrees(ctx, s.lists, s.deg)
}

// Lists copies all lists of nodes.
func (s *joinedSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists,
	error) {
	if err := s.expand(nodes); err != nil {
		return nil, err
	}
	l, err := s.under.Lists(ctx, s.lists)
	if err != nil {
		return nil, err
	}
	w := &s.whole
	*w = listfile.Lists{Off: append(w.Off[:0], 0), Types: mem.Resize(w.Types, len(l.Nbrs)),
		Nbrs: l.Nbrs, Weights: l.Weights, Times: l.Times}
	for _, end := range s.ends {
		w.Off = append(w.Off, l.Off[end])
	}
	for k, r := range s.relations {
		for e := l.Off[k]; e < l.Off[k+1]; e++ {
			w.Types[e] = r
		}
	}
	return w, ctx.Err()
}

// ListPart copies entries from … to-1 of all of a node, reading only the lists that hold them; of a
// session that reads whole lists, all of these.
func (s *joinedSession) ListPart(ctx context.Context, node layout.NodeID, from,
	to uint32) (*listfile.Lists, error) {
	var all [1]uint32
	nodes := []layout.NodeID{node}
	if err := s.Degrees(ctx, nodes, all[:]); err != nil {
		return nil, err
	}
	if from > to || to > all[0] {
		return nil, fmt.Errorf("layout: entries %d to %d of node %d's lists: it has %d", from, to,
			node, all[0])
	}
	w := &s.whole
	*w = listfile.Lists{Off: append(w.Off[:0], 0, uint64(to-from)), Nbrs: w.Nbrs[:0:0],
		Types: w.Types[:0]}
	begin := uint32(0)
	for k, list := range s.lists {
		lo, hi := max(from, begin), min(to, begin+s.deg[k])
		if lo < hi {
			if err := s.appendPart(ctx, list, s.relations[k], lo-begin, hi-begin); err != nil {
				return nil, err
			}
		}
		begin += s.deg[k]
	}
	return w, ctx.Err()
}

// appendPart appends entries from … to-1 of a list.
func (s *joinedSession) appendPart(ctx context.Context, list layout.NodeID, relation uint16, from,
	to uint32) error {
	parts, ok := s.under.(PartReader)
	var l *listfile.Lists
	var err error
	if ok {
		l, err = parts.ListPart(ctx, list, from, to)
		from, to = 0, to-from
	} else {
		l, err = s.under.Lists(ctx, []layout.NodeID{list})
	}
	if err != nil {
		return err
	}
	w := &s.whole
	w.Nbrs = append(w.Nbrs, l.Nbrs[from:to]...)
	if l.Weights != nil {
		w.Weights = append(w.Weights, l.Weights[from:to]...)
	}
	if l.Times != nil {
		w.Times = append(w.Times, l.Times[from:to]...)
	}
	for range to - from {
		w.Types = append(w.Types, relation)
	}
	return nil
}

// Release ends the session.
func (s *joinedSession) Release() {
	s.under.Release()
	s.held.Release()
}
