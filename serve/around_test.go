package serve

import (
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestAround checks that a batch around seeds that a client names equals the batch of an epoch that
// has these seeds, whatever was asked for before; and that an epoch may follow.
func TestAround(t *testing.T) {
	g := layouttest.Random(3, 300, 2500)
	g.EdgeTypes, g.Weighted = []string{"a", "b", "c"}, true
	g.Dim, g.Features = 4, layouttest.Features(300, 4)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 300)
	g.Splits = layouttest.Splits(300)
	st := layouttest.Build(t, vfs.NewMem(), "typed", g)
	k := start(t, st, Options{}).connect(t)
	ask := func(seeds []sample.NodeID, epoch, index uint64) (*served, error) {
		return k.batch(k.ask(protocol.KindSample, protocol.Sample{Epoch: epoch, Index: index,
			Done: k.done}, mem.BytesOf(seeds)))
	}
	if _, err := ask([]sample.NodeID{1}, 0, 0); err == nil {
		t.Error("a batch without a loader")
	}
	k.open(protocol.Open{Fanout: []int{4, 3}, Batch: 50, Seed: 1})
	for range 2 {
		plainBatches(t, st, 50, []int{4, 3}, 1, func(want *sample.Batch) {
			got, err := ask(want.Seeds, want.Epoch, want.Index)
			if err != nil {
				t.Fatal(err)
			}
			sameBatch(t, got, want)
			k.give(got)
		})
	}
	for says, seeds := range map[string][]sample.NodeID{"node 300": {300}, "twice": {5, 5},
		"without seeds": nil} {
		if _, err := ask(seeds, 0, 0); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("seeds %v: %v, want %s", seeds, err, says)
		}
	}
	k.start(0, 0)
	if b, err := k.next(); err != nil || b == nil {
		t.Fatalf("an epoch after that: %v", err)
	}
}

// TestFanoutsByRelation: each relation of a typed store is drawn as often as the loader says, by
// each loader as it says itself, in batches around seeds and in epochs.
func TestFanoutsByRelation(t *testing.T) {
	g := layouttest.Shop(3, 200, 100, 6000)
	st := layouttest.Build(t, vfs.NewMem(), "shop", g)
	degree := map[[2]uint32]int{} // by node and relation
	for _, e := range g.Edges {
		degree[[2]uint32{uint32(e.Dst), uint32(e.Type)}]++
	}
	r := start(t, st, Options{})
	for _, by := range [][]map[string]int{
		{{"buys": 2, "sees": 0, "has": 1, "": 4}, {"rev_buys": 3}},
		{{"": 1}, {"": sample.All, "buys": 1}},
		nil,
	} {
		k, o := r.connect(t), protocol.Open{Split: "given", Fanout: []int{4, 3}, Batch: 40, Seed: 1}
		if o.FanoutBy = by; by != nil {
			o.Fanout = []int{most(by[0]), most(by[1])}
		}
		k.open(o, 0, 3, 10, 150, 201, 220, 299, 205)
		check := func(b *served) {
			drawn := map[[2]uint32]int{}
			edges, types := b.ints(arrayEdges), b.ints(arrayTypes)
			for i, at := range edges[len(types):] {
				drawn[[2]uint32{uint32(b.ints(arrayNodes)[at]), uint32(types[i])}]++
			}
			for i, v := range b.ints(arrayNodes)[:b.HopNodes[0]+b.HopNodes[1]] {
				hop := 0
				if i >= b.HopNodes[0] {
					hop = 1
				}
				for relation, name := range g.EdgeTypes {
					want := o.Fanout[hop]
					if by != nil {
						want = fanoutOf(by[hop], name)
					}
					key := [2]uint32{uint32(v), uint32(relation)}
					if want == sample.All || degree[key] < want {
						want = degree[key]
					}
					if drawn[key] != want {
						t.Fatalf("%v: node %d at hop %d has %d edges %s, want %d", by, v, hop,
							drawn[key], name, want)
					}
				}
			}
		}
		b, err := k.batch(k.ask(protocol.KindSample, protocol.Sample{},
			mem.BytesOf([]sample.NodeID{5, 17, 205})))
		if err != nil {
			t.Fatal(err)
		}
		check(b)
		k.give(b)
		k.start(0, 0)
		if b, err = k.next(); err != nil {
			t.Fatal(err)
		}
		check(b)
	}
	for says, by := range map[string][]map[string]int{
		"did you mean buys":         {{"buy": 2}, {"": 1}},
		"beside a fanout of 2":      {{"buys": 2}},
		`fanout -3 of "has" at hop`: {{"": 2}, {"has": -3}},
	} {
		_, _, err := r.connect(t).ask(protocol.KindOpen, protocol.Open{Split: "given",
			Fanout: []int{2, 2}, FanoutBy: by, Batch: 8, Seed: 1, World: 1},
			mem.BytesOf([]sample.NodeID{1}))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %s", by, err, says)
		}
	}
}

