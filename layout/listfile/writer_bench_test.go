package listfile_test

import (
	"testing"

	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func BenchmarkTopologyWriter(b *testing.B) {
	w, err := listfile.NewWriter(vfs.Default, vfs.Default.PathJoin(b.TempDir(), "in"),
		listfile.Spec{Nodes: 1 << 32})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		e := listfile.Edge{Nbr: layout.NodeID(n % 16)}
		if err := w.AddEdge(layout.NodeID(n/16), e); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if _, err := w.Finish(); err != nil {
		b.Fatal(err)
	}
}
