package rowfile_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func BenchmarkRows(b *testing.B) {
	const nodes, dim = 1 << 17, 128
	fs, dir := vfs.Default, b.TempDir()
	w, err := rowfile.NewWriter(fs, fs.PathJoin(dir, "x"),
		rowfile.Spec{Name: "x", Path: "x.rows", DType: "f32", Dim: dim, Nodes: nodes})
	if err != nil {
		b.Fatal(err)
	}
	row := make([]float32, dim)
	for range nodes {
		if err := w.AddF32(row); err != nil {
			b.Fatal(err)
		}
	}
	m, files, err := w.Finish()
	if err != nil {
		b.Fatal(err)
	}
	s := layout.NewStore(fs, dir, &kv.Meta{Nodes: nodes, Files: files})
	rows, err := rowfile.Open(context.Background(), s, layouttest.Device(b), m, nil)
	if err != nil {
		b.Fatal(err)
	}
	list, r := make([]layout.NodeID, 20000), rand.New(rand.NewPCG(7, 7))
	for i := range list {
		list[i] = layout.NodeID(r.Uint64N(nodes))
	}
	out := make([]float32, len(list)*dim)
	b.Run("op=gather", func(b *testing.B) {
		b.SetBytes(int64(len(out)) * 4)
		b.ReportAllocs()
		for b.Loop() {
			if err := rows.Gather(context.Background(), list, nil, out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=scan", func(b *testing.B) {
		b.SetBytes(int64(len(out)) * 4)
		for b.Loop() {
			if err := rows.Scan(context.Background(), 1000, 20000, out); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := rows.Close(); err != nil {
		b.Fatal(err)
	}
}
