package edgefile

import (
	"testing"

	"gdb/internal/expect"
	"gdb/layout"
)

// TestDocumentedEdges compares docs/format/edges.md with the code.
func TestDocumentedEdges(t *testing.T) {
	page := expect.Page(t, "../../docs/format", "edges.md")
	spec := Spec{Kind: Kind("train"), Nodes: 9, Types: 7}
	plain := Spec{}
	expect.Values(t, page, map[string]any{
		"kind of train": Kind("train"), "kind of val": Kind("val"), "kind of test": Kind("test"),
		"layout of edges": fileLayout, "bytes of a block": layout.PageBytes,
		"bytes before the edges of a block": blockHead,
		"bytes of an edge with a type":      EdgeBytes(true),
		"bytes of an edge without":          EdgeBytes(false),
		"edges of a full block, with types": spec.PerBlock(),
		"edges of a full block, without":    plain.PerBlock(),
	})
	expect.HeaderFields(t, page, spec.fields(), map[string]uint64{"36/4": fileLayout, "40/8": 9,
		"48/4": 7})
}
