// Package openfiles keeps the files of a store open that are read: neighbor lists, rows and the id
// dictionary. Each is opened once, when somebody first asks for it, and all share it: there is one
// block cache of a file.
package openfiles

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/trace"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
)

// Set is the open files of a store. It may be used from any goroutine; its owner closes it after
// all who use it.
type Set struct {
	Store  *layout.Store
	Device blockdev.Device
	Budget *mem.Budget // of the memory that files take while they are open; nil for none

	mu struct {
		sync.Mutex
		topology map[layout.Direction]topology.Reader
		rows     map[string]*rowfile.Reader
		ids      ids.Dictionary
		// What the caches were given when the files were opened.
		blockBytes map[layout.Direction]int64
		nameBytes  int64
	}
}

// New returns a set of a store of which nothing is open yet.
func New(store *layout.Store, dev blockdev.Device, budget *mem.Budget) *Set {
	s := &Set{Store: store, Device: dev, Budget: budget}
	s.mu.topology = map[layout.Direction]topology.Reader{}
	s.mu.rows = map[string]*rowfile.Reader{}
	s.mu.blockBytes = map[layout.Direction]int64{}
	return s
}

// Topology returns the lists of a direction. If they are not open they are opened as opt says, with
// the budget of the set unless opt has another.
func (s *Set) Topology(ctx context.Context, dir layout.Direction,
	opt topology.Options) (topology.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.mu.topology[dir]; t != nil {
		return t, nil
	}
	if opt.Budget == nil {
		opt.Budget = s.Budget
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	t, err := topology.Open(opening, s.Store, s.Device, dir, opt)
	if err == nil {
		s.mu.topology[dir], s.mu.blockBytes[dir] = t, opt.CacheBytes
	}
	return t, err
}

// OpenTopology is the lists of a direction if they are open, else nil.
func (s *Set) OpenTopology(dir layout.Direction) topology.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.topology[dir]
}

// CloseTopology closes the lists of a direction if they are open: nobody reads them any more.
func (s *Set) CloseTopology(dir layout.Direction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mu.topology[dir]
	if t == nil {
		return nil
	}
	delete(s.mu.topology, dir)
	return t.Close()
}

// Rows returns a file of rows.
func (s *Set) Rows(ctx context.Context, m kv.RowsMeta) (*rowfile.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.mu.rows[m.Path]; r != nil {
		return r, nil
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	r, err := rowfile.Open(opening, s.Store, s.Device, m, s.Budget)
	if err == nil {
		s.mu.rows[m.Path] = r
	}
	return r, err
}

// IDs returns the id dictionary. If it is not open it is opened, with a cache of so many bytes for
// the blocks of names.
func (s *Set) IDs(ctx context.Context, cacheBytes int64) (ids.Dictionary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ids != nil {
		return s.mu.ids, nil
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	dict, err := s.Store.IDs(opening, s.Device)
	if err != nil {
		return nil, err
	}
	if c, ok := dict.(ids.Cacher); ok && cacheBytes > 0 {
		if err := c.Cache(cacheBytes, s.Budget); err != nil {
			return nil, errors.Join(fmt.Errorf("open ids: %w", err), dict.Close())
		}
	}
	s.mu.ids, s.mu.nameBytes = dict, cacheBytes
	return dict, nil
}

// BlockCacheBytes is the size of the block cache of a direction whose lists are open.
func (s *Set) BlockCacheBytes(dir layout.Direction) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.blockBytes[dir]
}

// NameCacheBytes is the size of the cache of names of a dictionary that is open.
func (s *Set) NameCacheBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.nameBytes
}

// OpenIDs is the id dictionary if it is open, else nil.
func (s *Set) OpenIDs() ids.Dictionary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.ids
}

// Close closes all files.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, t := range s.mu.topology {
		errs = append(errs, t.Close())
	}
	for _, r := range s.mu.rows {
		errs = append(errs, r.Close())
	}
	if s.mu.ids != nil {
		errs = append(errs, s.mu.ids.Close())
	}
	clear(s.mu.topology)
	clear(s.mu.rows)
	s.mu.ids = nil
	return errors.Join(errs...)
}
