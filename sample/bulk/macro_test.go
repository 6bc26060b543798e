package bulk

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const macroSize = 40

// macroFixture is a graph with a hub, and some of its nodes as seeds.
type macroFixture struct {
	topo  topology.Reader
	seeds []sample.NodeID
}

func newMacroFixture(t testing.TB) *macroFixture {
	g := layouttest.Random(5, 9000, 100_000)
	g.EdgeTypes, g.Weighted = []string{"a", "b", "c"}, true
	for i := range 5000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(i), Dst: 7})
	}
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	f := &macroFixture{}
	f.topo, err = topology.Open(t.Context(), store, dev, layout.In,
		topology.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.topo.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	for v := range sample.NodeID(900) {
		f.seeds = append(f.seeds, 9*v+7)
	}
	return f
}

func (f *macroFixture) order(epoch uint64) (*sample.Order, error) {
	return sample.EpochOrder(f.seeds, 3, epoch, macroSize)
}

func (f *macroFixture) sampler(c sample.Config) func() (*sample.Sampler, error) {
	return func() (*sample.Sampler, error) {
		return sample.NewSampler([]topology.Reader{f.topo}, c)
	}
}

// batches returns the batches of an epoch that is sampled in macro-batches of n batches.
func (f *macroFixture) batches(t testing.TB, c sample.Config, n uint64, workers int) *MacroBatches {
	order, err := f.order(0)
	if err != nil {
		t.Fatal(err)
	}
	per := order.Batches()
	budget := mem.NewBudget(0)
	c.Budget = budget
	b := NewMacro(MacroConfig{Sampler: f.sampler(c), Workers: workers, Order: f.order,
		PerEpoch: per,
		Batches:  n, End: 2 * per, Budget: budget})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if n := budget.Used(); n != 0 {
			t.Errorf("%d bytes are counted after Close", n)
		}
	})
	return b
}

// configs are ways to draw.
func configs() map[string]sample.Config {
	return map[string]sample.Config{
		"plain": {Fanout: []int{5, 4}, Seed: 1},
		"three hops": {Fanout: []int{3, 4, 2}, Seed: 1, Extras: sample.Extras{Degrees: true,
			EdgeTypes: true}},
		"weighted": {Fanout: []int{6, 3}, Seed: 1, Draw: sample.DrawWeighted,
			Extras: sample.Extras{EdgeWeights: true, WeightSums: true}},
		"whole lists": {Fanout: []int{sample.All, 3}, Seed: 1},
		"no hops":     {Seed: 1},
	}
}

// TestMacroOfOne: a macro-batch of one batch is the batch that the sampler draws.
func TestMacroOfOne(t *testing.T) {
	f := newMacroFixture(t)
	for name, c := range configs() {
		s, err := f.sampler(c)()
		if err != nil {
			t.Fatal(err)
		}
		b := f.batches(t, c, 1, 3)
		var want, got sample.Dense // of each batch after the other
		for _, i := range []uint64{0, 1, 5, 22} {
			order, err := f.order(1)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Sample(t.Context(), 1, i, order.Seeds(i, nil), &want); err != nil {
				t.Fatal(err)
			}
			mustTake(t, b, 1, i, &got)
			if !same(&got, &want) {
				t.Errorf("%s, batch %d: %+v, not %+v", name, i, got, want)
			}
		}
		s.Close()
	}
}

func mustTake(t testing.TB, b *MacroBatches, epoch, batch uint64, d *sample.Dense) {
	t.Helper()
	to := sample.Batch{Epoch: epoch, Index: batch, Dense: *d}
	if err := b.Draw(context.Background(), 0, &to); err != nil {
		t.Errorf("batch %d: %v", batch, err)
	}
	*d = to.Dense
}

// same compares batches; slices without elements are equal.
func same(a, b *sample.Dense) bool {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for _, f := range reflect.VisibleFields(x.Type()) {
		if f.Anonymous {
			continue // its fields are visible
		}
		v, w := x.FieldByIndex(f.Index), y.FieldByIndex(f.Index)
		if v.Len()+w.Len() > 0 && !reflect.DeepEqual(v.Interface(), w.Interface()) {
			return false
		}
	}
	return true
}

