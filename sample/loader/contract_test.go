package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/superbatch"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The contract of batches: seeds go in; DENSE lists, rows and labels come out, with the same bits
// whatever holds the graph, whatever holds the rows, whoever draws, and how many work on it.

const (
	contractNodes, contractDim = 6000, 5
	contractBatch              = 25
)

// contractStore has two lists that are far longer than the others, features, and labels.
func contractStore(t testing.TB) (*layout.Store, layouttest.Graph) {
	g := layouttest.Random(17, contractNodes, 60_000)
	for v := range layout.NodeID(1500) {
		g.Edges = append(g.Edges, layouttest.Edge{Src: v, Dst: 3, Weight: 1},
			layouttest.Edge{Src: 2 * v, Dst: 77, Weight: 1})
	}
	g.EdgeTypes, g.Weighted = []string{"a", "b", "c"}, true
	g.Dim, g.Features = contractDim, layouttest.Features(contractNodes, contractDim)
	g.Classes = layouttest.ClassNames(3)
	for v := range contractNodes {
		g.Labels = append(g.Labels, int32(v%4)-1)
	}
	return layouttest.Build(t, vfs.NewMem(), "s", g), g
}

func contractSeeds() (seeds []sample.NodeID) {
	for v := range sample.NodeID(160) {
		seeds = append(seeds, 37*v+3)
	}
	return seeds
}

// way is one way to make batches.
type way struct {
	graph  topology.Options
	cache  loader.Cache
	config loader.Config
	super  func(c *superbatch.Config) // nil: no superbatches
	draw   sample.Draw
	layers []int
}

// source opens a source as the way says. The budget must be empty once it is closed.
func (w *way) source(t *testing.T, s *layout.Store, budget *mem.Budget) *loader.Source {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	src := loader.NewSource(s, dev, budget)
	src.Extras = sample.Extras{Degrees: true, EdgeWeights: true, EdgeTypes: true}
	src.Draw, src.LayerSize = w.draw, w.layers
	graph := w.graph
	graph.Budget = budget
	ctx := t.Context()
	err = errors.Join(src.OpenGraph(ctx, graph), src.OpenRows(ctx), src.OpenLabels(ctx),
		src.OpenFeatures(ctx, w.cache))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(src.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
		if budget.Used() != 0 {
			t.Errorf("%d bytes are counted after all was closed", budget.Used())
		}
	})
	return src
}

// loaders numbers the loaders, whose directories of runtime files have names of their own.
var loaders atomic.Int64

