package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// added has the lists of all levels in memory, merged, by the numbers of the whole store: 3/16 byte
// for each node of the store, 8 bytes for each node that a level has, and for each entry 8 bytes
// and its attributes. Where edges are gone, it is another 20 bytes for each node of a level, and
// for each of these edges as much as for an entry.
type added struct {
	arenas []*mem.Arena
	budget *mem.Budget

	has    layout.Ranks // the lists that levels have, by the numbers of the whole store
	inBase uint32       // how many of them the base has
	lists  int          // how many they are

	entries          // what levels added and none took away
	places  []uint32 // of entries, in the union with the list of the base

	gone      entries  // what levels took away; nil lists where there is no such level
	lost      []uint32 // positions in lists of the base of entries that are gone, ascending
	lostFirst []uint64 // where those of each list begin in lost; the last is the end
	lostHeld  mem.Account
}

// addedBytes bounds the memory of the lists of all levels of a store.
func addedBytes(s *layout.Store, dir layout.Direction) (n int64) {
	lists, isGone := int64(0), false
	for _, l := range s.Lists() {
		m, count := l.Meta(), int64(layout.CountLists(l.Meta(), dir))
		n += 8*count + entryBytes(s)*int64(m.Edges)
		if l.Of.Gone {
			n += 8 * int64(m.Edges+l.Of.Removed)
			isGone = true
		}
		lists += count
	}
	if isGone {
		n += 20 * lists
	}
	if n > 0 {
		n += int64(layout.CountLists(s.Meta(), dir))*3/16 + 1<<16
	}
	return n
}

// entryBytes returns what an entry takes.
func entryBytes(s *layout.Store) int64 {
	n, m := int64(listfile.IDBytes+4), s.Meta()
	if len(m.EdgeTypes) > 0 && !m.Typed() {
		n += listfile.TypeBytes
	}
	if m.Weighted {
		n += listfile.WeightBytes
	}
	if m.Timestamped {
		n += listfile.TimeBytes
	}
	return n
}

// loadAdded reads the lists of all levels, twice: to count them, and to take them.
func loadAdded(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	budget *mem.Budget) (*added, error) {
	return loadEntries(ctx, s, dev, dir, budget, false)
}

// loadEntries is loadAdded, which keeps of each entry its level and its number there if withRows
// says so.
//
//lint:parameters loadAdded's, and what is kept
func loadEntries(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	budget *mem.Budget, withRows bool) (a *added, err error) {
	a = &added{budget: budget, lostHeld: mem.NewAccount(budget, "entries that are gone")}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.free())
		}
	}()
	words := int64(layout.RankWords(layout.CountLists(s.Meta(), dir)))
	a.has = layout.NewRanks(mem.View[uint64](a.hold(&err, words*8)),
		mem.View[uint32](a.hold(&err, words*4)))
	if err != nil {
		return nil, err
	}
	of, err := a.number(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	if err := a.allocate(s, withRows); err != nil {
		return nil, err
	}
	for _, take := range []bool{false, true} {
		for i, l := range s.Lists() {
			if err := a.scan(ctx, l, i, dev, dir, of[i], take); err != nil {
				return nil, err
			}
		}
		if !take {
			a.begin()
			a.gone.begin()
		}
	}
	for _, e := range []*entries{&a.entries, &a.gone} {
		e.finish()
		if err := e.sort(ctx); err != nil {
			return nil, err
		}
	}
	a.drop()
	return a, nil
}

// hold returns memory that free frees, unless there was an error.
func (a *added) hold(err *error, bytes int64) []byte {
	if *err != nil || bytes == 0 {
		return nil
	}
	arena, failed := mem.NewArena(a.budget, "lists of levels", bytes)
	if failed != nil {
		*err = fmt.Errorf("%w; compact the store, or give more --memory", failed)
		return nil
	}
	a.arenas = append(a.arenas, arena)
	return arena.Bytes()[:bytes]
}

// levelNumbers lead from the nodes and the lists of a level to those of the whole store.
type levelNumbers struct{ nodes, lists []uint32 }

// number finds the nodes and lists of each level, and numbers the lists of all together.
func (a *added) number(ctx context.Context, s *layout.Store, dir layout.Direction) (
	of []levelNumbers, err error) {
	all := layout.ListsOf(s.Meta(), dir)
	for _, l := range s.Lists() {
		set, err := l.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		n := levelNumbers{nodes: set.ToArray()}
		if n.lists = n.nodes; all != nil {
			if n.lists, err = listNumbers(all, layout.ListsOf(l.Meta(), dir), n.nodes); err != nil {
				return nil, fmt.Errorf("layout: lists of %s: %w", l.Of.Path, err)
			}
		}
		a.has.Add(n.lists)
		of = append(of, n)
	}
	a.lists = int(a.has.Number())
	a.inBase, _ = a.has.Rank(layout.NodeID(layout.CountLists(s.Base().Meta(), dir)))
	return of, nil
}

