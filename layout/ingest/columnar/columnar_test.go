package columnar

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdb/layout/ingest/input"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

// person is a row of the tables of these tests.
type person struct {
	ID     int64     `parquet:"id"`
	Name   string    `parquet:"name,dict,optional"`
	Age    *float64  `parquet:"age,optional"`
	Score  float32   `parquet:"score"`
	Member bool      `parquet:"member"`
	Count  uint32    `parquet:"count"`
	Since  time.Time `parquet:"since,timestamp(millisecond)"`
	Vector []float32 `parquet:"vector,list"`
}

func write(t testing.TB, rows []person, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[person](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func memFile(t testing.TB, name string, data []byte) vfs.FS {
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, name, data)
	return fs
}

// batches is what input.TextReader and Reader have in common.
type batches interface {
	Next(ctx context.Context) (*input.Batch, error)
	Close() error
}

// show writes all rows, a line each, and the bad ones without their place.
func show(r batches, dim int) (lines []string, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		b, err := r.Next(context.Background())
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		for i := range b.Rows {
			var row []string
			for _, c := range b.Columns {
				switch {
				case i < len(c.IDs):
					row = append(row, fmt.Sprint(c.IDs[i]))
				case i < len(c.Texts):
					row = append(row, string(c.Texts[i]))
				case i < len(c.Integers):
					row = append(row, fmt.Sprint(c.Integers[i]))
				case i < len(c.Floats):
					row = append(row, fmt.Sprint(c.Floats[i]))
				}
			}
			lines = append(lines, fmt.Sprint(row, b.Vector[i*dim:(i+1)*dim]))
		}
		for _, bad := range b.Bad {
			lines = append(lines, "bad: "+bad.What)
		}
	}
}

