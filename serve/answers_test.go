package serve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/serve/protocol"
	"gdb/shell/lang"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// arrayOf asks for one array, and returns its type, its shape and its bytes.
func (k *client) arrayOf(kind protocol.Kind, nodes []uint32) (of protocol.Array, data []byte) {
	k.t.Helper()
	var a protocol.Arrays
	f := k.must(kind, nil, mem.BytesOf(nodes), protocol.KindArrays)
	if err := f.Decode(&a); err != nil || len(a.Arrays) != 1 {
		k.t.Fatalf("%d arrays: %v", len(a.Arrays), err)
	}
	return a.Arrays[0], f.Data
}

// TestLabelsOfEachKind: classes come as numbers of 8 bytes, several labels and numbers as floats,
// for nodes in the order in which they are asked for.
func TestLabelsOfEachKind(t *testing.T) {
	nodes := []uint32{5, 0, 29, 5}
	build := func(name string, set func(g *layouttest.Graph)) *client {
		g := layouttest.Random(3, 30, 90)
		set(&g)
		return start(t, layouttest.Build(t, vfs.NewMem(), name, g), Options{}).connect(t)
	}
	k := build("classes", func(g *layouttest.Graph) {
		g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 30)
		for v := range g.Labels {
			g.Labels[v] = int32(v%4) - 1
		}
	})
	of, data := k.arrayOf(protocol.KindLabels, nodes)
	if want := []int64{0, -1, 0, 0}; of.Name != "y" || of.Type != "i8" ||
		!slices.Equal(of.Shape, []int{4}) || !slices.Equal(mem.View[int64](data), want) {
		t.Errorf("classes %+v: %d, want %d", of, mem.View[int64](data), want)
	}
	k = build("multi", func(g *layouttest.Graph) {
		g.Classes, g.Multi = layouttest.ClassNames(3), make([][]int, 30)
		for v := range g.Multi {
			g.Multi[v] = []int{v % 3}
		}
		g.Multi[29] = []int{0, 1}
	})
	of, data = k.arrayOf(protocol.KindLabels, nodes)
	if want := []float32{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1}; of.Type != "f4" ||
		!slices.Equal(of.Shape, []int{4, 3}) || !slices.Equal(mem.View[float32](data), want) {
		t.Errorf("several labels %+v: %v, want %v", of, mem.View[float32](data), want)
	}
	k = build("numbers", func(g *layouttest.Graph) {
		g.Targets = make([]float32, 30)
		for v := range g.Targets {
			g.Targets[v] = float32(v) / 2
		}
	})
	of, data = k.arrayOf(protocol.KindLabels, nodes)
	if want := []float32{2.5, 0, 14.5, 2.5}; of.Type != "f4" || !slices.Equal(of.Shape, []int{4}) ||
		!slices.Equal(mem.View[float32](data), want) {
		t.Errorf("numbers %+v: %v, want %v", of, mem.View[float32](data), want)
	}
}