// most returns the largest fanout of a hop.
func most(hop map[string]int) (n int) {
	for _, of := range hop {
		if of == sample.All {
			return sample.All
		}
		n = max(n, of)
	}
	return n
}

// fanoutOf returns the fanout of a relation.
func fanoutOf(hop map[string]int, relation string) int {
	if n, ok := hop[relation]; ok {
		return n
	}
	return hop[""]
}

// TestPlaces: edges of a batch around seeds have the numbers that they have in the lists of their
// nodes, if these are asked for.
func TestPlaces(t *testing.T) {
	g := layouttest.Random(3, 300, 2500)
	st := layouttest.Build(t, vfs.NewMem(), "plain", g)
	lists := g.Lists(layout.In)
	for _, asked := range []bool{true, false} {
		k := start(t, st, Options{}).connect(t)
		k.open(protocol.Open{Split: "given", Fanout: []int{4, 3}, Batch: 50, Seed: 1,
			Places: asked}, 1, 2, 3)
		b, err := k.batch(k.ask(protocol.KindSample, protocol.Sample{},
			mem.BytesOf([]sample.NodeID{5, 17, 200})))
		if err != nil {
			t.Fatal(err)
		}
		nodes, edges, places := b.ints(arrayNodes), b.ints(arrayEdges), b.ints(arrayPlaces)
		n := len(edges) / 2
		if !asked {
			if places != nil {
				t.Error("places that nobody asked for")
			}
			continue
		}
		if len(places) != n || n < 20 {
			t.Fatalf("%d places of %d edges", len(places), n)
		}
		for i, at := range places {
			from, to := nodes[edges[i]], nodes[edges[n+i]]
			if list := lists[to]; int64(list[at].Nbr) != from {
				t.Fatalf("edge %d from %d to %d has the place %d, where %d is", i, from, to, at,
					list[at].Nbr)
			}
		}
	}
}

// TestNoEdges: edges of a store without splits of them are a mistake of the client.
func TestNoEdges(t *testing.T) {
	g := layouttest.Random(3, 30, 250)
	k := start(t, layouttest.Build(t, vfs.NewMem(), "plain", g), Options{}).connect(t)
	for kind, body := range map[protocol.Kind]any{
		protocol.KindEdges: protocol.Edges{Split: "train", Count: 1}, protocol.KindNodeTypes: nil} {
		if _, _, err := k.ask(kind, body, nil); err == nil ||
			!strings.HasPrefix(err.Error(), "usage: ") {
			t.Errorf("frame %d: %v", kind, err)
		}
	}
}

// TestListsAlone: a store without features and labels has batches too.
func TestListsAlone(t *testing.T) {
	g := layouttest.Random(3, 300, 2500)
	g.Splits = layouttest.Splits(300)
	st := layouttest.Build(t, vfs.NewMem(), "lists", g)
	k := start(t, st, Options{}).connect(t)
	opened := k.open(protocol.Open{Fanout: []int{4, 3}, Batch: 50, Seed: 1})
	if !strings.Contains(opened.Plan, "lists are in memory") {
		t.Errorf("plan %q", opened.Plan)
	}
	k.start(0, 0)
	for range opened.Batches {
		b, err := k.next()
		if err != nil || b == nil {
			t.Fatal(err)
		}
		if b.ints(arrayRows) != nil || b.ints(arrayLabels) != nil || b.ints(arrayEdges) == nil {
			t.Errorf("batch %d has arrays %+v", b.Index, b.Arrays)
		}
		k.give(b)
	}
}
