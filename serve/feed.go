package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gdb/internal/bug"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/serve/protocol"
)

// errLeft says that a client wants no more of an epoch.
var errLeft = errors.New("serve: the client left the epoch")

// feed makes the batches of a loader and deals them to its clients: with W clients, the client of
// rank r gets the batches whose number, divided by W, leaves the remainder r. All batches come from
// one pipeline and one cache, in the order in which a single client would get them.
type feed struct {
	loader  *loader.Loader
	seeds   []sample.NodeID
	batches uint64 // of an epoch, for each client
	all     uint64 // of an epoch, for all clients together
	world   int
	ready   int // batches that may wait for a client
	stock   *stock
	pack    packer
	src     *loader.Source
	open    *protocol.Open // what the first client asked for when it opened the loader
	// byRelation has fanouts of each hop by number of relation: see loader.Config.
	byRelation [][]int
	held       int64  // bytes of seeds that are reserved in the budget of src
	name       string // the key in Server.mu.feeds
	users      int    // clients that have this feed; guarded by Server.mu
	times      *times
	work       sync.WaitGroup

	mu struct {
		sync.Mutex
		round *round // the epoch that is being dealt; nil if none is
		// clients counts the connected clients of each rank. lost says which ranks have had a
		// client that ended without saying goodbye: the other ranks get their batches without
		// waiting for it until a client of that rank comes again.
		clients []int
		lost    []bool
	}
}

// times counts what making batches has taken, in nanoseconds, and the batches that were made.
type times struct{ batches, sample, gather, pack atomic.Int64 }

// since adds the time that has passed since then.
func since(to *atomic.Int64, then time.Time) { to.Add(int64(time.Since(then))) }

// round is an epoch that is being dealt.
type round struct {
	outset
	held   int64 // bytes of given, in the budget of the source; guarded by feed.mu
	seats  []*seat
	over   chan struct{} // closed when the whole epoch was dealt
	cancel context.CancelFunc
	left   atomic.Int64 // counts the seats that were left
}

// outset says which epoch a client begins, and with which of its batches.
type outset struct {
	epoch, first uint64
	given        []sample.NodeID // its seeds in their order, or nil for those of the loader
	sizes        []uint32        // of its batches of given seeds; nil for those of the loader
}

// seat is the place of one client in a round.
type seat struct {
	round *round
	pool  *pool
	taken chan struct{} // closed when a client has taken the seat
	left  context.Context
	leave context.CancelCauseFunc
	ready chan item
	once  sync.Once
}

// item is a batch in an arena, or the error that comes in its place.
type item struct {
	arena *arena
	batch *protocol.Batch
	err   error // io.EOF after the last batch
}

// come counts a client that has come for a rank.
func (f *feed) come(rank int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.clients == nil {
		f.mu.clients, f.mu.lost = make([]int, f.world), make([]bool, f.world)
	}
	f.mu.clients[rank]++
	f.mu.lost[rank] = false
}

// gone notes that the client of a rank is gone, and whether it was killed. An epoch does not wait
// for a client that was killed.
func (f *feed) gone(rank int, killed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.clients[rank]--
	if !killed || f.mu.clients[rank] > 0 {
		return
	}
	f.mu.lost[rank] = true
	if r := f.mu.round; r != nil && !isClosed(r.seats[rank].taken) {
		r.seats[rank].end()
	}
}

