package layout

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"gdb/internal/codec"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustRead(t *testing.T, path string) string {
	t.Helper()
	f, err := vfs.Default.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocumentedConstants compares the tables of docs/format with the code, both ways: every
// constant of a page is checked, and every one that is checked is on the page.
func TestDocumentedConstants(t *testing.T) {
	pages := map[string]map[string]any{
		"topology.md": {
			"kind of in-lists": KindTopologyIn, "kind of out-lists": KindTopologyOut,
			"kind of an in-index": KindIndexIn, "kind of an out-index": KindIndexOut,
			"header bytes": codec.HeaderBytes, "block header bytes": blockHeader,
			"least block bytes": blockMin, "most block bytes": blockMax,
			"default block bytes": blockDefault, "block layout": topologyLayout,
			"page bytes": pageBytes, "blocks in a page": indexPerPage,
		},
		"rows.md": {
			"kind of rows": KindRows, "kind of checksums": KindSums,
			"header bytes": codec.HeaderBytes, "row layout": rowsLayout,
			"share of a page that may be wasted, one of": wasteShare,
			"least bytes of a checksum":                  sumLeast,
			"most bytes of a checksum":                   sumMost,
			"checksums in a page":                        sumsPerPage,
			"most bytes of a row":                        rowBytesMax,
			"largest gap of a gather, bytes":             gatherGapMost,
			"bytes of rows for one of a gather's gaps":   gatherShare,
			"largest gap of a sweep, bytes":              sweepGapMost,
			"largest merged read, bytes":                 extentMost,
			"bytes of a batch of reads":                  rowsBufferBytes,
			"batches at once":                            rowsBuffers,
		},
	}
	for name, want := range pages {
		got := constants(mustRead(t, "../docs/format/"+name))
		for what, value := range want {
			if got[what] != fmt.Sprint(value) {
				t.Errorf("%s: %s is %q, the code has %v", name, what, got[what], value)
			}
			delete(got, what)
		}
		for what := range got {
			t.Errorf("%s: %s is not compared with the code", name, what)
		}
	}
}

// constants reads the tables with the heading "constant | value".
func constants(page string) map[string]string {
	found, in := map[string]string{}, false
	for line := range strings.Lines(page) {
		f := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case len(f) != 2:
			in = false
		case strings.TrimSpace(f[0]) == "constant":
			in = true
		case in && !strings.HasPrefix(f[0], "-"):
			found[strings.TrimSpace(f[0])] = strings.Trim(strings.TrimSpace(f[1]), "`")
		}
	}
	return found
}

// TestDocumentedExample holds that the block printed in the documentation is the golden one.
func TestDocumentedExample(t *testing.T) {
	_, example, _ := strings.Cut(mustRead(t, "../docs/format/topology.md"), "## A worked example")
	_, example, _ = strings.Cut(example, "```\n")
	example, _, ok := strings.Cut(example, "```")
	if !ok || !strings.Contains(mustRead(t, "testdata/dump"), example) {
		t.Errorf("testdata/dump does not hold the block of docs/format/topology.md:\n%s", example)
	}
}

// TestDocumentedOffsets reads the fields of headers at the offsets of the documentation.
func TestDocumentedOffsets(t *testing.T) {
	for _, c := range []struct {
		page   string
		fields []byte
		want   map[string]uint64
	}{
		{"topology.md", (&topologyFields{blockBytes: 8192, types: true, times: true,
			nodes: 77}).encode(),
			map[string]uint64{"36/4": 1, "40/4": 8192, "44/4": 5, "48/8": 77}},
		{"rows.md", mustFields(t), map[string]uint64{"36/4": 1, "40/4": 602, "44/4": 2408,
			"48/4": 12288, "52/4": 512, "56/8": 9}},
	} {
		h := codec.Header{Kind: "TEST", Fields: c.fields}.Encode()
		page := mustRead(t, "../docs/format/"+c.page)
		for place, want := range c.want {
			var off, size int
			if _, err := fmt.Sscanf(place, "%d/%d", &off, &size); err != nil {
				t.Fatal(err)
			}
			d := codec.NewDec(h[off:])
			got := uint64(d.U32())
			if size == 8 {
				got |= uint64(d.U32()) << 32
			}
			row := fmt.Sprintf("| %d | %d |", off, size)
			if got != want || !strings.Contains(page, row) {
				t.Errorf("%s: field at %d is %d, want %d; row %q is there: %t", c.page, off, got,
					want, row, strings.Contains(page, row))
			}
		}
	}
}

func mustFields(t *testing.T) []byte {
	t.Helper()
	m, err := NewRowsMeta("x", "x.rows", F32, 602)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newRowsShape(m, 9)
	if err != nil {
		t.Fatal(err)
	}
	return s.fields()
}
