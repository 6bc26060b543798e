package listfile

import (
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"
	"gdb/layout"
)

// TestDocumentedFormat compares docs/format/topology.md with the code.
func TestDocumentedFormat(t *testing.T) {
	page := expect.Page(t, "../../docs/format", "topology.md")
	expect.Values(t, page, map[string]any{
		"kind of in-lists": layout.KindTopologyIn, "kind of out-lists": layout.KindTopologyOut,
		"kind of an in-index": layout.KindIndexIn, "kind of an out-index": layout.KindIndexOut,
		"header bytes": codec.HeaderBytes, "block header bytes": blockHeaderBytes,
		"least block bytes": BlockMin, "most block bytes": blockMax,
		"default block bytes": blockDefault, "block layout": cellLayout,
		"page bytes": layout.PageBytes, "blocks in a page": IndexPerPage,
	})
	fields := Fields{Version: cellLayout, BlockBytes: 8192, types: true, times: true, Nodes: 77}
	expect.HeaderFields(t, page, fields.encode(),
		map[string]uint64{"36/4": 3, "40/4": 8192, "44/4": 5, "48/8": 77})
}
