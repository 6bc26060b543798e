package rowfile_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// storedIn reads rows to memory of which room takes a part, and returns them.
func storedIn(t *testing.T, r *rowfile.Reader, nodes []layout.NodeID, dim int,
	part func(bytes int64) int64) (rows []float32, read bool) {
	t.Helper()
	at, asked := make([]uint32, len(nodes)), 0
	var memory *mem.Arena
	read, err := r.GatherStored(context.Background(), nodes, at, func(read,
		bytes int64) ([]byte, error) {
		if asked++; read > bytes {
			t.Errorf("%d bytes are read to %d", read, bytes)
		}
		n := part(bytes)
		if n == 0 {
			return nil, nil
		}
		var err error
		memory, err = mem.NewArena(nil, "rows", n)
		return memory.Bytes(), err
	})
	if err != nil || asked > 1 {
		t.Fatalf("room was asked for %d times, %v", asked, err)
	}
	if read {
		x := mem.View[float32](memory.Bytes())
		for _, first := range at {
			rows = append(rows, x[first:int(first)+dim]...)
		}
	}
	if memory != nil {
		if err := memory.Free(); err != nil {
			t.Error(err)
		}
	}
	return rows, read
}

// TestGatherStored: rows that stay where they are read are those that Gather copies.
func TestGatherStored(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	whole := func(bytes int64) int64 { return bytes }
	for _, s := range []struct{ nodes, dim, some int }{{900, 1, 300}, {900, 3, 900}, {700, 100, 90},
		{6000, 128, 5000}, {3000, 256, 20}, {2000, 1100, 1500}, {5, 3000, 5}} {
		g := layouttest.Graph{Nodes: s.nodes, Dim: s.dim}
		g.Features = layouttest.Features(s.nodes, s.dim)
		store := layouttest.Build(t, vfs.NewMem(), "s", g)
		for _, onDisk := range []bool{false, true} {
			budget := mem.NewBudget(0)
			rows := mustRowsWith(t, store, onDisk, budget)
			nodes, want := make([]layout.NodeID, s.some), []float32{}
			for i := range nodes {
				nodes[i] = layout.NodeID(rnd.IntN(s.nodes))
				want = append(want, g.Features[int(nodes[i])*s.dim:][:s.dim]...)
			}
			if got, read := storedIn(t, rows, nodes, s.dim, whole); !read ||
				!slices.Equal(got, want) {
				t.Errorf("%+v, sums on disk %v: read %v, other rows", s, onDisk, read)
			}
			for _, part := range []func(int64) int64{func(int64) int64 { return 0 },
				func(int64) int64 { return 512 }} {
				if _, read := storedIn(t, rows, nodes, s.dim, part); read && s.some > 1 &&
					s.dim > 100 {
					t.Errorf("%+v: rows were read without room", s)
				}
			}
			got := make([]float32, len(want))
			if err := rows.Gather(context.Background(), nodes, nil, got); err != nil ||
				!slices.Equal(got, want) {
				t.Errorf("%+v: Gather has other rows after it, %v", s, err)
			}
			rows.NormalizeRows()
			if _, read := storedIn(t, rows, nodes, s.dim, whole); read {
				t.Errorf("%+v: rows that are normalized were left as they are stored", s)
			}
			if err := rows.Close(); err != nil || budget.Used() != 0 {
				t.Errorf("after close: %v, %d bytes are counted", err, budget.Used())
			}
		}
	}
}

// TestGatherStoredDamaged: rows that stay where they are read were verified.
func TestGatherStoredDamaged(t *testing.T) {
	fs := vfs.NewMem()
	g := layouttest.Graph{Nodes: 300, Dim: 128}
	g.Features = layouttest.Features(g.Nodes, g.Dim)
	s := layouttest.Build(t, fs, "s", g)
	rows := mustRows(t, s, nil)
	layouttest.Flip(t, fs, s.Path(s.Meta().Features[0].Path), layout.PageBytes+200*512+7, 1)
	memory, err := mem.NewArena(nil, "rows", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at := make([]uint32, 2)
	_, err = rows.GatherStored(context.Background(), []layout.NodeID{3, 200}, at,
		func(int64, int64) ([]byte, error) { return memory.Bytes(), nil })
	if err == nil {
		t.Error("a row that is damaged was taken")
	}
	if err := memory.Free(); err != nil {
		t.Error(err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}
