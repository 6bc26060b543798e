// Package serve gives the batches of a store to other processes: one server on a machine samples,
// caches and gathers, and writes batches into memory that its clients map. Clients speak to it over
// a Unix socket, as package protocol describes; python/gdbgraph is such a client.
//
// A session is one connected client. A feed is a loader that several clients share, and deals the
// batches of an epoch to them; a seat is the place of one client in such an epoch.
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
	"gdb/train"
	"gdb/train/nearest"
	"gdb/train/runs/vectors"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sys/unix"
)

// Options configure a server.
type Options struct {
	Store  *layout.Store
	Device blockdev.Device
	// Memory bounds the memory of the process, in bytes, if the first loader does not say it.
	Memory  int64
	Threads int
	Version string // the version of gdb
	// Profiles is passed on as probe.Config.Profiles.
	Profiles string
	// UntilIdle ends the server when its last client leaves, or if no client comes within 30 s.
	UntilIdle bool
	// Notes is called with problems of one client that did no harm to others; nil drops them.
	Notes func(text string)
}

// idleTime is how long a server with UntilIdle waits for its first client.
const idleTime = 30 * time.Second

// lookupShare and lookupMost say how much of the memory lookups and statements may take: a
// sixteenth, and lookupMost bytes at most. A cache of features that can give memory back uses it
// until they want it.
const lookupShare, lookupMost = 16, 64 << 20

// Server serves one store. Its loaders share the files, the topology and the cache of features; the
// first loader plans the memory of these.
type Server struct {
	opt   Options
	times times

	// deleted are the nodes that were deleted; nil if there are none. Serve reads them.
	deleted *roaring.Bitmap

	clients atomic.Int64 // counts the clients that ever came
	work    sync.WaitGroup

	// budget counts what the process holds. lookup is the part of it for lookups and statements,
	// with their requests and answers.
	budget, lookup *mem.Budget

	// opening is held while a loader is opened, which may plan and measure for seconds. connecting
	// is held while the database of lookups is opened. Both are locked before mu.
	opening, connecting sync.Mutex

	// mu is held only for moments. src, memory and settled are written with opening held too, and
	// db with connecting held, so code that holds these reads them without mu.
	mu struct {
		sync.Mutex
		memory int64          // of the source, or the default before a loader has said it
		src    *loader.Source // nil before the first loader
		settled
		feeds map[string]*feed
		db    *gdb.DB // for lookups; nil before the first
		here  int     // clients that are connected
		idle  chan struct{}
	}
}

// settled holds what the first loader has settled for all loaders.
type settled struct {
	plan      string        // the plan of the memory, as text for people
	shape     loader.Config // the settings of a loader that the plan gives
	normalize string        // how features are scaled: none, row or zscore
	prepares  bool          // batches are superbatches, in memory that no other loader has
}

// New returns a server. The caller closes the store and the device after Serve.
func New(opt Options) *Server {
	s := &Server{opt: opt, budget: mem.NewProcessBudget(opt.Memory)}
	s.lookup = s.budget.Part(1)
	s.bound(opt.Memory)
	s.mu.feeds = map[string]*feed{}
	s.mu.idle = make(chan struct{})
	if opt.Notes == nil {
		s.opt.Notes = func(string) {}
	}
	return s
}

// bound bounds the memory of the process, and with it what lookups may take, to which the garbage
// that they leave adds. Nobody else calls it at the same time.
func (s *Server) bound(memory int64) {
	bytes := lookupBytes(memory)
	s.budget.Bound(memory)
	s.lookup.Bound(max(1, bytes-mem.HeapGarbage(bytes)))
	s.settle(func() { s.mu.memory = memory })
}

// lookupBytes returns the memory for lookups, in a process of memory bytes.
func lookupBytes(memory int64) int64 { return min(memory/lookupShare, lookupMost) }

// Serve answers clients until ctx is cancelled, and returns its error then. With UntilIdle it
// returns nil once the last client is gone. It closes the listener and frees all memory.
func (s *Server) Serve(interrupted context.Context, l *Listener) error {
	ctx, cancel := context.WithCancel(interrupted)
	defer cancel()
	var err error
	if s.deleted, err = s.opt.Store.Deleted(ctx); err != nil {
		return errors.Join(fmt.Errorf("serve: read which nodes are deleted: %w", err), l.Close())
	}
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
	err = s.wait(ctx, failed, late.C)
	// Clients may end at the same moment by the same signal: the server was interrupted
	// nevertheless.
	if interrupted.Err() != nil {
		err = errors.Join(err, fmt.Errorf("serve: interrupted: %w", interrupted.Err()))
	}
	cancel()
	err = errors.Join(err, l.Close())
	s.work.Wait()
	return errors.Join(err, s.close())
}

