package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gdb/internal/bug"
	"gdb/kv"
	"gdb/layout"
	"gdb/serve/protocol"
	"gdb/shell/lang"

	"golang.org/x/sys/unix"
)

// session is a connected client. Only the goroutine of talk uses it.
type session struct {
	server *Server
	conn   *protocol.Conn
	here   bool  // the client has sent a request, and is counted
	feed   *feed // nil before Open
	rank   int
	places bool // batches around seeds have the places of edges
	bye    bool // the client said that it closes
	pool   *pool
	seat   *seat   // nil outside an epoch
	around *around // nil before the first batch around seeds

	held int64 // bytes of the answer that are reserved in the budget of lookups
}

// talk answers a client until it is gone, and frees what it held.
func (s *Server) talk(ctx context.Context, conn *protocol.Conn) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	asked, t := make(chan *protocol.Frame), &session{server: s, conn: conn}
	go func() { // it ends when the connection does
		defer bug.Catch()
		defer close(asked)
		for {
			f, err := conn.Receive(s.room)
			if errors.Is(err, protocol.ErrForeign) {
				f = &protocol.Frame{Refused: err} // the client is told, and no more is read
			} else if err != nil {
				cancel(err) // this also cancels a request that is being answered
				return
			}
			select {
			case asked <- f:
			case <-ctx.Done():
				f.Free()
			}
			if err != nil {
				return
			}
		}
	}()
	// A client that reads no answers must not keep a server that is ending.
	unblock := context.AfterFunc(ctx, conn.Interrupt)
	defer func() {
		unblock()
		err = errors.Join(err, t.close(), conn.Close())
		cancel(context.Canceled)
		for range asked { // this waits until the reader has ended
		}
		wordless := !t.here && (errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET))
		if errors.Is(err, io.EOF) || wordless {
			err = nil
		}
	}()
	if err := conn.Send(protocol.KindWelcome, s.welcome(), nil); err != nil {
		if ctx.Err() != nil { // sending was interrupted because the client is gone
			return context.Cause(ctx)
		}
		return err
	}
	for {
		select {
		case f, ok := <-asked:
			if !ok {
				return context.Cause(ctx)
			}
			if !t.here {
				t.here = true
				s.come(1)
			}
			err := t.answer(ctx, f)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return err
			}
			if errors.Is(f.Refused, protocol.ErrForeign) {
				return f.Refused
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close frees what the client held.
func (t *session) close() error {
	t.leave()
	if t.around != nil {
		t.around.close()
	}
	if t.here {
		defer t.server.come(-1)
	}
	if t.feed == nil {
		return nil
	}
	t.feed.gone(t.rank, !t.bye)
	return errors.Join(t.pool.Close(), t.server.release(t.feed))
}

func (t *session) leave() {
	if t.seat != nil {
		t.seat.end()
		t.seat = nil
	}
}

// answer answers a request, and tells the client of an error that the request caused. It returns an
// error if the connection fails or the client is gone.
func (t *session) answer(ctx context.Context, f *protocol.Frame) error {
	defer f.Free()
	defer t.giveBack()
	err := f.Refused
	if err == nil {
		err = t.handle(ctx, f)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	var broken *sendError
	if errors.As(err, &broken) {
		return err
	}
	return t.conn.Send(protocol.KindFailed, protocol.Failed{Message: err.Error(),
		What: whatOf(err)}, nil)
}

// take reserves n bytes for an answer. They are released after the answer was sent.
func (t *session) take(n int64) error {
	if err := t.server.lookup.Reserve("an answer", n); err != nil {
		return fmt.Errorf("serve: %w, or ask for less at a time", err)
	}
	t.held += n
	return nil
}

// giveBack releases the bytes that are reserved for an answer.
func (t *session) giveBack() {
	t.server.lookup.Release(t.held)
	t.held = 0
}

// sendError is an error that ends the connection.
type sendError struct{ error }

func (e *sendError) Unwrap() error { return e.error }

// send sends an answer.
func (t *session) send(kind protocol.Kind, body any, data ...[]byte) error {
	if err := t.conn.Send(kind, body, data...); err != nil {
		return &sendError{err}
	}
	return nil
}

// whatOf returns the kind of an error, as protocol.Failed.What tells it to clients.
func whatOf(err error) string {
	var mistake usageError
	var syntax *lang.SyntaxError
	switch {
	case errors.Is(err, errHeld):
		return "held"
	case errors.As(err, &mistake), errors.As(err, &syntax), errors.Is(err, kv.ErrNotFound):
		return "usage"
	case errors.Is(err, layout.ErrCorrupt), errors.Is(err, kv.ErrDamaged):
		return "damaged"
	}
	return "failed"
}

// handle does what a client asks for.
func (t *session) handle(ctx context.Context, f *protocol.Frame) error {
	switch f.Kind {
	case protocol.KindHello:
		return t.hello(f)
	case protocol.KindOpen:
		return t.open(ctx, f)
	case protocol.KindStart:
		return t.start(ctx, f)
	case protocol.KindNext:
		return t.next(ctx, f)
	case protocol.KindSample:
		return t.sample(ctx, f)
	case protocol.KindReturn:
		if err := t.takeBack(f); err != nil {
			return &sendError{err} // the client waits for no answer
		}
		return nil
	case protocol.KindBye:
		t.bye = true
		return nil
	case protocol.KindLeave:
		if err := t.takeBack(f); err != nil {
			return err
		}
		t.leave()
		return t.send(protocol.KindDone, nil, nil)
	case protocol.KindStats:
		return t.send(protocol.KindStatsNow, t.server.stats(), nil)
	}
	return t.lookup(ctx, f)
}

func (t *session) hello(f *protocol.Frame) error {
	var h protocol.Hello
	if err := f.Decode(&h); err != nil {
		return err
	}
	if h.Protocol != protocol.Version {
		return usage(fmt.Errorf("serve: the client speaks version %d of the protocol, gdb %s "+
			"version %d: install the Python package and gdb of one version", h.Protocol,
			t.server.opt.Version, protocol.Version))
	}
	return t.send(protocol.KindDone, nil, nil)
}

func (t *session) open(ctx context.Context, f *protocol.Frame) (err error) {
	var o protocol.Open
	if err := f.Decode(&o); err != nil {
		return err
	}
	if t.feed != nil {
		return usage(errors.New("serve: a connection has one loader"))
	}
	if t.feed, err = t.server.open(ctx, &o, f); err != nil {
		return err
	}
	t.rank, t.places, t.pool = o.Rank, o.Places, t.feed.stock.Pool()
	t.feed.come(o.Rank)
	s := t.server.planned()
	return t.send(protocol.KindOpened, protocol.Opened{Seeds: uint64(len(t.feed.seeds)),
		Batches: t.feed.batches, Plan: s.plan, Normalize: s.normalize}, nil)
}

// planned returns what the first loader has settled for all loaders.
func (s *Server) planned() settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.settled
}

func (t *session) start(ctx context.Context, f *protocol.Frame) error {
	var m protocol.Start
	if err := f.Decode(&m); err != nil {
		return err
	}
	if err := t.goOn(m.Done); err != nil {
		return err
	}
	at := outset{epoch: m.Epoch, first: m.First, sizes: m.Sizes}
	if i := slices.IndexFunc(m.Sizes, func(n uint32) bool {
		return uint64(n) > uint64(t.feed.open.Batch)
	}); i >= 0 {
		return usage(fmt.Errorf("serve: batch %d has %d seeds, and the loader was opened for %d",
			i, m.Sizes[i], t.feed.open.Batch))
	}
	if len(m.Sizes) > 0 && len(f.Data) == 0 {
		return usage(errors.New("serve: batches of given sizes without their seeds"))
	}
	if len(f.Data) > 0 {
		var err error
		if at.given, err = t.server.seedsOf(f); err != nil {
			return err
		}
	}
	held := int64(len(m.Sizes)) * partBytes
	err := t.feed.src.Budget.Reserve("the sizes of batches", held)
	if err != nil {
		return err
	}
	if t.seat, err = t.feed.join(ctx, t.rank, t.pool, at); err != nil {
		t.feed.src.Budget.Release(held)
		return err
	}
	t.feed.keep(t.seat.round, held+f.KeepData())
	return t.send(protocol.KindDone, nil, nil)
}

// partBytes is what a batch of a size of its own takes: the size, and where it ends.
const partBytes = 12

// goOn leaves the epoch that is under way, if there is one, and takes arenas back.
func (t *session) goOn(done []uint32) error {
	if t.feed == nil {
		return usage(errors.New("serve: open a loader first"))
	}
	t.leave()
	if err := t.pool.Return(done); err != nil {
		return usage(err)
	}
	return nil
}

// takeBack takes back the arenas that a request names.
func (t *session) takeBack(f *protocol.Frame) error {
	var m protocol.Next
	if err := f.Decode(&m); err != nil {
		return err
	}
	if t.pool == nil {
		return usage(errors.New("serve: open a loader first"))
	}
	if err := t.pool.Return(m.Done); err != nil {
		return usage(err)
	}
	return nil
}

func (t *session) next(ctx context.Context, f *protocol.Frame) error {
	if err := t.takeBack(f); err != nil {
		return err
	}
	if t.seat == nil {
		return usage(errors.New("serve: no epoch was begun"))
	}
	it, err := t.seat.next(ctx)
	if err != nil {
		t.leave()
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return t.send(protocol.KindEnd, nil, nil)
		}
		return err
	}
	return t.lend(it)
}

// sample answers with the batch around seeds that the client names.
func (t *session) sample(ctx context.Context, f *protocol.Frame) error {
	var m protocol.Sample
	if err := f.Decode(&m); err != nil {
		return err
	}
	if err := t.goOn(m.Done); err != nil {
		return err
	}
	seeds, err := t.server.seedsOf(f)
	if err != nil {
		return err
	}
	if t.feed.loader.Prepares() {
		return usage(errors.New("serve: a loader with the cache belady knows all seeds of an " +
			"epoch before it begins: give them with its start"))
	}
	if t.around == nil {
		if t.around, err = newAround(t.feed, t.pool, t.places); err != nil {
			return err
		}
	}
	it, err := t.around.make(ctx, &m, seeds)
	if err != nil {
		return err
	}
	return t.lend(it)
}

// lend sends a batch.
func (t *session) lend(it item) error {
	file := -1
	if it.batch.New = !it.arena.Known; it.batch.New {
		file = it.arena.Descriptor()
	}
	it.batch.Gone = t.pool.Lend(it.arena)
	if err := t.conn.SendFile(protocol.KindBatch, it.batch, file); err != nil {
		return &sendError{err}
	}
	return nil
}
