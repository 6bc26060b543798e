package rowfile_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

func mustRows(t testing.TB, s *layout.Store, budget *mem.Budget) *rowfile.Reader {
	t.Helper()
	r, err := rowfile.Open(context.Background(), s, layouttest.Device(t), s.Meta().Features[0],
		budget)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustRowsWith is mustRows with checksums on disk or in memory.
func mustRowsWith(t testing.TB, s *layout.Store, onDisk bool, budget *mem.Budget) *rowfile.Reader {
	t.Helper()
	r, err := rowfile.OpenWith(context.Background(), s, layouttest.Device(t), s.Meta().Features[0],
		onDisk, budget)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRowsAgree(t *testing.T) {
	ctx, rnd := context.Background(), rand.New(rand.NewPCG(4, 4))
	rapid.Check(t, func(rt *rapid.T) {
		g := layouttest.Graph{Nodes: rapid.IntRange(1, 900).Draw(rt, "nodes"), NoCatalog: true,
			Dim:   rapid.SampledFrom([]int{1, 3, 100, 128, 256, 602, 1024, 1100}).Draw(rt, "dim"),
			DType: rapid.SampledFrom([]string{"f32", "f16", "bf16"}).Draw(rt, "dtype")}
		g.Features = make([]float32, g.Nodes*g.Dim)
		for i := range g.Features { // small integers are exact in all three
			g.Features[i] = float32(rnd.IntN(256) - 128)
		}
		if rapid.Bool().Draw(rt, "typed") {
			typed(rnd, &g)
		}
		s, budget := layouttest.Build(t, vfs.NewMem(), "s", g), mem.NewBudget(0)
		onDisk := rapid.Bool().Draw(rt, "sums on disk")
		rows := mustRowsWith(t, s, onDisk, budget)
		room := int64(1 << 40)
		if onDisk {
			room = 0
		}
		if most := rowfile.MostBytes(s, rows.Meta(), room); budget.Used() > most+8192 ||
			most != rows.MostBytes() {
			rt.Fatalf("%d bytes are held, RowsBytes says %d, MostBytes %d", budget.Used(), most,
				rows.MostBytes())
		}
		nodes, at := make([]layout.NodeID, rnd.IntN(2*g.Nodes)+1), []uint32{}
		for i := range nodes {
			nodes[i] = layout.NodeID(rnd.IntN(g.Nodes))
		}
		for _, i := range rnd.Perm(len(nodes)) {
			at = append(at, uint32(i))
		}
		out := make([]float32, len(nodes)*g.Dim)
		if err := rows.Gather(ctx, nodes, at, out); err != nil {
			rt.Fatal(err)
		}
		for i, v := range nodes {
			got, want := out[int(at[i])*g.Dim:][:g.Dim], g.Features[int(v)*g.Dim:][:g.Dim]
			if !slices.Equal(got, want) {
				rt.Fatalf("row of node %d differs", v)
			}
		}
		first := rnd.IntN(g.Nodes)
		n := rnd.IntN(g.Nodes - first + 1)
		out = make([]float32, n*g.Dim)
		if err := rows.Scan(ctx, layout.NodeID(first), n, out); err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(out, g.Features[first*g.Dim:(first+n)*g.Dim]) {
			rt.Fatalf("scan of %d rows from %d differs", n, first)
		}
		if err := rows.Close(); err != nil || budget.Used() != 0 {
			rt.Fatalf("after close: %v, %d bytes counted", err, budget.Used())
		}
	})
}

// typed cuts the nodes of a graph into types with rows of different widths, one of no values.
func typed(rnd *rand.Rand, g *layouttest.Graph) {
	left := g.Nodes
	for _, dim := range []int{g.Dim, rnd.IntN(g.Dim + 1), 0, rnd.IntN(g.Dim + 1)} {
		n := rnd.IntN(left + 1)
		g.Types = append(g.Types, layouttest.Type{Name: "t", Nodes: n, Dim: dim})
		left -= n
	}
	g.Types = append(g.Types, layouttest.Type{Name: "last", Nodes: left, Dim: rnd.IntN(g.Dim + 1)})
	v := 0
	for _, t := range g.Types {
		for range t.Nodes {
			clear(g.Features[v*g.Dim+t.Dim : (v+1)*g.Dim])
			v++
		}
	}
}

// TestRowsLarge gathers and scans more than a buffer holds, from several goroutines.
func TestRowsLarge(t *testing.T) {
	g := layouttest.Graph{Nodes: 9000, Dim: 300}
	g.Features = layouttest.Features(g.Nodes, g.Dim)
	rows := mustRows(t, layouttest.Build(t, vfs.NewMem(), "s", g), nil)
	var wg sync.WaitGroup
	for w := range 7 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			nodes, want := make([]layout.NodeID, 6000), []float32{}
			for i := range nodes {
				v := r.IntN(g.Nodes)
				nodes[i] = layout.NodeID(v)
				want = append(want, g.Features[v*g.Dim:(v+1)*g.Dim]...)
			}
			out := make([]float32, len(want))
			if err := rows.Gather(context.Background(), nodes, nil, out); err != nil {
				t.Error(err)
			}
			if !slices.Equal(out, want) {
				t.Error("gather of 6000 rows differs")
			}
		})
	}
	wg.Wait()
	out := make([]float32, len(g.Features))
	if err := rows.Scan(context.Background(), 0, g.Nodes, out); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out, g.Features) {
		t.Error("scan of all rows differs")
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

// run are the nodes from first to before end, and more.
func run(first, end layout.NodeID, more ...layout.NodeID) (nodes []layout.NodeID) {
	for v := first; v < end; v++ {
		nodes = append(nodes, v)
	}
	return append(nodes, more...)
}

// far adds 100 nodes that are a read each, after the others.
func far(nodes ...layout.NodeID) []layout.NodeID {
	for i := range layout.NodeID(100) {
		nodes = append(nodes, 5000+100*i)
	}
	return nodes
}

// third returns every third of the first nodes nodes.
func third(nodes layout.NodeID) (some []layout.NodeID) {
	for v := layout.NodeID(0); v < nodes; v += 3 {
		some = append(some, v)
	}
	return some
}

// TestRowsReadLittle holds what a gather may read: the sectors of its rows, each once, and gaps of
// up to 2 KiB that are a tenth of them in all; where rows lie close together, gaps of up to 8 KiB.
func TestRowsReadLittle(t *testing.T) {
	g := layouttest.Graph{Nodes: 20000, Dim: 128, Features: make([]float32, 20000*128)}
	for _, c := range []struct {
		nodes []layout.NodeID
		reads uint64
		bytes uint64
	}{
		{[]layout.NodeID{7}, 1, 512},
		{[]layout.NodeID{7, 7, 7}, 1, 512},
		{[]layout.NodeID{8, 7}, 1, 1024},
		{[]layout.NodeID{7, 15}, 1, 9 * 512}, // saves more than a quarter of the time
		{[]layout.NodeID{7, 16}, 2, 1024},    // or less
		{[]layout.NodeID{0, 19999}, 2, 1024},
		// Reads of 256 KiB at most, without the gaps between them.
		{third(3001), 8, 2987 * 512},
		// A gap of half of the rows' bytes.
		{far(7, 9), 102, 102 * 512},
		// Of a tenth, as large as it may be; and larger.
		{far(run(0, 10, 11)...), 101, 112 * 512},
		{far(run(0, 9, 10)...), 102, 110 * 512},
		// A gap of 2 KiB, and a sector more.
		{far(run(0, 40, 44)...), 101, 145 * 512},
		{far(run(0, 50, 55)...), 102, 151 * 512},
		// Too little is left for the second gap.
		{far(run(0, 18, 19, 21)...), 102, 121 * 512},
	} {
		s, dev := layouttest.Build(t, vfs.NewMem(), "s", g), layouttest.Device(t)
		rows, err := rowfile.Open(context.Background(), s, dev, s.Meta().Features[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		before := dev.Stats().Reads
		out := make([]float32, len(c.nodes)*128)
		if err := rows.Gather(context.Background(), c.nodes, nil, out); err != nil {
			t.Fatal(err)
		}
		if n := dev.Stats().Reads - before; n != c.reads || rows.BytesRead() != c.bytes {
			t.Errorf("nodes %v of %d: %d reads of %d bytes in all, want %d of %d",
				c.nodes[:min(60, len(c.nodes))], len(c.nodes), n,
				rows.BytesRead(), c.reads, c.bytes)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRowsLabels(t *testing.T) {
	g := layouttest.Graph{Nodes: 3000, Classes: layouttest.ClassNames(3)}
	for v := range g.Nodes {
		g.Labels = append(g.Labels, int32(v%4-1))
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	rows, err := rowfile.Open(context.Background(), s, layouttest.Device(t), s.Meta().Labels.Rows,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int32, g.Nodes)
	if err := rows.ScanRaw(context.Background(), 0, g.Nodes, mem.BytesOf(out)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out, g.Labels) {
		t.Error("labels differ")
	}
	err = rows.GatherRaw(context.Background(), []layout.NodeID{2, 0}, nil, mem.BytesOf(out[:2]))
	if err != nil || out[0] != 1 || out[1] != -1 {
		t.Errorf("labels of 2 and 0 are %v: %v", out[:2], err)
	}
	if err := rows.Gather(context.Background(), []layout.NodeID{2}, nil,
		make([]float32, 1)); err == nil {
		t.Error("class labels were read as floats")
	}
	if err := rows.Scan(context.Background(), 2999, 2, make([]float32, 2)); err == nil {
		t.Error("scan beyond the last row")
	}
	if err := rows.GatherRaw(context.Background(), []layout.NodeID{3000}, nil,
		make([]byte, 4)); err == nil {
		t.Error("gather beyond the last row")
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

func TestRowsWriterRefuses(t *testing.T) {
	spec := rowfile.Spec{Name: "x", Path: "features/x.rows", DType: "f16", Dim: 2, Nodes: 1}
	w, err := rowfile.NewWriter(vfs.NewMem(), "x", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddF32([]float32{1, 70000}); err == nil {
		t.Error("70000 was accepted as f16")
	}
	if err := w.Add([]byte{1}); err == nil {
		t.Error("a short row was accepted")
	}
	if _, _, err := w.Finish(); err == nil {
		t.Error("too few rows were accepted")
	}
	w, err = rowfile.NewWriter(vfs.NewMem(), "x", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddF32([]float32{1, float32(math.Inf(1))}); err != nil {
		t.Error(err)
	}
	if err := w.AddF32([]float32{1, 2}); err == nil {
		t.Error("too many rows were accepted")
	}
	for _, bad := range []rowfile.Spec{{DType: "f64", Dim: 2, Path: "x.rows"},
		{DType: "f32", Path: "x.rows"}, {DType: "f32", Dim: 2, Path: "x.bin"}} {
		if _, err := rowfile.NewWriter(vfs.NewMem(), "x", bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// TestRowsDamageStops holds that no read goes on over a flipped bit, and that the error names the
// file and block.
func TestRowsDamageStops(t *testing.T) {
	g := layouttest.Random(5, 3000, 30000)
	g.Dim, g.Features, g.NoCatalog = 100, layouttest.Features(3000, 100), true
	all := make([]layout.NodeID, g.Nodes)
	for i := range all {
		all[i] = layout.NodeID(i)
	}
	ctx, r := context.Background(), rand.New(rand.NewPCG(6, 6))
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", g)
	for range 60 {
		m := s.Meta().Files[r.IntN(len(s.Meta().Files))]
		if m.Kind != layout.KindRows && m.Kind != layout.KindSums {
			continue
		}
		off, bit := r.Int64N(m.Size), byte(1)<<r.IntN(8)
		layouttest.Flip(t, fs, s.Path(m.Path), off, bit)
		var bad *layout.CorruptionError
		err := readRows(ctx, t, s, false, all)
		// With checksums on disk, the rest of the pages that they are in is not looked at.
		with := readRows(ctx, t, s, true, all)
		if with != nil && (!errors.As(with, &bad) || bad.Path != m.Path) ||
			with == nil && m.Kind == layout.KindRows {
			t.Errorf("bit flipped at %d of %s, checksums on disk: %v", off, m.Path, with)
		}
		layouttest.Flip(t, fs, s.Path(m.Path), off, bit)
		if !errors.As(err, &bad) || !errors.Is(err, layout.ErrCorrupt) || bad.Path != m.Path {
			t.Fatalf("bit flipped at %d of %s: %v", off, m.Path, err)
		}
		if bad.Block > 0 && (off < bad.Offset || off >= bad.Offset+4096) {
			t.Fatalf("bit flipped at %d, error names offset %d", off, bad.Offset)
		}
	}
}

func readRows(ctx context.Context, t testing.TB, s *layout.Store, onDisk bool,
	nodes []layout.NodeID) error {
	rows, err := rowfile.OpenWith(ctx, s, layouttest.Device(t), s.Meta().Features[0], onDisk, nil)
	if err != nil {
		return err
	}
	m := rows.Meta()
	out := make([]byte, len(nodes)*m.RowBytes)
	err = rows.ScanRaw(ctx, 0, len(nodes), out)
	if err == nil {
		err = rows.GatherRaw(ctx, nodes, nil, out)
	}
	return errors.Join(err, rows.Close())
}