// TestSlices: batches have their seeds, and each node with a list that of the macro-batch that the
// sampler draws of all seeds, whoever asks for them in which order with how many workers; and they
// have less than what it takes to draw each by itself.
func TestSlices(t *testing.T) {
	f := newMacroFixture(t)
	const n = 8
	for name, c := range configs() {
		order, err := f.order(1)
		if err != nil {
			t.Fatal(err)
		}
		per := order.Batches()
		var all [2][]sample.Dense
		for i, workers := range []int{1, 3} {
			b, got := f.batches(t, c, n, workers), make([]sample.Dense, per)
			var asking sync.WaitGroup
			for w := range uint64(workers) {
				asking.Go(func() {
					for k := w; k < per; k += uint64(workers) {
						mustTake(t, b, 1, k, &got[k])
					}
				})
			}
			asking.Wait()
			all[i] = got
		}
		s, err := f.sampler(c)()
		if err != nil {
			t.Fatal(err)
		}
		for k := range per {
			d := &all[0][k]
			if !same(d, &all[1][k]) {
				t.Errorf("%s, batch %d: other with more workers", name, k)
			}
			if k%n == 0 {
				f.checkSlices(t, name, s, order, all[0][k:min(k+n, per)], k/n)
			}
		}
		s.Close()
	}
}

// checkSlices compares the batches of a macro-batch with it.
func (f *macroFixture) checkSlices(t *testing.T, name string, s *sample.Sampler,
	order *sample.Order,
	batches []sample.Dense, number uint64) {
	t.Helper()
	const n = 8
	var seeds []sample.NodeID
	for i := range batches {
		seeds = order.Seeds(number*n+uint64(i), seeds)
	}
	var m sample.Dense
	if err := s.Sample(t.Context(), 1, number, seeds, &m); err != nil {
		t.Fatal(err)
	}
	lists := map[sample.NodeID][]sample.NodeID{}
	for i := range m.Inner() {
		if m.Layers() > 0 {
			v := m.NodeIDs[int(m.NodeIDOffsets[1])+i]
			lists[v] = m.Nbrs[m.NbrOffsets[i]:m.NbrOffsets[i+1]]
		}
	}
	for i := range batches {
		d, hops := &batches[i], m.Layers()
		if got := d.NodeIDs[d.NodeIDOffsets[hops]:]; !reflect.DeepEqual(got,
			order.Seeds(number*n+uint64(i), nil)) {
			t.Fatalf("%s: the seeds are %v", name, got)
		}
		known := map[sample.NodeID]bool{}
		for _, v := range d.NodeIDs {
			if known[v] {
				t.Fatalf("%s: node %d is there twice", name, v)
			}
			known[v] = true
		}
		for e, r := range d.ReprMap {
			if d.NodeIDs[r] != d.Nbrs[e] {
				t.Fatalf("%s: neighbor %d is %d, not %d", name, e, d.NodeIDs[r], d.Nbrs[e])
			}
		}
		for k := range d.Inner() {
			if hops == 0 {
				break
			}
			v := d.NodeIDs[int(d.NodeIDOffsets[1])+k]
			if got := d.Nbrs[d.NbrOffsets[k]:d.NbrOffsets[k+1]]; len(got)+len(lists[v]) > 0 &&
				!reflect.DeepEqual(got, lists[v]) {
				t.Fatalf("%s: node %d has %v, in the macro-batch %v", name, v, got, lists[v])
			}
		}
	}
}

// TestLayersAreRefused: samplers of layers draw a hop of a batch as a whole.
func TestLayersAreRefused(t *testing.T) {
	f := newMacroFixture(t)
	b := f.batches(t, sample.Config{LayerSize: []int{50, 50}, Seed: 1}, 4, 2)
	if err := b.Draw(t.Context(), 0, &sample.Batch{}); err == nil {
		t.Error("layers were drawn")
	}
}
