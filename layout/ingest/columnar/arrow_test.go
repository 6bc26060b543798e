package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/layout/ingest/input"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

var wordType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8,
	ValueType: arrow.BinaryTypes.String}

// personTypes are the types of person's columns, of which Arrow has several for some.
var personTypes = [][]arrow.DataType{
	{arrow.PrimitiveTypes.Int64},
	{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		arrow.BinaryTypes.Binary, wordType},
	{arrow.PrimitiveTypes.Float64},
	{arrow.PrimitiveTypes.Float32},
	{arrow.FixedWidthTypes.Boolean},
	{arrow.PrimitiveTypes.Uint32},
	{arrow.FixedWidthTypes.Timestamp_ms, arrow.FixedWidthTypes.Date64},
	{arrow.ListOf(arrow.PrimitiveTypes.Float32), arrow.LargeListOf(arrow.PrimitiveTypes.Float32),
		arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)},
}

// arrowWriter is what writers of files and of streams have in common.
type arrowWriter interface {
	Write(rec arrow.RecordBatch) error
	Close() error
}

// writeArrow writes batches as a file or as a stream.
func writeArrow(t testing.TB, stream bool, schema *arrow.Schema, batches []arrow.RecordBatch,
	options ...ipc.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	options = append(options, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(stream))
	var w arrowWriter = ipc.NewWriter(&b, options...)
	if !stream {
		var err error
		if w, err = ipc.NewFileWriter(&b, options...); err != nil {
			t.Fatal(err)
		}
	}
	for _, rec := range batches {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// batchOf makes rows of JSON-like values, one column after the other.
func batchOf(t testing.TB, schema *arrow.Schema, rows [][]any) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for _, row := range rows {
		for i, v := range row {
			appendTo(t, b.Field(i), v)
		}
	}
	return b.NewRecordBatch()
}

func appendTo(t testing.TB, b array.Builder, v any) {
	list := func(l array.Builder, values []any) {
		for _, v := range values {
			appendTo(t, l, v)
		}
	}
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(v != nil)
		if v != nil {
			list(b.ValueBuilder(), v.([]any))
		}
		return
	case *array.LargeListBuilder:
		b.Append(v != nil)
		if v != nil {
			list(b.ValueBuilder(), v.([]any))
		}
		return
	case *array.FixedSizeListBuilder:
		b.Append(v != nil)
		if v != nil {
			list(b.ValueBuilder(), v.([]any))
		}
		return
	}
	if v == nil {
		b.AppendNull()
		return
	}
	if b, ok := b.(*array.BinaryBuilder); ok {
		b.Append([]byte(v.(string)))
		return
	}
	if err := b.AppendValueFromString(fmt.Sprint(v)); err != nil {
		t.Fatalf("%T of %v: %v", b, v, err)
	}
}

// TestArrowAgainstParquet reads a table as it reads the same table as Parquet.
func TestArrowAgainstParquet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		people := drawPeople(rt, 60)
		var fields []arrow.Field
		for i, name := range []string{"id", "name", "age", "score", "member", "count", "since",
			"vector"} {
			fields = append(fields, arrow.Field{Name: name, Nullable: true,
				Type: rapid.SampledFrom(personTypes[i]).Draw(rt, name)})
		}
		schema := arrow.NewSchema(fields, nil)
		group := rapid.IntRange(1, 70).Draw(rt, "group")
		stream := rapid.Bool().Draw(rt, "stream")
		if fields[1].Type == wordType && !stream {
			group = len(people) // a file has one dictionary for all batches
		}
		var batches []arrow.RecordBatch
		for chunk := range slices.Chunk(people, group) {
			var rows [][]any
			for _, p := range chunk {
				row := []any{p.ID, p.Name, nil, p.Score, p.Member, p.Count,
					p.Since.Format("2006-01-02T15:04:05.000Z"), []any{p.Vector[0], p.Vector[1],
						p.Vector[2]}}
				if p.Age != nil {
					row[2] = *p.Age
				}
				if fields[6].Type.ID() == arrow.DATE64 {
					row[6] = p.Since.Format("2006-01-02")
				}
				rows = append(rows, row)
			}
			batches = append(batches, batchOf(t, schema, rows))
		}
		if fields[6].Type.ID() == arrow.DATE64 {
			for i := range people {
				people[i].Since = people[i].Since.Truncate(24 * time.Hour)
			}
		}
		options := rapid.SampledFrom([][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}}).
			Draw(rt, "compression")
		data := writeArrow(t, stream, schema, batches, options...)
		spec := input.Spec{Vector: []int{3, 4, 2, 7}, Gaps: rapid.Bool().Draw(rt, "gaps"),
			Missing: []string{"Ann"}}
		for field, kind := range []input.Kind{input.ID, input.Text, input.Optional, input.Float,
			input.Text, input.Key, input.Time, input.Text} {
			spec.Columns = append(spec.Columns, input.Column{Field: field, Kind: kind})
		}
		want, err := read(t, write(t, people), spec, []int{1, 1, 1, 3})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := read(t, data, spec, []int{1, 1, 1, 3})
		if err != nil {
			rt.Fatal(err)
		}
		slices.Sort(got) // bad rows stand behind those of their batch
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("%v\ngot\n%s\nwant\n%s", schema, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	})
}

