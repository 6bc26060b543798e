package columnfile

import (
	"testing"

	"gdb/internal/expect"
	"gdb/layout"
)

// TestDocumentedColumns compares docs/format/columns.md with the code.
func TestDocumentedColumns(t *testing.T) {
	page := expect.Page(t, "../../docs/format", "columns.md")
	expect.Values(t, page, map[string]any{
		"kind of columns": layout.KindColumn, "layout of columns": fileLayout,
		"layout of columns whose values may be in features":             sharedLayout,
		"largest integer of a decimal number that is found in features": sharedMost,
		"bytes of the rows of features that are kept":                   windowBytes,
		"rows from which on a read of features is of 8192":              windowLeast,
		"blocks in features for each whose bounds are compared":         checkShared,
		"bytes before the payload of a block":                           blockHead,
		"most rows of a block":                                          rowsMost,
		"bytes that a block aims at":                                    blockBytes,
		"bytes that a compressed block has before":                      zippedBytes,
		"first rows that choose the rows of a block, at most":           sampleRows,
		"or their bytes":                         sampleBytes,
		"most bytes of a payload":                rawMost,
		"blocks that a page describes":           pageEntries,
		"bytes before the blocks of a page":      pageHead,
		"bytes of a block in a page":             entryBytes,
		"most strings of a dictionary":           dictMost,
		"most bytes of a dictionary":             dictBytesMost,
		"compression saves at least one part of": compressShare,
		"largest gap of a read, bytes":           gapMost,
		"largest read, bytes":                    extentMost,
		"bytes of a read buffer":                 partsOf * partBytes,
		"read buffers at once":                   buffers,
	})
	c := column{}
	c.Type, c.Name, c.Dim = Sparse, "words", 77
	expect.HeaderFields(t, page, c.fields(), map[string]uint64{"36/4": fileLayout, "40/8": 77})
}
