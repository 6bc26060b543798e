package bulk

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/draw"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// shop is a typed store whose lists take many blocks, and its graph.
func shop(t *testing.T) (*fixture, layouttest.Graph) {
	g := layouttest.Shop(6, 12_000, 3000, 800_000)
	f := &fixture{store: layouttest.Build(t, vfs.NewMem(), "s", g)}
	var err error
	if f.dev, err = blockdev.Open(blockdev.Options{Backend: blockdev.Memory}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.dev.Close() })
	for v := range sample.NodeID(300) {
		f.seeds = append(f.seeds, 40*v+1, 12_000+9*v)
	}
	return f, g
}

// referenceShop draws plainly: for each node, of each of its lists by relation.
func referenceShop(lists [][]listfile.Edge, c sample.Config, batch uint64,
	seeds []sample.NodeID) (nodes, nbrs []sample.NodeID, types []uint32) {
	// The lists of users, items and tags by relation, and the first list of each type.
	relations := [][]uint16{{0}, {1, 3, 2}, nil}
	base, first := []int{0, 12_000, 21_000}, []int{0, 12_000, 15_000}
	nodes, met, front := slices.Clone(seeds), map[sample.NodeID]bool{}, seeds
	for _, v := range seeds {
		met[v] = true
	}
	for h := range c.Fanout {
		key, next := rng.Key(c.Seed, 0, batch, uint64(h)), []sample.NodeID(nil)
		var drawn []sample.NodeID
		var of []uint32
		for _, v := range front {
			typ := 0
			for typ < 2 && int(v) >= first[typ+1] {
				typ++
			}
			for place, r := range relations[typ] {
				list := slices.DeleteFunc(slices.Clone(lists[v]),
					func(e listfile.Edge) bool { return e.Type != r })
				number := base[typ] + (int(v)-first[typ])*len(relations[typ]) + place
				fanout := c.Fanout[h]
				if h < len(c.ByRelation) {
					fanout = c.ByRelation[h][r]
				}
				own := rng.Sub(key, uint64(number))
				for _, p := range referenceChoice(c.Draw, own, list, fanout) {
					drawn, of = append(drawn, list[p].Nbr), append(of, uint32(r))
				}
			}
		}
		for _, u := range drawn {
			if !met[u] {
				met[u], next = true, append(next, u)
			}
		}
		nodes = append(slices.Clone(next), nodes...)
		nbrs, types, front = append(drawn, nbrs...), append(of, types...), next
	}
	return nodes, nbrs, types
}

// referenceChoice returns which entries of a list are drawn.
func referenceChoice(how sample.Draw, key uint64, list []listfile.Edge, fanout int) (at []uint32) {
	for p := range list {
		at = append(at, uint32(p))
	}
	if how == sample.DrawWeighted {
		at = slices.DeleteFunc(at, func(p uint32) bool { return list[p].Weight == 0 })
	}
	if fanout == sample.All || len(at) <= fanout {
		return at
	}
	keyOf := func(p uint32) float64 { return -float64(list[p].Time) }
	switch how {
	case sample.DrawUniform:
		at = at[:fanout]
		draw.Choose(key, uint32(len(list)), at, make([]uint32, draw.ChooseSlots(fanout)))
		return at
	case sample.DrawWeighted:
		keyOf = func(p uint32) float64 {
			return -math.Log(1-rng.Unit(rng.Sub(key, uint64(p)))) / float64(list[p].Weight)
		}
	}
	slices.SortFunc(at, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(keyOf(a), keyOf(b)), cmp.Compare(b, a))
	})
	at = at[:fanout]
	slices.Sort(at)
	return at
}

