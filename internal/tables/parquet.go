package tables

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	// parquetBufferBytes bounds the values of a row group that are not written yet, and the pages
	// of all columns together, since a table may have thousands of columns.
	parquetBufferBytes = 16 << 20
	// parquetGroupRows bounds the rows of a row group, and parquetGroupLeast is the least number.
	parquetGroupRows, parquetGroupLeast = 1 << 16, 256
	// parquetPageLeast is the smallest page of a column, in bytes.
	parquetPageLeast = 4 << 10
	// parquetBatchRows is how many rows are passed to the library together.
	parquetBatchRows = 64
)

// parquetWriter writes a Parquet file. It takes memory for the values of one row group, compressed,
// and a page of each column.
type parquetWriter struct {
	columns []Column
	out     *parquet.GenericWriter[any]
	rows    [parquetBatchRows]parquet.Row
	waiting int         // number of rows that wait
	row     parquet.Row // the row being filled
	column  int         // column of its next value
	text    []byte      // memory of the strings of rows
}

func newParquet(w io.Writer, columns []Column) (*parquetWriter, error) {
	schema, err := parquetSchema(columns)
	if err != nil {
		return nil, err
	}
	rowBytes := 0
	for _, c := range columns {
		rowBytes += map[Kind]int{Int64: 8, Float32: 4, Float64: 8, String: 32, Bool: 1, Date: 4,
			Timestamp: 8, Vector: 4 * c.Width}[c.Kind]
	}
	group := min(max(parquetBufferBytes/max(1, rowBytes), parquetGroupLeast), parquetGroupRows)
	page := max(parquetPageLeast, parquetBufferBytes/max(1, len(columns))/4)
	return &parquetWriter{columns: columns, out: parquet.NewGenericWriter[any](w, schema,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.MaxRowsPerRowGroup(int64(group)),
		parquet.PageBufferSize(min(page, 256<<10)),
		parquet.CreatedBy("gdb", "", ""))}, nil
}

// parquetSchema returns the schema of a flat table.
func parquetSchema(columns []Column) (*parquet.Schema, error) {
	group := parquet.Group{}
	place := map[string]int{}
	for i, c := range columns {
		if _, twice := place[c.Name]; twice {
			return nil, fmt.Errorf("parquet: two columns are called %q", c.Name)
		}
		place[c.Name] = i
		group[c.Name] = c.parquetNode()
	}
	fields := group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return cmp.Compare(place[a.Name()], place[b.Name()])
	})
	return parquet.NewSchema("table", orderedGroup{group, fields}), nil
}

// orderedGroup is a group of columns in a given order; parquet.Group sorts them by name.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

// Fields returns the columns in order.
func (g orderedGroup) Fields() []parquet.Field { return g.fields }

func (c *Column) parquetNode() (node parquet.Node) {
	switch c.Kind {
	case Int64:
		node = parquet.Leaf(parquet.Int64Type)
	case Float32:
		node = parquet.Leaf(parquet.FloatType)
	case Float64:
		node = parquet.Leaf(parquet.DoubleType)
	case Bool:
		node = parquet.Leaf(parquet.BooleanType)
	case Date:
		node = parquet.Date()
	case Timestamp:
		node = parquet.Timestamp(parquet.Microsecond)
	case Vector:
		return parquet.List(parquet.Encoded(parquet.Leaf(parquet.FloatType), &parquet.Plain))
	default:
		node = parquet.String()
	}
	if node = parquet.Encoded(node, &parquet.Plain); c.Optional {
		return parquet.Optional(node)
	}
	return node
}

func (p *parquetWriter) add(v parquet.Value) {
	present := 0
	if p.columns[p.column].Optional {
		present = 1
	}
	p.row = append(p.row, v.Level(0, present, p.column))
	p.column++
}

// Null adds a value that is missing.
func (p *parquetWriter) Null() {
	p.row = append(p.row, parquet.NullValue().Level(0, 0, p.column))
	p.column++
}

// Int64 adds a value of a column of any kind whose values are integers.
func (p *parquetWriter) Int64(v int64) {
	switch p.columns[p.column].Kind {
	case Bool:
		p.add(parquet.BooleanValue(v != 0))
	case Date:
		p.add(parquet.Int32Value(int32(v)))
	default:
		p.add(parquet.Int64Value(v))
	}
}

func (p *parquetWriter) Float32(v float32) { p.add(parquet.FloatValue(v)) }
func (p *parquetWriter) Float64(v float64) { p.add(parquet.DoubleValue(v)) }

func (p *parquetWriter) String(s string) {
	first := len(p.text)
	p.text = append(p.text, s...)
	p.add(parquet.ByteArrayValue(p.text[first:]))
}

// Vector adds a list. Its values have two levels: the repetition level is 1 if a value continues
// the list of the value before, and the definition level is 1 if there is a value.
func (p *parquetWriter) Vector(v []float32) {
	for i, x := range v {
		p.row = append(p.row, parquet.FloatValue(x).Level(min(i, 1), 1, p.column))
	}
	if len(v) == 0 {
		p.row = append(p.row, parquet.NullValue().Level(0, 0, p.column))
	}
	p.column++
}

func (p *parquetWriter) EndRow() error {
	p.rows[p.waiting], p.column = p.row, 0
	if p.waiting++; p.waiting == len(p.rows) {
		return p.flush()
	}
	p.row = p.rows[p.waiting][:0]
	return nil
}

// flush passes the rows that wait to the library, and reuses their memory.
func (p *parquetWriter) flush() error {
	if _, err := p.out.WriteRows(p.rows[:p.waiting]); err != nil {
		return fmt.Errorf("parquet: write rows: %w", err)
	}
	p.waiting, p.row, p.text = 0, p.rows[0][:0], p.text[:0]
	return nil
}

func (p *parquetWriter) Close() error {
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.out.Close(); err != nil {
		return fmt.Errorf("parquet: end the file: %w", err)
	}
	return nil
}
