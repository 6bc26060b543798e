package ivf

import (
	"testing"

	"gdb/compute/kernel/pq"
	"gdb/internal/codec"
	"gdb/internal/expect"
)

// TestDocumentedIndex compares docs/format/vectors.md with the code.
func TestDocumentedIndex(t *testing.T) {
	page := expect.Page(t, "../../docs/format", "vectors.md")
	expect.Values(t, page, map[string]any{
		"kind": Kind, "version": formatVersion, "header bytes": codec.HeaderBytes,
		"words of a page of tables": pageWords, "bytes of a block": blockBytes,
		"bytes before the groups of a block": blockHead, "vectors of a group": pq.Group,
		"centers of a part": pq.Centers,
	})
}
