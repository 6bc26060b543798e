// Package openfiles keeps files of a store open for reading: neighbor lists, rows and the id
// dictionary. Each file is opened once, when it is first asked for, and shared by all who use it,
// so that there is one cache per file.
package openfiles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/trace"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/nodeids"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
)

// Set holds the open files of a store. Any goroutine may use it. Its owner calls Close once nobody
// uses the files any more.
type Set struct {
	Store  *layout.Store
	Device blockdev.Device
	Budget *mem.Budget // counts the memory of open files; nil counts none

	mu struct {
		sync.Mutex
		topology map[layout.Direction]topology.Reader
		rows     map[string]*rowfile.Reader
		ids      ids.Dictionary
		// blockBytes and nameBytes are the sizes of the caches of the files that are open.
		blockBytes map[layout.Direction]int64
		nameBytes  int64
	}
}

// New returns a set for a store of which nothing is open yet. The caller calls Close.
func New(store *layout.Store, dev blockdev.Device, budget *mem.Budget) *Set {
	s := &Set{Store: store, Device: dev, Budget: budget}
	s.mu.topology = map[layout.Direction]topology.Reader{}
	s.mu.rows = map[string]*rowfile.Reader{}
	s.mu.blockBytes = map[layout.Direction]int64{}
	return s
}

// Topology returns the lists of a direction. If they are not open, they are opened as opt says,
// with the set's budget unless opt has one.
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

// Stats returns the counts of the graph, with degrees that count levels, if the store has some, and
// no deleted nodes: the lists are opened for that, as Topology opens them.
func (s *Set) Stats(ctx context.Context, opt topology.Options) (stats kv.GraphStats, err error) {
	if stats, err = s.withLevels(ctx, opt); err != nil {
		return stats, err
	}
	deleted, err := s.Store.Deleted(ctx)
	if deleted == nil {
		return stats, err
	}
	for _, hist := range []*[]uint64{&stats.InHist, &stats.OutHist} {
		if len(*hist) > 0 {
			*hist = slices.Clone(*hist)
			(*hist)[0] -= min((*hist)[0], deleted.GetCardinality())
		}
	}
	return stats, nil
}

// withLevels returns the counts of the graph with degrees that count levels. Deleted nodes have no
// edges there. Out-degrees of lists that are not kept are left out: those of the base would not
// count levels.
func (s *Set) withLevels(ctx context.Context, opt topology.Options) (kv.GraphStats, error) {
	stats := s.Store.Meta().Stats
	if len(s.Store.Levels()) == 0 {
		return stats, nil
	}
	stats.OutHist, stats.OutMax = nil, 0
	for _, name := range s.Store.Meta().Directions {
		dir, hist, most := layout.In, &stats.InHist, &stats.InMax
		if name == layout.Out.String() {
			dir, hist, most = layout.Out, &stats.OutHist, &stats.OutMax
		}
		t, err := s.Topology(ctx, dir, opt)
		if err == nil {
			*hist, *most, err = topology.Degrees(ctx, s.Store, t, dir)
		}
		if err != nil {
			return stats, err
		}
	}
	if s.Store.Meta().Undirected {
		stats.OutHist, stats.OutMax = stats.InHist, stats.InMax
	}
	return stats, nil
}

// OpenTopology returns the lists of a direction if they are open, else nil.
func (s *Set) OpenTopology(dir layout.Direction) topology.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.topology[dir]
}

// CloseTopology closes the lists of a direction if they are open. Nobody may read them any more.
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

// Rows returns a file of rows, which it opens if it is not open.
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

// IDs returns the id dictionary. If it is not open, it is opened with a cache of this many bytes
// for blocks of names.
func (s *Set) IDs(ctx context.Context, cacheBytes int64) (ids.Dictionary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ids != nil {
		return s.mu.ids, nil
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	dict, err := nodeids.Open(opening, s.Store, s.Device, s.Budget)
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

// BlockCacheBytes returns the size of the block cache of a direction whose lists are open.
func (s *Set) BlockCacheBytes(dir layout.Direction) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.blockBytes[dir]
}

// NameCacheBytes returns the size of the cache of names, if the dictionary is open.
func (s *Set) NameCacheBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.nameBytes
}

// OpenIDs returns the id dictionary if it is open, else nil.
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