// TestBatchesOfEachKind: batches have the labels of their seeds, each kind in its shape.
func TestBatchesOfEachKind(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(g *layouttest.Graph)
		shape []int
		want  func(v int64) []float32
	}{
		"several labels": {func(g *layouttest.Graph) {
			g.Classes, g.Multi = layouttest.ClassNames(3), make([][]int, 300)
			for v := range g.Multi {
				g.Multi[v] = []int{v % 3}
			}
		}, []int{40, 3}, func(v int64) []float32 {
			row := make([]float32, 3)
			row[v%3] = 1
			return row
		}},
		"numbers": {func(g *layouttest.Graph) {
			g.Targets = make([]float32, 300)
			for v := range g.Targets {
				g.Targets[v] = float32(v) / 2
			}
		}, []int{40}, func(v int64) []float32 { return []float32{float32(v) / 2} }},
	} {
		g := layouttest.Random(3, 300, 900)
		g.Dim, g.Features, g.Splits = 2, layouttest.Features(300, 2), layouttest.Splits(300)
		c.set(&g)
		k := start(t, layouttest.Build(t, vfs.NewMem(), "s", g), Options{}).connect(t)
		k.open(protocol.Open{Split: "train", Fanout: []int{2}, Batch: 40, Seed: 1, World: 1})
		k.start(0, 0)
		b, err := k.next()
		if err != nil || b == nil {
			t.Fatal(name, err)
		}
		i := slices.IndexFunc(b.Arrays, func(a protocol.Array) bool {
			return a.Name == arrayLabels
		})
		if i < 0 || !slices.Equal(b.Arrays[i].Shape, c.shape) {
			t.Fatalf("%s: %+v, want labels of shape %d", name, b.Arrays, c.shape)
		}
		var want []float32
		for _, v := range b.ints(arrayNodes)[:40] {
			want = append(want, c.want(v)...)
		}
		if got := b.floats(arrayLabels); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestNeighborsOfTypedEdges: lists come for each node that is asked for, with the types of edges,
// those of a node that is asked for twice, twice.
func TestNeighborsOfTypedEdges(t *testing.T) {
	g := layouttest.Random(3, 30, 90)
	g.EdgeTypes = []string{"a", "b", "c"}
	for i := range g.Edges {
		g.Edges[i].Type = uint16(i % 3)
	}
	k := start(t, layouttest.Build(t, vfs.NewMem(), "typed", g), Options{}).connect(t)
	first, last := uint32(g.Edges[0].Dst), uint32(g.Edges[len(g.Edges)-1].Dst)
	nodes := []uint32{first, last, first, first}
	var a protocol.Arrays
	f := k.must(protocol.KindNeighbors, protocol.Neighbors{Fanout: sample.All},
		mem.BytesOf(nodes), protocol.KindArrays)
	if err := f.Decode(&a); err != nil || len(a.Arrays) != 3 {
		t.Fatalf("%+v: %v", a, err)
	}
	all := mem.View[int64](f.Data)
	offsets := all[:5]
	n := int(offsets[4])
	if len(all) != 5+2*n {
		t.Fatalf("%d numbers for %d neighbors of 4 nodes", len(all), n)
	}
	for i, v := range nodes {
		got, want := map[string]int{}, map[string]int{}
		for e := offsets[i]; e < offsets[i+1]; e++ {
			got[fmt.Sprint(all[5+e], " by ", all[5+n+int(e)])]++
		}
		for _, e := range g.Edges {
			if uint32(e.Dst) == v {
				want[fmt.Sprint(e.Src, " by ", e.Type)]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
			t.Errorf("neighbors of node %d: %v, want %v", v, got, want)
		}
	}
	for _, fanout := range []int{0, -2} {
		_, _, err := k.ask(protocol.KindNeighbors, protocol.Neighbors{Fanout: fanout},
			mem.BytesOf(nodes))
		if err == nil || !strings.Contains(err.Error(), "usage: serve: fanout") {
			t.Errorf("fanout %d: %v", fanout, err)
		}
	}
}

// TestDrawnNeighbors: of fewer neighbors than a node has those come that a sample with the same
// seed has, in epoch 0.
func TestDrawnNeighbors(t *testing.T) {
	st := coraStore(t)
	k := start(t, st, Options{}).connect(t)
	db, err := gdb.OpenOn(t.Context(), st, layouttest.Device(t), gdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	nodes := make([]uint32, 100)
	for i := range nodes {
		nodes[i] = uint32(i)
	}
	d, err := db.Sample(t.Context(), mem.View[sample.NodeID](mem.BytesOf(nodes)), []int{2}, 5, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := k.must(protocol.KindNeighbors, protocol.Neighbors{Fanout: 2, Seed: 5},
		mem.BytesOf(nodes), protocol.KindArrays)
	got := mem.View[int64](f.Data)
	for i, off := range d.NbrOffsets {
		if got[i] != int64(off) {
			t.Fatalf("list %d begins at %d, want %d", i, got[i], off)
		}
	}
	for i, v := range d.Nbrs {
		if got[len(d.NbrOffsets)+i] != int64(v) {
			t.Fatalf("neighbor %d is %d, want %d", i, got[len(d.NbrOffsets)+i], v)
		}
	}
}

// TestEdgeBytes: an edge takes its ends of 4 bytes and its type of 2, and the same in numbers of
// 4, 4 and 8 bytes.
func TestEdgeBytes(t *testing.T) {
	if edgeBytes != 4+4+2+4+4+8 {
		t.Errorf("%d bytes", edgeBytes)
	}
}

// TestNamesAndBack: names of nodes are found again, in the order in which they are asked for, also
// of more nodes than names are read at once.
func TestNamesAndBack(t *testing.T) {
	k := start(t, coraStore(t), Options{}).connect(t)
	nodes := make([]uint32, namesAtOnce+7)
	for i := range nodes {
		nodes[i] = uint32((i * 7) % 2708)
	}
	var names protocol.Names
	f := k.must(protocol.KindNames, nil, mem.BytesOf(nodes), protocol.KindNamed)
	if err := f.Decode(&names); err != nil || len(names.Names) != len(nodes) {
		t.Fatalf("%d names of %d nodes: %v", len(names.Names), len(nodes), err)
	}
	f = k.must(protocol.KindNodes, names, nil, protocol.KindArrays)
	for i, v := range mem.View[int64](f.Data) {
		if v != int64(nodes[i]) {
			t.Fatalf("%s is node %d, want %d", names.Names[i], v, nodes[i])
		}
	}
	_, _, err := k.ask(protocol.KindNodes, protocol.Names{Names: []string{"none of them"}}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
		t.Errorf("a name that no node has: %v", err)
	}
	_, _, err = k.ask(protocol.KindNames, nil, mem.BytesOf([]uint32{2708}))
	if err == nil || !strings.Contains(err.Error(), "node 2708: the store has nodes 0 to 2707") {
		t.Errorf("a node behind the last: %v", err)
	}
	_, _, err = k.ask(protocol.KindNodeTypes, nil, mem.BytesOf([]uint32{1}))
	if err == nil || !strings.Contains(err.Error(), "have no types") {
		t.Errorf("types of nodes without: %v", err)
	}
}

// TestLoadersThatMakeNoSense: settings out of their ranges are refused with what to give, and those
// at the ends of the ranges are not.
func TestLoadersThatMakeNoSense(t *testing.T) {
	s := New(Options{Store: coraStore(t), Memory: testMemory, Threads: 1})
	good := protocol.Open{Fanout: []int{5}, Batch: 50, World: 1}
	for says, set := range map[string]func(o *protocol.Open){
		"a batch of 0 seeds: want at least 1": func(o *protocol.Open) { o.Batch = 0 },
		"rank 0 of 0":                         func(o *protocol.Open) { o.World = 0 },
		"rank 0 of 1025":                      func(o *protocol.Open) { o.World = worldMost + 1 },
		"rank -1 of 1":                        func(o *protocol.Open) { o.Rank = -1 },
		"rank 2 of 2":                         func(o *protocol.Open) { o.Rank, o.World = 2, 2 },
		"no fanout":                           func(o *protocol.Open) { o.Fanout = nil },
		"a fanout of 65 hops: want at most 64": func(o *protocol.Open) {
			o.Fanout = slices.Repeat([]int{1}, 65)
		},
		"fanout 0: want at least 1, or -1 for all": func(o *protocol.Open) {
			o.Fanout = []int{3, 0}
		},
		"fanout -2: want at least 1, or -1 for all": func(o *protocol.Open) {
			o.Fanout = []int{-2}
		},
		"memory of -1 bytes":  func(o *protocol.Open) { o.Memory = -1 },
		"normalize \"other\"": func(o *protocol.Open) { o.Normalize = "other" },
		"cache":               func(o *protocol.Open) { o.Cache = "other" },
		"": func(o *protocol.Open) {
			o.Batch, o.World, o.Rank, o.Fanout = 1, worldMost, worldMost-1, []int{-1, 1}
			o.Normalize, o.Cache = "zscore", "sieve"
		},
		" ": func(o *protocol.Open) { o.Fanout = slices.Repeat([]int{1}, 64) },
	} {
		o := good
		set(&o)
		err := s.check(&o)
		if strings.TrimSpace(says) == "" {
			if err != nil {
				t.Errorf("%+v: %v", o, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) || whatOf(err) != "usage" {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}

// TestRefusedLoaderGivesMemoryBack: the memory that the first loader asks for bounds the process as
// long as it is there: not after an open that failed.
func TestRefusedLoaderGivesMemoryBack(t *testing.T) {
	s := New(Options{Store: coraStore(t), Memory: testMemory, Threads: 1})
	o := &protocol.Open{Fanout: []int{5}, Batch: 50, World: 1, Split: "lacking", Memory: 96 << 20}
	before := s.budget.Limit()
	if _, err := s.openNew(t.Context(), o, &protocol.Frame{}); err == nil {
		t.Fatal("a split that is not there was opened")
	}
	if s.budget.Limit() != before || s.mu.memory != testMemory || s.mu.src != nil {
		t.Errorf("after a failed open %d bytes may be reserved, and %d bound the process; want "+
			"%d, %d", s.budget.Limit(), s.mu.memory, before, int64(testMemory))
	}
}

// TestKindsOfErrors: clients are told whether they made a mistake, hold what is wanted, or whether
// a store is damaged.
func TestKindsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{{errHeld, "held"}, {usage(errors.New("x")), "usage"}, {&lang.SyntaxError{}, "usage"},
		{kv.ErrNotFound, "usage"}, {layout.ErrCorrupt, "damaged"}, {kv.ErrDamaged, "damaged"},
		{errors.New("x"), "failed"}} {
		if got := whatOf(fmt.Errorf("serve: %w", c.err)); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}

// TestScaledColumns: columns are scaled by the same numbers for all nodes.
func TestScaledColumns(t *testing.T) {
	const dim = 3
	g := layouttest.Random(3, 300, 900)
	g.Dim, g.Features = dim, layouttest.Features(300, dim)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 300)
	g.Splits = layouttest.Splits(300)
	st := layouttest.Build(t, vfs.NewMem(), "columns", g)
	rows := map[string]map[int64][]float32{}
	for _, normalize := range []string{"none", "zscore"} {
		k := start(t, st, Options{}).connect(t)
		if got := k.open(protocol.Open{Split: "train", Fanout: []int{5}, Batch: 400, Seed: 1,
			World: 1, Normalize: normalize}).Normalize; got != normalize {
			t.Fatalf("scaled as %q, want %q", got, normalize)
		}
		k.start(0, 0)
		b, err := k.next()
		if err != nil || b == nil {
			t.Fatalf("%v", err)
		}
		of := map[int64][]float32{}
		for i, v := range b.ints(arrayNodes) {
			of[v] = slices.Clone(b.floats(arrayRows)[i*dim:][:dim])
		}
		rows[normalize] = of
	}
	for column := range dim {
		var from, to []float64
		for v, x := range rows["none"] {
			from = append(from, float64(x[column]))
			to = append(to, float64(rows["zscore"][v][column]))
		}
		i := slices.Index(from, slices.Min(from))
		j := slices.Index(from, slices.Max(from))
		slope := (to[j] - to[i]) / (from[j] - from[i])
		for n := range from {
			if want := to[i] + slope*(from[n]-from[i]); math.Abs(to[n]-want) > 1e-4 || slope <= 0 {
				t.Fatalf("column %d: %g becomes %g, want %g", column, from[n], to[n], want)
			}
		}
	}
}

// TestTypesOfNodes: each node that is asked for has the number of its type, and an answer takes 8
// bytes for each of them.
func TestTypesOfNodes(t *testing.T) {
	g := layouttest.Shop(1, 30, 40, 200)
	for v := range g.Nodes {
		of := g.Types[0].Name
		if v >= 30 {
			of = g.Types[1+v/70].Name
		}
		g.IDs = append(g.IDs, fmt.Sprint(of, ":", v))
	}
	r := start(t, layouttest.Build(t, vfs.NewMem(), "shop", g), Options{})
	k := r.connect(t)
	nodes := []uint32{70, 0, 30, 29, 69, 89, 0}
	of, data := k.arrayOf(protocol.KindNodeTypes, nodes)
	if want := []int64{2, 0, 1, 0, 1, 2, 0}; of.Name != "node_type" || of.Type != "i8" ||
		!slices.Equal(of.Shape, []int{7}) || !slices.Equal(mem.View[int64](data), want) {
		t.Errorf("%+v: %d, want %d", of, mem.View[int64](data), want)
	}
	for room, fits := range map[int64]bool{7 * 8: true, 7*8 - 1: false} {
		k.settle()
		held := r.lookup.Limit() - r.lookup.Used() - room
		if err := r.lookup.Reserve("others", held); err != nil {
			t.Fatal(err)
		}
		_, _, err := k.ask(protocol.KindNodeTypes, nil, mem.BytesOf(nodes))
		if r.lookup.Release(held); (err == nil) != fits {
			t.Errorf("types of 7 nodes in %d bytes: %v", room, err)
		}
	}
}
