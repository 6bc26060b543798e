// Package expect compares what the program does with what tests expect: with pages of docs/format,
// golden files, and a disassembler's reading of machine code.
package expect

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gdb/internal/codec"
)

// Page reads a page; dir leads from the test's package to docs/format.
func Page(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(dir + "/" + name) //lint:os a page of the source
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Section returns the text below a heading of a page.
func Section(t testing.TB, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

var constantRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d+) \\|$")

// Constants compares the constants of a page, rows of name and value, with those of the code.
func Constants(t testing.TB, page string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, m := range constantRow.FindAllStringSubmatch(page, -1) {
		v, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		got[m[1]] = v
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the page says %v, the code %v", got, want)
	}
}

// fieldRow is a row of a table of fields: offset, as a+bn, bytes, and the name of the field.
var fieldRow = regexp.MustCompile(`(?m)^\| (\d+)(?:\+(\d+)n)? \| ([\d or]*) ?\| (\w+)`)

// Fields compares a table of fields with the annotated dump of a block of n entries.
func Fields(t testing.TB, table, dump string, n int) {
	t.Helper()
	rows := fieldRow.FindAllStringSubmatch(table, -1)
	if len(rows) < 4 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		a, _ := strconv.Atoi(row[1])
		b, _ := strconv.Atoi(row[2])
		off := a + b*n
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^0*%d-0*(\d+): +\S+ +%s\b`, off, row[4]))
		m := line.FindStringSubmatch(dump)
		if m == nil {
			t.Errorf("no field %q at offset %d in\n%s", row[4], off, dump)
			continue
		}
		if end, _ := strconv.Atoi(m[1]); row[3] != "" &&
			!strings.Contains(" "+row[3]+" ", fmt.Sprintf(" %d ", end-off)) {
			t.Errorf("field %q has %d bytes, not %s", row[4], end-off, row[3])
		}
	}
}

// Golden compares text with a file of testdata, or with rewrite replaces that.
func Golden(t testing.TB, name, text string, rewrite bool) {
	t.Helper()
	path := "testdata/" + name
	if rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //lint:os a golden file
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //lint:os a golden file
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; if the format is meant to change, give it a new version and run "+
			"with -rewrite. Got:\n%s", path, text)
	}
}

// Values compares the tables "constant | value" of a page with the code, both ways: every constant
// of the page is checked, and every one that is checked is on the page.
func Values(t testing.TB, page string, want map[string]any) {
	t.Helper()
	got, inTable := map[string]string{}, false
	for line := range strings.Lines(page) {
		f := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case len(f) != 2:
			inTable = false
		case strings.TrimSpace(f[0]) == "constant":
			inTable = true
		case inTable && !strings.HasPrefix(f[0], "-"):
			got[strings.TrimSpace(f[0])] = strings.Trim(strings.TrimSpace(f[1]), "`")
		}
	}
	for what, value := range want {
		if got[what] != fmt.Sprint(value) {
			t.Errorf("%s is %q, the code has %v", what, got[what], value)
		}
		delete(got, what)
	}
	for what := range got {
		t.Errorf("%s is not compared with the code", what)
	}
}

// HeaderFields compares the fields of a file's header with want, which maps places, "offset/bytes",
// to numbers, and checks that the page lists these places.
func HeaderFields(t testing.TB, page string, fields []byte, want map[string]uint64) {
	t.Helper()
	h := codec.Header{Kind: "TEST", Fields: fields}.Encode()
	for place, number := range want {
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
		if got != number || !strings.Contains(page, row) {
			t.Errorf("field at %d is %d, want %d; row %q is there: %t", off, got, number, row,
				strings.Contains(page, row))
		}
	}
}
