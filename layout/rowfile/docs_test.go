package rowfile

import (
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"
	"gdb/layout"
)

// TestDocumentedRows compares docs/format/rows.md with the code.
func TestDocumentedRows(t *testing.T) {
	page := expect.Page(t, "../../docs/format", "rows.md")
	expect.Values(t, page, map[string]any{
		"kind of rows": layout.KindRows, "kind of checksums": layout.KindSums,
		"header bytes": codec.HeaderBytes, "row layout": rowsLayout,
		"row layout with sections": sectionsLayout, "bytes of a section's fields": sectionFields,
		"share of a page that may be wasted, one of": wasteShare,
		"least bytes of a checksum":                  sumLeast,
		"most bytes of a checksum":                   sumMost,
		"checksums in a page":                        SumsPerPage,
		"most bytes of a row":                        rowBytesMax,
		"largest gap of a gather, bytes":             gatherGapMost,
		"bytes of rows for one of a gather's gaps":   gatherShare,
		"largest gap of rows that lie close, bytes":  denseGapMost,
		"largest gap of a sweep, bytes":              sweepGapMost,
		"largest merged read, bytes":                 extentMost,
		"bytes of a batch of reads":                  rowsBufferBytes,
		"batches at once":                            rowsBuffers,
	})
	m, err := NewMeta("x", "x.rows", F32, 602)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewShape(m, 9)
	if err != nil {
		t.Fatal(err)
	}
	expect.HeaderFields(t, page, s.fields(), map[string]uint64{"36/4": 1, "40/4": 602,
		"44/4": 2408, "48/4": 12288, "52/4": 512, "56/8": 9})
}