// Batches of a typed store have, of each relation, what a plain sampler draws, however lists are
// read: in memory, by blocks and from the neighbor cache, in passes and in macro-batches.
func TestTypedBatches(t *testing.T) {
	f, g := shop(t)
	lists := g.Lists(layout.In)
	configs := []sample.Config{
		{Fanout: []int{3, 2}},
		{Fanout: []int{4, sample.All}},
		{Fanout: []int{5, 4}, ByRelation: [][]int{{2, 0, 5, 1}, {0, 4, 0, sample.All}}},
		{Fanout: []int{3, 3}, Draw: sample.DrawWeighted},
		{Fanout: []int{4, 3}, Draw: sample.DrawLatest},
	}
	for i, c := range configs {
		if testing.Short() && i != 2 {
			continue
		}
		c.Seed, c.Extras = 9, sample.Extras{Degrees: true, EdgeWeights: true, EdgeTypes: true,
			WeightSums: true}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			want := f.typedBatches(t, c, topology.Options{Resident: true, Weights: true,
				Types: true, Times: true})
			order, err := f.order(0)
			if err != nil {
				t.Fatal(err)
			}
			for b, got := range want {
				seeds := order.Seeds(uint64(b), nil)
				nodes, nbrs, types := referenceShop(lists, c, uint64(b), seeds)
				if !slices.Equal(got.NodeIDs, nodes) || !slices.Equal(got.Nbrs, nbrs) ||
					!slices.Equal(got.Types, types) {
					t.Fatalf("batch %d is another than that of the reference", b)
				}
				checkExtras(t, lists, &got)
			}
			for name, opt := range map[string]topology.Options{
				"packed":  {Resident: true, Form: topology.Packed, Weights: true, Times: true},
				"compact": {Resident: true, Form: topology.Compact},
				"paged":   {CacheBytes: 64 << 10}, "cached": {CacheBytes: 64 << 10,
					NeighborBytes: 100 << 10}} {
				got := f.typedBatches(t, c, opt)
				if !slices.EqualFunc(got, want, func(a, b sample.Dense) bool {
					return equalDense(&a, &b)
				}) {
					t.Errorf("%s: other batches", name)
				}
			}
			f.typedPasses(t, c, want)
			f.typedMacro(t, c)
		})
	}
}

// typedBatches draws the first batches by themselves.
func (f *fixture) typedBatches(t *testing.T, c sample.Config, opt topology.Options) []sample.Dense {
	t.Helper()
	topo, err := topology.Open(t.Context(), f.store, f.dev, layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer topo.Close()
	s, err := sample.NewSampler([]topology.Reader{topo}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	order, err := f.order(0)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]sample.Dense, 2)
	for b := range all {
		err := s.Sample(t.Context(), 0, uint64(b), order.Seeds(uint64(b), nil), &all[b])
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkExtras compares the degrees and sums of weights of a batch with the edges.
func checkExtras(t *testing.T, lists [][]listfile.Edge, d *sample.Dense) {
	t.Helper()
	for i, v := range d.NodeIDs {
		sum := 0.0
		for _, e := range lists[v] {
			sum += float64(e.Weight)
		}
		if int(d.Degrees[i]) != len(lists[v]) || math.Abs(float64(d.WeightSums[i])-sum) > 1e-3*sum {
			t.Fatalf("node %d: %d entries of weight %v, want %d of %v", v, d.Degrees[i],
				d.WeightSums[i], len(lists[v]), sum)
		}
	}
}

// typedPasses compares batches that are drawn in passes.
func (f *fixture) typedPasses(t *testing.T, c sample.Config, want []sample.Dense) {
	t.Helper()
	g, _ := f.group(t, c, 5<<19, 64<<20, 0, nil, nil)
	for b := range want {
		var d sample.Dense
		ok, err := g.take(t.Context(), 0, uint64(b), &d)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if !equalDense(&d, &want[b]) {
			t.Errorf("batch %d: another one in passes", b)
		}
	}
}

// typedMacro compares macro-batches that one worker draws and three.
func (f *fixture) typedMacro(t *testing.T, c sample.Config) {
	t.Helper()
	topo, err := topology.Open(t.Context(), f.store, f.dev, layout.In, topology.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &macroFixture{topo: topo, seeds: f.seeds}
	t.Cleanup(func() { topo.Close() })
	one, three := m.batches(t, c, 2, 1), m.batches(t, c, 2, 3)
	for b := range uint64(1) {
		x, y := &sample.Batch{Index: b}, &sample.Batch{Index: b}
		if err := one.Draw(t.Context(), 0, x); err != nil {
			t.Fatal(err)
		}
		if err := three.Draw(t.Context(), 0, y); err != nil {
			t.Fatal(err)
		}
		if !equalDense(&x.Dense, &y.Dense) || len(x.Dense.Types) != len(x.Dense.Nbrs) {
			t.Errorf("macro-batch %d: another one by three workers", b)
		}
	}
}

// equalDense compares batches; an array that is empty may be nil.
func equalDense(a, b *sample.Dense) bool {
	return slices.Equal(a.NodeIDs, b.NodeIDs) && slices.Equal(a.NbrOffsets, b.NbrOffsets) &&
		slices.Equal(a.Nbrs, b.Nbrs) && slices.Equal(a.ReprMap, b.ReprMap) &&
		slices.Equal(a.Types, b.Types) && slices.Equal(a.Weights, b.Weights) &&
		slices.Equal(a.Degrees, b.Degrees) && slices.Equal(a.WeightSums, b.WeightSums)
}
