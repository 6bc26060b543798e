package columnar

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gdb/layout/ingest/input"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"
)

// noted is a row with a text of any length.
type noted struct {
	ID   int64  `parquet:"id"`
	Note string `parquet:"note"`
}

func writeNoted[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLargePage: a page of a few bytes that unpacks to more than the memory is an error that names
// the file and the column, before it is read; a column that nobody reads does no harm.
func TestLargePage(t *testing.T) {
	var rows []noted
	for i := range 24 {
		rows = append(rows, noted{int64(i), strings.Repeat("x", 1<<20)})
	}
	data := writeNoted(t, rows, parquet.Compression(&parquet.Zstd),
		parquet.SkipPageBounds("note"), parquet.PageBufferSize(64<<20))
	if len(data) > 5<<20 { // the least and the largest text stand in the footer
		t.Fatalf("%d bytes", len(data))
	}
	for _, c := range []struct {
		bound  int64
		field  int
		failed bool
	}{{32 << 20, 1, true}, {32 << 20, 0, false}, {0, 1, false}} {
		f, err := Open(memFile(t, "t.parquet", data), "t.parquet", c.bound)
		if err != nil {
			t.Fatal(err)
		}
		head, err := f.Head(9)
		if err != nil || len(head) == 0 || c.bound > 0 && (head[0][0] != "0" || head[0][1] != "") {
			t.Errorf("bound %d: %d rows, %v", c.bound, len(head), err)
		}
		r, err := Read(f, input.Spec{Width: 2, Columns: []input.Column{{Field: c.field,
			Kind: input.Text}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = show(r, 0)
		var e *input.Error
		if errors.As(err, &e) != c.failed || c.failed && (e.Where != "t.parquet" ||
			!strings.Contains(e.What, `"note" takes 24`)) {
			t.Errorf("bound %d, column %d: %v", c.bound, c.field, err)
		}
		if used := f.format.(*parquetFile).held.mu.used; used != 0 {
			t.Errorf("%d bytes are not given back", used)
		}
		f.Close()
	}
}

// TestManyValuesOfFewBytes: values that repeat take next to nothing in a page, and memory once they
// are unpacked.
func TestManyValuesOfFewBytes(t *testing.T) {
	type flagged struct {
		Word string `parquet:"word,dict"`
	}
	rows := make([]flagged, 3<<20)
	data := writeNoted(t, rows, parquet.PageBufferSize(64<<20))
	if len(data) > 1<<20 {
		t.Fatalf("%d bytes", len(data))
	}
	f, err := Open(memFile(t, "t.parquet", data), "t.parquet", 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f, input.Spec{Width: 1, Columns: []input.Column{{Kind: input.Text}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := show(r, 0); err == nil || !strings.Contains(err.Error(), "takes 36") {
		t.Errorf("3 million values of one page: %v", err)
	}
}

// TestBatchEndsByBytes: however long texts are, a batch has no more of them than batchBytes, but
// for a row, and all rows come in order.
func TestBatchEndsByBytes(t *testing.T) {
	type coded struct {
		ID   int64    `parquet:"id"`
		Note string   `parquet:"note,dict"`
		Tags []string `parquet:"tags,list"`
	}
	const rows = 6000
	var plain []noted
	var dict []coded
	var cells [][]any
	for i := range rows {
		long := strings.Repeat(fmt.Sprint(i%10), 3009)
		plain = append(plain, noted{int64(i), long})
		dict = append(dict, coded{int64(i), long, []string{long, long}})
		cells = append(cells, []any{i, long})
	}
	files := map[string][]byte{"plain.parquet": writeNoted(t, plain),
		"dict.parquet": writeNoted(t, dict, parquet.PageBufferSize(1<<20))}
	for name, of := range map[string]arrow.DataType{"text": arrow.BinaryTypes.String,
		"view": arrow.BinaryTypes.StringView, "dict": wordType} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
			{Name: "note", Type: of}}, nil)
		files[name+".arrow"] = writeArrow(t, false, schema,
			[]arrow.RecordBatch{batchOf(t, schema, cells)}, []ipc.Option{}...)
	}
	for name, data := range files {
		f, err := Open(memFile(t, name, data), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		spec := input.Spec{Width: len(f.Names())}
		for i := range spec.Width {
			spec.Columns = append(spec.Columns, input.Column{Field: i, Kind: input.Text})
		}
		spec.Columns[0].Kind = input.ID
		r, err := Read(f, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		next, most := uint64(0), 0
		for {
			b, err := r.Next(context.Background())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(name, err)
			}
			bytes := 0
			for i := range b.Rows {
				for _, c := range b.Columns[1:] {
					bytes += len(c.Texts[i])
				}
				if want := byte('0' + next%10); b.Columns[0].IDs[i] != next ||
					b.Columns[1].Texts[i][3008] != want || b.First != int64(next)-int64(i) {
					t.Fatalf("%s: row %d: %d", name, next, b.Columns[0].IDs[i])
				}
				next++
			}
			most = max(most, bytes)
		}
		taken := 0
		for _, c := range r.cursors {
			taken += cap(c.arena)
		}
		if next != rows || most > batchBytes+4*3009 || taken > 4*batchBytes {
			t.Errorf("%s: %d rows, at most %d bytes in a batch, %d taken", name, next, most, taken)
		}
		if err := errors.Join(r.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestWrongFooter: a file that is cut off, ends in something else, or has a footer longer than it
// is an error that names it, and takes no memory.
func TestWrongFooter(t *testing.T) {
	data := writeNoted(t, []noted{{1, "a"}})
	long := bytes.Clone(data)
	binary.LittleEndian.PutUint32(long[len(long)-8:], 1<<31)
	for _, bad := range [][]byte{data[:8], data[:11], data[:len(data)-3], long,
		append(bytes.Clone(data), "PAR2"...), []byte("PAR1")} {
		_, err := Open(memFile(t, "t.parquet", bad), "t.parquet", 0)
		var e *input.Error
		if !errors.As(err, &e) || e.Where != "t.parquet" {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	_, err := Open(memFile(t, "t.parquet", data), "t.parquet", 16)
	if err == nil || !strings.Contains(err.Error(), "the list of its columns takes") {
		t.Errorf("a footer that is larger than the memory: %v", err)
	}
}
