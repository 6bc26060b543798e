// Package serve gives the batches of a store to other processes: one server of a machine samples,
// caches and gathers, and writes batches into memory that its clients map. Clients speak to it over
// a Unix socket, see protocol; python/gdbgraph is one.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gdb"
	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample/loader"
	"gdb/serve/protocol"
	"gdb/shell/graph"
	"gdb/train/runs/vectors"

	"golang.org/x/sys/unix"
)

// Options configure a server.
type Options struct {
	Store  *layout.Store
	Device blockdev.Device
	// Memory bounds the process where the first loader does not say how much it may be, in bytes.
	Memory  int64
	Threads int
	Version string // of gdb
	// Profiles is as in probe.Config.
	Profiles string
	// UntilIdle ends the server with its last client, or if none comes within 30 s.
	UntilIdle bool
	// Notes is told what went wrong with a client and did no harm to others; nil for none.
	Notes func(text string)
}

// idleTime is how long a server that ends with its last client waits for the first.
const idleTime = 30 * time.Second

// lookupShare is the part of the memory that lookups and statements may take, which have a budget
// of their own: a sixteenth, and lookupMost at most. Until there are any, a cache of features has
// it that can give memory back.
const lookupShare, lookupMost = 16, 64 << 20

// earlyShare is the part of the memory that seeds may take before the first loader is open.
const earlyShare = 4

// Server serves one store. Its loaders share the files, the topology and the cache of features,
// whose memory the first of them has planned.
type Server struct {
	opt   Options
	times times

	clients atomic.Int64 // that were there
	work    sync.WaitGroup

	// early counts seeds that come before there is a source in whose budget they are.
	early *mem.Budget

	// opening is held while a loader is opened, which may plan and measure for seconds, and
	// connecting while the database of lookups is. Both come before mu.
	opening, connecting sync.Mutex

	// mu is held for moments. src, memory and settled are written with opening held too, so that
	// who opens a loader reads them without it.
	mu struct {
		sync.Mutex
		memory int64          // of the source, or what it is if no loader says
		src    *loader.Source // nil before the first loader
		// lookup counts lookups and statements, their requests and answers; nil before the first.
		lookup *mem.Budget
		// apart says that the memory of lookups is counted in the budget of src: else its cache of
		// features, which shrinks, may have it.
		apart, shrinks bool
		settled
		feeds map[string]*feed
		db    *gdb.DB // of lookups; nil before the first
		here  int     // clients
		idle  chan struct{}
	}
}

// settled is what the first loader has settled for all.
type settled struct {
	plan      string        // of the memory, for people
	shape     loader.Config // as the plan says
	normalize string        // of features: none, row or zscore
}

// New returns a server. The store and the device are closed by their owner, after Serve.
func New(opt Options) *Server {
	s := &Server{opt: opt, early: mem.NewBudget(max(1, opt.Memory/earlyShare))}
	s.mu.memory = opt.Memory
	s.mu.feeds = map[string]*feed{}
	s.mu.idle = make(chan struct{})
	if opt.Notes == nil {
		s.opt.Notes = func(string) {}
	}
	return s
}

// Serve answers clients until ctx is cancelled, which is its error then, or, with UntilIdle, the
// last client is gone: then it returns nil. It closes the listener, and frees all memory.
func (s *Server) Serve(interrupted context.Context, l *Listener) error {
	ctx, cancel := context.WithCancel(interrupted)
	defer cancel()
	failed := make(chan error, 1)
	s.work.Go(func() {
		defer bug.Catch()
		failed <- s.accept(ctx, l)
	})
	late := time.NewTimer(idleTime)
	defer late.Stop()
	if !s.opt.UntilIdle {
		late.Stop()
	}
	var err error
	for ended := false; !ended; {
		ended = true
		select {
		case <-ctx.Done():
		case err = <-failed:
		case <-s.mu.idle:
		case <-late.C:
			if ended = s.clients.Load() == 0; ended {
				err = fmt.Errorf("serve: no client came within %v", idleTime)
			}
		}
	}
	// Clients may be gone at the same moment, by the same signal: the server was interrupted still.
	if interrupted.Err() != nil {
		err = errors.Join(err, fmt.Errorf("serve: interrupted: %w", interrupted.Err()))
	}
	cancel()
	err = errors.Join(err, l.Close())
	s.work.Wait()
	return errors.Join(err, s.close())
}

// accept takes clients until the listener is closed. While the process or the system has no room
// for one more it waits: others end, and that one is taken then.
func (s *Server) accept(ctx context.Context, l taker) error {
	wait := time.Duration(0)
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				_ = c.Close() // it came too late
			}
			return nil
		}
		if err != nil && !passes(err) {
			return fmt.Errorf("serve: take a client: %w", err)
		}
		if err != nil {
			if wait == 0 {
				s.opt.Notes(fmt.Sprintf("a client waits until it can be taken: %v", err))
			}
			wait = min(max(2*wait, waitLeast), waitMost)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			continue
		}
		wait = 0
		s.work.Go(func() {
			defer bug.Catch()
			if err := s.talk(ctx, protocol.NewConn(c)); err != nil && ctx.Err() == nil {
				s.opt.Notes(err.Error())
			}
		})
	}
}

// taker takes clients: a Listener.
type taker interface {
	AcceptUnix() (*net.UnixConn, error)
}

// passes says whether an error of taking a client passes: the client is gone already, or the
// process or the system has no room for it now.
func passes(err error) bool {
	return errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.EMFILE) ||
		errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)
}

// waitLeast and waitMost bound the time between two tries to take a client.
const waitLeast, waitMost = time.Millisecond, 500 * time.Millisecond

