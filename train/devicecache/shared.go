package devicecache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/draw"
	"gdb/sample/rowcache"
	"gdb/train/plan"
)

// Shared keeps on the device the rows of batches that are sliced from the same macro-batch, from
// the first such batch on. So the features of a macro-batch are gathered and sent once, and its
// batches take their input from there by number (Joestar, section 5.2.1). Rows are put into a block
// of the device's memory in the order in which batches first need them. When a batch's rows do not
// fit the block is begun anew. Shared stands in front of a Cache and, like it, has features for the
// batches of one pipeline, which gathers them in order; a step computes the same, to the bit, as
// without it. For the numbers of a batch it takes places for SharedPlaces numbers a row.
type Shared struct {
	*Cache
	block atomic.Pointer[block] // nil until Open

	gathering struct {
		sync.Mutex
		table *draw.NodeTable // numbers nodes by their rows in the block
		nodes []sample.NodeID // by row
		turn  turn            // of the next batch
		bound int             // rows that a step puts into the block, at least the most so far
		held  mem.Account
	}
	noted  notes[shares]
	broken atomic.Uint64 // fillings up to this one may lack rows
	stats  Stats         // of rows that earlier batches put into the block
	due    turn          // the turn of the next batch that a step is given
}

// SharedPlaces is how many numbers Shared has for each row of a batch at most: where a step reads
// it, and of those that it puts into the block where it goes and where it comes from.
const SharedPlaces = 3

// block is memory of the device for most rows.
type block struct {
	rows backend.Tensor // (most+1, Dim): the last one is zeros
	most int
}

// turn identifies a batch by the filling of the block that it uses, counted from 1, and by its
// place among the batches of that filling.
type turn struct{ filling, number uint64 }

// shares says where the rows of a batch are in the block. What was prepared of the batch has a
// number for each of rows, then where rows are put, then where those come from: of as many as bound
// each, zeros first.
type shares struct {
	turn
	block       *block
	fresh       []sample.NodeID // nodes whose rows this batch adds
	rows, bound int
	held        mem.Account
}

// Share returns a Shared in front of a cache, which the caller still has to close. Nothing is
// shared until Open.
func Share(c *Cache) *Shared {
	s := &Shared{Cache: c}
	s.noted = newNotes(func() *shares {
		return &shares{held: mem.NewAccount(c.budget, "places of rows on the device")}
	})
	s.gathering.held = mem.NewAccount(c.budget, "nodes of macro-batches on the device")
	s.gathering.table = draw.NewNodeTable(&s.gathering.held)
	s.gathering.turn.filling, s.due.filling = 1, 1
	return s
}

// Open takes memory of the device for a number of rows. It is called between two steps.
func (s *Shared) Open(rows int) error {
	most := 2 * rows // nodes, also of a batch that turns out not to fit
	if err := s.gathering.held.Add(4 * int64(most)); err != nil {
		return err
	}
	all, err := s.be.Params("rows of macro-batches", (rows+1)*s.Dim())
	if err != nil {
		s.gathering.held.Release()
		return err
	}
	b := &block{most: rows, rows: all.View(0, rows+1, s.Dim())}
	s.gathering.Lock()
	defer s.gathering.Unlock()
	s.gathering.nodes = make([]sample.NodeID, 0, most)
	if _, err := s.gathering.table.Reset(context.Background(), nil); err != nil {
		return err
	}
	s.block.Store(b)
	return nil
}

// Source is what the rows on a device are read from.
type Source struct {
	Rows rowcache.Rows
	// Hottest returns n nodes, those used most first. The graph has Nodes nodes.
	Hottest func(ctx context.Context, n int) ([]sample.NodeID, error)
	Nodes   uint64
	// Share says that batches come through Gather, so that they can share rows.
	Share bool
}

