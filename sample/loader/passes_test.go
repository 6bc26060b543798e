package loader

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/superbatch"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// passesStore has lists that take several windows, and features.
func passesStore(t testing.TB) *layout.Store {
	g := layouttest.Random(31, 30_000, 500_000)
	g.EdgeTypes, g.Weighted, g.Timed = []string{"a", "b", "c"}, true, true
	g.Dim, g.Features = 4, layouttest.Features(30_000, 4)
	return layouttest.Build(t, vfs.NewMem(), "s", g)
}

// hashes returns the hashes of all batches of two epochs, loaded with a topology that is opened as
// graph says.
func hashes(t *testing.T, s *layout.Store, graph topology.Options, super, resume bool,
	cache Cache) []uint64 {
	t.Helper()
	ctx := context.Background()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	budget := mem.NewBudget(256 << 20)
	graph.Budget = budget
	src := NewSource(s, dev, budget)
	src.Extras = sample.Extras{Degrees: true, EdgeWeights: true, EdgeTypes: true}
	if err := errors.Join(src.OpenGraph(ctx, graph), src.OpenRows(ctx),
		src.OpenFeatures(ctx, cache)); err != nil {
		t.Fatal(err)
	}
	c := Config{Batch: 30, Fanout: []int{4, 3}, Seed: 5, Workers: 2, Ready: 1}
	for v := range sample.NodeID(500) {
		c.Seeds = append(c.Seeds, 59*v)
	}
	if super {
		c.Superbatch = &superbatch.Config{Epochs: 2, StorageBytes: 64 << 20, Slots: 3000,
			PlanBytes: 32 << 20, AccessBytes: 1 << 20, NextBytes: 1 << 20, Name: "batches-1"}
	}
	l := New(src, c)
	var all []uint64
	for epoch := range uint64(2) {
		first := uint64(0)
		if epoch == 0 && resume {
			first = 3
		}
		e, err := l.Epoch(ctx, epoch, first)
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := e.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sample.BatchHash(b))
			b.Release()
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	read := src.Topology.Stats().BlocksRead
	if cache.Staged {
		checkStaged(t, src, graph)
	}
	if err := errors.Join(l.Close(), src.Close(), dev.Close()); err != nil {
		t.Fatal(err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes left", budget.Used())
	}
	t.Logf("%+v, %+v, superbatch %v: %d blocks read", graph, cache, super,
		read)
	return all
}

// checkStaged holds that rows that are missed were read ahead where batches are drawn in passes.
func checkStaged(t *testing.T, src *Source, graph topology.Options) {
	t.Helper()
	st, cache := src.staged.Stats(), src.Features.Stats()
	missed := cache.Requests - cache.Hits
	if graph.PassBytes == 0 {
		missed = 0
	}
	if st.Used != missed || st.Staged > missed || missed > 0 && st.Staged == 0 {
		t.Errorf("%+v: %d rows are missed, %+v", graph, missed, st)
	}
}

// Batches are the same whether lists are in memory, or read for each batch, or in passes for many,
// and their features likewise.
func TestPassesGiveTheSame(t *testing.T) {
	s := passesStore(t)
	none := Cache{Policy: "none", Threads: 1}
	for _, resume := range []bool{false, true} {
		if !resume && testing.Short() {
			continue // races are the same
		}
		want := hashes(t, s, topology.Options{Resident: true, Weights: true, Types: true}, false,
			resume, none)
		for _, passes := range []int64{0, 6 << 20, 32 << 20} {
			graph := topology.Options{CacheBytes: 1 << 20, PassBytes: passes}
			got := [][]uint64{hashes(t, s, graph, false, resume, none),
				hashes(t, s, graph, true, resume, none),
				hashes(t, s, graph, false, resume, Cache{Policy: "static", Bytes: 60 << 10}),
				hashes(t, s, graph, false, resume,
					Cache{Policy: "static", Bytes: 60 << 10, Staged: passes != 6<<20}),
				hashes(t, s, graph, false, resume,
					Cache{Policy: "none", Staged: passes != 6<<20})}
			for i := range got {
				if !slices.Equal(got[i], want) {
					t.Errorf("%d bytes for passes, way %d, resume %v: other batches", passes, i,
						resume)
				}
			}
		}
	}
}

// Where the rows of the batches that are drawn have no place together they are read ahead in parts,
// within the memory for passes.
func TestStagedInParts(t *testing.T) {
	s := passesStore(t)
	graph := topology.Options{CacheBytes: 1 << 20, PassBytes: 14 << 20}
	cache := Cache{Policy: "static", Bytes: 60 << 10}
	want := hashes(t, s, graph, false, false, cache)
	cache.Staged = true
	if got := hashes(t, s, graph, false, false, cache); !slices.Equal(got, want) {
		t.Error("other batches")
	}
}

// What cannot be drawn together is drawn one by one, though there is memory.
func TestPassesAreLeftOut(t *testing.T) {
	limit := int64(7)
	for name, change := range map[string]func(*Source){
		"layers": func(s *Source) { s.LayerSize = []int{40} },
		"before": func(s *Source) { s.Before = &limit },
	} {
		src := NewSource(passesStore(t), nil, mem.NewBudget(256<<20))
		if !src.Passes() {
			t.Fatal("no passes")
		}
		if change(src); src.Passes() {
			t.Errorf("%s in passes", name)
		}
		if bytes, held, err := src.windows(); bytes != 0 || held != 0 || err != nil {
			t.Errorf("%s: windows of %d bytes, %d held, %v", name, bytes, held, err)
		}
	}
}

// TestSameOrder: the batches of one order, whatever its epoch, are the same from a pipeline and a
// superbatch, and are drawn in passes where there is memory for them.
func TestSameOrder(t *testing.T) {
	s := passesStore(t)
	want, _ := ofOrder(t, s, topology.Options{Resident: true}, false)
	graph := topology.Options{CacheBytes: 64 << 10}
	_, most := ofOrder(t, s, graph, false)
	graph.PassBytes = 32 << 20
	for _, super := range []bool{false, true} {
		got, blocks := ofOrder(t, s, graph, super)
		if !slices.Equal(got, want) {
			t.Errorf("superbatch %v: other batches", super)
		}
		if blocks > most/2 {
			t.Errorf("superbatch %v: %d blocks were read, batch by batch %d", super, blocks, most)
		}
	}
}

// ofOrder returns the hashes of the batches of an order of the last epoch that there is, and the
// blocks of lists that were read.
func ofOrder(t *testing.T, s *layout.Store, graph topology.Options, super bool) (all []uint64,
	blocks uint64) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	src := NewSource(s, dev, mem.NewBudget(256<<20))
	if err := errors.Join(src.OpenGraph(t.Context(), graph), src.OpenRows(t.Context()),
		src.OpenFeatures(t.Context(), Cache{Policy: "none"})); err != nil {
		t.Fatal(err)
	}
	c := Config{Fanout: []int{8, 8}, Seed: 5, Workers: 2, PassWorkers: 1}
	var seeds []sample.NodeID
	for v := range sample.NodeID(500) {
		seeds = append(seeds, 59*v)
	}
	c.Same, err = sample.EpochOrder(seeds, 5, math.MaxUint64, 10)
	if err != nil {
		t.Fatal(err)
	}
	if super {
		c.Superbatch = &superbatch.Config{Epochs: 1, StorageBytes: 64 << 20, Slots: 1,
			PlanBytes: 32 << 20, Name: "batches-1"}
	}
	l := New(src, c)
	e, err := l.Epoch(t.Context(), 0, 0)
	for err == nil {
		var b *sample.Batch
		if b, err = e.Next(t.Context()); err == nil {
			b.Epoch = 0
			all = append(all, sample.BatchHash(b))
			b.Release()
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	blocks = src.Topology.Stats().BlocksRead
	if err := errors.Join(e.Close(), l.Close(), src.Close(), dev.Close()); err != nil {
		t.Fatal(err)
	}
	return all, blocks
}
