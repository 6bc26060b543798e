package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/layout/listfile"
)

// live reads a store that was appended to: the lists of its base by a reader of any kind, and those
// of all levels, merged, from memory. A list is the sorted union of both; where neighbors are
// equal, entries of the base come first and those of later levels last.
type live struct {
	Reader // of the base
	added  *added
	nodes  uint64 // lists: one a node, or in a typed store one for each of its relations
	budget *mem.Budget
	note   string // why lists are merged when entries are drawn, if they need not be
}

// openLive opens the lists of a store with levels.
func openLive(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (Reader, error) {
	base, err := openLists(ctx, s.Base(), dev, dir, opt)
	if err != nil {
		return nil, err
	}
	l := &live{Reader: base, nodes: layout.CountLists(s.Meta(), dir), budget: opt.Budget}
	if l.added, err = loadAdded(ctx, s, dev, dir, opt.Budget); err == nil {
		err = l.added.place(ctx, base)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Nodes and Edges return the number of lists and of their entries.
func (l *live) Nodes() uint64 { return l.nodes }

// Edges returns the number of entries.
func (l *live) Edges() uint64 {
	return l.Reader.Edges() + uint64(len(l.added.nbrs)) - uint64(len(l.added.lost))
}

// Stats returns those of the base, with the memory of the levels.
func (l *live) Stats() Stats {
	st := l.Reader.Stats()
	st.Bytes += l.added.bytes()
	st.Neighbors.Note = cmp.Or(st.Neighbors.Note, l.note)
	return st
}

// Close closes the base and frees the memory of the levels.
func (l *live) Close() error {
	err := l.Reader.Close()
	if l.added != nil {
		err = errors.Join(err, l.added.free())
	}
	return err
}

// NewSession returns a session for one goroutine.
func (l *live) NewSession() Session {
	return &liveSession{l: l, base: l.Reader.NewSession(),
		held: mem.NewAccount(l.budget, "lists with levels")}
}

// liveSession takes, beside the session of the base, 24 bytes for each node of a frontier, 4 for
// each position that Gather takes, 12 more for one that levels have, and a copy of the lists that
// Lists returns.
type liveSession struct {
	l    *live
	base Session
	held mem.Account

	lists  []uint32        // of the frontier: the list of each node in added, or none
	spans  []listSpan      // which entries of added that is
	inBase []layout.NodeID // the nodes of the frontier that the base has
	deg    []uint32        // their degrees there
	plain  bool            // the base has all lists of the frontier

	off, pos []uint32 // what is asked of the base, in the order of what is asked for
	entries  []uint64 // what is asked of added
	own      []uint32 // parallel to entries: which of all that is asked for it is, ascending

	whole   listfile.Lists
	merging columnMerge
}

func (s *liveSession) account() error {
	w := &s.whole
	words := cap(s.lists) + cap(s.inBase) + cap(s.deg) + cap(s.off) + cap(s.pos) + cap(s.own) +
		cap(w.Nbrs) + cap(w.Weights)
	return s.held.AtLeast(4*int64(words) + 8*int64(cap(w.Off)+cap(w.Times)+cap(s.entries)) +
		16*int64(cap(s.spans)) + 2*int64(cap(w.Types)) + s.merging.bytes())
}

// find finds the lists of nodes.
func (s *liveSession) find(nodes []layout.NodeID) error {
	s.lists, s.inBase, s.plain = mem.Resize(s.lists, len(nodes)), s.inBase[:0], true
	s.spans = mem.Resize(s.spans, len(nodes))
	a, inBase := s.l.added, s.l.Reader.Nodes()
	for i, v := range nodes {
		if uint64(v) >= s.l.nodes {
			return layout.OutOfRange(v, s.l.nodes)
		}
		list := a.list(v)
		if s.lists[i], s.spans[i] = list, (listSpan{}); list != none {
			from, to := a.span(list)
			s.spans[i], s.plain = listSpan{from, uint32(to - from)}, false
		}
		if uint64(v) < inBase {
			s.inBase = append(s.inBase, v)
		}
	}
	s.plain = s.plain && len(s.inBase) == len(nodes)
	return s.account()
}

// Degrees writes how many entries the base and all levels have for each node.
func (s *liveSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	if err := s.find(nodes); err != nil {
		return err
	}
	if s.plain {
		return s.base.Degrees(ctx, nodes, deg)
	}
	s.deg = mem.Resize(s.deg, len(s.inBase))
	if err := s.base.Degrees(ctx, s.inBase, s.deg); err != nil {
		return err
	}
	k, inBase := 0, s.l.Reader.Nodes()
	for i, v := range nodes {
		sum := uint64(0)
		if uint64(v) < inBase {
			sum += uint64(s.deg[k])
			k++
		}
		if s.lists[i] != none {
			sum += uint64(s.spans[i].count) - uint64(len(s.l.added.lostOf(s.lists[i])))
		}
		if deg[i] = uint32(sum); sum>>32 != 0 {
			return fmt.Errorf("layout: node %d has 2^32 neighbors or more", v)
		}
	}
	return nil
}

// split finds where the positions that are asked for are: it collects the entries of added, and
// those for the base. It follows Degrees.
func (s *liveSession) split(off, pos []uint32) {
	a, n := s.l.added, int(off[len(s.lists)]-off[0])
	s.off = append(s.off[:0], 0)
	s.pos = mem.Resize(s.pos, n)
	s.entries, s.own = s.entries[:0], s.own[:0]
	k := 0 // positions for the base so far
	for i, list := range s.lists {
		if list == none {
			k += copy(s.pos[k:], pos[off[i]:off[i+1]])
		} else {
			k = s.splitList(i, k, off[i]-off[0], pos[off[i]:off[i+1]])
		}
		if list == none || list < a.inBase {
			s.off = append(s.off, uint32(k))
		}
	}
	s.pos = s.pos[:k]
}

// splitList is split of list i of the frontier, whose positions are those asked for from e on.
// Positions for the base go to place k and on; it returns where the next goes.
func (s *liveSession) splitList(i, k int, e uint32, pos []uint32) int {
	a, of := s.l.added, s.spans[i]
	places, lost := a.places[of.first:][:of.count], a.lostOf(s.lists[i])
	for j, x := range pos {
		below := lower(places, x)
		if below < len(places) && places[below] == x {
			s.entries = append(s.entries, of.first+uint64(below))
			s.own = append(s.own, e+uint32(j))
			continue
		}
		s.pos[k] = x - uint32(below)
		if len(lost) > 0 {
			s.pos[k] = kept(lost, s.pos[k])
		}
		k++
	}
	return k
}

// lower returns how many of ascending values are below x. Nothing in its loop is a branch that
// depends on the values, so that searches in several lists overlap.
func lower(values []uint32, x uint32) int {
	at := 0
	for n := len(values); n > 0; {
		half := n / 2
		next := at
		if values[at+half] < x {
			next = at + n - half
		}
		at, n = next, half
	}
	return at
}

// Gather writes entries by their positions in the union.
func (s *liveSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	if s.plain {
		return s.base.Gather(ctx, off, pos, out)
	}
	s.split(off, pos)
	out = out[off[0]:off[len(s.lists)]]
	if err := s.base.Gather(ctx, s.off, s.pos, out); err != nil {
		return err
	}
	spread(s, out, s.l.added.nbrs)
	return s.account()
}

// spread moves what the base gave, which is at the front of out, to the places where it is asked
// for, and takes the rest from values of added.
func spread[T, V layout.NodeID | uint32 | uint16 | float32](s *liveSession, out []T, values []V) {
	for k := len(s.own) - 1; k >= 0; k-- {
		at := int(s.own[k])
		copy(out[at+1:], out[at-k:len(out)-k-1])
		out[at], out = T(values[s.entries[k]]), out[:at]
	}
}

// GatherAttributes writes weights and types of entries by their positions in the union.
func (s *liveSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	r, ok := s.base.(AttributeReader)
	switch {
	case !ok:
		return Unread("weights and types")
	case s.plain:
		return r.GatherAttributes(ctx, off, pos, to)
	case !to.place(off, pos):
		return ctx.Err()
	}
	of := Attributes{}
	s.split(off, pos)
	if to.Weights != nil {
		of.Weights = to.Weights[off[0]:off[len(s.lists)]]
	}
	if to.Types != nil {
		of.Types = to.Types[off[0]:off[len(s.lists)]]
	}
	if err := r.GatherAttributes(ctx, s.off, s.pos, of); err != nil {
		return err
	}
	if to.Weights != nil {
		spread(s, of.Weights, s.l.added.weights)
	}
	if to.Types != nil {
		spread(s, of.Types, s.l.added.types)
	}
	return s.account()
}

// Lists copies the union of the lists of each node.
func (s *liveSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	if err := s.find(nodes); err != nil {
		return nil, err
	}
	if s.plain {
		return s.base.Lists(ctx, nodes)
	}
	l, err := s.base.Lists(ctx, s.inBase)
	if err != nil {
		return nil, err
	}
	w, k := &s.whole, 0
	*w = listfile.Lists{Off: append(w.Off[:0], 0), Nbrs: w.Nbrs[:0], Types: w.Types[:0],
		Weights: w.Weights[:0], Times: w.Times[:0]}
	inBase := s.l.Reader.Nodes()
	for i, v := range nodes {
		from, to := uint64(0), uint64(0)
		if uint64(v) < inBase {
			from, to = l.Off[k], l.Off[k+1]
			k++
		}
		s.l.added.appendUnion(w, l, from, to, s.lists[i])
		w.Off = append(w.Off, uint64(len(w.Nbrs)))
	}
	a := s.l.added
	if a.types == nil {
		w.Types = nil
	}
	if a.weights == nil {
		w.Weights = nil
	}
	if a.times == nil {
		w.Times = nil
	}
	return w, s.account()
}

// Release ends the session.
func (s *liveSession) Release() {
	s.base.Release()
	s.held.Release()
}

// Unread returns the error of lists that tell something of their edges in no way, or in one that
// does not merge levels.
func Unread(what string) error {
	return fmt.Errorf("layout: the %s of edges cannot be read from these lists; where a store was "+
		"appended to, %s compact STORE merges what they lack", what, message.Program)
}

// none stands for the list of a node that no level has one for.
const none = ^uint32(0)

// listSpan is a list of added: its first entry, and how many it has.
type listSpan struct {
	first uint64
	count uint32
}

// appendUnion appends the union of entries from … to-1 of base, but for those that are gone, and of
// a list.
func (a *added) appendUnion(w *listfile.Lists, base *listfile.Lists, from, to uint64, list uint32) {
	if list == none {
		take(w, base, from, to)
		return
	}
	own := listfile.Lists{Nbrs: a.nbrs, Types: a.types, Weights: a.weights, Times: a.times}
	a.union(list, uint32(to-from), func(lo, hi uint32) {
		take(w, base, from+uint64(lo), from+uint64(hi))
	}, func(lo, hi uint64) { take(w, &own, lo, hi) })
}

// union calls base with ranges of positions in a list of the base, which has n entries, and own
// with ranges of entries of a, in the order of the union of both.
func (a *added) union(list, n uint32, base func(from, to uint32), own func(from, to uint64)) {
	lost, from, stayed := a.lostOf(list), uint32(0), uint32(0)
	upTo := func(stay uint32) { // passes entries of the base until stay of those that stay are
		for stayed < stay {
			end := from + stay - stayed
			if len(lost) > 0 {
				end = min(end, lost[0])
			}
			if from < end {
				base(from, end)
			}
			stayed += end - from
			if from = end; len(lost) > 0 && lost[0] == end {
				from, lost = end+1, lost[1:]
			}
		}
	}
	all := n - uint32(len(lost))
	first, end := a.span(list)
	for at := first; at < end; {
		stay, to := a.places[at]-uint32(at-first), at+1
		for to < end && a.places[to]-uint32(to-first) == stay {
			to++
		}
		upTo(stay)
		own(at, to)
		at = to
	}
	upTo(all)
}

// take appends entries from … to-1 of lists.
func take(w, of *listfile.Lists, from, to uint64) {
	w.Nbrs = append(w.Nbrs, of.Nbrs[from:to]...)
	if of.Types != nil {
		w.Types = append(w.Types, of.Types[from:to]...)
	}
	if of.Weights != nil {
		w.Weights = append(w.Weights, of.Weights[from:to]...)
	}
	if of.Times != nil {
		w.Times = append(w.Times, of.Times[from:to]...)
	}
}

// scanLists and scanEntries bound what Scan reads together of a store with levels.
const scanLists, scanEntries = 1 << 12, 1 << 16

// scanCache is the block cache of Scan, in bytes.
const scanCache = 4 << 20

// ScanBytes returns the memory that Scan of a store with levels takes.
func ScanBytes(s *layout.Store, dir layout.Direction) int64 {
	return PagedBytes(s, dir, scanCache) + OverflowBytes +
		SessionBytes("", scanLists, scanEntries)
}

// Scan is listfile.Scan of a store that may have levels, whose lists are merged: it takes the
// memory of these then, and a block cache of 4 MiB; see ScanBytes.
func Scan(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error {
	if len(s.Levels()) == 0 {
		return listfile.Scan(ctx, s, dev, dir, fn)
	}
	t, err := Open(ctx, s, dev, dir, Options{CacheBytes: scanCache})
	if err != nil {
		return err
	}
	return errors.Join(ScanOpen(ctx, t, fn), t.Close())
}

// ScanOpen is Scan of lists that are open.
func ScanOpen(ctx context.Context, t Reader,
	fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error {
	session := t.NewSession()
	defer session.Release()
	nodes := make([]layout.NodeID, 0, scanLists)
	for v := uint64(0); v < t.Nodes(); v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < t.Nodes() && len(nodes) < scanLists; u++ {
			nodes = append(nodes, layout.NodeID(u))
		}
		most := ListsMost{Nodes: scanLists, Entries: scanEntries}
		err := EachList(ctx, session, nodes, most, func(some []layout.NodeID,
			l *listfile.Lists) (bool, error) {
			return true, fn(some[0], false, l)
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
