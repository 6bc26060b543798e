package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
)

// AsOf returns a reader of the lists of r whose sessions are TimedSessions: they read each list of
// a frontier as it was at a time of its own. Of a list then only the entries count that are not
// later and, if window is above 0, later than window before that. Entries of relations without
// times count always. They stand in the order of time, and those of equal times in that of the
// list, so the latest k are the last k. Closing the reader closes r.
//
// Degrees reads the times of all entries of the lists of its frontier, and sorts those that count:
// O(d log d) for a list of d entries. A session takes 16 bytes for each of the entries of these
// lists until the next Degrees, counted in budget, which may be nil.
func AsOf(r Reader, window int64, budget *mem.Budget) Reader {
	if lists, numbers := ByList(r); numbers != nil {
		return join(AsOf(lists, window, budget), numbers, budget)
	}
	return &asOf{Reader: r, window: window, budget: budget}
}

// TimedSession is a Session of lists as they were at some time.
type TimedSession interface {
	Session
	// AsOf has the next Degrees, and what follows it, read the list of each of its nodes as of
	// times, parallel to these nodes; they must not change meanwhile. Nil reads whole lists again.
	AsOf(times []int64)
}

type asOf struct {
	Reader
	window int64
	budget *mem.Budget
}

// NewSession returns a TimedSession, which reads whole lists first.
func (a *asOf) NewSession() Session {
	s := &asOfSession{Session: a.Reader.NewSession(), window: a.window,
		held: mem.NewAccount(a.budget, "entries as of a time")}
	s.take = s.takePart
	return s
}

// asOfSession reads lists as of times. Its Lists are whole lists.
type asOfSession struct {
	Session
	window int64
	held   mem.Account

	times []int64 // of the lists of the frontier; nil for whole lists
	// The entries of list i that count are moments[start[i]:start[i]+count[i]], in order.
	moments []moment
	start   []int
	count   []uint32
	whole   []uint32 // lengths of whole lists
	found   []uint32 // positions in whole lists

	take func(p Part) error // takePart, made once
}

// moment is when an entry is, and its position in its list.
type moment struct {
	time int64
	pos  uint32
}

// momentBytes is the size of a moment, in bytes.
const momentBytes = 16

func compareMoments(a, b moment) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.pos, b.pos))
}

// AsOf sets the times of the lists of the next Degrees.
func (s *asOfSession) AsOf(times []int64) { s.times = times }

// Degrees writes how many entries of each list count.
func (s *asOfSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	if s.times == nil {
		return s.Session.Degrees(ctx, nodes, deg)
	}
	r, ok := s.Session.(ColumnReader)
	if !ok {
		return errors.New("layout: this topology cannot read the times of edges")
	}
	s.whole, s.count = mem.Resize(s.whole, len(nodes)), mem.Resize(s.count, len(nodes))
	s.start = mem.Resize(s.start, len(nodes))
	if err := r.Degrees(ctx, nodes, s.whole); err != nil {
		return err
	}
	entries := 0
	for i, n := range s.whole {
		s.start[i] = entries
		entries += int(n)
	}
	if err := s.held.AtLeast(s.bytes() + momentBytes*int64(entries-cap(s.moments))); err != nil {
		return fmt.Errorf("the times of all %d entries of the lists of %d nodes are looked at: "+
			"%w, or take a smaller batch", entries, len(nodes), err)
	}
	s.moments = mem.Resize(s.moments, entries)
	clear(s.count)
	if err := r.Columns(ctx, Columns{Times: true}, s.take); err != nil {
		return err
	}
	copy(deg, s.count)
	return s.sort(ctx)
}

// takePart keeps the entries of a part that count.
func (s *asOfSession) takePart(p Part) error {
	until, after := s.times[p.List], int64(math.MinInt64)
	if s.window > 0 && until >= after+s.window {
		after = until - s.window
	}
	at := s.start[p.List] + int(s.count[p.List])
	for j, t := range p.Times {
		if t <= until && t > after || t == kv.NoTime {
			s.moments[at] = moment{t, p.From + uint32(j)}
			at++
		}
	}
	s.count[p.List] = uint32(at - s.start[p.List])
	return nil
}

// sort puts the entries of each list in order.
func (s *asOfSession) sort(ctx context.Context) error {
	var steps pace.Steps
	for i, n := range s.count {
		if err := steps.Took(ctx, 1+8*int(n)); err != nil {
			return err
		}
		if of := s.moments[s.start[i]:][:n]; !slices.IsSortedFunc(of, compareMoments) {
			slices.SortFunc(of, compareMoments)
		}
	}
	return nil
}

// bytes returns the scratch memory held, in bytes.
func (s *asOfSession) bytes() int64 {
	return momentBytes*int64(cap(s.moments)) + 8*int64(cap(s.start)) +
		4*int64(cap(s.count)+cap(s.whole)+cap(s.found))
}

// Gather writes entries by their positions among those that count.
func (s *asOfSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	found, err := s.positions(ctx, off, pos)
	if err != nil {
		return err
	}
	return s.Session.Gather(ctx, off, found, out)
}

// GatherAttributes writes weights and types of entries by their positions among those that count.
func (s *asOfSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	r, ok := s.Session.(AttributeReader)
	if !ok {
		return errors.New("layout: this topology cannot read the weights and types of edges")
	}
	found, err := s.positions(ctx, off, pos)
	if err != nil {
		return err
	}
	return r.GatherAttributes(ctx, off, found, to)
}

// positions returns positions in whole lists, parallel to pos.
func (s *asOfSession) positions(ctx context.Context, off, pos []uint32) ([]uint32, error) {
	if s.times == nil {
		return pos, nil
	}
	s.found = mem.Resize(s.found, int(off[len(off)-1]))
	if err := s.held.AtLeast(s.bytes()); err != nil {
		return nil, err
	}
	var steps pace.Steps
	for i := range len(off) - 1 {
		if err := steps.Took(ctx, 1+int(off[i+1]-off[i])); err != nil {
			return nil, err
		}
		for e := off[i]; e < off[i+1]; e++ {
			s.found[e] = s.moments[s.start[i]+int(pos[e])].pos
		}
	}
	return s.found, nil
}

// Lists returns whole lists, whatever times were set; the next Degrees reads whole lists too.
func (s *asOfSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	s.times = nil
	return s.Session.Lists(ctx, nodes)
}

// Release ends the session.
func (s *asOfSession) Release() {
	s.Session.Release()
	s.held.Release()
}