// listNumbers returns the numbers that the lists of a level have in the whole store, whose nodes
// are given.
func listNumbers(all, own *layout.NodeLists, nodes []uint32) ([]uint32, error) {
	lists := make([]uint32, own.Count())
	for i := range lists {
		v, relation := own.Node(layout.NodeID(i))
		list, err := all.List(layout.NodeID(nodes[v]), relation)
		if err != nil {
			return nil, err
		}
		lists[i] = uint32(list)
	}
	return lists, nil
}

func (a *added) allocate(s *layout.Store, withRows bool) (err error) {
	more, gone, isGone := uint64(0), uint64(0), false
	for _, l := range s.Lists() {
		if l.Of.Gone {
			gone, isGone = gone+l.Meta().Edges, true
		} else {
			more += l.Meta().Edges
		}
	}
	hold := func(bytes int64) []byte { return a.hold(&err, bytes) }
	m := s.Meta()
	a.entries.allocate(m, a.lists, int64(more), m.Weighted, isGone || withRows, hold)
	if withRows {
		a.rows = mem.View[uint64](hold(int64(more) * 8))
	}
	a.places = mem.View[uint32](hold(int64(more) * 4))
	if isGone {
		a.gone.allocate(m, a.lists, int64(gone), false, true, hold)
		a.lostFirst = mem.View[uint64](hold(int64(a.lists+1) * 8))
	}
	return err
}

// list returns the number here of a list of the whole store, or none.
func (a *added) list(v layout.NodeID) uint32 {
	rank, is := a.has.Rank(v)
	if !is {
		return none
	}
	return rank
}

// scan reads the lists of level number at, whose nodes are of: it counts their entries in starts,
// or takes the entries to where starts says and moves that on.
//
//lint:parameters what a level is read with, and where to
func (a *added) scan(ctx context.Context, l *layout.Level, at int, dev blockdev.Device,
	dir layout.Direction, of levelNumbers, take bool) error {
	to := &a.entries
	if l.Of.Gone {
		to = &a.gone
	}
	rows := newRowCounts(l)
	fn := func(first layout.NodeID, _ bool, lists *listfile.Lists) error {
		for i := range len(lists.Off) - 1 {
			from, end := lists.Off[i], lists.Off[i+1]
			start := &to.starts[a.list(layout.NodeID(of.lists[int(first)+i]))]
			if take {
				to.take(*start, lists, from, end, of.nodes, at)
				if to.rows != nil {
					rows.take(first+layout.NodeID(i), to.rows[*start:][:end-from])
				}
			}
			*start += end - from
		}
		return ctx.Err()
	}
	if l.Held != nil {
		return fn(0, false, listfile.HeldLists(l.Held, dir))
	}
	return listfile.ScanLists(ctx, l.Store, dev, dir, fn)
}

// placeLists and placeEntries bound what place reads of the base at once.
const placeLists, placeEntries = 1 << 12, 1 << 18

// place finds the places of all entries in the unions with the lists of the base, of which it reads
// those of the nodes that a level has.
func (a *added) place(ctx context.Context, base Reader) error {
	s := base.NewSession()
	defer s.Release()
	var nodes []layout.NodeID
	// Of the list: entries of the base that were read, those of them that stay, and the next of a.
	list, read, before, next := uint32(0), uint64(0), uint64(0), uint64(0)
	end := func() {
		for ; next < a.starts[list+1]; next++ {
			a.places[next] = uint32(before + next - a.starts[list])
		}
		list, read, before, next = list+1, 0, 0, a.starts[list+1]
		if a.lostFirst != nil {
			a.lostFirst[list] = uint64(len(a.lost))
		}
	}
	flush := func() error {
		if len(nodes) == 0 {
			return ctx.Err()
		}
		most := ListsMost{Nodes: placeLists, Entries: placeEntries}
		err := EachList(ctx, s, nodes, most, func(some []layout.NodeID, l *listfile.Lists) (bool,
			error) {
			for i, v := range some {
				for of := a.list(v); list < of; { // a part of a list ends where the next begins
					end()
				}
				for k := l.Off[i]; k < l.Off[i+1]; k, read = k+1, read+1 {
					u := l.Nbrs[k]
					if a.isGone(list, l, k, -1) {
						a.lost = append(a.lost, uint32(read))
						continue
					}
					for ; next < a.starts[list+1] && a.nbrs[next] < u; next++ {
						a.places[next] = uint32(before + next - a.starts[list])
					}
					before++
				}
			}
			return true, a.account()
		})
		nodes = nodes[:0]
		return err
	}
	err := a.has.Each(base.Nodes(), func(v layout.NodeID) error {
		if nodes = append(nodes, v); len(nodes) == placeLists {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	for list < uint32(a.lists) {
		end()
	}
	return a.account()
}

// account counts the memory of lost.
func (a *added) account() error { return a.lostHeld.AtLeast(4 * int64(cap(a.lost))) }

func (a *added) bytes() (n int64) {
	n = 4 * int64(cap(a.lost))
	for _, arena := range a.arenas {
		n += int64(len(arena.Bytes()))
	}
	return n
}

func (a *added) free() (err error) {
	for _, arena := range a.arenas {
		err = errors.Join(err, arena.Free())
	}
	a.arenas = nil
	a.lostHeld.Release()
	return err
}
