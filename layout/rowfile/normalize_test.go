package rowfile_test

import (
	"context"
	"math"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestNormalizeRows: however rows are read, each is divided by its sum; one of zeros stays.
func TestNormalizeRows(t *testing.T) {
	const nodes, dim = 300, 7
	g := layouttest.Graph{Nodes: nodes, NoCatalog: true, Dim: dim, DType: "f32"}
	g.Features = make([]float32, nodes*dim)
	for i := range g.Features {
		g.Features[i] = float32(i / dim % 5 * (i % 3))
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	rows := mustRows(t, s, mem.NewBudget(0))
	defer rows.Close()
	rows.NormalizeRows()
	want := make([]float64, nodes*dim)
	for n := range nodes {
		sum := 0.0
		for _, v := range g.Features[n*dim:][:dim] {
			sum += float64(v)
		}
		for k, v := range g.Features[n*dim:][:dim] {
			if want[n*dim+k] = float64(v); sum != 0 {
				want[n*dim+k] /= sum
			}
		}
	}
	check := func(how string, got []float32, node func(i int) int) {
		t.Helper()
		for i, v := range got {
			if w := want[node(i/dim)*dim+i%dim]; math.Abs(float64(v)-w) > 1e-6 {
				t.Fatalf("%s: value %d is %g, want %g", how, i, v, w)
			}
		}
	}
	out := make([]float32, nodes*dim)
	if err := rows.Scan(context.Background(), 0, nodes, out); err != nil {
		t.Fatal(err)
	}
	check("scan", out, func(i int) int { return i })
	some := []layout.NodeID{299, 4, 4, 17}
	if err := rows.Gather(context.Background(), some, nil, out[:len(some)*dim]); err != nil {
		t.Fatal(err)
	}
	check("gather", out[:len(some)*dim], func(i int) int { return int(some[i]) })
}
