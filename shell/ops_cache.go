package shell

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/layout/topology"
	"gdb/shell/result"

	"gdb/kv/ids"
	"gdb/layout"
	"gdb/train/runs"
)

// cacheRow is what is known of a cache; nil is unknown.
type cacheRow struct {
	cache, of, file        string
	policy, capacity, used any
	requests, hits, saved  any
	ratio                  any
}

// thisSession is what caches of statements belong to; others belong to a run.
const thisSession = "session"

// runStatsCache shows the caches of this session and of a run.
func runStatsCache(ctx context.Context, x *execution) error {
	switch x.Args["BY"].Text {
	case "partition":
		return x.cachePartitions()
	case "epoch":
		return x.cacheEpochs(ctx)
	}
	rows := x.sessionCaches()
	more, err := x.runCaches(ctx)
	if err != nil {
		return err
	}
	rows = append(rows, more...)
	if len(rows) == 0 {
		x.note("nothing is cached yet: NEIGHBORS and the like fill the caches of this session; " +
			"gdb train makes a run, which has its own")
	}
	switch x.Args["BY"].Text {
	case "policy":
		x.header("cache", "of", "policy", "capacity", "used", "requests", "hits", "hit ratio",
			"bytes saved")
	case "file":
		x.header("file", "cache", "of", "used", "requests", "hits", "hit ratio")
	default:
		x.header("cache", "of", "used", "requests", "hits", "hit ratio")
	}
	for _, c := range rows {
		switch x.Args["BY"].Text {
		case "policy":
			err = x.row(c.cache, c.of, c.policy, c.capacity, c.used, c.requests, c.hits, c.ratio,
				c.saved)
		case "file":
			err = x.row(c.file, c.cache, c.of, c.used, c.requests, c.hits, c.ratio)
		default:
			err = x.row(c.cache, c.of, c.used, c.requests, c.hits, c.ratio)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func blocksOf(dir layout.Direction) string { return "blocks of " + dir.String() + "-lists" }

// sessionCaches are the block caches that statements have opened.
func (x *execution) sessionCaches() (rows []cacheRow) {
	for _, c := range x.engine.Caches() {
		s := c.Stats
		file, _ := layout.TopologyPaths(c.Direction)
		rows = append(rows, cacheRow{cache: blocksOf(c.Direction), of: thisSession, file: file,
			policy: "clock", capacity: result.Size(x.engine.BlockCacheBytes()),
			used:     result.Size(s.Bytes),
			requests: result.Count(s.Hits + s.Misses), hits: result.Count(s.Hits),
			saved: result.Size(s.Hits * uint64(x.engine.Meta().BlockBytes)),
			ratio: share(s.Hits, s.Hits+s.Misses)})
	}
	if s, ok := x.engine.NameStats(); ok {
		rows = append(rows, cacheRow{cache: "blocks of names", of: thisSession,
			file: ids.ReversePath, policy: "clock",
			capacity: result.Size(x.engine.NameCacheBytes()),
			used:     result.Size(s.Bytes), requests: result.Count(s.Hits + s.Misses),
			hits:  result.Count(s.Hits),
			saved: result.Size(s.Hits * ids.BlockBytes), ratio: share(s.Hits, s.Hits+s.Misses)})
	}
	return rows
}

// runCaches are those of the run that RUN names, or of the newest, summed over its epochs; none
// without a run.
func (x *execution) runCaches(ctx context.Context) ([]cacheRow, error) {
	name, err := x.cacheRun(ctx)
	if err != nil || name == "" {
		return nil, err
	}
	run, err := x.engine.ReadRun(name)
	if err != nil {
		return nil, err
	}
	var sums epochCaches
	err = x.eachEpoch(name, func(epoch *runs.Epoch) error {
		sums.add(cachesOf(epoch))
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	caches, err := run.Caches()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	rows := []cacheRow{{cache: "features", of: name, policy: caches.Policy,
		capacity: result.Size(caches.Features), requests: result.Count(sums.rows),
		hits:  result.Count(sums.rowHits),
		ratio: share(sums.rowHits, sums.rows)}}
	for _, f := range x.engine.Meta().Features {
		if f.Name == run.Features {
			rows[0].file, rows[0].saved = f.Path, result.Size(sums.rowHits*uint64(f.RowBytes))
		}
	}
	if caches.Neighbors == 0 {
		return rows, nil
	}
	file, _ := layout.TopologyPaths(layout.In)
	return append(rows, cacheRow{cache: "neighbors", of: name, file: file, policy: "static",
		capacity: result.Size(caches.Neighbors), requests: result.Count(sums.lists),
		hits: result.Count(sums.listHits), ratio: share(sums.listHits, sums.lists)}), nil
}

// cacheRun is the name of the run whose caches are shown; "" if there is none.
func (x *execution) cacheRun(ctx context.Context) (string, error) {
	if x.Has("RUN") {
		run, err := x.findRun(ctx, x.Args["RUN"].Text)
		return run.Name, err
	}
	runs, err := x.engine.Store.Catalog().Runs(ctx)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	run, err := x.findRun(ctx, "")
	return run.Name, err
}

// epochCaches are requests of the caches of a run.
type epochCaches struct{ rows, rowHits, lists, listHits uint64 }

func (c *epochCaches) add(o epochCaches) {
	c.rows += o.rows
	c.rowHits += o.rowHits
	c.lists += o.lists
	c.listHits += o.listHits
}

// cachesOf takes the counts out of the record of an epoch, which has shares of hits.
func cachesOf(e *runs.Epoch) (c epochCaches) {
	hits := func(all uint64, share float64) uint64 {
		return uint64(math.Round(float64(all) * share))
	}
	c.rows, c.rowHits = e.Nodes, hits(e.Nodes, e.Hit)
	if c.lists = e.Lists; e.NeighborHit != nil {
		c.listHits = hits(e.Lists, *e.NeighborHit)
	}
	return c
}

// cacheEpochs shows the caches of a run, epoch by epoch.
func (x *execution) cacheEpochs(ctx context.Context) error {
	name, err := x.cacheRun(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		return errors.New("no training has run on this store, and other caches have no epochs: " +
			"gdb train makes a run")
	}
	x.header("run", "epoch", "cache", "requests", "hits", "hit ratio", "bytes read")
	epochs := 0
	err = x.eachEpoch(name, func(epoch *runs.Epoch) error {
		epochs++
		c := cachesOf(epoch)
		err := x.row(name, epoch.Epoch, "features", result.Count(c.rows), result.Count(c.rowHits),
			share(c.rowHits, c.rows), result.Size(epoch.Read))
		if err != nil || epoch.NeighborHit == nil {
			return err
		}
		return x.row(name, epoch.Epoch, "neighbors", result.Count(c.lists),
			result.Count(c.listHits),
			share(c.listHits, c.lists), nil)
	})
	if epochs == 0 {
		x.note("run %s has no whole epoch yet", name)
	}
	return err
}

// cachePartitions shows of which partitions the caches of this session hold blocks now.
func (x *execution) cachePartitions() error {
	if x.Has("RUN") {
		return errors.New("what a run's caches held of each partition is not kept: leave RUN out " +
			"for the caches of this session")
	}
	x.header("partition", "cache", "blocks", "bytes", "share")
	m, caches := x.engine.Meta(), x.engine.Caches()
	if len(caches) == 0 {
		x.note("nothing is cached yet: NEIGHBORS and the like fill the caches of this session")
	}
	for _, c := range caches {
		blocks, all := make([]uint64, len(m.Partitions)), uint64(0)
		topology.CachedBlocks(c.Topology, func(first layout.NodeID) {
			blocks[partitionOf(m.Partitions, first)]++
			all++
		})
		for i, n := range blocks {
			err := x.row(i, blocksOf(c.Direction), result.Count(n),
				result.Size(n*uint64(m.BlockBytes)),
				share(n, all))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// noted is a renderer that shows lines for people below the result.
type noted interface{ Note(line string) }

// note adds a line below the result, where people see it: no other output has it.
func (x *execution) note(format string, args ...any) {
	if r, ok := x.render.(noted); ok {
		r.Note(fmt.Sprintf(format, args...))
	}
}
