// Package shared hands the batches of one loader to several trainings that go on at the same time:
// each batch is drawn and gathered once, and all of them step on it before the next one comes.
package shared

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
)

// ErrLeft is returned to a member that asks for batches after it left.
var ErrLeft = errors.New("shared: the training has left those that it shared batches with")

// Group is trainings that share the batches of a loader. An epoch begins once each member has asked
// for one or has left: those get it who ask for the earliest batch, and the others wait, so that
// members that stand at different batches come together again. Any goroutine may use it.
type Group struct {
	loader *loader.Loader

	mu      sync.Mutex
	changed sync.Cond // something below has
	members []*Member
	epoch   *epoch // that is open; nil for none
	alone   bool   // a member uses the source alone
}

// Member is a training of a group. One goroutine may use it.
type Member struct {
	group *Group
	// Table, if it is not nil, has the rows of all nodes: batches that do not refer to rows in
	// memory do so for this member, see sample.Batch.Table. It is set before the first epoch.
	Table []float32

	asks *place // of the epoch that the member waits for; nil for none
	left bool
}

// place is where an epoch begins.
type place struct{ epoch, first uint64 }

// before reports whether a place comes before another.
func (p place) before(other place) bool {
	return p.epoch < other.epoch || p.epoch == other.epoch && p.first < other.first
}

// New returns a group without members. Its owner closes the loader once all members have left.
func New(l *loader.Loader) *Group {
	g := &Group{loader: l}
	g.changed.L = &g.mu
	return g
}

// Join adds a member, for which the others wait from now on until it leaves.
func (g *Group) Join() *Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &Member{group: g}
	g.members = append(g.members, m)
	return m
}

// Leave ends the part of a member, which has closed its epoch. Further calls do nothing.
func (m *Member) Leave() {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	m.left = true
	g.members = slices.DeleteFunc(g.members, func(other *Member) bool { return other == m })
	g.changed.Broadcast()
}

// Alone returns once nobody else uses the source of the loader: no epoch is open, and no other
// member is alone. The member does so until it calls done.
func (m *Member) Alone() (done func()) {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.alone || g.epoch != nil {
		g.changed.Wait()
	}
	g.alone = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.alone = false
		g.changed.Broadcast()
	}
}

// Epoch starts the batches of an epoch, from batch first on, once all members have asked for one.
// The caller closes it; before that it has given back all batches.
func (m *Member) Epoch(ctx context.Context, number, first uint64) (*loader.Epoch, error) {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.left {
		return nil, ErrLeft
	}
	m.asks = &place{number, first}
	g.changed.Broadcast()
	for {
		if e := g.epoch; e != nil && slices.Contains(e.waited, m) {
			return e.begun(m)
		}
		if g.mayBegin() && g.earliest() == *m.asks {
			g.begin(ctx, *m.asks)
			continue
		}
		g.changed.Wait()
	}
}

// mayBegin reports whether an epoch may begin: all members have asked for one.
func (g *Group) mayBegin() bool {
	return g.epoch == nil && !g.alone &&
		!slices.ContainsFunc(g.members, func(m *Member) bool { return m.asks == nil })
}

// earliest returns the first of the places that members ask for.
func (g *Group) earliest() place {
	least := *g.members[0].asks
	for _, m := range g.members[1:] {
		if m.asks.before(least) {
			least = *m.asks
		}
	}
	return least
}

// begin opens an epoch for all who ask for its place. It goes on for the others when ctx is
// cancelled, which stops one member alone.
func (g *Group) begin(ctx context.Context, at place) {
	e := &epoch{group: g}
	for _, m := range g.members {
		if *m.asks == at {
			e.waited, m.asks = append(e.waited, m), nil
		}
	}
	e.open = len(e.waited)
	e.made, e.err = g.loader.Epoch(context.WithoutCancel(ctx), at.epoch, at.first)
	if e.err != nil {
		e.made = nil
	}
	g.epoch = e
	g.changed.Broadcast()
}

// epoch is batches that several members take.
type epoch struct {
	group  *Group
	made   *loader.Epoch
	err    error     // of opening it
	waited []*Member // who have not got it yet
	takers []*batches
	open   int // members who have not closed it

	// batch is what the takers step on; nil before the first and after the last. holders is how
	// many of them have it, and number counts the batches that the loader was asked for. end is why
	// there are no more; nil while there are.
	batch   *sample.Batch
	holders int
	number  int
	end     error
	asking  bool // a taker waits for the loader
}

// begun hands the epoch to a member that waited for it.
func (e *epoch) begun(m *Member) (*loader.Epoch, error) {
	e.waited = slices.DeleteFunc(e.waited, func(other *Member) bool { return other == m })
	if e.err != nil {
		return nil, errors.Join(e.err, e.close())
	}
	b := &batches{epoch: e, table: m.Table, since: time.Now()}
	e.takers = append(e.takers, b)
	return e.made.With(b), nil
}

// close counts a member that is done, and ends the epoch with the last of them.
func (e *epoch) close() (err error) {
	if e.open--; e.open > 0 {
		e.group.changed.Broadcast()
		return nil
	}
	if e.batch != nil {
		e.batch.Release()
	}
	if e.made != nil {
		err = e.made.Close()
	}
	e.group.epoch = nil
	e.group.changed.Broadcast()
	return err
}

// mayAdvance reports whether the next batch may be asked for: all members have come, have seen the
// last one, and have given it back.
func (e *epoch) mayAdvance() bool {
	behind := func(b *batches) bool { return b.seen < e.number }
	return !e.asking && e.holders == 0 && len(e.waited) == 0 && e.end == nil &&
		!slices.ContainsFunc(e.takers, behind)
}

// advance asks the loader for the next batch, without the lock meanwhile. It does not see that ctx
// is cancelled, which stops one member alone.
func (e *epoch) advance(ctx context.Context) {
	e.asking = true
	if e.batch != nil {
		e.batch.Release()
		e.batch = nil
	}
	e.group.mu.Unlock()
	b, err := e.made.Next(context.WithoutCancel(ctx))
	e.group.mu.Lock()
	e.asking = false
	e.batch, e.end = b, err
	e.number++
	e.group.changed.Broadcast()
}

// view returns a batch as a member with a table sees it.
func view(b *sample.Batch, table []float32, release func()) *sample.Batch {
	v := b.Share(release)
	if table != nil && b.Table == nil {
		v.Table, v.TableRows = table, mem.View[uint32](mem.BytesOf(b.Dense.Nbrs))
		v.X = b.X[int(b.Dense.NodeIDOffsets[1])*b.Dim:]
	}
	return v
}
