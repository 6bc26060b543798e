package kv

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/binfmt"
	"gdb/internal/codec"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../docs/format/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// section returns what stands below a heading.
func section(t *testing.T, doc, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

func TestDocConstants(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"ids.md": {"IDBlockBytes": IDBlockBytes, "MaxIDBytes": MaxIDBytes,
			"forwardEntry": forwardEntry, "reverseEntry": reverseEntry,
			"flagCarried": flagCarried, "flagIndex": flagIndex},
		"catalog.md": {"FormatVersion": FormatVersion, "sealVersion": sealVersion,
			"tidyEvery": tidyEvery, "chunkBytes": chunkBytes, "digestOpenBytes": digestOpenBytes,
			"nameBytesMax": nameBytesMax},
	} {
		got := map[string]int{}
		row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d+) \\|$")
		for _, m := range row.FindAllStringSubmatch(readDoc(t, name), -1) {
			v, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			got[m[1]] = v
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s says %v, the code %v", name, got, want)
		}
	}
}

// fieldRow is a row of a table of fields: offset, as a+bn, bytes, and the name of the field.
var fieldRow = regexp.MustCompile(`(?m)^\| (\d+)(?:\+(\d+)n)? \| ([\d or]*) ?\| (\w+)`)

// TestDocFields compares the tables of fields with the annotated dump of a block each.
func TestDocFields(t *testing.T) {
	for _, c := range []struct{ doc, heading, dump string }{
		{"ids.md", "## Data blocks of ids/forward.ids", dumpOf(t, ForwardKind, 1)},
		{"ids.md", "## Data blocks of ids/reverse.ids", dumpOf(t, ReverseKind, 1)},
		{"ids.md", "## Index blocks", dumpOf(t, ForwardKind, 2)},
		{"ids.md", "## Index blocks", dumpOf(t, ReverseKind, 2)},
		{"ids.md", "## Trailer", dumpOf(t, ForwardKind, 3)},
		{"catalog.md", "## SEAL", dumpSeal()},
	} {
		rows := fieldRow.FindAllStringSubmatch(section(t, readDoc(t, c.doc), c.heading), -1)
		if len(rows) < 4 {
			t.Errorf("%s %s: %d rows", c.doc, c.heading, len(rows))
		}
		for _, row := range rows {
			const n = 5 // entries of the block that is dumped
			a, _ := strconv.Atoi(row[1])
			b, _ := strconv.Atoi(row[2])
			off := a + b*n
			line := regexp.MustCompile(fmt.Sprintf(`(?m)^0*%d-0*(\d+): +\S+ +%s\b`, off, row[4]))
			m := line.FindStringSubmatch(c.dump)
			if m == nil {
				t.Errorf("%s %s: no field %q at offset %d in\n%s", c.doc, c.heading, row[4], off,
					c.dump)
				continue
			}
			if end, _ := strconv.Atoi(m[1]); row[3] != "" &&
				!strings.Contains(" "+row[3]+" ", fmt.Sprintf(" %d ", end-off)) {
				t.Errorf("%s %s: field %q has %d bytes, not %s", c.doc, c.heading, row[4], end-off,
					row[3])
			}
		}
	}
}

// dumpOf returns a block of the golden dump of a dictionary file.
func dumpOf(t *testing.T, kind string, block int) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + kind)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut("\n"+string(b), fmt.Sprintf("\nblock %d\n", block))
	text, _, _ = strings.Cut(text, "block ")
	return text
}

// dumpSeal annotates an encoded seal.
func dumpSeal() string {
	s := seal{uuid: UUID{1}, generation: 7, files: []sealedFile{{"000004.sst", 1234, 5}}}
	b := s.encode()
	d, c := binfmt.New(b), codec.NewDec(b)
	d.Field(4, "crc32c %08x", c.U32())
	d.Field(4, "magic %s", c.Bytes(4))
	d.Field(4, "version %d", c.U32())
	d.Field(16, "uuid %x", c.Bytes(16))
	d.Field(8, "generation %d", c.U64())
	d.Field(4, "count %d", c.U32())
	d.Field(d.Rest(), "files")
	return d.String()
}

// TestDocBlock compares the block printed in the page with the golden dump.
func TestDocBlock(t *testing.T) {
	text := section(t, readDoc(t, "ids.md"), "## A block")
	if dump := dumpOf(t, ReverseKind, 1); !strings.Contains(text, "```\n"+dump+"```") {
		t.Errorf("the block in ids.md is not\n%s", dump)
	}
}

// TestDocRecords compares the table of keys and the lists of fields with the code.
func TestDocRecords(t *testing.T) {
	doc := readDoc(t, "catalog.md")
	for _, key := range []string{keyMeta, keyProfile, keyRun, keySet, keyChunk} {
		if row := fmt.Sprintf("\n| `%c` | %d |", key[0], key[1]); !strings.Contains(doc, row) {
			t.Errorf("catalog.md has no row %q", row)
		}
	}
	for _, v := range []any{Meta{}, IDsMeta{}, RowsMeta{}, LabelsMeta{}, SplitMeta{}, Partition{},
		GraphStats{}, SourceMeta{}, FileMeta{}, RunMeta{}} {
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
