package topology

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Before returns a reader of the lists of r without entries whose time is not below limit. Degrees
// and positions count only the entries that are left, in the order of the list. Closing the reader
// closes r.
//
// Which entries are left is found out again whenever it is asked for, since a bit for each would
// take O(edges). Degrees reads the time of every entry of every list of its frontier. Gather reads
// again the times of lists that lose entries; of a list that comes in parts, only the parts that
// hold what it takes. A session takes 8 bytes per node of its frontier, 12 per part of a list
// except the first, such as a hub's blocks, 12 per position that Gather takes, and the columns of a
// part. It is counted in budget, which may be nil.
func Before(r Reader, limit int64, budget *mem.Budget) Reader {
	if lists, numbers := ByList(r); numbers != nil {
		return join(Before(lists, limit, budget), numbers, budget)
	}
	return &before{Reader: r, limit: limit, budget: budget}
}

type before struct {
	Reader
	limit  int64
	budget *mem.Budget
}

// NewSession returns a session for one goroutine.
func (b *before) NewSession() Session {
	s := &beforeSession{limit: b.limit, under: b.Reader.NewSession(),
		held: mem.NewAccount(b.budget, "entries before a time")}
	s.count, s.find, s.skip = s.countPart, s.findPart, s.asksNothing
	return s
}

// beforeSession reads lists without entries at or after a time.
type beforeSession struct {
	limit int64
	under Session
	held  mem.Account

	// whole is the number of entries of each list of the last Degrees, left how many of them are
	// left, and ranks how many are left before each part of a list, sorted by list and position.
	whole, left []uint32
	ranks       []rank

	// These are set during Gather: off is its argument, keys are position<<32 | index in pos,
	// ascending in each list, those of list i from off[i]-off[0] on. found are the positions in
	// whole lists, parallel to pos.
	off   []uint32
	keys  []uint64
	found []uint32

	kept columnBuffer // what is left of a part

	// These are methods as values, which are made once.
	count, find func(p Part) error
	skip        func(i int, from uint32) bool
}

// rank is how many entries of a list are left before the part that begins at position from, which
// is above 0.
type rank struct{ list, from, left uint32 }

// rankBytes is the size of a rank, in bytes.
const rankBytes = 12

func compareRanks(a, b rank) int {
	return cmp.Or(cmp.Compare(a.list, b.list), cmp.Compare(a.from, b.from))
}

// Degrees writes the number of entries left of each list to deg.
func (s *beforeSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.whole, s.left = mem.Resize(s.whole, len(nodes)), mem.Resize(s.left, len(nodes))
	s.ranks = s.ranks[:0]
	if err := s.held.AtLeast(s.bytes()); err != nil {
		return err
	}
	if err := s.under.Degrees(ctx, nodes, s.whole); err != nil {
		return err
	}
	clear(s.left)
	if err := s.columns(ctx, Columns{Times: true}, s.count); err != nil {
		return err
	}
	copy(deg, s.left)
	if err := s.held.AtLeast(s.bytes()); err != nil {
		return err
	}
	return pace.SortFunc(ctx, s.ranks, compareRanks)
}

// columns calls fn with columns of the whole lists.
func (s *beforeSession) columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	r, ok := s.under.(ColumnReader)
	if !ok {
		return Unread("times")
	}
	return r.Columns(ctx, want, fn)
}

func (s *beforeSession) countPart(p Part) error {
	if p.From > 0 {
		s.ranks = append(s.ranks, rank{list: uint32(p.List), from: p.From, left: s.left[p.List]})
	}
	n := uint32(0)
	for _, t := range p.Times {
		if t < s.limit {
			n++
		}
	}
	s.left[p.List] += n
	return nil
}

// within returns the range lo … hi-1, among the entries of list i that are left, of those in the
// part that begins at from.
func (s *beforeSession) within(i int, from uint32) (lo, hi uint32) {
	hi = s.left[i]
	if len(s.ranks) == 0 {
		return 0, hi
	}
	k, found := slices.BinarySearchFunc(s.ranks, rank{list: uint32(i), from: from}, compareRanks)
	if found {
		lo = s.ranks[k].left
		k++
	}
	if k < len(s.ranks) && s.ranks[k].list == uint32(i) {
		hi = s.ranks[k].left
	}
	return lo, hi
}

// bytes returns the scratch memory held, in bytes.
func (s *beforeSession) bytes() int64 {
	return 4*int64(cap(s.whole)+cap(s.left)+cap(s.found)) + 8*int64(cap(s.keys)) +
		rankBytes*int64(cap(s.ranks)) + s.kept.bytes()
}

// Gather writes entries by their positions among the entries left.
func (s *beforeSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	found, err := s.positions(ctx, off, pos)
	if err != nil {
		return err
	}
	return s.under.Gather(ctx, off, found, out)
}

// GatherAttributes writes weights and types of entries by their positions among the entries left.
func (s *beforeSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	r, ok := s.under.(AttributeReader)
	if !ok {
		return Unread("weights and types")
	}
	found, err := s.positions(ctx, off, pos)
	if err != nil {
		return err
	}
	return r.GatherAttributes(ctx, off, found, to)
}