// loader returns a loader of the batches of a source.
func (w *way) loader(t *testing.T, src *loader.Source) *loader.Loader {
	c := w.config
	c.Seeds, c.Batch, c.Seed = contractSeeds(), contractBatch, 5
	if w.layers == nil {
		c.Fanout = []int{6, sample.All, 2}
	}
	if w.super != nil {
		c.Superbatch = &superbatch.Config{Epochs: 2, StorageBytes: 64 << 20, Slots: 1500,
			PlanBytes: 32 << 20, AccessBytes: 1 << 20, NextBytes: 1 << 20,
			Name: fmt.Sprint("contract-", loaders.Add(1))}
		c.Superbatch.Workers = 3 // not as many as the loader's
		w.super(c.Superbatch)
	}
	l := loader.New(src, c)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// hashes returns the hashes of the batches of two epochs, the first from batch first on.
func (w *way) hashes(t *testing.T, s *layout.Store, first uint64) (all []uint64) {
	t.Helper()
	l := w.loader(t, w.source(t, s, mem.NewBudget(256<<20)))
	for epoch := range uint64(2) {
		e, err := l.Epoch(t.Context(), epoch, first)
		if err != nil {
			t.Fatal(err)
		}
		for at := first; ; at++ {
			b, err := e.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Epoch != epoch || b.Index != at {
				t.Fatalf("batch %d of epoch %d comes as batch %d of epoch %d", at, epoch, b.Index,
					b.Epoch)
			}
			all = append(all, hashOf(t, b))
			b.Release()
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		first = 0
	}
	return all
}

// hashOf returns the hash of a batch with the rows of all its nodes: those in a table are copied.
func hashOf(t *testing.T, b *sample.Batch) uint64 {
	t.Helper()
	if b.Table == nil {
		return sample.BatchHash(b)
	}
	whole, inner := *b, int(b.Dense.NodeIDOffsets[1])
	if n := len(b.Dense.NodeIDs) - inner; len(b.X) != n*b.Dim ||
		len(b.TableRows) != len(b.Dense.Nbrs) {
		t.Fatalf("%d values of %d inner nodes, %d rows of a table for %d neighbors", len(b.X), n,
			len(b.TableRows), len(b.Dense.Nbrs))
	}
	whole.X = append(make([]float32, inner*b.Dim), b.X...)
	for e, i := range b.Dense.ReprMap {
		row, at := b.Table[int(b.TableRows[e])*b.Dim:][:b.Dim], whole.X[int(i)*b.Dim:][:b.Dim]
		if int(i) >= inner && !slices.Equal(row, at) {
			t.Fatalf("node %d has other values in the table", b.Dense.NodeIDs[i])
		}
		copy(at, row)
	}
	return sample.BatchHash(&whole)
}

// plainHashes makes the same batches in the plainest way: a sampler over lists in memory, and rows
// and labels out of the arrays that the store was written from.
func (w *way) plainHashes(t *testing.T, s *layout.Store, g *layouttest.Graph) (all []uint64) {
	t.Helper()
	src := (&way{draw: w.draw, layers: w.layers, cache: loader.Cache{Policy: "none"},
		graph: topology.Options{Resident: true}}).source(t, s, mem.NewBudget(256<<20))
	var fanout []int
	if w.layers == nil {
		fanout = []int{6, sample.All, 2}
	}
	sampler, err := src.Sampler(&loader.Config{Fanout: fanout, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer sampler.Close()
	for epoch := range uint64(2) {
		order, err := sample.EpochOrder(contractSeeds(), 5, epoch, contractBatch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range order.Batches() {
			b := &sample.Batch{Epoch: epoch, Index: i, Seeds: order.Seeds(i, nil), Dim: g.Dim}
			if err := sampler.Sample(t.Context(), epoch, i, b.Seeds, &b.Dense); err != nil {
				t.Fatal(err)
			}
			for _, v := range b.Dense.NodeIDs {
				b.X = append(b.X, g.Features[int(v)*g.Dim:int(v+1)*g.Dim]...)
			}
			for _, v := range b.Seeds {
				b.Labels = append(b.Labels, g.Labels[v])
			}
			all = append(all, sample.BatchHash(b))
		}
	}
	return all
}

var (
	inMemory = topology.Options{Resident: true}
	paged    = topology.Options{CacheBytes: 1 << 20}
	passes   = topology.Options{CacheBytes: 1 << 20, PassBytes: 32 << 20}
	none     = loader.Cache{Policy: "none", Threads: 1}
	two      = loader.Config{Workers: 2, PassWorkers: 2, Ready: 1}
)

// ways returns ways to make batches that must all be the same.
func ways() map[string]way {
	inTurn, many := two, loader.Config{Workers: 7, Ready: 4}
	inTurn.InTurn = true
	all := loader.Cache{Policy: "all", Threads: 2}
	static, sieve := loader.Cache{Policy: "static", Bytes: 60 << 10}, loader.Cache{Policy: "sieve",
		Bytes: 60 << 10}
	whole, staged, lent := static, static, all
	whole.Bytes, staged.Staged, lent.Lend = 4<<20, true, true
	super := func(graph topology.Options, change func(*superbatch.Config)) way {
		return way{graph: graph, cache: none, config: two, super: change}
	}
	swept := superbatch.Costs{Read: 1, Byte: 1e-9}
	return map[string]way{
		"one worker":          {graph: inMemory, cache: none},
		"many workers":        {graph: inMemory, cache: none, config: many},
		"in turn":             {graph: inMemory, cache: none, config: inTurn},
		"paged":               {graph: paged, cache: none, config: two},
		"passes":              {graph: passes, cache: none, config: two},
		"all rows":            {graph: inMemory, cache: all, config: two},
		"all rows in place":   {graph: inMemory, cache: lent, config: two},
		"static":              {graph: paged, cache: static, config: two},
		"static, all fit":     {graph: paged, cache: whole, config: two},
		"sieve":               {graph: paged, cache: sieve, config: two},
		"passes, staged rows": {graph: passes, cache: staged, config: two},
		"superbatch":          super(inMemory, func(*superbatch.Config) {}),
		"superbatches of 4, passes": super(passes, func(c *superbatch.Config) {
			c.Batches = 4
		}),
		"superbatches that overlap": super(paged, func(c *superbatch.Config) {
			c.Batches, c.Overlap = 3, true
		}),
		"superbatch with rows in place": super(inMemory, func(c *superbatch.Config) {
			c.InPlace, c.Slots = true, 5000
		}),
		"superbatch with a sweep": super(inMemory, func(c *superbatch.Config) {
			c.Slots, c.SweepBytes, c.Costs = 200, 8<<20, swept
		}),
		"superbatch that sweeps ahead": super(inMemory, func(c *superbatch.Config) {
			c.Slots, c.SweepBytes, c.Costs, c.SweepAhead = 200, 8<<20, swept, true
			c.Costs.Step = 1e-3
		}),
		"superbatch with few rows ahead": super(inMemory, func(c *superbatch.Config) {
			c.StageRows, c.Slots = 10, 100
		}),
	}
}

// TestBatchesAreTheSame holds each way against the plainest, from the first batch and from a later
// one on.
func TestBatchesAreTheSame(t *testing.T) {
	s, g := contractStore(t)
	want := (&way{}).plainHashes(t, s, &g)
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			for _, first := range []uint64{0, 3} {
				if got := w.hashes(t, s, first); !slices.Equal(got, want[first:]) {
					t.Errorf("from batch %d on: other batches: %x, want %x", first, got,
						want[first:])
				}
			}
		})
	}
}

// TestDrawsAreTheSame does so for the other ways to draw, with the graph and rows held in two ways.
func TestDrawsAreTheSame(t *testing.T) {
	s, g := contractStore(t)
	for name, w := range map[string]way{"by weight": {draw: sample.DrawWeighted},
		"layers": {layers: []int{60, 90}}} {
		want := w.plainHashes(t, s, &g)
		for _, w.graph = range []topology.Options{inMemory, paged, passes} {
			for _, super := range []func(*superbatch.Config){nil, func(*superbatch.Config) {}} {
				w.cache, w.super, w.config = none, super, two
				if got := w.hashes(t, s, 0); !slices.Equal(got, want) {
					t.Errorf("%s, %+v: other batches", name, w.graph)
				}
			}
		}
	}
}

// TestMacroBatchesAreTheSame: batches that are sliced from macro-batches are others, but the same
// among themselves.
func TestMacroBatchesAreTheSame(t *testing.T) {
	s, _ := contractStore(t)
	var want []uint64
	for i, w := range []way{{graph: inMemory, cache: none},
		{graph: paged, cache: none, config: loader.Config{Workers: 3, PassWorkers: 4, Ready: 2}},
		{graph: paged, cache: loader.Cache{Policy: "all", Threads: 1}},
		{graph: inMemory, cache: none, super: func(*superbatch.Config) {}}} {
		w.config.Macro = 3
		got := w.hashes(t, s, 0)
		if i == 0 {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("way %d: other batches", i)
		}
	}
}

// TestBatchesKeepTheirBits pins the batches of this graph, seed and settings: a run of today trains
// on the batches that a run of yesterday trained on.
func TestBatchesKeepTheirBits(t *testing.T) {
	s, _ := contractStore(t)
	macro := two
	macro.Macro = 3
	for name, c := range map[string]struct {
		way  way
		want uint64
	}{
		"neighbors": {way{graph: inMemory, cache: none, config: two}, 0xe453aba8fa99eb5b},
		"layers": {way{graph: inMemory, cache: none, layers: []int{60, 90}},
			0x9171d652894d2e33},
		"by weight": {way{graph: inMemory, cache: none, draw: sample.DrawWeighted},
			0xbd364c53b94e2e5c},
		"macro": {way{graph: inMemory, cache: none, config: macro}, 0x29d18458e2229648},
	} {
		sum := uint64(0)
		for _, h := range c.way.hashes(t, s, 0) {
			sum = sum*0x9e3779b97f4a7c15 + h
		}
		if sum != c.want {
			t.Errorf("%s: the batches have the hash %#x, want %#x", name, sum, c.want)
		}
	}
}

// TestCancelledBatches: a context that ends ends Next, and Close then gives back all memory, which
// the cleanup of the source holds.
func TestCancelledBatches(t *testing.T) {
	s, _ := contractStore(t)
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			l := w.loader(t, w.source(t, s, mem.NewBudget(256<<20)))
			ctx, cancel := context.WithCancel(t.Context())
			e, err := l.Epoch(ctx, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			b, err := e.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			b.Release()
			for err == nil {
				if b, err = e.Next(ctx); err == nil {
					b.Release()
				}
			}
			if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
				t.Errorf("after the context ended: %v", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTooLittleMemory: batches that do not fit are an error that says so, and nothing stays
// counted.
func TestTooLittleMemory(t *testing.T) {
	s, _ := contractStore(t)
	for _, name := range []string{"one worker", "many workers", "superbatch", "all rows in place"} {
		t.Run(name, func(t *testing.T) {
			w, budget := ways()[name], mem.NewBudget(256<<20)
			l := w.loader(t, w.source(t, s, budget))
			took := budget.Limit() - budget.Used() - 6<<10
			if err := budget.Reserve("what else there is", took); err != nil {
				t.Fatal(err)
			}
			defer budget.Release(took)
			e, err := l.Epoch(t.Context(), 0, 0)
			if err == nil {
				_, err = e.Next(t.Context())
				defer func() {
					if err := e.Close(); err != nil {
						t.Error(err)
					}
				}()
			}
			var full *mem.LimitError
			if !errors.As(err, &full) {
				t.Errorf("without memory: %v", err)
			}
		})
	}
}

// TestDamagedRows: a batch whose rows are damaged is an error that wraps layout.ErrCorrupt, however
// they are read.
func TestDamagedRows(t *testing.T) {
	for _, cache := range []string{"none", "sieve", "static"} {
		fs := vfs.NewMem()
		g := layouttest.Random(17, contractNodes, 20_000)
		g.Dim, g.Features = 900, make([]float32, 900*contractNodes)
		g.Classes, g.Labels = layouttest.ClassNames(2), make([]int32, contractNodes)
		s := layouttest.Build(t, fs, "s", g)
		at := int64(len(g.Features))*4 - 900*4*3000
		layouttest.Flip(t, fs, fs.PathJoin("s", s.Meta().Features[0].Path), at, 1)
		w := way{graph: inMemory, cache: loader.Cache{Policy: cache, Bytes: 100 << 10}, config: two}
		src := loader.NewSource(s, memory(t), mem.NewBudget(256<<20))
		ctx := t.Context()
		err := errors.Join(src.OpenGraph(ctx, w.graph), src.OpenRows(ctx), src.OpenLabels(ctx),
			src.OpenFeatures(ctx, w.cache))
		if err != nil {
			t.Fatal(err)
		}
		l := w.loader(t, src)
		e, err := l.Epoch(ctx, 0, 0)
		for err == nil {
			var b *sample.Batch
			if b, err = e.Next(ctx); err == nil {
				b.Release()
			}
		}
		if !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("%s: %v", cache, err)
		}
		if err := errors.Join(e.Close(), l.Close(), src.Close()); err != nil {
			t.Error(err)
		}
		if used := src.Budget.Used(); used != 0 {
			t.Errorf("%s: %d bytes are counted after all was closed", cache, used)
		}
	}
}

// memory returns a device that reads files in memory.
func memory(t *testing.T) blockdev.Device {
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}
