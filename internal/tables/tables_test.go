package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

var columns = []Column{{Name: "id", Kind: String, Width: 20}, {Name: "n", Kind: Int64},
	{Name: "p:a", Kind: Float32}, {Name: "a score", Kind: Float64}}

// writeRows writes a table whose row i has values that tell i.
func writeRows(t *testing.T, extension string, rows int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, extension, columns, uint64(rows))
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		w.String(idOf(i))
		w.Int64(int64(i) - 5)
		w.Float32(float32(i) / 7)
		w.Float64(float64(i) / 3)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func idOf(i int) string { return strings.Repeat("é", i%4) + fmt.Sprint(i) }

func TestParquetReadsBack(t *testing.T) {
	for _, rows := range []int{0, 1, 63, 64, 1000, parquetGroupRows, 2*parquetGroupRows + 77} {
		data := writeRows(t, ".parquet", rows)
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		if f.NumRows() != int64(rows) {
			t.Fatalf("the file says %d rows, want %d", f.NumRows(), rows)
		}
		for i, field := range f.Schema().Fields() {
			if field.Name() != columns[i].Name || !field.Required() {
				t.Fatalf("column %d is %q, want %q, required", i, field.Name(), columns[i].Name)
			}
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

// checkGroup checks the rows of a group, the first of which is row i, and returns the next row.
func checkGroup(t *testing.T, g parquet.RowGroup, i int) int {
	t.Helper()
	rows := g.Rows()
	defer rows.Close()
	buf := make([]parquet.Row, 100)
	for {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			if row[0].String() != idOf(i) || row[1].Int64() != int64(i)-5 ||
				row[2].Float() != float32(i)/7 || row[3].Double() != float64(i)/3 {
				t.Fatalf("row %d is %v", i, row)
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

// TestParquetOfManyColumns writes a thousand columns with names that are no identifiers, in the
// order that was given.
func TestParquetOfManyColumns(t *testing.T) {
	var many []Column
	for i := range 1000 {
		name := fmt.Sprintf("p:%d %s", 1000-i, []string{"a b", "ü/\n", "", "x.y"}[i%4])
		many = append(many, Column{Name: name, Kind: Float32})
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, ".parquet", many, 0)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 6000 // more than a row group
	for i := range rows {
		for k := range many {
			w.Float32(float32(i*1000 + k))
		}
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n < 2 || f.NumRows() != rows {
		t.Fatalf("%d groups of %d rows: want several of %d in all", n, f.NumRows(), rows)
	}
	for i, field := range f.Schema().Fields() {
		if field.Name() != many[i].Name {
			t.Fatalf("column %d is %q, want %q", i, field.Name(), many[i].Name)
		}
	}
	buf := make([]parquet.Row, 1)
	r := f.RowGroups()[1].Rows()
	defer r.Close()
	if n, _ := r.ReadRows(buf); n != 1 || buf[0][999].Float()-buf[0][0].Float() != 999 {
		t.Fatalf("the first row of the second group is %v", buf[0][:3])
	}
}

func TestTwoColumnsOfOneName(t *testing.T) {
	_, err := NewWriter(io.Discard, ".parquet", []Column{{Name: "a"}, {Name: "a"}}, 0)
	if err == nil {
		t.Fatal("two columns of one name were taken")
	}
}

// TestNumpyIsTheFormat compares a small file with what NumPy writes, byte by byte.
func TestNumpyIsTheFormat(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, ".npy", []Column{{Name: "it's", Kind: String, Width: 2},
		{Name: "n", Kind: Int64}, {Name: "f", Kind: Float32}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []string{"é", "ab"} {
		w.String(s)
		w.Int64(-int64(i) - 1)
		w.Float32(1.5)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dict := `{'descr': [('it\'s', '<U2'), ('n', '<i8'), ('f', '<f4')], 'fortran_order': False, ` +
		`'shape': (2,), }`
	dict += strings.Repeat(" ", 127-12-len(dict)) + "\n"
	f := math.Float32bits(1.5)
	want := "\x93NUMPY\x03\x00" + string([]byte{byte(len(dict)), 0, 0, 0}) + dict +
		"\xe9\x00\x00\x00\x00\x00\x00\x00" + "\xff\xff\xff\xff\xff\xff\xff\xff" +
		string([]byte{byte(f), byte(f >> 8), byte(f >> 16), byte(f >> 24)}) +
		"a\x00\x00\x00b\x00\x00\x00" + "\xfe\xff\xff\xff\xff\xff\xff\xff" +
		string([]byte{byte(f), byte(f >> 8), byte(f >> 16), byte(f >> 24)})
	if out.String() != want {
		t.Fatalf("the file is\n%q, want\n%q", out.String(), want)
	}
}

func TestNumpyHoldsItsShape(t *testing.T) {
	one := []Column{{Name: "s", Kind: String, Width: 1}}
	w, err := NewWriter(io.Discard, ".npy", one, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.String("ab")
	if w.EndRow() == nil {
		t.Error("a string longer than its column was taken")
	}
	if w, err = NewWriter(io.Discard, ".npy", one, 1); err != nil {
		t.Fatal(err)
	}
	if w.Close() == nil {
		t.Error("a file ended a row too early")
	}
}

// TestVectors reads back columns of vectors, behind ids and before another column.
func TestVectors(t *testing.T) {
	const rows, width = 300, 5
	three := []Column{{Name: "id", Kind: Int64}, {Name: "vector", Kind: Vector, Width: width},
		{Name: "p", Kind: Float32}}
	write := func(extension string) []byte {
		var out bytes.Buffer
		w, err := NewWriter(&out, extension, three, rows)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			w.Int64(int64(i))
			v := make([]float32, width)
			for k := range v {
				v[k] = float32(i*10 + k)
			}
			w.Vector(v)
			w.Float32(float32(-i))
			if err := w.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	type record struct {
		ID     int64     `parquet:"id"`
		Vector []float32 `parquet:"vector,list"`
		P      float32   `parquet:"p"`
	}
	data := write(".parquet")
	got, err := parquet.Read[record](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(got) != rows {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, r := range got {
		if r.ID != int64(i) || r.P != float32(-i) || len(r.Vector) != width ||
			r.Vector[0] != float32(i*10) || r.Vector[4] != float32(i*10+4) {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
	data = write(".npy")
	if !bytes.Contains(data, []byte("('id', '<i8'), ('vector', '<f4', (5,)), ('p', '<f4')]")) {
		t.Errorf("the header is %q", data[:128])
	}
	last := data[len(data)-(8+4*width+4):]
	if last[0] != (rows-1)&255 || math.Float32frombits(uint32(last[8])|uint32(last[9])<<8|
		uint32(last[10])<<16|uint32(last[11])<<24) != (rows-1)*10 {
		t.Errorf("the last record is %x", last)
	}
	w, err := NewWriter(io.Discard, ".npy", three, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.Int64(1)
	w.Vector(nil)
	if w.EndRow() == nil {
		t.Error("a vector of another width was taken")
	}
}
