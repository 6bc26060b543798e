package topology

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// added has the lists of all levels in memory, merged, by the numbers of the whole store: 3/16 byte
// for each node of the store, 8 bytes for each node that a level has, and for each entry 8 bytes
// and its attributes.
type added struct {
	arenas []*mem.Arena
	budget *mem.Budget

	has    []uint64 // a bit for each node that a level has
	ranks  []uint32 // how many of these are before each word
	inBase uint32   // how many of them the base has
	starts []uint64 // where each list begins; the last is the end

	nbrs    []layout.NodeID
	places  []uint32 // of entries, in the union with the list of the base
	types   []uint16 // parallel to nbrs, or nil, as the others
	weights []float32
	times   []int64
}

// addedBytes bounds the memory of the lists of all levels of a store.
func addedBytes(s *layout.Store) (n int64) {
	for _, l := range s.Levels() {
		m := l.Meta()
		n += 8*int64(m.Nodes) + entryBytes(s)*int64(m.Edges)
	}
	if n > 0 {
		n += int64(s.Meta().Nodes)*3/16 + 1<<16
	}
	return n
}

// entryBytes returns what an entry takes.
func entryBytes(s *layout.Store) int64 {
	n, m := int64(listfile.IDBytes+4), s.Meta()
	if len(m.EdgeTypes) > 0 {
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
	budget *mem.Budget) (a *added, err error) {
	a = &added{budget: budget}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.free())
		}
	}()
	words := s.Meta().Nodes/64 + 1
	a.has = mem.View[uint64](a.hold(&err, int64(words)*8))
	a.ranks = mem.View[uint32](a.hold(&err, int64(words)*4))
	if err != nil {
		return nil, err
	}
	of, total, err := a.number(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := a.allocate(s, total); err != nil {
		return nil, err
	}
	for _, take := range []bool{false, true} {
		for i, l := range s.Levels() {
			if err := a.scan(ctx, l, dev, dir, of[i], take); err != nil {
				return nil, err
			}
		}
		if !take {
			a.begin()
		}
	}
	copy(a.starts[1:], a.starts[:len(a.starts)-1]) // each was moved to the end of its list
	a.starts[0] = 0
	a.sort()
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

// number finds the nodes of each level, and numbers all together.
func (a *added) number(ctx context.Context, s *layout.Store) (of [][]uint32, entries uint64,
	err error) {
	for _, l := range s.Levels() {
		set, err := l.Nodes(ctx)
		if err != nil {
			return nil, 0, err
		}
		nodes := set.ToArray()
		for _, v := range nodes {
			a.has[v/64] |= 1 << (v % 64)
		}
		of, entries = append(of, nodes), entries+l.Meta().Edges
	}
	n, base := uint32(0), s.Base().Meta().Nodes
	for i, w := range a.has {
		a.ranks[i] = n
		if uint64(i) == base/64 {
			a.inBase = n + uint32(bits.OnesCount64(w&(1<<(base%64)-1)))
		}
		n += uint32(bits.OnesCount64(w))
	}
	starts := a.hold(&err, int64(n+1)*8)
	a.starts = mem.View[uint64](starts)
	return of, entries, err
}

func (a *added) allocate(s *layout.Store, entries uint64) (err error) {
	n, m := int64(entries), s.Meta()
	a.nbrs = mem.View[layout.NodeID](a.hold(&err, n*listfile.IDBytes))
	a.places = mem.View[uint32](a.hold(&err, n*4))
	if len(m.EdgeTypes) > 0 {
		a.types = mem.View[uint16](a.hold(&err, n*listfile.TypeBytes))
	}
	if m.Weighted {
		a.weights = mem.View[float32](a.hold(&err, n*listfile.WeightBytes))
	}
	if m.Timestamped {
		a.times = mem.View[int64](a.hold(&err, n*listfile.TimeBytes))
	}
	return err
}

// list returns the number of the list of a node, or none.
func (a *added) list(v layout.NodeID) uint32 {
	w, bit := a.has[v/64], uint64(1)<<(v%64)
	if w&bit == 0 {
		return none
	}
	return a.ranks[v/64] + uint32(bits.OnesCount64(w&(bit-1)))
}

// span returns which entries a list has.
func (a *added) span(list uint32) (from, to uint64) { return a.starts[list], a.starts[list+1] }

// scan reads the lists of a level, whose nodes are of: it counts their entries in starts, or takes
// the entries to where starts says and moves that on.
func (a *added) scan(ctx context.Context, l *layout.Level, dev blockdev.Device,
	dir layout.Direction, of []uint32, take bool) error {
	return listfile.Scan(ctx, l.Store, dev, dir, func(first layout.NodeID, _ bool,
		lists *listfile.Lists) error {
		for i := range len(lists.Off) - 1 {
			from, to := lists.Off[i], lists.Off[i+1]
			at := &a.starts[a.list(layout.NodeID(of[int(first)+i]))]
			if take {
				a.take(*at, lists, from, to, of)
			}
			*at += to - from
		}
		return ctx.Err()
	})
}

// take copies entries from … to-1 of lists to place at.
func (a *added) take(at uint64, lists *listfile.Lists, from, to uint64, of []uint32) {
	for k := from; k < to; k++ {
		a.nbrs[at+k-from] = layout.NodeID(of[lists.Nbrs[k]])
	}
	if a.types != nil {
		copy(a.types[at:], lists.Types[from:to])
	}
	if a.weights != nil {
		copy(a.weights[at:], lists.Weights[from:to])
	}
	if a.times != nil {
		copy(a.times[at:], lists.Times[from:to])
	}
}

// begin makes counts of entries the places of the first.
func (a *added) begin() {
	next := uint64(0)
	for i, n := range a.starts {
		a.starts[i] = next
		next += n
	}
}

// sort sorts lists that several levels have parts of.
func (a *added) sort() {
	for i := range len(a.starts) - 1 {
		from, to := a.starts[i], a.starts[i+1]
		if !slices.IsSorted(a.nbrs[from:to]) {
			sort.Stable(&span{a, int(from), int(to - from)})
		}
	}
}

// span is some entries, to be sorted by neighbor.
type span struct {
	*added
	from, n int
}

func (s *span) Len() int           { return s.n }
func (s *span) Less(i, j int) bool { return s.nbrs[s.from+i] < s.nbrs[s.from+j] }
func (s *span) Swap(i, j int) {
	i, j = s.from+i, s.from+j
	s.nbrs[i], s.nbrs[j] = s.nbrs[j], s.nbrs[i]
	if s.types != nil {
		s.types[i], s.types[j] = s.types[j], s.types[i]
	}
	if s.weights != nil {
		s.weights[i], s.weights[j] = s.weights[j], s.weights[i]
	}
	if s.times != nil {
		s.times[i], s.times[j] = s.times[j], s.times[i]
	}
}

// placeLists and placeEntries bound what place reads of the base at once.
const placeLists, placeEntries = 1 << 12, 1 << 18

// place finds the places of all entries in the unions with the lists of the base, of which it reads
// those of the nodes that a level has.
func (a *added) place(ctx context.Context, base Reader) error {
	s := base.NewSession()
	defer s.Release()
	var nodes []layout.NodeID
	list, before, next := uint32(0), uint64(0), uint64(0)
	end := func() {
		for ; next < a.starts[list+1]; next++ {
			a.places[next] = uint32(before + next - a.starts[list])
		}
		list, before, next = list+1, 0, a.starts[list+1]
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
				for _, u := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
					for ; next < a.starts[list+1] && a.nbrs[next] < u; next++ {
						a.places[next] = uint32(before + next - a.starts[list])
					}
					before++
				}
			}
			return true, nil
		})
		nodes = nodes[:0]
		return err
	}
	for i, w := range a.has {
		for ; w != 0; w &= w - 1 {
			v := uint64(i)*64 + uint64(bits.TrailingZeros64(w))
			if v >= base.Nodes() {
				break
			}
			if nodes = append(nodes, layout.NodeID(v)); len(nodes) == placeLists {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for list < uint32(len(a.starts)-1) {
		end()
	}
	return nil
}

func (a *added) bytes() (n int64) {
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
	return err
}
