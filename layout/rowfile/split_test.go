package rowfile_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// TestSplitAgrees: the pieces of rows, gathered, swept for and scanned, put together are the rows.
func TestSplitAgrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		g := layouttest.Graph{Nodes: rapid.IntRange(1, 400).Draw(rt, "nodes"), NoCatalog: true,
			Dim: rapid.SampledFrom([]int{1, 3, 100, 192, 1100}).Draw(rt, "dim")}
		g.Features = layouttest.Features(g.Nodes, g.Dim)
		typed(rnd, &g)
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		whole := mustRowsWith(t, s, rapid.Bool().Draw(rt, "sums on disk"), nil)
		split := rowfile.SplitTo(whole.Meta(), uint64(g.Nodes), rapid.IntRange(1, g.Dim).
			Draw(rt, "piece"))
		rows := whole.Split(split)
		all := make([]float32, int(split.Rows)*split.Dim)
		if err := rows.Scan(t.Context(), 0, int(split.Rows), all); err != nil {
			rt.Fatal(err)
		}
		var nodes []layout.NodeID
		for range rapid.IntRange(0, 300).Draw(rt, "gathered") {
			nodes = append(nodes, layout.NodeID(rnd.IntN(g.Nodes)))
		}
		pieces := split.Append(nodes, nil)
		if split.Count(nodes) != len(pieces) {
			rt.Fatalf("%d pieces counted, %d listed", split.Count(nodes), len(pieces))
		}
		x := layouttest.Features(1, split.Floats(len(nodes))) // not zeros
		to := split.Packed(x, len(pieces))
		if err := rows.Gather(t.Context(), pieces, nil, to); err != nil {
			rt.Fatal(err)
		}
		for i, p := range pieces {
			piece := to[i*split.Dim : (i+1)*split.Dim]
			if !slices.Equal(piece, all[int(p)*split.Dim:int(p+1)*split.Dim]) {
				rt.Fatalf("piece %d is %v gathered, and scanned another", p, piece)
			}
			err := rows.Sweep(t.Context(), []uint64{uint64(p) << 32}, nil,
				func(_ uint32, row []byte) error { return rows.Decode(piece, row) })
			if err != nil {
				rt.Fatal(err)
			}
		}
		got := split.Unpack(nodes, x, len(pieces))
		for i, v := range nodes {
			want := g.Features[int(v)*g.Dim : int(v+1)*g.Dim]
			if row := got[i*g.Dim : (i+1)*g.Dim]; !slices.Equal(row, want) {
				rt.Fatalf("row %d is %v, want %v", v, row, want)
			}
		}
		if err := whole.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestNewSplit: rows are split where types of narrow rows would take much of memory for nothing.
func TestNewSplit(t *testing.T) {
	for _, c := range []struct {
		dims        []int
		dim, pieces int // of 100 nodes a type; 0 for none
	}{
		{[]int{192, 48, 12, 0}, 48, 600},
		{[]int{100, 100}, 0, 0},
		{[]int{100, 90}, 0, 0},
		{[]int{64, 0}, 64, 100},
		{[]int{0}, 0, 0},
	} {
		var first []uint64
		for i := range c.dims {
			first = append(first, uint64(100*i))
		}
		m := kv.RowsMeta{Dim: slices.Max(c.dims)}
		if m.Dim > 0 {
			var err error
			if m, err = rowfile.NewSectionsMeta("f", "f.rows", rowfile.F32, first,
				c.dims); err != nil {
				t.Fatal(err)
			}
		}
		got := rowfile.NewSplit(m, uint64(100*len(c.dims)))
		if (got == nil) != (c.dim == 0) ||
			got != nil && (got.Dim != c.dim || got.Rows != uint64(c.pieces)) {
			t.Errorf("%v: %+v, want %d pieces of %d", c.dims, got, c.pieces, c.dim)
		}
	}
}
