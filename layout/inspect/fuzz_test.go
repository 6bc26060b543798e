package inspect

import (
	"context"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/edgefile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FuzzDump prints any bytes as any kind of block.
func FuzzDump(f *testing.F) {
	h := codec.Header{Kind: layout.KindRows, Fields: []byte{1, 0, 0, 0}}
	f.Add(uint8(4), uint8(0), h.Encode())
	f.Add(uint8(0), uint8(1), []byte("....GTBK"))
	kinds := []string{layout.KindTopologyIn, layout.KindIndexOut, layout.KindSums, ids.ForwardKind,
		layout.KindRows, edgefile.Kind("train")}
	f.Fuzz(func(t *testing.T, kind, block uint8, b []byte) {
		b = append(make([]byte, 0, 4096), b[:min(len(b), 4096)]...)
		d := dumper{ctx: context.Background(), b: b[:cap(b)], kind: kinds[int(kind)%len(kinds)],
			s: layout.NewStore(vfs.NewMem(), "", &kv.Meta{BlockBytes: 4096}),
			f: &layout.File{Path: "x"}}
		d.Dump = codec.NewDump(d.b)
		if d.kind == layout.KindRows {
			block = 0 // pages of rows need their checksums
		}
		if err := d.block(int64(block)); err != nil {
			t.Fatal(err)
		}
		if d.Remaining() != 0 {
			t.Fatalf("%d bytes were not printed", d.Remaining())
		}
	})
}

// TestDocumentedExample holds that the block printed in the documentation is the golden one.
func TestDocumentedExample(t *testing.T) {
	example := expect.Section(t, expect.Page(t, "../../docs/format", "topology.md"),
		"## A worked example")
	_, example, _ = strings.Cut(example, "```\n")
	example, _, ok := strings.Cut(example, "```")
	if !ok || !strings.Contains(expect.Page(t, "testdata", "dump"), example) {
		t.Errorf("testdata/dump does not hold the block of docs/format/topology.md:\n%s", example)
	}
}