// TestArrowTypes reads values of each type, and gaps, as text.
func TestArrowTypes(t *testing.T) {
	long := "longer than twelve bytes"
	for _, c := range []struct {
		typ    arrow.DataType
		values []any
		want   string
	}{
		{arrow.PrimitiveTypes.Int8, []any{-128, nil, 127}, "-128||127"},
		{arrow.PrimitiveTypes.Int16, []any{-300, nil}, "-300|"},
		{arrow.PrimitiveTypes.Int32, []any{-70000, 1}, "-70000|1"},
		{arrow.PrimitiveTypes.Uint8, []any{255, nil}, "255|"},
		{arrow.PrimitiveTypes.Uint16, []any{65535}, "65535"},
		{arrow.PrimitiveTypes.Uint64, []any{uint64(1<<64 - 1)}, "18446744073709551615"},
		{arrow.FixedWidthTypes.Float16, []any{float16.New(-1.5), nil, float16.New(1 << 14)},
			"-1.5||16384"},
		{arrow.FixedWidthTypes.Boolean, []any{true, nil, false}, "true||false"},
		{arrow.FixedWidthTypes.Date32, []any{"1970-01-02"}, "86400"},
		{arrow.FixedWidthTypes.Timestamp_s, []any{"1970-01-01T00:01:00Z", nil}, "60|"},
		{arrow.FixedWidthTypes.Timestamp_us, []any{"1969-12-31T23:59:59.5Z"}, "-1"},
		{arrow.FixedWidthTypes.Timestamp_ns, []any{"1970-01-01T00:00:07.9Z"}, "7"},
		{arrow.BinaryTypes.StringView, []any{"a", nil, long, "twelve bytes", long + "2"},
			"a||" + long + "|twelve bytes|" + long + "2"},
		{wordType, []any{"a", nil, "b", "a"}, "a||b|a"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16,
			ValueType: arrow.PrimitiveTypes.Int64}, []any{70, nil, 7, 70}, "70||7|70"},
		{arrow.ListOf(arrow.BinaryTypes.String), []any{[]any{"a", "b"}, nil, []any{}, []any{"c"}},
			"a\x1fb|||c"},
		{arrow.ListOf(wordType), []any{[]any{"a", "b"}, nil, []any{"a"}}, "a\x1fb||a"},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8), []any{[]any{1, 2}, []any{3, nil}},
			"1\x1f2|3\x1f"},
		{arrow.Null, []any{nil, nil}, "|"},
		{&arrow.Decimal128Type{Precision: 5, Scale: 1}, []any{"1.5"}, "is of type decimal"},
		{arrow.FixedWidthTypes.Duration_ms, []any{"5ms", nil}, "5|"},
		{arrow.FixedWidthTypes.Time32s, []any{"00:01:00"}, "60"},
		{arrow.FixedWidthTypes.Time64us, []any{"00:00:01"}, "1000000"},
		{arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int8)), []any{[]any{}},
			"is of type lists of lists"},
		{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8}), []any{`{"x":1}`},
			"is of type struct"},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), []any{nil},
			"is of type map"},
		{arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8), []any{nil},
			"is of type run-end encoded"},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: c.typ, Nullable: true},
			{Name: "row", Type: arrow.PrimitiveTypes.Int64}}, nil)
		for _, size := range []int{1, 2, 100} { // rows in a batch
			var batches []arrow.RecordBatch
			for chunk := range slices.Chunk(c.values, size) {
				var rows [][]any
				for i, v := range chunk {
					rows = append(rows, []any{v, i})
				}
				batches = append(batches, batchOf(t, schema, rows))
			}
			for _, stream := range []bool{false, true} {
				if !stream && size < 100 && strings.Contains(fmt.Sprint(c.typ), "dictionary") {
					continue // the writer keeps no growing dictionaries in files
				}
				data := writeArrow(t, stream, schema, batches)
				headOf(t, data)
				spec := input.Spec{Columns: []input.Column{{Field: 0, Kind: input.Text}}}
				rows, err := read(t, data, spec, nil)
				got := strings.TrimSuffix(strings.TrimPrefix(strings.Join(rows, "|"), "["), "] []")
				got = strings.ReplaceAll(got, "] []|[", "|")
				if err != nil {
					got = err.Error()
				}
				if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
					t.Errorf("%s, batches of %d, stream %v: %q, want %q", c.typ, size, stream, got,
						c.want)
				}
			}
		}
	}
}

