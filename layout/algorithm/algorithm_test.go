package algorithm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/algorithm"
	"gdb/layout/listfile"

	"github.com/RoaringBitmap/roaring/v2"
)

// edges is a graph as a list of edges.
type edges struct {
	Undirected bool
	Nodes      int
	Edges      [][2]int
	Weights    []float32
	scans      *int // is counted
}

// graph returns the in-lists, which a scan hands out in parts.
func (e edges) graph(limit int64) *algorithm.Graph {
	type entry struct {
		u layout.NodeID
		w float32
	}
	in := make([][]entry, e.Nodes)
	for i, uv := range e.Edges {
		in[uv[1]] = append(in[uv[1]], entry{layout.NodeID(uv[0]), e.Weights[i]})
		if e.Undirected && uv[0] != uv[1] {
			in[uv[0]] = append(in[uv[0]], entry{layout.NodeID(uv[1]), e.Weights[i]})
		}
	}
	if e.scans == nil {
		e.scans = new(int)
	}
	l, part := &listfile.Lists{Off: []uint64{0}}, 7
	g := &algorithm.Graph{Nodes: uint64(e.Nodes), Undirected: e.Undirected, Threads: 3,
		Budget: mem.NewBudget(limit)}
	g.Scan = func(_ context.Context, fn func(layout.NodeID, bool, *listfile.Lists) error) error {
		*e.scans++
		first, cont := 0, false
		flush := func(next int, goesOn bool) (err error) {
			if len(l.Off) > 1 {
				err = fn(layout.NodeID(first), cont, l)
			}
			*l, first, cont = listfile.Lists{Off: []uint64{0}}, next, goesOn
			return err
		}
		for v, list := range in {
			for len(list) > part { // a part of a list
				l.Nbrs, l.Weights = append(l.Nbrs, list[0].u), append(l.Weights, list[0].w)
				l.Off = append(l.Off, uint64(len(l.Nbrs)))
				if err := flush(v, true); err != nil {
					return err
				}
				list = list[1:]
			}
			for _, x := range list {
				l.Nbrs, l.Weights = append(l.Nbrs, x.u), append(l.Weights, x.w)
			}
			l.Off = append(l.Off, uint64(len(l.Nbrs)))
			if v%5 == 4 {
				if err := flush(v+1, false); err != nil {
					return err
				}
			}
		}
		return flush(e.Nodes, false)
	}
	return g
}

// computed returns the values of a column as text.
func computed(t *testing.T, nodes int, c *algorithm.Column, err error) (out []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for v := range nodes {
		out = append(out, text(c.At(layout.NodeID(v))))
	}
	if err := c.Free(); err != nil {
		t.Error(err)
	}
	return out
}

func text(v any) string {
	if f, ok := v.(float64); ok {
		return fmt.Sprintf("%.6f", f)
	}
	return fmt.Sprint(v)
}

// names of the functions, as in expected.json.
var names = []string{"components", "pagerank", "triangles", "cores", "distances", "paths"}

func run(name string, g *algorithm.Graph) (*algorithm.Column, error) {
	ctx := context.Background()
	switch name {
	case "components":
		return algorithm.Components(ctx, g)
	case "pagerank":
		return algorithm.PageRank(ctx, g, algorithm.RankOptions{Tolerance: 1e-8})
	case "triangles":
		return algorithm.Triangles(ctx, g)
	case "cores":
		return algorithm.Cores(ctx, g)
	case "distances":
		return algorithm.Distances(ctx, g, 0)
	}
	return algorithm.ShortestPaths(ctx, g, 0)
}

// TestNetworkx compares with what networkx gives for the same graphs: see testdata/expected.py.
func TestNetworkx(t *testing.T) {
	data, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var graphs []edges
	var want []map[string]any
	if err := errors.Join(json.Unmarshal(data, &graphs), json.Unmarshal(data, &want)); err != nil {
		t.Fatal(err)
	}
	for i, e := range graphs {
		for _, name := range names {
			g := e.graph(0)
			c, err := run(name, g)
			for v, got := range computed(t, e.Nodes, c, err) {
				x := want[i][name].([]any)[v]
				if f, ok := x.(float64); ok && name != "pagerank" && name != "paths" {
					x = int64(f)
				}
				if got != text(x) {
					t.Errorf("undirected %v: %s of node %d is %s, want %s", e.Undirected, name, v,
						got, text(x))
				}
			}
			if g.Budget.Used() != 0 {
				t.Errorf("%s leaves %d bytes", name, g.Budget.Used())
			}
		}
	}
}

func draw(seed uint64, nodes, count int) edges {
	r := rand.New(rand.NewPCG(seed, 1))
	e := edges{Nodes: nodes, Undirected: seed%2 == 1}
	for range count {
		u := int(float64(nodes) * math.Pow(r.Float64(), 2))
		e.Edges = append(e.Edges, [2]int{u, r.IntN(nodes)})
		e.Weights = append(e.Weights, float32(r.IntN(9)))
	}
	return e
}

