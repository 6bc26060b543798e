package catalog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"
	"gdb/kv"
)

const docsDir = "../../docs/format"

func TestDocConstants(t *testing.T) {
	expect.Constants(t, expect.Page(t, docsDir, "catalog.md"), map[string]int{
		"FormatVersion": kv.FormatVersion, "TypedVersion": kv.TypedVersion,
		"sealVersion": sealVersion, "tidyEvery": tidyEvery,
		"chunkBytes": chunkBytes, "digestOpenBytes": digestOpenBytes, "nameBytesMax": nameBytesMax})
}

// TestDocFields compares the table of the seal's fields with an annotated dump.
func TestDocFields(t *testing.T) {
	page := expect.Page(t, docsDir, "catalog.md")
	expect.Fields(t, expect.Section(t, page, "## SEAL"), dumpSeal(), 0)
}

// dumpSeal annotates an encoded seal.
func dumpSeal() string {
	s := seal{uuid: kv.UUID{1}, generation: 7, files: []sealedFile{{"000004.sst", 1234, 5}}}
	b := s.encode()
	d, c := codec.NewDump(b), codec.NewDec(b)
	d.Field(4, "crc32c %08x", c.U32())
	d.Field(4, "magic %s", c.Bytes(4))
	d.Field(4, "version %d", c.U32())
	d.Field(16, "uuid %x", c.Bytes(16))
	d.Field(8, "generation %d", c.U64())
	d.Field(4, "count %d", c.U32())
	d.Field(d.Remaining(), "files")
	return d.String()
}

// TestDocRecords compares the table of keys and the lists of fields with the code.
func TestDocRecords(t *testing.T) {
	doc := expect.Page(t, docsDir, "catalog.md")
	for _, key := range []string{keyHold, keyIndex, keyMeta, keySnapshot,
		keyProfile, keyRun, keySet, keyChunk} {
		if row := fmt.Sprintf("\n| `%c` | %d |", key[0], key[1]); !strings.Contains(doc, row) {
			t.Errorf("catalog.md has no row %q", row)
		}
	}
	for _, v := range []any{kv.Meta{}, kv.NodeTypeMeta{}, kv.KeysMeta{}, kv.RelationMeta{},
		kv.FeatureEncoding{}, kv.EncodedColumn{},
		kv.EdgeTable{}, kv.ReverseRows{}, kv.TableColumn{}, kv.FeatureAt{}, kv.IDsMeta{},
		kv.RowsMeta{}, kv.RowsSection{}, kv.ColumnMeta{},
		kv.LabelsMeta{}, kv.SplitMeta{}, kv.EdgeSplitMeta{}, kv.Partition{}, kv.GraphStats{},
		kv.SourceMeta{}, kv.FileMeta{}, kv.RunMeta{},
		kv.SnapshotMeta{}, kv.HoldMeta{}, kv.IndexMeta{}} {
		typ := reflect.TypeOf(v)
		want := fmt.Sprintf("\n`%v`:\n\n| field | type |\n|---|---|\n", typ)
		for i := range typ.NumField() {
			want += fmt.Sprintf("| `%s` | `%s` |\n", typ.Field(i).Name,
				strings.ReplaceAll(typ.Field(i).Type.String(), "kv.", ""))
		}
		if !strings.Contains(doc+"\n", want+"\n") {
			t.Errorf("catalog.md does not list the fields of %v:\n%s", typ, want)
		}
	}
}
