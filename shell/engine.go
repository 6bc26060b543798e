package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/shell/lang"
	"gdb/shell/words"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/internal/trace"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// engine opens the files of a store when a statement first needs them, and keeps them open. It may
// be used from any goroutine; close comes after all statements.
type engine struct {
	store  *layout.Store
	dev    *countingDevice
	budget *mem.Budget

	mu struct {
		sync.Mutex
		ids       ids.Dictionary
		topo      map[layout.Direction]topology.Reader
		rows      map[string]*rowfile.Reader
		base      map[layout.Direction]topology.Stats // at the last RESET STATS
		baseNames ids.CacheStats
		seed      *uint64 // of SET, nil before
	}
}

// blockCacheShare is the part of --memory for cached topology blocks of each direction.
const blockCacheShare = 8

// blockCacheBytes is the size of the block cache of a direction.
func (e *engine) blockCacheBytes() int64 { return max(e.budget.Limit()/blockCacheShare, 4<<20) }

// nameCacheShare is the part of --memory for cached blocks of the id dictionary.
const nameCacheShare = 16

// nameCacheBytes is the most that the cache of names takes.
func (e *engine) nameCacheBytes() int64 {
	return max(e.budget.Limit()/nameCacheShare, 256<<10)
}

// shellBytesLeast is what statements have however small --memory is.
const shellBytesLeast = 32 << 20

// newEngine bounds the process to memory; 0 is without a bound. What one statement took on the heap
// is given back when another one is short.
func newEngine(st *layout.Store, dev blockdev.Device, memory int64) *engine {
	if memory == 0 {
		return newEngineIn(st, dev, mem.NewBudget(0))
	}
	b := mem.NewProcessBudget(max(memory, mem.ProcessBytes+shellBytesLeast))
	b.Relieve(func(int64) bool {
		before := b.Used()
		b.Settle()
		return b.Used() < before
	})
	return newEngineIn(st, dev, b)
}

func newEngineIn(st *layout.Store, dev blockdev.Device, budget *mem.Budget) *engine {
	e := &engine{store: st, budget: budget,
		dev: newCountingDevice(dev, st.Path()+"/")}
	e.mu.topo = map[layout.Direction]topology.Reader{}
	e.mu.rows = map[string]*rowfile.Reader{}
	return e
}

func (e *engine) close() error {
	var errs []error
	for _, t := range e.mu.topo {
		errs = append(errs, t.Close())
	}
	for _, r := range e.mu.rows {
		errs = append(errs, r.Close())
	}
	if e.mu.ids != nil {
		errs = append(errs, e.mu.ids.Close())
	}
	return errors.Join(errs...)
}

func (e *engine) meta() *kv.Meta { return e.store.Meta() }

// hits is how many blocks the caches have had so far.
func (e *engine) hits() (n uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.mu.topo {
		n += t.Stats().Hits
	}
	if s, ok := e.nameStatsLocked(); ok {
		n += s.Hits
	}
	return n
}

// nameStatsLocked are the blocks of names so far; false without a dictionary.
func (e *engine) nameStatsLocked() (ids.CacheStats, bool) {
	c, ok := e.mu.ids.(ids.Cacher)
	if !ok {
		return ids.CacheStats{}, false
	}
	return c.CacheStats(), true
}

// nameStats are the blocks of names since the last RESET STATS; false without a dictionary.
func (e *engine) nameStats() (ids.CacheStats, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.nameStatsLocked()
	s.Hits -= e.mu.baseNames.Hits
	s.Misses -= e.mu.baseNames.Misses
	return s, ok
}

