package topology

import (
	"context"
	"errors"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Before returns a reader of what the lists of r have before a time: entries whose time is not
// below limit are not there for who reads it. Degrees are counted, and positions are those among
// the entries that are left, in the order of the list. r stays the caller's to close, or is closed
// by the reader returned.
//
// Which entries are left is found out anew whenever it is asked for, since a bit for each would be
// O(edges): Degrees takes a look at the time of every entry of every list of its frontier, and
// Gather another one at those of lists that lose entries. Memory of a session: 16 bytes per node of
// its frontier, 12 per position that Gather takes, counted in budget, which may be nil.
func Before(r Reader, limit int64, budget *mem.Budget) Reader {
	return &before{Reader: r, limit: limit, budget: budget}
}

type before struct {
	Reader
	limit  int64
	budget *mem.Budget
}

// NewSession returns a reader for one goroutine.
func (b *before) NewSession() Session {
	s := &beforeSession{limit: b.limit, under: b.Reader.NewSession(),
		held: mem.NewAccount(b.budget, "entries before a time")}
	s.count, s.find, s.skip = s.countPart, s.findPart, s.asksNothing
	return s
}

// beforeSession reads lists without their later entries.
type beforeSession struct {
	limit int64
	under Session
	held  mem.Account

	// How many entries the lists of the last Degrees have, and how many of these are left.
	whole, left []uint32

	// What Gather asks for: off is its own, and keys are position<<32 | index in pos, ascending in
	// each list, those of list i from off[i]-off[0] on. next is the key of each list that is not
	// found yet, and seen is how many entries that are left came by so far. found are the positions
	// in whole lists, parallel to pos.
	off   []uint32
	keys  []uint64
	next  []uint32
	seen  []uint32
	found []uint32

	parts filter

	// Methods, as values that are made once.
	count, find func(p Part) error
	skip        func(i int) bool
}

// Degrees counts the entries that are left.
func (s *beforeSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.whole, s.left = mem.Resize(s.whole, len(nodes)), mem.Resize(s.left, len(nodes))
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
	return nil
}

// columns reads columns of whole lists.
func (s *beforeSession) columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	r, ok := s.under.(ColumnReader)
	if !ok {
		return errors.New("layout: this topology cannot read the times of edges")
	}
	return r.Columns(ctx, want, fn)
}

func (s *beforeSession) countPart(p Part) error {
	n := uint32(0)
	for _, t := range p.Times {
		if t < s.limit {
			n++
		}
	}
	s.left[p.List] += n
	return nil
}

// keepsAll says that a list loses no entries, so that positions in it stay what they are.
func (s *beforeSession) keepsAll(i int) bool { return s.left[i] == s.whole[i] }

// asksNothing says that Gather has nothing to find in a list.
func (s *beforeSession) asksNothing(i int) bool { return s.next[i] == s.off[i+1]-s.off[0] }

// bytes is the scratch memory held.
func (s *beforeSession) bytes() int64 {
	return 4*int64(cap(s.whole)+cap(s.left)+cap(s.next)+cap(s.seen)+cap(s.found)) +
		8*int64(cap(s.keys)) + s.parts.bytes()
}

// Gather takes the entries at positions among those that are left.
func (s *beforeSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	found, err := s.positions(ctx, off, pos)
	if err != nil {
		return err
	}
	return s.under.Gather(ctx, off, found, out)
}

// GatherAttributes takes weights and types of the same.
func (s *beforeSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	r, ok := s.under.(AttributeReader)
	if !ok {
		return errors.New("layout: this topology cannot read the weights and types of edges")
	}
	found, err := s.positions(ctx, off, pos)
	if err != nil {
		return err
	}
	return r.GatherAttributes(ctx, off, found, to)
}

// positions returns what positions among the entries that are left are in the whole lists, parallel
// to pos.
func (s *beforeSession) positions(ctx context.Context, off, pos []uint32) ([]uint32, error) {
	first, last := off[0], off[len(off)-1]
	s.found = mem.Resize(s.found, int(last))
	s.keys = mem.Resize(s.keys, int(last-first))
	s.next, s.seen = mem.Resize(s.next, len(s.left)), mem.Resize(s.seen, len(s.left))
	if err := s.held.AtLeast(s.bytes()); err != nil {
		return nil, err
	}
	clear(s.seen)
	cut := false
	var steps pace.Steps
	for i := range s.left {
		lo, hi := off[i], off[i+1]
		if err := steps.Took(ctx, 1+4*int(hi-lo)); err != nil { // sorting them
			return nil, err
		}
		if s.keepsAll(i) {
			copy(s.found[lo:hi], pos[lo:hi])
			s.next[i] = hi - first
			continue
		}
		keys := s.keys[lo-first : hi-first]
		for j := range keys {
			keys[j] = uint64(pos[lo+uint32(j)])<<32 | uint64(lo+uint32(j))
		}
		slices.Sort(keys)
		s.next[i] = lo - first
		cut = cut || lo < hi
	}
	if !cut {
		return s.found, nil
	}
	s.off = off
	err := s.columns(ctx, Columns{Times: true, Skip: s.skip}, s.find)
	s.off = nil
	return s.found, err
}

// findPart finds the positions that are asked for in a part of a list.
func (s *beforeSession) findPart(p Part) error {
	i := p.List
	next, end, seen := s.next[i], s.off[i+1]-s.off[0], s.seen[i]
	for j, t := range p.Times {
		if next == end {
			break
		}
		if t >= s.limit {
			continue
		}
		for next < end && uint32(s.keys[next]>>32) == seen {
			s.found[uint32(s.keys[next])] = p.From + uint32(j)
			next++
		}
		seen++
	}
	s.next[i], s.seen[i] = next, seen
	return nil
}

// Columns gives what is left of the lists, in parts of at most filterEntries.
func (s *beforeSession) Columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	s.seen = mem.Resize(s.seen, len(s.left))
	s.parts.size()
	if err := s.held.AtLeast(s.bytes()); err != nil {
		return err
	}
	clear(s.seen)
	asked := want
	asked.Times = true
	return s.columns(ctx, asked, func(p Part) error {
		var err error
		s.seen[p.List], err = s.parts.pass(p, s.seen[p.List], s.limit, want, fn)
		return err
	})
}

// Lists copies what is left of whole lists. Memory: the whole lists.
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

// filter gives the entries before a time of parts, as parts of its own.
type filter struct {
	weights []float32
	times   []int64
}

// filterEntries are the entries of such a part at most.
const filterEntries = 1 << 10

func (f *filter) size() {
	f.weights, f.times = mem.Resize(f.weights, filterEntries), mem.Resize(f.times, filterEntries)
}

func (f *filter) bytes() int64 { return 4*int64(cap(f.weights)) + 8*int64(cap(f.times)) }

// pass calls fn with what is left of a part; seen entries of its list are left before it, and it
// returns how many with it.
func (f *filter) pass(p Part, seen uint32, limit int64, want Columns,
	fn func(p Part) error) (uint32, error) {
	for j := 0; j < len(p.Times); {
		n, part := 0, Part{List: p.List, From: seen}
		for ; j < len(p.Times) && n < filterEntries; j++ {
			if p.Times[j] >= limit {
				continue
			}
			f.times[n] = p.Times[j]
			if want.Weights {
				f.weights[n] = p.Weights[j]
			}
			n++
		}
		if n == 0 {
			break
		}
		if want.Times {
			part.Times = f.times[:n]
		}
		if want.Weights {
			part.Weights = f.weights[:n]
		}
		if err := fn(part); err != nil {
			return seen, err
		}
		seen += uint32(n)
	}
	return seen, nil
}