// FillIn copies the rows used most to the device and takes memory for rows that batches share, as
// far as the plan and the device have room. It is no error if there is none: rows on the device
// only make steps faster.
func (s *Shared) FillIn(ctx context.Context, p *plan.DevicePlan, from Source) error {
	on := s.be.Device()
	if on == nil || p == nil {
		return nil
	}
	free, _, err := on.DeviceMemory()
	if err != nil {
		return err
	}
	if rows := p.Room(free, s.Dim()); rows > 0 {
		hot, err := from.Hottest(ctx, int(rows))
		if err == nil {
			err = s.Fill(ctx, from.Rows, hot, from.Nodes)
		}
		if !shortOfMemory(err) && err != nil {
			return err
		}
	}
	if free, _, err = on.DeviceMemory(); err != nil || !from.Share {
		return err
	}
	if rows := p.RoomShared(free, s.Dim()); rows > 0 {
		if err := s.Open(int(rows)); !shortOfMemory(err) {
			return err
		}
	}
	return nil
}

func shortOfMemory(err error) bool {
	var full *mem.LimitError
	return errors.Is(err, backend.ErrDeviceMemory) || errors.As(err, &full)
}

// For returns the features of a batch, of which rows are gathered that no earlier batch has put
// into the block.
func (s *Shared) For(b *sample.Batch) rowcache.Features {
	return features{Features: s.host, gather: s.gatherFor, to: preparedOf(b)}
}

// gatherFor gathers a batch, of which to is prepared.
func (s *Shared) gatherFor(ctx context.Context, to Prepared, nodes []sample.NodeID,
	out []float32) error {
	b := s.block.Load()
	if b == nil || len(out) == 0 {
		return s.Cache.gatherFor(ctx, to, nodes, out)
	}
	s.noted.give(s.noted.take(&out[0])) // of a batch that was given up
	if len(nodes) > b.most {
		return s.Cache.gatherFor(ctx, to, nodes, out)
	}
	p, err := s.split(ctx, b, to, nodes)
	var full *mem.LimitError
	if errors.As(err, &full) { // no batch is the worse for it
		s.block.Store(nil)
		return s.Cache.gatherFor(ctx, to, nodes, out)
	}
	if err != nil {
		return err
	}
	words, numbered := p.rows+2*p.bound, false
	if len(p.fresh) > 0 {
		from := to.Places(words)[p.rows+p.bound:]
		if numbered, err = s.Cache.gather(ctx, from, p.fresh, out); err != nil {
			s.noted.give(p)
			return err
		}
	}
	if !numbered {
		to.Places(words - p.bound)
	}
	s.noted.put(&out[0], p)
	return nil
}

// split finds where the rows of nodes are, or will be, and writes it to what was prepared.
func (s *Shared) split(ctx context.Context, b *block, to Prepared,
	nodes []sample.NodeID) (*shares, error) {
	g := &s.gathering
	g.Lock()
	defer g.Unlock()
	if s.broken.Load() >= g.turn.filling {
		if err := s.refill(ctx); err != nil {
			return nil, err
		}
	}
	p := s.noted.spare()
	p.rows = to.FeatureRows()
	from := to.Places(p.rows)
	zeros := p.rows - len(nodes)
	for i := range zeros {
		from[i] = uint32(b.most)
	}
	before, err := len(g.nodes), error(nil)
	g.nodes, err = g.table.Extend(ctx, g.nodes, nodes, from[zeros:])
	if err == nil && len(g.nodes) > b.most {
		if err = s.refill(ctx); err == nil {
			before = 0
			g.nodes, err = g.table.Extend(ctx, g.nodes, nodes, from[zeros:])
		}
	}
	if err != nil {
		s.noted.give(p)
		return nil, errors.Join(err, s.refill(context.WithoutCancel(ctx)))
	}
	p.block, p.fresh = b, append(p.fresh[:0], g.nodes[before:]...)
	if err := p.held.AtLeast(4 * int64(cap(p.fresh))); err != nil {
		s.noted.give(p)
		return nil, errors.Join(err, s.refill(context.WithoutCancel(ctx)))
	}
	s.number(p, to, before)
	p.turn = g.turn
	g.turn.number++
	return p, nil
}