// TestLittleMemory holds that values are the same where lists do not fit, and that
// memory which does not do is told.
func TestLittleMemory(t *testing.T) {
	for seed := range uint64(2) {
		e := draw(seed, 400, 2500)
		e.scans = new(int)
		for _, name := range append(slices.Clone(names), "labels") {
			compute := func(limit int64) (*algorithm.Column, error) {
				if name == "labels" {
					return algorithm.Labels(context.Background(), e.graph(limit))
				}
				return run(name, e.graph(limit))
			}
			c, err := compute(0)
			want := computed(t, e.Nodes, c, err)
			whole := *e.scans
			c, err = compute(28 << 10)
			if got := computed(t, e.Nodes, c, err); !slices.Equal(got, want) {
				t.Errorf("seed %d: %s differs in little memory", seed, name)
			}
			if name != "components" && *e.scans <= 2*whole {
				t.Errorf("seed %d: %s reads lists %d times, and %d in little memory", seed, name,
					whole, *e.scans-whole)
			}
			*e.scans = 0
			if _, err := compute(2 << 10); err == nil ||
				!strings.Contains(err.Error(), "raise --memory") {
				t.Errorf("seed %d: %s in no memory: %v", seed, name, err)
			}
		}
	}
}

// TestLabels holds that labels are as most of those around each node, and numbered from 0.
func TestLabels(t *testing.T) {
	e := edges{Nodes: 12, Weights: make([]float32, 22)}
	for _, first := range []int{0, 5} { // two cliques of five, and an edge between them
		for u := range 5 {
			for v := range u {
				e.Edges = append(e.Edges, [2]int{first + u, first + v})
			}
		}
	}
	e.Edges = append(e.Edges, [2]int{4, 5}, [2]int{10, 10})
	c, err := algorithm.Labels(context.Background(), e.graph(0))
	got := strings.Join(computed(t, e.Nodes, c, err), " ")
	if want := "0 0 0 0 0 1 1 1 1 1 2 3"; got != want {
		t.Errorf("labels %s, want %s", got, want)
	}
}

// TestWrong holds that what has no answer is refused, and that a cancelled pass ends.
func TestWrong(t *testing.T) {
	e := draw(2, 50, 200)
	e.Weights[7] = -1
	if _, err := run("paths", e.graph(0)); !errors.Is(err, algorithm.ErrNegative) {
		t.Errorf("a negative weight: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := algorithm.Cores(ctx, e.graph(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, name := range append(slices.Clone(names[:4]), "labels") {
		empty := edges{}
		g := empty.graph(0)
		var err error
		if name == "labels" {
			_, err = algorithm.Labels(context.Background(), g)
		} else {
			_, err = run(name, g)
		}
		if err != nil {
			t.Errorf("%s of no nodes: %v", name, err)
		}
	}
}

// TestDeleted: nodes that were deleted have no value, and the others those of the graph without
// them.
func TestDeleted(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 8))
		less, more := edges{Undirected: seed%2 == 1, Nodes: 30}, edges{}
		deleted := roaring.New()
		var at []int // the number of each node among deleted ones
		for len(at) < less.Nodes {
			if more.Nodes++; r.IntN(3) == 0 {
				deleted.Add(uint32(more.Nodes - 1))
			} else {
				at = append(at, more.Nodes-1)
			}
		}
		more.Undirected = less.Undirected
		for range 40 {
			u, v := r.IntN(30), r.IntN(30)
			less.Edges = append(less.Edges, [2]int{u, v})
			more.Edges = append(more.Edges, [2]int{at[u], at[v]})
			less.Weights, more.Weights = append(less.Weights, 1), append(more.Weights, 1)
		}
		for _, limit := range []int64{0, 8 << 10} { // lists in memory, and not
			for _, name := range []string{"components", "pagerank"} {
				c, err := run(name, less.graph(limit))
				want := computed(t, less.Nodes, c, err)
				g := more.graph(limit)
				g.Deleted = deleted
				c, err = run(name, g)
				got := computed(t, more.Nodes, c, err)
				for v, value := range got {
					if deleted.Contains(uint32(v)) != (value == "<nil>") {
						t.Errorf("seed %d: %s of node %d is %s", seed, name, v, value)
					}
				}
				for v, place := range at {
					if got[place] != want[v] {
						t.Errorf("seed %d: %s of node %d is %s, want %s", seed, name, v,
							got[place], want[v])
					}
				}
			}
		}
		g := more.graph(0)
		g.Deleted = deleted
		c, err := algorithm.Labels(t.Context(), g)
		got := computed(t, more.Nodes, c, err)
		seen := map[string]bool{}
		for v, value := range got {
			if seen[value] = true; deleted.Contains(uint32(v)) != (value == "<nil>") {
				t.Errorf("seed %d: label of node %d is %s", seed, v, value)
			}
		}
		for i := range len(seen) - 1 {
			if !seen[fmt.Sprint(i)] {
				t.Errorf("seed %d: no community %d of %d", seed, i, len(seen)-1)
			}
		}
	}
}
