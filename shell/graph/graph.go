// Package graph gives statements a store to read: nodes by their ids, names, neighbor lists in
// bounded parts, and sets of nodes. It counts the reads and keeps the settings of a session.
package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/nodeindex"
	"gdb/layout/openfiles"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/train/link/triples"

	"github.com/RoaringBitmap/roaring/v2"
)

// Graph is a store as statements read it, with its open files and the counters and settings of a
// session. It may be used from any goroutine. Close must come after all statements.
type Graph struct {
	Store  *layout.Store
	Dev    *Meter
	Budget *mem.Budget
	Files  *openfiles.Set
	Kept   *Kept
	// Threads is how many goroutines a statement computes on; New sets that of the processors.
	Threads int
	// Indexes finds nodes by the values of columns.
	Indexes *nodeindex.Set
	// OpenVectors opens what runs have learned; nil in a program that has no NEAREST and SCORE.
	OpenVectors OpenVectors
	// OpenNearest opens vectors with their indexes; nil in a program that has no NEAREST.
	OpenNearest OpenNearest
	// Predict predicts with runs; nil in a program that has no gdb.predict.
	Predict Predict

	nearest struct {
		sync.Mutex
		open map[triples.VectorsOf]*keptNearest
	}
	mu struct {
		sync.Mutex
		base      map[layout.Direction]topology.Stats // the counters at the last RESET STATS
		baseNames ids.CacheStats
		seed      *uint64 // the seed of SET; nil before the first
		deleted   *roaring.Bitmap
	}
}

// blockCacheShare is the divisor of --memory that gives the cache of topology blocks of each
// direction.
const blockCacheShare = 8

// nameCacheShare is the divisor of --memory that gives the cache of blocks of the id dictionary.
const nameCacheShare = 16

// shellBytesLeast is the memory that statements have even if --memory is smaller.
const shellBytesLeast = 32 << 20

// ForProcess returns New with a budget that bounds the memory of the process; 0 sets no bound. If a
// statement runs short, the heap is collected, so that memory of finished statements comes back.
func ForProcess(st *layout.Store, dev blockdev.Device, memory int64) *Graph {
	if memory == 0 {
		return New(st, dev, mem.NewBudget(0))
	}
	b := mem.NewProcessBudget(max(memory, mem.ProcessBytes+shellBytesLeast))
	b.Relieve(func(int64) bool {
		before := b.Used()
		b.CollectHeap()
		return b.Used() < before
	})
	return New(st, dev, b)
}

// New returns the graph of a store, which it reads through dev. The caller closes both. budget
// counts caches, sets of nodes and results.
func New(st *layout.Store, dev blockdev.Device, budget *mem.Budget) *Graph {
	meter := newMeter(dev, st.Path()+"/")
	g := &Graph{Store: st, Budget: budget, Dev: meter, Files: openfiles.New(st, meter, budget),
		Kept: newKept(budget), Threads: runtime.NumCPU(), Indexes: nodeindex.NewSet(st)}
	g.nearest.open = map[triples.VectorsOf]*keptNearest{}
	return g
}

// Close closes the files.
func (g *Graph) Close() error {
	g.Kept.Close()
	if g.mu.deleted != nil {
		g.Budget.Release(int64(g.mu.deleted.GetSizeInBytes()))
	}
	return errors.Join(g.closeNearest(), g.Indexes.Close(), g.Files.Close())
}

// Meta returns the metadata of the store.
func (g *Graph) Meta() *kv.Meta { return g.Store.Meta() }

// Hits returns how many blocks were found in the caches so far.
func (g *Graph) Hits() (n uint64) {
	for _, dir := range allDirections {
		if t := g.Files.OpenTopology(dir); t != nil {
			n += t.Stats().Hits
		}
	}
	if s, ok := g.allNameStats(); ok {
		n += s.Hits
	}
	return n
}

// allDirections lists the directions of which a store may keep lists.
var allDirections = []layout.Direction{layout.In, layout.Out}

// allNameStats returns how many blocks of names were used so far; false without a dictionary.
func (g *Graph) allNameStats() (ids.CacheStats, bool) {
	c, ok := g.Files.OpenIDs().(ids.Cacher)
	if !ok {
		return ids.CacheStats{}, false
	}
	return c.CacheStats(), true
}

// NameStats returns how many blocks of names were used since the last RESET STATS; false without a
// dictionary.
func (g *Graph) NameStats() (ids.CacheStats, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.allNameStats()
	s.Hits -= g.mu.baseNames.Hits
	s.Misses -= g.mu.baseNames.Misses
	return s, ok
}

// IsCanonical reports whether an id that was found is written as the dictionary writes it.
func (g *Graph) IsCanonical(external string) bool {
	if g.Meta().IDs.Kind.Text() {
		return true
	}
	n, err := strconv.ParseInt(external, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == external
}

// CacheStats holds the counters of the block cache of one direction.
type CacheStats struct {
	Direction layout.Direction
	Topology  topology.Reader
	Stats     topology.Stats // since the last RESET STATS
}

// Caches returns the block caches that statements have opened.
func (g *Graph) Caches() (out []CacheStats) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, dir := range allDirections {
		if t := g.Files.OpenTopology(dir); t != nil {
			s, base := t.Stats(), g.mu.base[dir]
			s.Hits -= base.Hits
			s.Misses -= base.Misses
			out = append(out, CacheStats{dir, t, s})
		}
	}
	return out
}

