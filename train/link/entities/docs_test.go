package entities

import (
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"
)

// TestDocumentedPartitions compares docs/format/partitions.md with the code.
func TestDocumentedPartitions(t *testing.T) {
	page := expect.Page(t, "../../../docs/format", "partitions.md")
	expect.Values(t, page, map[string]any{"kind of a partition": fileKind,
		"kind of a record": recordKind, "layout of partitions": fileLayout})
	h := header{part: 2, generation: 3, parts: 4, graph: 50, nodes: 13, columns: 6, first: 1}
	got, err := codec.DecodeHeader(h.encode([16]byte{}), fileKind, [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	expect.HeaderFields(t, page, got.Fields, map[string]uint64{"36/4": fileLayout, "40/4": 2,
		"44/4": 3, "48/4": 4, "52/8": 50, "60/8": 13, "68/4": 6, "72/4": 1, "76/4": 0})
}