// isCanonical says that an id that was found is written as the dictionary writes it.
func (e *engine) isCanonical(external string) bool {
	if e.meta().IDs.Kind == kv.IDsString {
		return true
	}
	n, err := strconv.ParseInt(external, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == external
}

// cacheStats are the counters of the block cache of a direction.
type cacheStats struct {
	dir      layout.Direction
	topology topology.Reader
	stats    topology.Stats // since the last RESET STATS
}

// caches are the block caches that statements have opened.
func (e *engine) caches() (out []cacheStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, dir := range []layout.Direction{layout.In, layout.Out} {
		if t := e.mu.topo[dir]; t != nil {
			s, base := t.Stats(), e.mu.base[dir]
			s.Hits -= base.Hits
			s.Misses -= base.Misses
			out = append(out, cacheStats{dir, t, s})
		}
	}
	return out
}

// resetCaches makes the counters of caches begin anew.
func (e *engine) resetCaches() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.base = map[layout.Direction]topology.Stats{}
	for dir, t := range e.mu.topo {
		e.mu.base[dir] = t.Stats()
	}
	e.mu.baseNames, _ = e.nameStatsLocked()
}

// setSeed makes seed that of statements that name none.
func (e *engine) setSeed(seed uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.seed = &seed
}

// seed is what setSeed said.
func (e *engine) seed() (seed uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.seed == nil {
		return 0, false
	}
	return *e.mu.seed, true
}

// denseIDs says that external ids are node numbers.
func (e *engine) denseIDs() bool { return e.meta().IDs.Kind == kv.IDsDense }