func read(t testing.TB, data []byte, spec input.Spec, dims []int) ([]string, error) {
	t.Helper()
	f, err := Open(memFile(t, "t.parquet", data), "t.parquet", 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	spec.Names, spec.Width = f.Names(), len(f.Names())
	r, err := Read(f, spec, dims)
	if err != nil {
		return nil, err
	}
	dim := 0
	for _, d := range dims {
		dim += d
	}
	return show(r, dim)
}

var optional = []string{"", "Ann", "Bob, B.", "x\"y", "Zoë"}

func drawPeople(t *rapid.T, most int) (rows []person) {
	for i := range rapid.IntRange(1, most).Draw(t, "rows") {
		p := person{ID: int64(rapid.IntRange(-2, 1<<40).Draw(t, "id")),
			Name: rapid.SampledFrom(optional).Draw(t, "name"), Score: float32(i) / 8,
			Member: rapid.Bool().Draw(t, "member"), Count: rapid.Uint32().Draw(t, "count"),
			Since:  time.UnixMilli(rapid.Int64Range(-1e12, 1e13).Draw(t, "since")).UTC(),
			Vector: []float32{float32(i), -0.5, 1e-3}}
		if rapid.Bool().Draw(t, "age") {
			age := float64(rapid.IntRange(0, 90).Draw(t, "years"))
			p.Age = &age
		}
		rows = append(rows, p)
	}
	return rows
}

// TestAgainstText reads a table as it reads the same table as text.
func TestAgainstText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawPeople(rt, 60)
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		for _, p := range rows {
			age := ""
			if p.Age != nil {
				age = strconv.FormatFloat(*p.Age, 'g', -1, 64)
			}
			if err := w.Write([]string{strconv.FormatInt(p.ID, 10), p.Name, age,
				strconv.FormatFloat(float64(p.Score), 'g', -1, 32), strconv.FormatBool(p.Member),
				strconv.FormatUint(uint64(p.Count), 10), p.Since.Format(time.RFC3339), "0"},
			); err != nil {
				rt.Fatal(err)
			}
		}
		w.Flush()
		kinds := []input.Kind{input.ID, input.Text, input.Optional, input.Float, input.Text,
			input.Key,
			input.Time}
		spec := input.Spec{Format: input.Format{Delim: ',', Quotes: true}, Width: 8,
			Vector: []int{3, 4, 2}, Gaps: rapid.Bool().Draw(rt, "gaps"),
			Missing: []string{"Ann"}}
		for field, kind := range kinds {
			spec.Columns = append(spec.Columns, input.Column{Field: field, Kind: kind})
		}
		spec.Names = []string{"id", "name", "age", "score", "member", "count", "since", "vector"}
		r, err := input.OpenText(memFile(t, "t.csv", b.Bytes()), "t.csv", spec)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := show(r, 3)
		if err != nil {
			rt.Fatal(err)
		}
		data := write(t, rows, parquet.MaxRowsPerRowGroup(rapid.Int64Range(1, 70).Draw(rt,
			"group")),
			parquet.PageBufferSize(rapid.IntRange(64, 2000).Draw(rt, "page")))
		got, err := read(t, data, spec, []int{1, 1, 1})
		if err != nil {
			rt.Fatal(err)
		}
		slices.Sort(got) // bad rows stand behind those of their batch
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestLists reads lists of any length as text, and of one length as numbers.
func TestLists(t *testing.T) {
	var rows []person
	for i := range 500 {
		rows = append(rows, person{ID: int64(i), Vector: make([]float32, i%4)})
		for k := range rows[i].Vector {
			rows[i].Vector[k] = float32(i*10 + k)
		}
	}
	names := []input.Column{{Field: 7, Kind: input.Text}}
	for _, group := range []int64{1, 7, 1000} {
		data := write(t, rows, parquet.MaxRowsPerRowGroup(group), parquet.PageBufferSize(128))
		got, err := read(t, data, input.Spec{Columns: names}, nil)
		if err != nil || len(got) != 500 || got[0] != "[] []" ||
			got[7] != "[70\x1f71\x1f72] []" {
			t.Fatalf("row groups of %d: %d rows, %q, %v", group, len(got), got[:8], err)
		}
		got, err = read(t, data, input.Spec{Columns: []input.Column{{Kind: input.ID}},
			Vector: []int{7}},
			[]int{3})
		if err != nil || !slices.Contains(got, "[7] [70 71 72]") || !slices.Contains(got,
			`bad: column "vector" has a list of 2 values, where others have 3`) {
			t.Fatalf("row groups of %d: %q, %v", group, got[:8], err)
		}
	}
}

// TestEmptyLists: a row whose list is empty is bad, not the file, however many there are.
func TestEmptyLists(t *testing.T) {
	data := write(t, []person{{ID: 1}, {ID: 2}, {ID: 3}})
	got, err := read(t, data, input.Spec{Columns: []input.Column{{Kind: input.ID}},
		Vector: []int{7}}, []int{2})
	if err != nil || len(got) != 3 || !strings.Contains(got[2], "has a list of 0 values") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHead(t *testing.T) {
	age := 7.5
	data := write(t, []person{{ID: 1, Name: "Ann", Age: &age, Since: time.Unix(60, 0),
		Vector: []float32{1, 2}}, {ID: 2, Since: time.Unix(-1, 0)}})
	f, err := Open(memFile(t, "t.parquet", data), "t.parquet", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := f.Head(9)
	want := "[[1 Ann 7.5 0 false 0 60 [2]] [2   0 false 0 -1 [0]]]"
	if got := fmt.Sprint(rows); got != want || err != nil || f.Rows() != 2 {
		t.Errorf("%s, want %s; %v", got, want, err)
	}
	if err := f.CheckMemory([]int{0, 1, 2}); err != nil {
		t.Error(err)
	}
	f.format.(*parquetFile).held.bound = 10
	if err := f.CheckMemory([]int{0, 1, 2}); err == nil {
		t.Error("10 bytes are enough")
	}
	if _, err := Read(f, input.Spec{Width: 8, Columns: []input.Column{{Field: 7, Kind: input.ID}}},
		nil); err == nil {
		t.Error("a list is an id")
	}
}

// TestDamage cuts a file and flips its bytes: that is an error or other values, and no panic.
func TestDamage(t *testing.T) {
	var rows []person
	for i := range 50 {
		rows = append(rows, person{ID: int64(i), Name: fmt.Sprint("n", i), Vector: []float32{1}})
	}
	data := write(t, rows, parquet.MaxRowsPerRowGroup(20))
	spec := input.Spec{Columns: []input.Column{{Field: 0, Kind: input.ID}, {Field: 1,
		Kind: input.Text}}, Vector: []int{3, 7}}
	var e *input.Error
	for n := 0; n < len(data); n += 13 {
		if _, err := read(t, data[:n], spec, []int{1, 1}); !errors.As(err, &e) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
	for i := range data {
		x := slices.Clone(data)
		x[i] ^= 1 << (i % 8)
		spec := spec
		if _, err := read(t, x, spec, []int{1, 1}); err != nil && !errors.As(err, &e) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
}

// TestFailingDisk: a failing disk is not the fault of the file.
func TestFailingDisk(t *testing.T) {
	failure := errors.New("the disk is broken")
	data := write(t, []person{{ID: 1}})
	for skip := range int32(4) {
		left := skip
		fs := errorfs.Wrap(memFile(t, "t.parquet", data), errorfs.InjectorFunc(
			func(op errorfs.Op) error {
				if op.Kind == errorfs.OpFileReadAt {
					if left--; left < 0 {
						return failure
					}
				}
				return nil
			}))
		f, err := Open(fs, "t.parquet", 0)
		if err == nil {
			var r *Reader
			r, err = Read(f, input.Spec{Width: 8, Columns: []input.Column{{Kind: input.ID}}}, nil)
			if err == nil {
				_, err = show(r, 0)
			}
			f.Close()
		}
		var e *input.Error
		if err != nil && (!errors.Is(err, failure) || errors.As(err, &e)) {
			t.Errorf("after %d reads: %v", skip, err)
		}
		if skip == 0 && err == nil {
			t.Error("no error")
		}
	}
}