// join gives the client of a rank its seat in an epoch. The first client that joins begins the
// epoch. A client that joins has left the epoch before, and join waits until that was dealt.
func (f *feed) join(ctx context.Context, rank int, pool *pool, at outset) (*seat, error) {
	if at.first > f.batches && at.given == nil {
		return nil, fmt.Errorf("serve: begin with batch %d: an epoch has %d", at.first, f.batches)
	}
	if at.given != nil && f.world > 1 {
		return nil, usage(errors.New("serve: the seeds of an epoch are given by a client that " +
			"shares the loader: that is for loaders of one client"))
	}
	for {
		s, wait, err := f.tryJoin(rank, pool, at)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryJoin takes a seat, or returns a channel that is closed when the caller may try again. A seat
// that was ended because its client was killed gets no batches, so a client that comes in its place
// waits for the next epoch.
func (f *feed) tryJoin(rank int, pool *pool, at outset) (s *seat, wait <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.round == nil {
		f.beginLocked(at)
	}
	r := f.mu.round
	s = r.seats[rank]
	switch free := !isClosed(s.taken) && s.left.Err() == nil; {
	case free && r.epoch == at.epoch && r.first == at.first:
		s.pool = pool
		close(s.taken)
		return s, nil, nil
	case free:
		return nil, nil, usage(fmt.Errorf("serve: rank %d begins epoch %d with batch %d while "+
			"others are in epoch %d from batch %d: all ranks take the same", rank, at.epoch,
			at.first, r.epoch, r.first))
	}
	return nil, r.over, nil
}

// beginLocked begins an epoch and the goroutine that deals it. The caller holds f.mu.
func (f *feed) beginLocked(at outset) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &round{outset: at, over: make(chan struct{}), cancel: cancel}
	for range f.world {
		s := &seat{round: r, taken: make(chan struct{}), ready: make(chan item, f.ready)}
		s.left, s.leave = context.WithCancelCause(ctx)
		r.seats = append(r.seats, s)
	}
	f.mu.round = r
	for rank, lost := range f.mu.lost {
		if lost {
			r.seats[rank].end()
		}
	}
	f.work.Go(func() {
		defer bug.Catch()
		f.deal(ctx, r)
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.round = nil
		f.src.Budget.Release(r.held)
		close(r.over)
	})
}

// keep has a round hold bytes of seeds that a client gave, until it is over.
func (f *feed) keep(r *round, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.round != r {
		f.src.Budget.Release(bytes)
		return
	}
	r.held += bytes
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// deal makes the batches of a round, and then sends every client the end of the epoch or the error.
func (f *feed) deal(ctx context.Context, r *round) {
	err := f.dealAll(ctx, r)
	if err == nil {
		err = io.EOF
	}
	var wait sync.WaitGroup
	for _, s := range r.seats {
		wait.Go(func() {
			defer bug.Catch()
			select {
			case s.ready <- item{err: err}:
			case <-s.left.Done():
			}
		})
	}
	wait.Wait()
}

// dealAll makes the batches of a round and deals them.
func (f *feed) dealAll(ctx context.Context, r *round) (err error) {
	world := uint64(f.world)
	order, end, err := f.order(r)
	first := r.first * world
	if err != nil || first >= end {
		return err
	}
	var epoch sample.Batches
	if order == nil {
		epoch, err = f.loader.Epoch(ctx, r.epoch, first)
	} else {
		epoch, err = f.loader.Order(ctx, order, first)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, epoch.Close()) }()
	for i := first; i < end; i++ {
		begun := time.Now()
		b, err := epoch.Next(ctx)
		if err != nil {
			return err
		}
		since(&f.times.sample, begun)
		err = f.dealOne(r.seats[i%world], b)
		b.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// order returns the order of the seeds of a round, nil for that of the loader, and the number of
// its batches. Superbatches are prepared for an order, an epoch at a time: clients may leave one,
// and begin another.
func (f *feed) order(r *round) (order *sample.Order, batches uint64, err error) {
	switch {
	case len(r.sizes) > 0:
		order, err = sample.InParts(r.given, r.epoch, r.sizes)
	case r.given != nil:
		order, err = sample.InOrder(r.given, r.epoch, f.open.Batch)
	case f.loader.Prepares():
		order, err = sample.EpochOrder(f.seeds, f.open.Seed, r.epoch, f.open.Batch)
	}
	if order == nil || r.given == nil {
		return order, f.all, err
	}
	return order, order.Batches(), err
}

// dealOne waits until a client has taken the seat, and makes the batch for it. It does nothing if
// the client has left.
func (f *feed) dealOne(s *seat, b *sample.Batch) error {
	select {
	case <-s.taken:
	case <-s.left.Done():
	}
	if s.left.Err() != nil {
		return nil
	}
	it, err := f.made(s, b)
	if err != nil {
		if errors.Is(err, errLeft) || errors.Is(err, errClosed) {
			return nil
		}
		return err
	}
	select {
	case s.ready <- it:
		if s.left.Err() != nil { // it may have looked for ready batches before this one came
			s.takeBack()
		}
	case <-s.left.Done():
		s.pool.Put(it.arena)
	}
	return nil
}

// made packs a batch into an arena of the client. It returns errLeft if the client has left.
func (f *feed) made(s *seat, b *sample.Batch) (item, error) {
	it, err := f.pack.pack(s.left, b, s.pool, f.times)
	if err != nil && s.left.Err() != nil {
		return item{}, errLeft
	}
	return it, err
}

// next waits for the client's next batch.
func (s *seat) next(ctx context.Context) (item, error) {
	s.pool.Ask(true)
	defer s.pool.Ask(false)
	select {
	case it := <-s.ready:
		return it, it.err
	case <-ctx.Done():
		return item{}, context.Cause(ctx)
	}
}

// end leaves the seat and takes back the batches that are ready for the client. Further calls do
// nothing.
func (s *seat) end() {
	s.once.Do(func() {
		s.leave(errLeft)
		if s.round.left.Add(1) == int64(len(s.round.seats)) {
			s.round.cancel()
		}
		s.takeBack()
	})
}

// takeBack takes back the arenas of the batches that are ready.
func (s *seat) takeBack() {
	for {
		select {
		case it := <-s.ready:
			if it.arena != nil {
				s.pool.Put(it.arena)
			}
		default:
			return
		}
	}
}

// close waits for the round that is under way, which its clients have left, and frees the memory.
func (f *feed) close() error {
	f.mu.Lock()
	if f.mu.round != nil {
		f.mu.round.cancel()
	}
	f.mu.Unlock()
	f.work.Wait()
	f.src.Budget.Release(f.held)
	return f.loader.Close()
}