// ResetCaches lets the counters of all caches begin at zero again.
func (g *Graph) ResetCaches() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.base = map[layout.Direction]topology.Stats{}
	for _, dir := range allDirections {
		if t := g.Files.OpenTopology(dir); t != nil {
			g.mu.base[dir] = t.Stats()
		}
	}
	g.mu.baseNames, _ = g.allNameStats()
}

// SetSeed sets the seed of statements that name none.
func (g *Graph) SetSeed(seed uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.seed = &seed
}

// Seed returns the seed of SetSeed; false if none was set.
func (g *Graph) Seed() (seed uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.seed == nil {
		return 0, false
	}
	return *g.mu.seed, true
}

// Deleted returns the nodes that were deleted, which keep their numbers and have no ids; nil if
// there are none. They are read once.
func (g *Graph) Deleted(ctx context.Context) (*roaring.Bitmap, error) {
	if g.Meta().Deleted == "" {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.deleted != nil {
		return g.mu.deleted, nil
	}
	set, err := g.Store.Deleted(ctx)
	if err == nil {
		err = g.Budget.Reserve("deleted nodes", int64(set.GetSizeInBytes()))
	}
	if err != nil {
		return nil, err
	}
	g.mu.deleted = set
	return set, nil
}

// There returns how many nodes there are without deleted ones, and these; nil if there are none.
func (g *Graph) There(ctx context.Context) (nodes uint64, deleted *roaring.Bitmap, err error) {
	nodes = g.Meta().Nodes
	if deleted, err = g.Deleted(ctx); deleted != nil {
		nodes -= deleted.GetCardinality()
	}
	return nodes, deleted, err
}

// Apart returns how many edges the lists lack because these edges are in splits other than train,
// and the names of those splits.
func (g *Graph) Apart() (edges uint64, of string) {
	var names []string
	for _, s := range g.Meta().EdgeSplits {
		if s.Name != "train" && s.Count > 0 {
			edges += s.Count
			names = append(names, s.Name)
		}
	}
	return edges, strings.Join(names, " and ")
}

// DenseIDs reports whether external ids are node numbers.
func (g *Graph) DenseIDs() bool { return g.Meta().IDs.Kind == kv.IDsDense }

func (g *Graph) dictionary(ctx context.Context) (ids.Dictionary, error) {
	return g.Files.IDs(ctx, max(g.Budget.Limit()/nameCacheShare, 256<<10))
}

// Topology opens the reader of the lists of a direction, which reads blocks through a cache.
func (g *Graph) Topology(ctx context.Context, dir layout.Direction) (topology.Reader, error) {
	if err := g.checkDirection(dir); err != nil {
		return nil, err
	}
	return g.Files.Topology(ctx, dir, topology.Options{CacheBytes: g.blockCacheBytes()})
}

// Stats returns the counts of the graph, with degrees that count levels.
func (g *Graph) Stats(ctx context.Context) (kv.GraphStats, error) {
	return g.Files.Stats(ctx, topology.Options{CacheBytes: g.blockCacheBytes()})
}

// blockCacheBytes is the size of the cache of blocks of a direction.
func (g *Graph) blockCacheBytes() int64 { return max(g.Budget.Limit()/blockCacheShare, 4<<20) }

// UnopenedBytes returns the memory that the reader of a direction will take; 0 if it is open.
func (g *Graph) UnopenedBytes(dir layout.Direction) int64 {
	if g.Files.OpenTopology(dir) != nil {
		return 0
	}
	cache := min(g.blockCacheBytes(), topology.FileBytes(g.Store, dir))
	return topology.PagedBytes(g.Store, dir, cache)
}

// ErrNoLists says that a store does not keep the lists of a direction.
var ErrNoLists = errors.New("this store keeps no lists of that direction")

// noLists is an ErrNoLists in words.
type noLists struct{ error }

// Is reports whether the error is an ErrNoLists.
func (noLists) Is(target error) bool { return target == ErrNoLists }

// checkDirection returns an error if the store does not have the lists of a direction.
func (g *Graph) checkDirection(dir layout.Direction) error {
	if g.HasDirection(dir) {
		return nil
	}
	if g.Meta().Undirected {
		return noLists{fmt.Errorf("this store keeps no %s-lists; its edges are undirected: IN "+
			"gives the same neighbors", dir)}
	}
	return noLists{fmt.Errorf("this store keeps no %s-lists: ingest with --direction both, or "+
		"ask for IN", dir)}
}

// CheckDirections returns an error for the first direction of which the store has no lists.
func (g *Graph) CheckDirections(dirs []layout.Direction) error {
	for _, dir := range dirs {
		if err := g.checkDirection(dir); err != nil {
			return err
		}
	}
	return nil
}

// HasDirection reports whether the store keeps the lists of a direction.
func (g *Graph) HasDirection(dir layout.Direction) bool {
	for _, d := range g.Meta().Directions {
		if d == dir.String() {
			return true
		}
	}
	return false
}

// Rows opens a file of rows.
func (g *Graph) Rows(ctx context.Context, m kv.RowsMeta) (*rowfile.Reader, error) {
	return g.Files.Rows(ctx, m)
}
