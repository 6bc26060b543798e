package result

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"gdb/internal/pace"
	"gdb/internal/tables"
	"gdb/shell/words"
)

// spool writes rows to a file, and notes which kinds of values the columns have.
type spool struct {
	w       io.Writer
	columns []Column
	rows    int
	row     []byte
}

// Header keeps the names.
func (s *spool) Header(cols []string) error {
	for _, name := range cols {
		s.columns = append(s.columns, Column{Name: name})
	}
	return nil
}

// Row writes each value as its kind, followed by 8 bytes or by the length and the bytes of a
// string.
func (s *spool) Row(vals []any) error {
	s.row = s.row[:0]
	for i, v := range vals {
		c := words.Of(v)
		s.columns[i].Take(c)
		text := c.As(words.String).Text
		s.columns[i].runes = max(s.columns[i].runes, len([]rune(text)))
		s.row = append(s.row, byte(c.Kind))
		switch c.Kind {
		case words.Int:
			s.row = binary.LittleEndian.AppendUint64(s.row, uint64(c.Int))
		case words.Float:
			s.row = binary.LittleEndian.AppendUint64(s.row, math.Float64bits(c.Float))
		case words.String:
			s.row = append(binary.AppendUvarint(s.row, uint64(len(c.Text))), c.Text...)
		}
	}
	s.rows++
	_, err := s.w.Write(s.row)
	return err
}

// Footer does nothing.
func (s *spool) Footer() error { return nil }

// replay reads the rows back and writes them to another file.
func (s *spool) replay(ctx context.Context, r *bufio.Reader, to tables.Writer) error {
	cells := make([]words.Cell, len(s.columns))
	for n := range s.rows {
		if n%max(pace.EverySlow/max(len(cells), 1), 1) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for i := range cells {
			c, err := readCell(r)
			if err != nil {
				return fmt.Errorf("read spooled rows: %w", err)
			}
			cells[i] = c.As(s.columns[i].final())
		}
		if err := writeRow(to, cells); err != nil {
			return err
		}
	}
	return to.Close()
}

func readCell(r *bufio.Reader) (c words.Cell, err error) {
	kind, err := r.ReadByte()
	c.Kind = words.Kind(kind)
	if err != nil || c.Kind == words.Empty {
		return c, err
	}
	if c.Kind == words.String {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return c, err
		}
		b := make([]byte, n)
		_, err = io.ReadFull(r, b)
		c.Text = string(b)
		return c, err
	}
	var b [8]byte
	_, err = io.ReadFull(r, b[:])
	bits := binary.LittleEndian.Uint64(b[:])
	c.Int, c.Float = int64(bits), math.Float64frombits(bits)
	return c, err
}

// columnKinds maps the kinds of values to the types of columns in files.
var columnKinds = map[words.Kind]tables.Kind{words.Int: tables.Int64,
	words.Float: tables.Float64, words.String: tables.String}

// tableColumns returns the columns for a file of typed columns.
func tableColumns(columns []Column) (all []tables.Column) {
	for _, c := range columns {
		all = append(all, tables.Column{Name: c.Name, Kind: columnKinds[c.final()],
			Width: c.runes})
	}
	return all
}

// writeRow writes the cells of a row. They have the kinds of their columns.
func writeRow(to tables.Writer, cells []words.Cell) error {
	for _, c := range cells {
		switch c.Kind {
		case words.Int:
			to.Int64(c.Int)
		case words.Float:
			to.Float64(c.Float)
		default:
			to.String(c.Text)
		}
	}
	return to.EndRow()
}

// Column is what is known of a column when all rows were seen.
type Column struct {
	Name  string
	Kind  words.Kind
	empty bool // whether some cell is empty
	runes int  // the length of the longest string, in runes
}

// Take widens the kind so that a value fits: a string column takes all values, and a float column
// whole numbers and empty cells.
func (c *Column) Take(v words.Cell) {
	if v.Kind == words.Empty {
		c.empty = true
	}
	c.Kind = max(c.Kind, v.Kind)
}

// final returns the kind to which all values of the column are converted.
func (c *Column) final() words.Kind {
	switch {
	case c.Kind == words.Empty:
		return words.String
	case c.Kind == words.Int && c.empty:
		return words.Float
	}
	return c.Kind
}