// wait waits until the server is to end: it is interrupted, it takes no clients any more, the last
// one is gone, or it is late and none came.
func (s *Server) wait(ctx context.Context, failed <-chan error, late <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-s.mu.idle:
			return nil
		case <-late:
			if s.clients.Load() == 0 {
				return fmt.Errorf("serve: no client came within %v", idleTime)
			}
		}
	}
}

// accept takes clients until the listener is closed. While the process or the system has no room
// for one more it waits, and takes the client when others have ended.
func (s *Server) accept(ctx context.Context, l taker) error {
	wait := time.Duration(0)
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				_ = c.Close() // the client came too late
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

// taker accepts connections of clients, as a Listener does.
type taker interface {
	AcceptUnix() (*net.UnixConn, error)
}

// passes reports whether an error of accepting a client is temporary: the client is gone already,
// or the process or the system has no room for it now.
func passes(err error) bool {
	return errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.EMFILE) ||
		errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)
}

// waitLeast and waitMost bound the time between two attempts to accept a client.
const waitLeast, waitMost = time.Millisecond, 500 * time.Millisecond

// come adds n to the clients that are connected, and ends a server with UntilIdle when none is
// left. A connection that sends no request is not counted as a client: programs connect so to see
// whether a socket has a server.
func (s *Server) come(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.here += n
	s.clients.Add(int64(max(0, n)))
	if s.mu.here == 0 && s.opt.UntilIdle && !isClosed(s.mu.idle) {
		close(s.mu.idle)
	}
}

// close frees what clients have opened. The clients are gone by then.
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

// welcome returns the description of the store for a client.
func (s *Server) welcome() protocol.Welcome {
	m := s.opt.Store.Meta()
	w := protocol.Welcome{Protocol: protocol.Version, Version: s.opt.Version,
		Store: protocol.Store{Path: s.opt.Store.Path(), UUID: m.UUID.String(), Nodes: m.Nodes,
			Edges: m.Edges, Splits: map[string]uint64{}, External: m.IDs.Kind != kv.IDsDense}}
	if s.deleted != nil {
		w.Store.Deleted = s.deleted.GetCardinality()
	}
	w.Store.Types, w.Store.EdgeSplits = m.EdgeTypes, map[string]uint64{}
	for _, t := range m.NodeTypes {
		w.Store.NodeTypes = append(w.Store.NodeTypes, t.Name)
		if m.Typed() {
			w.Store.NodeFirsts = append(w.Store.NodeFirsts, t.First)
		}
	}
	for _, r := range m.Relations {
		w.Store.Relations = append(w.Store.Relations, [2]int{r.Src, r.Dst})
	}
	for _, e := range m.EdgeSplits {
		w.Store.EdgeSplits[e.Name] = e.Count
	}
	if len(m.Features) > 0 {
		w.Store.Dim = m.Features[0].Dim
		for _, s := range m.Features[0].Sections {
			w.Store.NodeDims = append(w.Store.NodeDims, s.Dim)
		}
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

// lookups returns the database for lookups and statements, and opens it at the first call.
func (s *Server) lookups(ctx context.Context) (*gdb.DB, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if s.mu.db != nil {
		return s.mu.db, nil
	}
	db, err := gdb.OpenOn(ctx, s.opt.Store, s.opt.Device, gdb.Options{Memory: s.lookup.Limit(),
		Threads: s.opt.Threads, Budget: s.lookup, Vectors: graph.VectorsBy(vectors.Open),
		Nearest: graph.NearestBy(nearest.Open), Predict: train.PredictNodes})
	s.settle(func() { s.mu.db = db })
	return db, err
}

// room returns the budget that counts a request of a kind while it arrives: seeds are counted with
// the loaders, and everything else with the lookups.
func (s *Server) room(kind protocol.Kind) *mem.Budget {
	switch kind {
	case protocol.KindOpen, protocol.KindSample, protocol.KindStart:
		return s.budget
	}
	return s.lookup
}

// stats returns the counters so far.
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

// splitOf splits a name such as train@3 into the split and the column.
func splitOf(name string) (base, column string, err error) {
	base, column, _ = strings.Cut(name, "@")
	if known := []string{"train", "val", "test"}; !slices.Contains(known, base) {
		return "", "", usage(fmt.Errorf("serve: split %q: want %s, or one of several such as "+
			"train@3", name, strings.Join(known, ", ")))
	}
	return base, column, nil
}

// usageError marks an error as a mistake of the client.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(err error) error { return usageError{err} }