// come counts the clients that are there. Who leaves without a word is none: programs look so
// whether a socket still has a server.
func (s *Server) come(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.here += n
	s.clients.Add(int64(max(0, n)))
	if s.mu.here == 0 && s.opt.UntilIdle && !isClosed(s.mu.idle) {
		close(s.mu.idle)
	}
}

// close frees what clients have opened. They are gone.
func (s *Server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, f := range s.mu.feeds {
		err = errors.Join(err, f.close())
	}
	if s.mu.src != nil {
		err = errors.Join(err, s.mu.src.Close())
	}
	if s.mu.db != nil {
		err = errors.Join(err, s.mu.db.Close())
	}
	return err
}

// welcome describes the store.
func (s *Server) welcome() protocol.Welcome {
	m := s.opt.Store.Meta()
	w := protocol.Welcome{Protocol: protocol.Version, Version: s.opt.Version,
		Store: protocol.Store{Path: s.opt.Store.Path(), UUID: m.UUID.String(), Nodes: m.Nodes,
			Edges: m.Edges, Splits: map[string]uint64{}, External: m.IDs.Kind != kv.IDsDense}}
	w.Store.Types, w.Store.EdgeSplits = m.EdgeTypes, map[string]uint64{}
	for _, t := range m.NodeTypes {
		w.Store.NodeTypes = append(w.Store.NodeTypes, t.Name)
	}
	for _, e := range m.EdgeSplits {
		w.Store.EdgeSplits[e.Name] = e.Count
	}
	if len(m.Features) > 0 {
		w.Store.Dim = m.Features[0].Dim
		if columns := m.FeatureColumns(m.Features[0]); columns.Named() {
			w.Store.FeatureNames = columns.Names()
		}
	}
	if m.Labels != nil {
		w.Store.Labels, w.Store.Classes = m.Labels.Kind, m.Labels.Classes
	}
	for _, split := range m.Splits {
		w.Store.Splits[split.Name] = split.Count
	}
	return w
}

// lookups is the database of lookups and statements.
func (s *Server) lookups(ctx context.Context) (*gdb.DB, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	s.mu.Lock()
	db := s.mu.db
	budget, err := s.lookupLocked()
	s.mu.Unlock()
	if db != nil || err != nil {
		return db, err
	}
	db, err = gdb.Open(ctx, s.opt.Store.Path(), gdb.Options{Memory: budget.Limit(),
		FS: s.opt.Store.FS(), Budget: budget,
		Vectors: graph.VectorsBy(vectors.Open)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.db = db
	return db, err
}

// room returns where a request of a kind is counted while it comes: seeds with the loaders, once
// the first is open, and all else with the lookups.
func (s *Server) room(kind protocol.Kind) (*mem.Budget, error) {
	seeds := kind == protocol.KindOpen || kind == protocol.KindSample
	if seeds {
		s.opening.Lock()
		defer s.opening.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !seeds {
		return s.lookupLocked()
	}
	if s.mu.src != nil {
		return s.mu.src.Budget, nil
	}
	return s.early, nil
}

// lookupLocked is the budget of lookups, which is set apart when it is first asked for. Garbage has
// its part of that memory.
func (s *Server) lookupLocked() (*mem.Budget, error) {
	if s.mu.lookup != nil {
		return s.mu.lookup, nil
	}
	if err := s.setApartLocked(); err != nil {
		return nil, err
	}
	s.mu.lookup = mem.NewBudget(s.lookupLimitLocked())
	return s.mu.lookup, nil
}

// lookupLimitLocked is what lookups may take beside the garbage of it.
func (s *Server) lookupLimitLocked() int64 {
	bytes := lookupBytes(s.mu.memory)
	return max(1, bytes-mem.HeapGarbage(bytes))
}

// setApartLocked counts the memory of lookups in the budget of the source, if there is one. A cache
// of features gives it back if it has it.
func (s *Server) setApartLocked() error {
	if s.mu.src == nil || s.mu.apart {
		return nil
	}
	bytes := s.lookupLimitLocked()
	if s.mu.lookup != nil {
		bytes = s.mu.lookup.Limit()
	}
	if err := s.mu.src.Budget.Reserve("lookups", bytes); err != nil {
		return fmt.Errorf("serve: look up nodes: %w", err)
	}
	s.mu.apart = true
	return nil
}

// lookupBytes is the memory of lookups of a process of so much.
func lookupBytes(memory int64) int64 { return min(memory/lookupShare, lookupMost) }

// stats are the counters so far.
func (s *Server) stats() protocol.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := protocol.Stats{BytesRead: s.opt.Device.Stats().Bytes,
		Batches: uint64(s.times.batches.Load()),
		Sample:  time.Duration(s.times.sample.Load()).Seconds(),
		Gather:  time.Duration(s.times.gather.Load()).Seconds(),
		Pack:    time.Duration(s.times.pack.Load()).Seconds()}
	st.RSS, st.RSSPeak = mem.RSS()
	if src := s.mu.src; src != nil && src.Features != nil {
		c := src.Features.Stats()
		st.Policy, st.Requests, st.Hits = c.Policy, c.Requests, c.Hits
	}
	return st
}

// splitOf are the parts of a name such as train@3.
func splitOf(name string) (base, column string, err error) {
	base, column, _ = strings.Cut(name, "@")
	if known := []string{"train", "val", "test"}; !slices.Contains(known, base) {
		return "", "", usage(fmt.Errorf("serve: split %q: want %s, or one of several such as "+
			"train@3", name, strings.Join(known, ", ")))
	}
	return base, column, nil
}

// usageError is a mistake of the client.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(err error) error { return usageError{err} }