func (e *engine) dictionary(ctx context.Context) (ids.Dictionary, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.ids != nil {
		return e.mu.ids, nil
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	dict, err := e.store.IDs(opening, e.dev)
	if err != nil {
		return nil, err
	}
	if c, ok := dict.(ids.Cacher); ok {
		if err := c.Cache(e.nameCacheBytes(), e.budget); err != nil {
			return nil, errors.Join(err, dict.Close())
		}
	}
	e.mu.ids = dict
	return dict, nil
}

// topology opens the paged reader of a direction.
func (e *engine) topology(ctx context.Context, dir layout.Direction) (topology.Reader, error) {
	if err := e.checkDirection(dir); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.mu.topo[dir]; t != nil {
		return t, nil
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	t, err := topology.Open(opening, e.store, e.dev, dir, topology.Options{
		CacheBytes: e.blockCacheBytes(), Budget: e.budget})
	if err == nil {
		e.mu.topo[dir] = t
	}
	return t, err
}

// checkDirection reports lists that the store does not have.
func (e *engine) checkDirection(dir layout.Direction) error {
	if e.hasDirection(dir) {
		return nil
	}
	if e.meta().Undirected {
		return fmt.Errorf("this store keeps no %s-lists; its edges are undirected: IN gives the "+
			"same neighbors", dir)
	}
	return fmt.Errorf("this store keeps no %s-lists: ingest with --direction both, or ask for IN",
		dir)
}

func (e *engine) checkDirections(dirs []layout.Direction) error {
	for _, dir := range dirs {
		if err := e.checkDirection(dir); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) hasDirection(dir layout.Direction) bool {
	for _, d := range e.meta().Directions {
		if d == dir.String() {
			return true
		}
	}
	return false
}

// open opens a file of rows.
func (e *engine) open(ctx context.Context, m kv.RowsMeta) (*rowfile.Reader, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.mu.rows[m.Path]; r != nil {
		return r, nil
	}
	opening, opened := trace.Opening(ctx)
	defer opened()
	r, err := rowfile.Open(opening, e.store, e.dev, m, e.budget)
	if err == nil {
		e.mu.rows[m.Path] = r
	}
	return r, err
}

// resolveBytes is what resolve takes.
func (e *engine) resolveBytes(s lang.NodeSet) int64 {
	if s.IDs.Count > 0 {
		return 4 * int64(s.IDs.Count)
	}
	n := uint64(s.Random)
	if s.Split != "" {
		for _, split := range e.meta().Splits {
			if split.Name == s.Split {
				n = split.Count
			}
		}
		n += min(n, e.meta().Nodes/8) / 2 // its bitmap
	}
	return 4 * int64(min(n, 2*e.meta().Nodes))
}

// resolve turns a set of nodes into node ids: 4 bytes for each, besides a split's bitmap meanwhile.
func (e *engine) resolve(ctx context.Context, s lang.NodeSet, seed uint64) ([]layout.NodeID,
	error) {
	switch {
	case s.Random > 0:
		return e.randomNodes(ctx, s.Random, seed)
	case s.Split != "":
		set, err := e.store.Split(ctx, s.Split)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, e.noSplit(s.Split)
		}
		if err != nil {
			return nil, fmt.Errorf("split %q: %w", s.Split, err)
		}
		return e.members(ctx, set)
	}
	out := make([]layout.NodeID, 0, s.IDs.Count)
	for i, ref := range s.IDs.All() {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		v, err := e.node(ctx, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// members are the nodes of a set.
func (e *engine) members(ctx context.Context, set *roaring.Bitmap) ([]layout.NodeID, error) {
	out := make([]layout.NodeID, set.GetCardinality())
	for it, at := set.ManyIterator(), 0; ; {
		n := it.NextMany(numbers(out[at:min(len(out), at+pace.Every)]))
		if at += n; n == 0 {
			return out, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (e *engine) noSplit(name string) error {
	return fmt.Errorf("no split %s%s; DESCRIBE lists the splits", words.Quoted(name),
		words.Near(name, e.splitNames()))
}

func (e *engine) splitNames() (names []string) {
	for _, s := range e.meta().Splits {
		names = append(names, s.Name)
	}
	return names
}

func (e *engine) node(ctx context.Context, ref lang.NodeRef) (layout.NodeID, error) {
	if ref.Internal {
		if ref.ID >= e.meta().Nodes {
			return 0, fmt.Errorf("node #%d: %w: %s", ref.ID, kv.ErrNotFound, e.internalIDs())
		}
		return layout.NodeID(ref.ID), nil
	}
	ids, err := e.dictionary(ctx)
	if err != nil {
		return 0, err
	}
	v, err := ids.Internal(ctx, ref.External)
	if errors.Is(err, kv.ErrNotFound) && !e.denseIDs() {
		return 0, e.noNode(ctx, ids, ref.External, err)
	}
	return v, err
}

// internalIDs says which internal numbers there are.
func (e *engine) internalIDs() string {
	switch n := e.meta().Nodes; n {
	case 0:
		return "the store has no nodes"
	case 1:
		return "the one internal number is #0"
	default:
		return fmt.Sprintf("internal numbers are #0 to #%d", n-1)
	}
}

// noNode adds to the error of an id that is not found the one that was meant, if that differs in
// the case of letters only, and how ids are written in this store.
func (e *engine) noNode(ctx context.Context, ids ids.Dictionary, id string, err error) error {
	for _, other := range []string{strings.ToLower(id), strings.ToUpper(id), titled(id)} {
		if _, no := ids.Internal(ctx, other); no == nil {
			return fmt.Errorf("%w; did you mean %s?", err, literal(other))
		}
	}
	first := []layout.NodeID{0, 1}[:min(e.meta().Nodes, 2)]
	names, no := ids.External(ctx, first, nil)
	if no != nil {
		return err // of the id; what is wrong with the dictionary is another statement's to say
	}
	for i, name := range names {
		names[i] = literal(words.Truncated(name, words.QuotedMost))
	}
	return fmt.Errorf("%w: ids are written as in the source, such as %s; %s", err,
		strings.Join(names, " or "), e.internalIDs())
}

// titled is a name with a capital.
func titled(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return strings.ToUpper(string(r)) + strings.ToLower(name[n:])
}

// randomDomain keeps RANDOM apart from the other draws with the same seed.
const randomDomain = 0x72616e646f6d // "random"

// randomNodes draws n distinct nodes, the same ones for a seed: all of them if there are fewer.
func (e *engine) randomNodes(ctx context.Context, n int, seed uint64) ([]layout.NodeID, error) {
	n = int(min(uint64(n), e.meta().Nodes))
	p := rng.NewPermutation(e.meta().Nodes, rng.Key(randomDomain, seed))
	out := make([]layout.NodeID, n)
	for i := range out {
		if i%cancelEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out[i] = layout.NodeID(p.At(uint64(i)))
	}
	return out, nil
}

// names returns the external ids of nodes.
func (e *engine) names(ctx context.Context, nodes []layout.NodeID) ([]string, error) {
	ids, err := e.dictionary(ctx)
	if err != nil {
		return nil, err
	}
	return ids.External(ctx, nodes, make([]string, 0, len(nodes)))
}
