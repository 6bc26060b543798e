package loader

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// Cache says which rows of features are kept in memory.
type Cache struct {
	// Policy is all, none, static or sieve. With superbatches it is none, since these have a cache
	// of their own.
	Policy string
	Bytes  int64
	// Hot lists the rows that a static cache keeps, by node; nil finds them.
	Hot []sample.NodeID
	// Staged reads rows that a static cache does not keep, or all without a cache, for many batches
	// together, where batches are drawn in passes: see rowcache.Staged.
	Staged bool
	// Lend makes batches refer to the rows of their outermost deltas where they are, if the policy
	// is all: see sample.Batch.Table.
	Lend bool
	// Threads bounds the goroutines that copy rows.
	Threads int
}

// OpenFeatures puts a cache before the features, if the store has any. The source closes it.
func (s *Source) OpenFeatures(ctx context.Context, c Cache) (err error) {
	if s.Rows == nil {
		return nil
	}
	opt := rowcache.Options{Bytes: c.Bytes, Threads: c.Threads, Budget: s.Budget}
	switch c.Policy {
	case "all":
		err = s.openResident(ctx, c)
	case "none":
		direct := rowcache.NewDirect(s.stagedOn(c))
		s.Features, s.Located = direct, direct
	case "static":
		if c.Hot == nil {
			c.Hot, err = s.HotRows(ctx, c.Bytes)
		}
		if err == nil {
			opt.Bytes, opt.Sweep = opt.Bytes-HotBytes(len(c.Hot)), s.Rows
			err = s.openStatic(ctx, c, opt)
		}
	case "sieve":
		s.Features, err = rowcache.New(ctx, s.Rows, rowcache.NewSIEVE(), opt)
	default:
		err = errors.New("known are all, none, static and sieve")
	}
	if err != nil {
		return fmt.Errorf("loader: open features with cache %s: %w", c.Policy, err)
	}
	s.CloseLater(s.Features)
	return nil
}

// openResident reads all rows to memory.
func (s *Source) openResident(ctx context.Context, c Cache) (err error) {
	s.Resident, err = rowcache.NewResident(ctx, s.Rows, s.RowCount(), c.Threads, s.Budget)
	if err != nil {
		return err
	}
	if c.Lend && (s.Split == nil || s.Cut) {
		s.Resident.Lend()
	}
	s.Features, s.Located = s.Resident, s.Resident
	return nil
}

// openStatic opens a static cache, with rows staged behind it if c.Staged is set.
func (s *Source) openStatic(ctx context.Context, c Cache, opt rowcache.Options) error {
	cache, err := rowcache.New(ctx, s.stagedOn(c), rowcache.NewStatic(c.Hot), opt)
	if err != nil {
		return err
	}
	if s.staged != nil {
		s.staged.cache = cache
	}
	s.Features, s.Located = cache, cache
	return nil
}

// stagedOn returns the rows that a cache reads, which are staged if c.Staged is set.
func (s *Source) stagedOn(c Cache) rowcache.Rows {
	if !c.Staged {
		return s.Rows
	}
	s.staged = &stagedRows{Staged: rowcache.NewStaged(s.Rows, s.Budget), split: s.Split}
	return s.staged
}

// HotBytes returns the heap that finding and listing this number of hot nodes takes: 12 bytes each.
func HotBytes(nodes int) int64 { return mem.HeapCost(12 * int64(nodes)) }

// aboutEdges is the number of edges from which HotNodesAbout reads only some lists: it then reads
// one in aboutEvery blocks. Nodes in few lists are then out of order: for a graph of 2^26 edges a
// cache of 1.3 GiB was forecast to find 90.7 % of rows, from all lists 96.6 %, and it found 96.0 %.
const aboutEdges, aboutEvery = 1 << 27, 8

// HotRows returns the rows that a static cache of this size in bytes keeps: those of the nodes in
// the most lists, except the OnDevice hottest. The list is kept in the store for later runs.
func (s *Source) HotRows(ctx context.Context, bytes int64) ([]sample.NodeID, error) {
	n := s.hotIn(bytes)
	hot, err := s.Hottest(ctx, n)
	return s.rowsOf(s.besideDevice(hot), n), err
}

// HotRowsAbout estimates HotRows for a forecast: in a large graph, it reads only some lists.
func (s *Source) HotRowsAbout(ctx context.Context, bytes int64) ([]sample.NodeID, error) {
	n := s.hotIn(bytes)
	hot, err := s.HottestAbout(ctx, n)
	return s.rowsOf(s.besideDevice(hot), n), err
}

// rowsOf returns the rows of nodes, no more than most if they are pieces.
func (s *Source) rowsOf(nodes []sample.NodeID, most int) []sample.NodeID {
	if s.Split == nil {
		return nodes
	}
	rows := make([]sample.NodeID, 0, most+s.Split.Most())
	for i := range nodes {
		if rows = s.Split.Append(nodes[i:i+1], rows); len(rows) >= most {
			return rows[:most]
		}
	}
	return rows
}

// hotIn returns how many hot nodes there are in this many bytes, with the OnDevice hottest.
func (s *Source) hotIn(bytes int64) int {
	rows := rowcache.RowsIn(bytes, s.Rows.Meta().Dim, int(HotBytes(1)))
	return int(min(uint64(rows+s.OnDevice), s.Meta.Nodes))
}

// besideDevice returns hot nodes without the OnDevice hottest.
func (s *Source) besideDevice(hot []sample.NodeID) []sample.NodeID {
	return hot[min(s.OnDevice, len(hot)):]
}

// Hottest returns this number of nodes, or fewer: those in the most lists. It reads the list of an
// earlier run if there is one.
func (s *Source) Hottest(ctx context.Context, nodes int) ([]sample.NodeID, error) {
	return s.hottest(nodes, func() ([]sample.NodeID, error) {
		return s.keptHotNodes(ctx, nodes, func(limit int) ([]sample.NodeID, error) {
			return rowcache.FindHot(ctx, s.Store, s.Device, limit, s.Budget)
		})
	})
}

// HottestAbout estimates Hottest for a forecast: in a large graph, it reads only some lists.
func (s *Source) HottestAbout(ctx context.Context, nodes int) ([]sample.NodeID, error) {
	if s.Meta.Edges < aboutEdges {
		return s.Hottest(ctx, nodes)
	}
	return s.hottest(nodes, func() ([]sample.NodeID, error) {
		return rowcache.FindHotAbout(ctx, s.Store, s.Device, nodes, aboutEvery, s.Budget)
	})
}

// hottest returns the nodes that find finds, and counts the memory for this number of them
// meanwhile.
func (s *Source) hottest(nodes int, find func() ([]sample.NodeID, error)) ([]sample.NodeID, error) {
	bytes := 12 * int64(nodes)
	if err := s.Budget.Reserve("hot nodes", bytes); err != nil {
		return nil, err
	}
	defer s.Budget.Release(bytes)
	return find()
}
