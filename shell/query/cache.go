package query

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/internal/message"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/shell/exec"
	"gdb/shell/words"
	"gdb/train/runs"
)

// cacheRow is what is known of one cache; a nil field is unknown.
type cacheRow struct {
	cache, of, file        string
	policy, capacity, used any
	requests, hits, saved  any
	ratio                  any
}

// thisSession is the owner that is shown for caches of statements. Other caches belong to a run.
const thisSession = "session"

// runStatsCache shows the caches of this session and of a run.
func runStatsCache(ctx context.Context, x *exec.Execution) error {
	switch x.Args["BY"].Text {
	case "partition":
		return cachePartitions(x)
	case "epoch":
		return cacheEpochs(ctx, x)
	}
	rows := sessionCaches(x)
	more, err := runCaches(ctx, x)
	if err != nil {
		return err
	}
	rows = append(rows, more...)
	if len(rows) == 0 {
		x.Note("nothing is cached yet: NEIGHBORS and the like fill the caches of this session; "+
			"%s train makes a run, which has its own", message.Program)
	}
	switch x.Args["BY"].Text {
	case "policy":
		x.Header("cache", "of", "policy", "capacity", "used", "requests", "hits", "hit ratio",
			"bytes saved")
	case "file":
		x.Header("file", "cache", "of", "used", "requests", "hits", "hit ratio")
	default:
		x.Header("cache", "of", "used", "requests", "hits", "hit ratio")
	}
	for _, c := range rows {
		switch x.Args["BY"].Text {
		case "policy":
			x.Row(c.cache, c.of, c.policy, c.capacity, c.used, c.requests, c.hits, c.ratio, c.saved)
		case "file":
			x.Row(c.file, c.cache, c.of, c.used, c.requests, c.hits, c.ratio)
		default:
			x.Row(c.cache, c.of, c.used, c.requests, c.hits, c.ratio)
		}
	}
	return nil
}

func blocksOf(dir layout.Direction) string { return "blocks of " + dir.String() + "-lists" }

// sessionCaches returns the block caches that statements have opened.
func sessionCaches(x *exec.Execution) (rows []cacheRow) {
	for _, c := range x.Graph.Caches() {
		s := c.Stats
		file, _ := layout.TopologyPaths(c.Direction)
		rows = append(rows, cacheRow{cache: blocksOf(c.Direction), of: thisSession, file: file,
			policy: "clock", capacity: words.Size(x.Graph.Files.BlockCacheBytes(c.Direction)),
			used:     words.Size(s.Bytes),
			requests: words.Count(s.Hits + s.Misses), hits: words.Count(s.Hits),
			saved: words.Size(s.Hits * uint64(x.Graph.Meta().BlockBytes)),
			ratio: share(s.Hits, s.Hits+s.Misses)})
	}
	if s, ok := x.Graph.NameStats(); ok {
		rows = append(rows, cacheRow{cache: "blocks of names", of: thisSession,
			file: ids.ReversePath, policy: "clock",
			capacity: words.Size(x.Graph.Files.NameCacheBytes()),
			used:     words.Size(s.Bytes), requests: words.Count(s.Hits + s.Misses),
			hits:  words.Count(s.Hits),
			saved: words.Size(s.Hits * ids.BlockBytes), ratio: share(s.Hits, s.Hits+s.Misses)})
	}
	return rows
}

// runCaches returns the caches of the run that RUN names, or of the newest run, summed over its
// epochs. It returns none if there is no run.
func runCaches(ctx context.Context, x *exec.Execution) ([]cacheRow, error) {
	name, err := cacheRun(ctx, x)
	if err != nil || name == "" {
		return nil, err
	}
	run, err := x.Graph.ReadRun(name)
	if err != nil {
		return nil, err
	}
	var sums epochCaches
	err = eachEpoch(x, name, func(epoch *runs.Epoch) error {
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
		capacity: words.Size(caches.Features), requests: words.Count(sums.rows),
		hits:  words.Count(sums.rowHits),
		ratio: share(sums.rowHits, sums.rows)}}
	for _, f := range x.Graph.Meta().Features {
		if f.Name == run.Features {
			rows[0].file, rows[0].saved = f.Path, words.Size(sums.rowHits*uint64(f.RowBytes))
		}
	}
	if caches.Neighbors == 0 {
		return rows, nil
	}
	file, _ := layout.TopologyPaths(layout.In)
	return append(rows, cacheRow{cache: "neighbors", of: name, file: file, policy: "static",
		capacity: words.Size(caches.Neighbors), requests: words.Count(sums.lists),
		hits: words.Count(sums.listHits), ratio: share(sums.listHits, sums.lists)}), nil
}

// cacheRun returns the name of the run whose caches are shown; "" if there is no run.
func cacheRun(ctx context.Context, x *exec.Execution) (string, error) {
	if x.Has("RUN") {
		run, err := findRun(ctx, x, x.Args["RUN"].Text)
		return run.Name, err
	}
	return newestRun(ctx, x, false)
}

// epochCaches counts the requests to the caches of a run, and how many of them were hits.
type epochCaches struct{ rows, rowHits, lists, listHits uint64 }

func (c *epochCaches) add(o epochCaches) {
	c.rows += o.rows
	c.rowHits += o.rowHits
	c.lists += o.lists
	c.listHits += o.listHits
}

// cachesOf returns the counts of an epoch. The epoch's record has the hits as shares.
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
func cacheEpochs(ctx context.Context, x *exec.Execution) error {
	name, err := cacheRun(ctx, x)
	if err != nil {
		return err
	}
	if name == "" {
		return errors.New("no training has run on this store, and other caches have no epochs: " +
			message.Program + " train makes a run")
	}
	x.Header("run", "epoch", "cache", "requests", "hits", "hit ratio", "bytes read")
	epochs := 0
	err = eachEpoch(x, name, func(epoch *runs.Epoch) error {
		epochs++
		c := cachesOf(epoch)
		x.Row(name, epoch.Epoch, "features", words.Count(c.rows), words.Count(c.rowHits),
			share(c.rowHits, c.rows), words.Size(epoch.Read))
		if epoch.NeighborHit != nil {
			x.Row(name, epoch.Epoch, "neighbors", words.Count(c.lists), words.Count(c.listHits),
				share(c.listHits, c.lists), nil)
		}
		return x.Err()
	})
	if epochs == 0 {
		x.Note("run %s has no whole epoch yet", name)
	}
	return err
}

// cachePartitions shows the partitions of which the caches of this session hold blocks now.
func cachePartitions(x *exec.Execution) error {
	if x.Has("RUN") {
		return errors.New("what a run's caches held of each partition is not kept: leave RUN out " +
			"for the caches of this session")
	}
	x.Header("partition", "cache", "blocks", "bytes", "share")
	m, caches := x.Graph.Meta(), x.Graph.Caches()
	if len(caches) == 0 {
		x.Note("nothing is cached yet: NEIGHBORS and the like fill the caches of this session")
	}
	for _, c := range caches {
		blocks, all := make([]uint64, len(m.Partitions)), uint64(0)
		topology.CachedBlocks(c.Topology, func(first layout.NodeID) {
			blocks[partitionOf(m.Partitions, first)]++
			all++
		})
		for i, n := range blocks {
			x.Row(i, blocksOf(c.Direction), words.Count(n), words.Size(n*uint64(m.BlockBytes)),
				share(n, all))
		}
	}
	return nil
}
