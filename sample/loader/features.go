package loader

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// Cache is what is kept of the features in memory.
type Cache struct {
	// Policy is all, none, static, or one that rowcache.NewPolicy knows. Superbatches have a cache
	// of their own: theirs is none.
	Policy string
	Bytes  int64
	// Hot are the nodes whose rows a static cache keeps; nil to find them.
	Hot []sample.NodeID
	// Staged has rows that a static cache does not keep read for many batches at a time, where
	// batches are drawn in passes: see rowcache.Staged.
	Staged bool
	// Threads bounds the goroutines that copy rows.
	Threads int
}

// OpenFeatures puts a cache before the features, if there are any.
func (s *Source) OpenFeatures(ctx context.Context, c Cache) (err error) {
	if s.Rows == nil {
		return nil
	}
	opt := rowcache.Options{Bytes: c.Bytes, Threads: c.Threads, Budget: s.Budget}
	switch c.Policy {
	case "all":
		s.Features, err = rowcache.NewResident(ctx, s.Rows, s.Meta.Nodes, c.Threads, s.Budget)
	case "none":
		s.Features = rowcache.NewDirect(s.Rows)
	case "static":
		if c.Hot == nil {
			c.Hot, err = s.HotNodes(ctx, c.Bytes)
		}
		if err == nil {
			opt.Bytes, opt.Background = opt.Bytes-HotBytes(len(c.Hot)), true
			err = s.openStatic(ctx, c, opt)
		}
	default:
		var policy rowcache.Policy
		if policy, err = rowcache.NewPolicy(c.Policy); err == nil {
			s.Features, err = rowcache.New(ctx, s.Rows, policy, opt)
		}
	}
	if err != nil {
		return fmt.Errorf("loader: open features with cache %s: %w", c.Policy, err)
	}
	s.CloseLater(s.Features)
	return nil
}

// openStatic opens a static cache.
func (s *Source) openStatic(ctx context.Context, c Cache, opt rowcache.Options) (err error) {
	rows := rowcache.Rows(s.Rows)
	var staged *rowcache.Staged
	if c.Staged {
		staged = rowcache.NewStaged(s.Rows, s.Budget)
		rows = staged
	}
	if s.Features, err = rowcache.New(ctx, rows, rowcache.NewStatic(c.Hot), opt); err != nil {
		return err
	}
	if cache, ok := s.Features.(rowcache.Static); ok && c.Staged {
		s.staged = &stagedRows{Staged: staged, cache: cache}
	}
	return nil
}

// HotBytes is the memory of finding and listing so many hot nodes: 12 bytes each on the heap.
func HotBytes(nodes int) int64 { return mem.HeapCost(12 * int64(nodes)) }

// aboutEdges is from how many edges on HotNodesAbout looks at some of them, and aboutEvery at one
// block in how many. That mixes up nodes that stand in few lists: of a graph of 2^26 edges a cache
// of 1.3 GiB was foretold to find 90.7 % of rows, and by all lists 96.6 %, where it found 96.0 %.
const aboutEdges, aboutEvery = 1 << 27, 8

// HotNodesAbout is HotNodes for a forecast: of a large graph, by some of its lists.
func (s *Source) HotNodesAbout(ctx context.Context, bytes int64) ([]sample.NodeID, error) {
	if s.Meta.Edges < aboutEdges {
		return s.HotNodes(ctx, bytes)
	}
	return s.hotNodes(bytes, s.findAbout(ctx))
}

// HottestAbout lists so many of the nodes that stand in most lists, of all, for a forecast.
func (s *Source) HottestAbout(ctx context.Context, nodes int) ([]sample.NodeID, error) {
	if s.Meta.Edges < aboutEdges {
		return s.Hottest(ctx, nodes)
	}
	return s.hottest(nodes, s.findAbout(ctx))
}

// findAbout finds hot nodes by some lists.
func (s *Source) findAbout(ctx context.Context) func(limit int) ([]sample.NodeID, error) {
	return func(limit int) ([]sample.NodeID, error) {
		return rowcache.FindHotAbout(ctx, s.Store, s.Device, limit, aboutEvery, s.Budget)
	}
}

// HotNodes lists the nodes whose rows a static cache of so many bytes keeps: those that stand in
// most lists. They are kept for later runs.
func (s *Source) HotNodes(ctx context.Context, bytes int64) ([]sample.NodeID, error) {
	return s.hotNodes(bytes, s.find(ctx))
}

// Hottest lists so many of the nodes that stand in most lists, of all.
func (s *Source) Hottest(ctx context.Context, nodes int) ([]sample.NodeID, error) {
	return s.hottest(nodes, s.find(ctx))
}

// find finds hot nodes, or those of an earlier run.
func (s *Source) find(ctx context.Context) func(limit int) ([]sample.NodeID, error) {
	return func(limit int) ([]sample.NodeID, error) {
		return s.keptHotNodes(ctx, limit, func(limit int) ([]sample.NodeID, error) {
			return rowcache.FindHot(ctx, s.Store, s.Device, limit, s.Budget)
		})
	}
}

// hotNodes lists as many as there are rows in so many bytes.
func (s *Source) hotNodes(bytes int64,
	list func(limit int) ([]sample.NodeID, error)) ([]sample.NodeID, error) {
	rows := rowcache.RowsIn(bytes, s.Rows.Meta().Dim, int(HotBytes(1)))
	limit := int(min(uint64(rows+s.OnDevice), s.Meta.Nodes))
	hot, err := s.hottest(limit, list)
	return hot[min(s.OnDevice, len(hot)):], err
}

// hottest lists so many nodes.
func (s *Source) hottest(limit int,
	list func(limit int) ([]sample.NodeID, error)) ([]sample.NodeID, error) {
	if err := s.Budget.Reserve("hot nodes", 12*int64(limit)); err != nil {
		return nil, err
	}
	defer s.Budget.Release(12 * int64(limit))
	return list(limit)
}
