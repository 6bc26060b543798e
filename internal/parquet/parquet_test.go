package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	reader "github.com/parquet-go/parquet-go"
)

var columns = []Column{{"id", String}, {"n", Int64}, {"p:a", Float32}, {"score", Float64}}

// write makes a file of rows; row i has values that tell i.
func write(t *testing.T, rows int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, columns)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		w.AddFloat64(3, float64(i)/3)
		w.AddString(0, strings.Repeat("é", i%4)+fmt.Sprint(i))
		w.AddInt64(1, int64(i)-5)
		w.AddFloat32(2, float32(i)/7)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestReadBack reads what was written with a full implementation of the format.
func TestReadBack(t *testing.T) {
	for _, rows := range []int{0, 1, 1000, GroupRows, GroupRows + 1, 2*GroupRows + 77} {
		data := write(t, rows)
		f, err := reader.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		if f.NumRows() != int64(rows) {
			t.Fatalf("the file says %d rows, want %d", f.NumRows(), rows)
		}
		if kind := fmt.Sprint(f.Schema().Fields()[0].Type()); kind != "STRING" {
			t.Fatalf("column id is of type %s", kind)
		}
		i := 0
		for _, g := range f.RowGroups() {
			i = checkGroup(t, g, i)
		}
		if i != rows {
			t.Fatalf("read %d rows, want %d", i, rows)
		}
	}
}

func checkGroup(t *testing.T, g reader.RowGroup, i int) int {
	t.Helper()
	rows := g.Rows()
	defer rows.Close()
	buf := make([]reader.Row, 100)
	for {
		n, err := rows.ReadRows(buf)
		for _, r := range buf[:n] {
			id := strings.Repeat("é", i%4) + fmt.Sprint(i)
			if r[0].String() != id || r[1].Int64() != int64(i)-5 ||
				r[2].Float() != float32(i)/7 ||
				math.Float64bits(r[3].Double()) != math.Float64bits(float64(i)/3) {
				t.Fatalf("row %d is %v", i, r)
			}
			i++
		}
		if errors.Is(err, io.EOF) {
			return i
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoColumnsOfOneName(t *testing.T) {
	_, err := NewWriter(io.Discard, []Column{{"a", String}, {"a", Int64}})
	if err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Fatalf("error %v", err)
	}
}

// fullDisk fails after some bytes.
type fullDisk struct{ room int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestWriteError(t *testing.T) {
	three := func(w io.Writer) error {
		p, err := NewWriter(w, columns)
		if err != nil {
			return err
		}
		for range 3 {
			p.AddString(0, "x")
			p.AddInt64(1, 1)
			p.AddFloat32(2, 1)
			p.AddFloat64(3, 1)
			if err := p.EndRow(); err != nil {
				return err
			}
		}
		return p.Close()
	}
	var whole bytes.Buffer
	if err := three(&whole); err != nil {
		t.Fatal(err)
	}
	for room := range whole.Len() {
		if err := three(&fullDisk{room}); err == nil {
			t.Fatalf("no error with room for %d of %d bytes", room, whole.Len())
		}
	}
}