// positions returns positions in whole lists, parallel to pos, given positions among the entries
// left.
func (s *beforeSession) positions(ctx context.Context, off, pos []uint32) ([]uint32, error) {
	first, last := off[0], off[len(off)-1]
	s.found, s.keys = mem.Resize(s.found, int(last)), mem.Resize(s.keys, int(last-first))
	if err := s.held.AtLeast(s.bytes()); err != nil {
		return nil, err
	}
	lost := false
	var steps pace.Steps
	for i := range s.left {
		lo, hi := off[i], off[i+1]
		if err := steps.Took(ctx, 1+4*int(hi-lo)); err != nil { // sorting them
			return nil, err
		}
		if s.keepsAll(i) {
			copy(s.found[lo:hi], pos[lo:hi])
			continue
		}
		lost = lost || lo < hi
		keys := s.keys[lo-first : hi-first]
		for j := range keys {
			keys[j] = uint64(pos[lo+uint32(j)])<<32 | uint64(lo+uint32(j))
		}
		slices.Sort(keys)
	}
	if !lost {
		return s.found, nil
	}
	s.off = off
	err := s.columns(ctx, Columns{Times: true, Skip: s.skip}, s.find)
	s.off = nil
	return s.found, err
}

// keepsAll reports whether a list loses no entries, so that positions in it stay the same.
func (s *beforeSession) keepsAll(i int) bool { return s.left[i] == s.whole[i] }

// asked returns the keys that are asked for in the part of list i that begins at from, and the
// number of entries left before that part.
func (s *beforeSession) asked(i int, from uint32) (keys []uint64, lo uint32) {
	lo, hi := s.within(i, from)
	keys = s.keys[s.off[i]-s.off[0] : s.off[i+1]-s.off[0]]
	a, _ := slices.BinarySearch(keys, uint64(lo)<<32)
	b, _ := slices.BinarySearch(keys, uint64(hi)<<32)
	return keys[a:b], lo
}

// asksNothing reports whether Gather takes nothing from a part of a list.
func (s *beforeSession) asksNothing(i int, from uint32) bool {
	if s.keepsAll(i) || s.off[i] == s.off[i+1] {
		return true
	}
	keys, _ := s.asked(i, from)
	return len(keys) == 0
}

// findPart finds the positions that are asked for in a part of a list.
func (s *beforeSession) findPart(p Part) error {
	keys, at := s.asked(p.List, p.From)
	for j := 0; j < len(p.Times) && len(keys) > 0; j++ {
		if p.Times[j] >= s.limit {
			continue
		}
		for len(keys) > 0 && uint32(keys[0]>>32) == at {
			s.found[uint32(keys[0])] = p.From + uint32(j)
			keys = keys[1:]
		}
		at++
	}
	return nil
}

// Columns calls fn with what is left of each part of the lists.
func (s *beforeSession) Columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	under := want
	under.Times = true
	if want.Skip != nil {
		under.Skip = func(i int, from uint32) bool {
			lo, _ := s.within(i, from)
			return want.Skip(i, lo)
		}
	}
	err := s.columns(ctx, under, func(p Part) error {
		lo, _ := s.within(p.List, p.From)
		return s.pass(p, lo, want, fn)
	})
	return errors.Join(err, s.held.AtLeast(s.bytes()))
}

// Lists returns whole lists without the entries left out. It takes the memory of the whole lists.
func (s *beforeSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	l, err := s.under.Lists(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if l.Times == nil && len(l.Nbrs) > 0 {
		return nil, ErrNoTimes
	}
	to, from := uint64(0), uint64(0)
	for i := range nodes {
		for ; from < l.Off[i+1]; from++ {
			if l.Times[from] >= s.limit {
				continue
			}
			l.Nbrs[to], l.Times[to] = l.Nbrs[from], l.Times[from]
			if l.Types != nil {
				l.Types[to] = l.Types[from]
			}
			if l.Weights != nil {
				l.Weights[to] = l.Weights[from]
			}
			to++
		}
		l.Off[i+1] = to
	}
	l.Nbrs, l.Times = l.Nbrs[:to], l.Times[:to]
	l.Types, l.Weights = l.Types[:min(to, uint64(len(l.Types)))],
		l.Weights[:min(to, uint64(len(l.Weights)))]
	return l, ctx.Err()
}

// Release ends the session.
func (s *beforeSession) Release() {
	s.under.Release()
	s.held.Release()
}

// pass calls fn with what is left of a part, unless that is nothing. from is the number of entries
// left in the list before the part.
func (s *beforeSession) pass(p Part, from uint32, want Columns, fn func(p Part) error) error {
	f := &s.kept
	f.times, f.weights = mem.Resize(f.times, len(p.Times)), mem.Resize(f.weights, len(p.Weights))
	n := 0
	for j, t := range p.Times {
		if t >= s.limit {
			continue
		}
		f.times[n] = t
		if want.Weights {
			f.weights[n] = p.Weights[j]
		}
		n++
	}
	if n == 0 {
		return nil
	}
	left := Part{List: p.List, From: from}
	if want.Times {
		left.Times = f.times[:n]
	}
	if want.Weights {
		left.Weights = f.weights[:n]
	}
	return fn(left)
}