// headOf looks at the first rows of a file, which shows columns of all types.
func headOf(t *testing.T, data []byte) {
	t.Helper()
	f, err := Open(memFile(t, "t.arrow", data), "t.arrow", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rows, err := f.Head(100); err != nil || len(rows) == 0 {
		t.Errorf("the head has %d rows: %v", len(rows), err)
	}
}

// TestArrowMemory reads a large batch that is not compressed in little memory, and refuses a
// compressed one that does not fit.
func TestArrowMemory(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64},
		{Name: "wide", Type: arrow.BinaryTypes.String}}, nil)
	var rows [][]any
	for i := range 20000 {
		rows = append(rows, []any{i % 7, strings.Repeat("x", 100)})
	}
	batch := []arrow.RecordBatch{batchOf(t, schema, rows)}
	const bound = 100 << 10
	for _, c := range []struct {
		options []ipc.Option
		columns []int
		fails   bool
	}{{nil, []int{0, 1}, false}, {[]ipc.Option{ipc.WithZstd()}, []int{0}, true}} {
		f, err := Open(memFile(t, "t.arrow", writeArrow(t, false, schema, batch, c.options...)),
			"t.arrow", bound)
		if err != nil {
			t.Fatal(err)
		}
		spec := input.Spec{Width: 2}
		for _, col := range c.columns {
			spec.Columns = append(spec.Columns, input.Column{Field: col, Kind: input.Text})
		}
		if err := f.CheckMemory(c.columns); err != nil {
			t.Fatal(err)
		}
		r, err := Read(f, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := show(r, 0)
		if c.fails != (err != nil) || err != nil && !strings.Contains(err.Error(),
			"record batch 0, of 20000 rows") || err == nil && len(got) != len(rows) {
			t.Errorf("%d columns: %d rows, %v", len(c.columns), len(got), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// damageable are files with every kind of column and compression.
func damageable(t testing.TB) (files [][]byte) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "word", Type: wordType, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "view", Type: arrow.BinaryTypes.StringView, Nullable: true},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32), Nullable: true}}, nil)
	var rows [][]any
	for i := range 40 {
		row := []any{i, fmt.Sprint("w", i%3), nil, strings.Repeat("v", i), []any{i}}
		if i%4 > 0 {
			row[2] = fmt.Sprint("text ", i)
		}
		rows = append(rows, row)
	}
	batch := batchOf(t, schema, rows)
	batches := []arrow.RecordBatch{batch.NewSlice(0, 16), batch.NewSlice(16, 40)}
	for _, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
		for _, stream := range []bool{false, true} {
			files = append(files, writeArrow(t, stream, schema, batches, options...))
		}
	}
	return files
}

// readSpec reads what spec names, whatever the columns of a file are.
func readSpec(t testing.TB, data []byte, spec input.Spec) (rows []string, err error) {
	f, err := Open(memFile(t, "t.arrow", data), "t.arrow", 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := Read(f, spec, []int{1})
	if err != nil {
		return nil, err
	}
	return show(r, 1)
}

// readDamaged reads all columns of a file: an error says that the file is at fault, and nothing
// panics.
func readDamaged(t testing.TB, data []byte) ([]string, error) {
	t.Helper()
	spec := input.Spec{Width: 5, Vector: []int{4}}
	for i := range 4 {
		spec.Columns = append(spec.Columns, input.Column{Field: i, Kind: input.Text})
	}
	rows, err := readSpec(t, data, spec)
	var e *input.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("not an error of the file: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "runtime error") {
		t.Fatalf("a panic: %v", err)
	}
	return rows, err
}

func TestArrowDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, data := range damageable(t) {
		if rows, err := readDamaged(t, data); err != nil || len(rows) != 40 {
			t.Fatalf("file %d, whole: %d rows, %v", i, len(rows), err)
		}
		for n := 0; n < len(data); n += 101 {
			rows, err := readDamaged(t, data[:n])
			if stream := i%2 == 1; err == nil && (!stream || len(rows) == 40 && n < len(data)-8) {
				t.Fatalf("file %d, cut to %d of %d bytes: %d rows", i, n, len(data), len(rows))
			}
		}
		for range 250 {
			x := slices.Clone(data)
			x[r.IntN(len(x))] ^= 1 << r.IntN(8)
			_, _ = readDamaged(t, x) // an error or other values
		}
	}
}

func FuzzArrow(f *testing.F) {
	for _, data := range damageable(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = readDamaged(t, data) })
}

func TestNoArrow(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"a.feather", "FEA1....", "is a Feather file of version 1"},
		{"a.arrow", "src,dst\n", "is damaged, or no Arrow file: it begins as neither"},
		{"a.arrows", "", "the file is empty"},
		{"a.ipc", "ARROW1\x00\x00", "it ends too soon"},
	} {
		f, err := Open(memFile(t, c.name, []byte(c.data)), c.name, 0)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err == nil {
			f.Close()
		}
	}
	// What a file holds decides, not its name.
	for _, name := range []string{"p.arrow", "p.parquet"} {
		f, err := Open(memFile(t, name, write(t, []person{{ID: 1}},
			parquet.MaxRowsPerRowGroup(9))), name, 0)
		if err != nil || f.Rows() != 1 {
			t.Errorf("Parquet in %s: %v", name, err)
		}
		if err := f.Close(); err != nil && err != io.EOF {
			t.Error(err)
		}
	}
}
