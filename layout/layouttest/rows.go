package layouttest

import (
	"encoding/binary"
	"math"
	"testing"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// RowFile writes a file of n rows in memory, of dim values of a type each, and opens it on dev, or
// on a device of its own if dev is nil. row returns the bytes of a row. The file is closed when the
// test ends.
func RowFile(t testing.TB, dev blockdev.Device, dtype string, dim, n int,
	row func(v layout.NodeID) []byte) *rowfile.Reader {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	meta, fs := kv.Meta{UUID: kv.UUID{9}, Nodes: uint64(n)}, vfs.NewMem()
	w, err := rowfile.NewWriter(fs, "rows", rowfile.Spec{UUID: meta.UUID, Name: "rows",
		Path: "rows.rows", DType: dtype, Dim: dim, Nodes: meta.Nodes})
	must(err)
	for v := range layout.NodeID(n) {
		must(w.Add(row(v)))
	}
	rows, _, err := w.Finish()
	must(err)
	if dev == nil {
		dev = Device(t)
	}
	r, err := rowfile.Open(t.Context(), layout.NewStore(fs, "", &meta), dev, rows, nil)
	must(err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// FloatFile does what RowFile does for rows of float32, whose values value returns.
func FloatFile(t testing.TB, dev blockdev.Device, dim, n int,
	value func(v layout.NodeID, j int) float32) *rowfile.Reader {
	t.Helper()
	return RowFile(t, dev, rowfile.F32, dim, n, func(v layout.NodeID) []byte {
		var row []byte
		for j := range dim {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(value(v, j)))
		}
		return row
	})
}

// WordFile does what RowFile does for rows of one word, which word returns: a class, or the bits of
// a number.
func WordFile(t testing.TB, dev blockdev.Device, n int,
	word func(v layout.NodeID) uint32) *rowfile.Reader {
	t.Helper()
	return RowFile(t, dev, rowfile.I32, 1, n, func(v layout.NodeID) []byte {
		return binary.LittleEndian.AppendUint32(nil, word(v))
	})
}
