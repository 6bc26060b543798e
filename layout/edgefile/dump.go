package edgefile

import (
	"fmt"
	"strings"

	"gdb/internal/codec"
)

// dumpEdges is how many edges of a block are printed at most.
const dumpEdges = 12

// DumpFields prints the fields of a header.
func DumpFields(d *codec.Dump, fields []byte) {
	c := codec.NewDec(fields)
	d.Field(4, "layout %d", c.U32())
	d.Field(8, "nodes %d", c.U64())
	d.Field(4, "types %d", c.U32())
}

// DumpBlock prints block n, a page, from after its checksum on.
func DumpBlock(d *codec.Dump, spec Spec, b []byte, n int64) {
	c := codec.NewDec(b[4:])
	d.Field(4, "edges %d", c.U32())
	d.Field(8, "block %d", c.U64())
	var e Edges
	if err := spec.DecodeBlock(b, uint64(n), &e); err != nil {
		d.Note("cannot be decoded: %v", err)
		d.Hex(d.Remaining())
		return
	}
	d.Field(4*e.Len(), "sources:%s", some(e.Src))
	d.Field(4*e.Len(), "destinations:%s", some(e.Dst))
	if e.Rel != nil {
		d.Field(2*e.Len(), "types:%s", some(e.Rel))
	}
	d.Zeros(d.Remaining())
}

// some formats the first of some numbers, and how many there are.
func some[T uint16 | uint32](numbers []T) string {
	var b strings.Builder
	for _, v := range numbers[:min(len(numbers), dumpEdges)] {
		fmt.Fprintf(&b, " %d", v)
	}
	if len(numbers) > dumpEdges {
		fmt.Fprintf(&b, " … (%d in all)", len(numbers))
	}
	return b.String()
}