// number writes which rows of the block, from row first on, those are that a step puts there. As
// many are put as the bound says, some of them zeros, so that steps are equal: see Cache. The
// caller holds the lock of gathering.
func (s *Shared) number(p *shares, to Prepared, first int) {
	g, n := &s.gathering, len(p.fresh)
	if n > g.bound {
		g.bound = n + n/boundShare
	}
	p.bound = g.bound
	if p.bound > p.rows { // there is no room for their numbers
		p.bound = n
	}
	places := to.Places(p.rows + 2*p.bound)[p.rows:][:p.bound]
	for i := range places {
		places[i] = ^uint32(0) // of zeros before the first
		if j := i - (p.bound - n); j >= 0 {
			places[i] = uint32(first + j)
		}
	}
}

// refill begins the block anew. The caller holds the lock of gathering.
func (s *Shared) refill(ctx context.Context) error {
	g := &s.gathering
	g.nodes, g.turn = g.nodes[:0], turn{filling: g.turn.filling + 1}
	_, err := g.table.Reset(ctx, nil)
	return err
}

// Input does what Cache.Input does. If a batch that was gathered earlier was never given to a step,
// rows may be missing in the block; the batch is then gathered again by itself.
func (s *Shared) Input(b *sample.Batch) (backend.Assemble, error) {
	if len(b.X) == 0 {
		return nil, nil
	}
	p, nodes := s.noted.take(&b.X[0]), b.Dense.NodeIDs
	if p == nil {
		return s.Cache.Input(b)
	}
	if !s.inTurn(p) {
		s.noted.give(p)
		// A step that was begun is ended.
		err := s.Cache.gatherFor(context.Background(), preparedOf(b), nodes, b.X)
		if err != nil {
			return nil, err
		}
		return s.Cache.Input(b)
	}
	old := uint64(len(nodes) - len(p.fresh))
	s.stats.Rows, s.stats.Hits = s.stats.Rows+old, s.stats.Hits+old
	var put backend.Assemble
	if n := len(p.fresh); n > 0 {
		put = s.Cache.input(b.X, n)
	}
	return func(_ int, places backend.Tensor) backend.Tensor {
		return s.pick(p, put, b.X, places)
	}, nil
}

// inTurn reports whether steps were given all batches that were gathered since the block was begun.
func (s *Shared) inTurn(p *shares) bool {
	if p.filling > s.due.filling {
		s.due = turn{filling: p.filling}
	}
	if p.turn != s.due {
		s.broken.Store(max(s.broken.Load(), p.filling))
		return false
	}
	s.due.number++
	return true
}

// pick puts new rows into the block, and assembles the batch's rows from the block. put provides
// the new rows; if it is nil they are in x.
func (s *Shared) pick(p *shares, put backend.Assemble, x []float32,
	places backend.Tensor) backend.Tensor {
	defer s.noted.give(p)
	n, rows, bound := len(p.fresh), p.rows, p.bound
	var fresh backend.Tensor
	switch {
	case n == 0:
		fresh = s.be.Scratch(bound, s.Dim())
	case put == nil:
		fresh = s.be.Host(x[:n*s.Dim()], bound, s.Dim())
	default:
		fresh = put(bound, places.Last(places.Rows-rows-bound))
	}
	backend.PutRows(s.be, p.block.rows, fresh, places.Slice(rows, bound))
	out := s.be.Scratch(rows, s.Dim())
	backend.PickRows(s.be, out, p.block.rows, backend.Tensor{Cols: s.Dim()},
		places.Slice(0, rows))
	return out
}

// Used returns the counts so far. A row that an earlier batch put into the block counts as one that
// the device had.
func (s *Shared) Used() Stats {
	u := s.Cache.Used()
	return Stats{Rows: u.Rows + s.stats.Rows, Hits: u.Hits + s.stats.Hits}
}

// Close frees the host's memory; the backend frees the device's.
func (s *Shared) Close() error {
	s.gathering.held.Release()
	for _, p := range s.noted.end() {
		p.held.Release()
	}
	return nil
}
