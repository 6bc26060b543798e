// Package parquet writes flat Parquet files: rows of strings and numbers, none missing.
//
// It holds the part of the format (Apache Parquet, format 2.x) that a table of results needs: one
// page a column and row group, plain encoding, Zstandard. Any reader takes the files. A full
// library makes the program a fifth larger.
//
// # File
//
//	+--------+-----------------------------------+----------+--------+--------+
//	| "PAR1" | row group 1: page of each column  | metadata | u32    | "PAR1" |
//	|        | row group 2: …                    | (Thrift) | length |        |
//	+--------+-----------------------------------+----------+--------+--------+
//
// A page is a header in Thrift's compact protocol and the compressed values. Columns are required,
// so there are no levels. Numbers are little-endian; a string is a u32 length and its bytes.
package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

// GroupRows is how many rows a row group has; the writer holds one in memory.
const GroupRows = 1 << 16

const magic = "PAR1"

// Type is the type of a column.
type Type int32

// The types, by their numbers in the format.
const (
	Int64   Type = 2
	Float32 Type = 4
	Float64 Type = 5
	String  Type = 6
)

// Column is one column of a file.
type Column struct {
	Name string
	Type Type
}

// chunk is the page of a column in a row group, as the metadata needs it.
type chunk struct {
	offset             int64
	raw, packed, count int
}

// group is a finished row group.
type group struct {
	rows   int
	chunks []chunk
}

// Writer writes one file. A row is one value for each column, added in any order, and EndRow.
// Memory: the values of one row group, and about as much again while it is written.
type Writer struct {
	w       io.Writer
	columns []Column
	values  [][]byte // of the current row group, by column
	pending int      // its rows
	groups  []group
	offset  int64
	zstd    *zstd.Encoder
	scratch []byte
}

// NewWriter starts a file on w.
func NewWriter(w io.Writer, columns []Column) (*Writer, error) {
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c.Name] {
			return nil, fmt.Errorf("parquet: two columns are called %q", c.Name)
		}
		seen[c.Name] = true
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	p := &Writer{w: w, columns: columns, values: make([][]byte, len(columns)), zstd: enc}
	return p, p.write([]byte(magic))
}

// AddString adds a value to a column of type String.
func (p *Writer) AddString(column int, s string) {
	b := binary.LittleEndian.AppendUint32(p.values[column], uint32(len(s)))
	p.values[column] = append(b, s...)
}

// AddInt64 adds a value to a column of type Int64.
func (p *Writer) AddInt64(column int, v int64) {
	p.values[column] = binary.LittleEndian.AppendUint64(p.values[column], uint64(v))
}

// AddFloat32 adds a value to a column of type Float32.
func (p *Writer) AddFloat32(column int, v float32) {
	p.values[column] = binary.LittleEndian.AppendUint32(p.values[column], math.Float32bits(v))
}

// AddFloat64 adds a value to a column of type Float64.
func (p *Writer) AddFloat64(column int, v float64) {
	p.values[column] = binary.LittleEndian.AppendUint64(p.values[column], math.Float64bits(v))
}

// EndRow ends a row, and writes the row group if it is full.
func (p *Writer) EndRow() error {
	if p.pending++; p.pending < GroupRows {
		return nil
	}
	return p.flush()
}

// Close writes the last row group and the metadata. It does not close the writer below.
func (p *Writer) Close() error {
	if p.pending > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	meta := p.metadata()
	meta = binary.LittleEndian.AppendUint32(meta, uint32(len(meta)))
	return p.write(append(meta, magic...))
}

// flush writes the row group.
func (p *Writer) flush() error {
	g := group{rows: p.pending}
	for i, raw := range p.values {
		if len(raw) > math.MaxInt32 {
			return fmt.Errorf("parquet: %d rows of column %q have %d bytes: a page holds 2 GiB",
				p.pending, p.columns[i].Name, len(raw))
		}
		p.scratch = p.zstd.EncodeAll(raw, p.scratch[:0])
		head := pageHeader(len(raw), len(p.scratch), p.pending)
		c := chunk{offset: p.offset, count: p.pending,
			raw: len(head) + len(raw), packed: len(head) + len(p.scratch)}
		if err := p.write(head); err != nil {
			return err
		}
		if err := p.write(p.scratch); err != nil {
			return err
		}
		g.chunks = append(g.chunks, c)
		p.values[i] = raw[:0]
	}
	p.groups = append(p.groups, g)
	p.pending = 0
	return nil
}

func (p *Writer) write(b []byte) error {
	n, err := p.w.Write(b)
	p.offset += int64(n)
	if err != nil {
		return fmt.Errorf("parquet: write: %w", err)
	}
	return nil
}

// Numbers of the format: encodings, compression, page type, repetition.
const (
	encodingPlain = 0
	encodingRLE   = 3
	codecZstd     = 6
	pageData      = 0
	required      = 0
	convertedUTF8 = 0
)

// pageHeader is a PageHeader with its DataPageHeader.
func pageHeader(raw, packed, values int) []byte {
	var t thrift
	t.begin()
	t.i32(1, pageData)
	t.i32(2, int32(raw))
	t.i32(3, int32(packed))
	t.structure(5)
	t.i32(1, int32(values))
	t.i32(2, encodingPlain)
	t.i32(3, encodingRLE)
	t.i32(4, encodingRLE)
	t.end()
	t.end()
	return t.out
}

// metadata is the FileMetaData.
func (p *Writer) metadata() []byte {
	var t thrift
	t.begin()
	t.i32(1, 2)
	t.list(2, typeStruct, len(p.columns)+1)
	p.schema(&t)
	rows := 0
	for _, g := range p.groups {
		rows += g.rows
	}
	t.i64(3, int64(rows))
	t.list(4, typeStruct, len(p.groups))
	for _, g := range p.groups {
		p.rowGroup(&t, g)
	}
	t.text(6, "gdb")
	t.end()
	return t.out
}

// schema writes the SchemaElements: the root, then the columns.
func (p *Writer) schema(t *thrift) {
	t.begin()
	t.text(4, "schema")
	t.i32(5, int32(len(p.columns)))
	t.end()
	for _, c := range p.columns {
		t.begin()
		t.i32(1, int32(c.Type))
		t.i32(3, required)
		t.text(4, c.Name)
		if c.Type == String {
			t.i32(6, convertedUTF8)
			t.structure(10) // LogicalType
			t.structure(1)  // StringType
			t.end()
			t.end()
		}
		t.end()
	}
}

// rowGroup writes a RowGroup with its ColumnChunks.
func (p *Writer) rowGroup(t *thrift, g group) {
	total := 0
	t.begin()
	t.list(1, typeStruct, len(g.chunks))
	for i, c := range g.chunks {
		total += c.raw
		t.begin()
		t.i64(2, c.offset)
		t.structure(3) // ColumnMetaData
		t.i32(1, int32(p.columns[i].Type))
		t.list(2, typeI32, 1)
		t.zigzag(encodingPlain)
		t.list(3, typeBinary, 1)
		t.bytes(p.columns[i].Name)
		t.i32(4, codecZstd)
		t.i64(5, int64(c.count))
		t.i64(6, int64(c.raw))
		t.i64(7, int64(c.packed))
		t.i64(9, c.offset)
		t.end()
		t.end()
	}
	t.i64(2, int64(total))
	t.i64(3, int64(g.rows))
	t.end()
}
