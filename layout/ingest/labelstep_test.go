package ingest

import (
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/ingest/npy"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustArray writes an array file.
func mustArray[T mem.Scalar](t *testing.T, fs vfs.FS, path, descr string, v []T, shape ...uint64) {
	t.Helper()
	w, err := npy.Create(fs, path, descr, shape...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(mem.BytesOf(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMultiHotZeros: in rows of zeros and ones, a node of no class is labeled all the same; only -1
// and NaN are no label.
func TestMultiHotZeros(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	mustArray(t, fs, "d/edges.npy", "<i8", []uint64{0, 1, 1, 2, 2, 3}, 3, 2)
	const none = ^uint64(0)
	mustArray(t, fs, "d/labels.npy", "<i8", []uint64{1, 1, 0, 0, none, none, 0, 1}, 4, 2)
	meta, err := Run(t.Context(), fs, Options{Sources: []string{"d"}, Out: "s", Memory: 128 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if l := meta.Labels; l == nil || l.Labeled != 3 ||
		!slices.Equal(l.Classes, []string{"0", "1"}) ||
		!slices.Equal(l.ClassCounts, []uint64{1, 2}) {
		t.Errorf("labels %+v, want 3 labeled, of class 0 one and of class 1 two", l)
	}
	r := open(t, fs, "s")
	set, err := r.store.Split(t.Context(), "labeled")
	if err != nil || !slices.Equal(set.ToArray(), []uint32{0, 1, 3}) {
		t.Errorf("labeled %v, %v, want 0, 1 and 3", set, err)
	}
	if got := r.raw(meta.Labels.Rows)[:4]; !slices.Equal(got, []byte{3, 0, 0, 2}) {
		t.Errorf("rows %v", got)
	}
}
