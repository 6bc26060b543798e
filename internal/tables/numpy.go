package tables

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// numpyWriter writes one structured array of NumPy, one record per row. Records are little-endian
// and packed; strings are UCS-4, padded with zeros to the width of their column.
type numpyWriter struct {
	w       io.Writer
	columns []Column
	left    uint64 // rows still to come
	column  int    // column of the next value
	record  []byte
	err     error
}

func newNumpy(w io.Writer, columns []Column, rows uint64) (*numpyWriter, error) {
	var fields []Field
	for _, c := range columns {
		f := Field{Name: c.Name, Type: c.numpyType()}
		if c.Kind == Vector {
			f.Length = c.Width
		}
		fields = append(fields, f)
	}
	if _, err := w.Write(appendRecordHeader(nil, fields, rows)); err != nil {
		return nil, fmt.Errorf("npy: write the header: %w", err)
	}
	return &numpyWriter{w: w, columns: columns, left: rows}, nil
}

// numpyType returns NumPy's name of the column's type.
func (c *Column) numpyType() string {
	switch c.Kind {
	case Int64:
		return "<i8"
	case Float32, Vector:
		return "<f4"
	case Float64:
		return "<f8"
	}
	return "<U" + strconv.Itoa(max(1, c.Width))
}

func (n *numpyWriter) Int64(v int64) {
	n.record = binary.LittleEndian.AppendUint64(n.record, uint64(v))
	n.column++
}

func (n *numpyWriter) Float32(v float32) {
	n.record = binary.LittleEndian.AppendUint32(n.record, math.Float32bits(v))
	n.column++
}

func (n *numpyWriter) Float64(v float64) {
	n.record = binary.LittleEndian.AppendUint64(n.record, math.Float64bits(v))
	n.column++
}

func (n *numpyWriter) String(s string) {
	width := max(1, n.columns[n.column].Width)
	runes := utf8.RuneCountInString(s)
	if runes > width && n.err == nil {
		n.err = fmt.Errorf("npy: column %s: %q is longer than %d characters",
			n.columns[n.column].Name, s, width)
		return
	}
	for _, r := range s {
		n.record = binary.LittleEndian.AppendUint32(n.record, uint32(r))
	}
	n.record = append(n.record, make([]byte, 4*(width-runes))...)
	n.column++
}

func (n *numpyWriter) Vector(v []float32) {
	if width := n.columns[n.column].Width; len(v) != width && n.err == nil {
		n.err = fmt.Errorf("npy: column %s: %d values, want %d", n.columns[n.column].Name, len(v),
			width)
	}
	for _, x := range v {
		n.record = binary.LittleEndian.AppendUint32(n.record, math.Float32bits(x))
	}
	n.column++
}

func (n *numpyWriter) EndRow() error {
	if n.err == nil && n.left == 0 {
		n.err = fmt.Errorf("npy: a row more than the header says")
	}
	if n.err != nil {
		return n.err
	}
	if _, n.err = n.w.Write(n.record); n.err != nil {
		return fmt.Errorf("npy: write a row: %w", n.err)
	}
	n.left, n.column, n.record = n.left-1, 0, n.record[:0]
	return nil
}

func (n *numpyWriter) Close() error {
	if n.err == nil && n.left > 0 {
		n.err = fmt.Errorf("npy: %d rows are missing", n.left)
	}
	return n.err
}

// Field is one field of a structured array. Type is its dtype as NumPy names it: "<i8", "<U12". If
// Length is above 0, the field is an array of this many values.
type Field struct {
	Name, Type string
	Length     int
}

// appendRecordHeader appends the header of a structured array of one dimension. Its records follow,
// packed. It is of version 3.0, whose names are UTF-8.
func appendRecordHeader(dst []byte, fields []Field, records uint64) []byte {
	var descr strings.Builder
	for _, f := range fields {
		shape := ""
		if f.Length > 0 {
			shape = fmt.Sprintf(", (%d,)", f.Length)
		}
		fmt.Fprintf(&descr, "(%s, '%s'%s), ", pythonString(f.Name), f.Type, shape)
	}
	text := fmt.Sprintf("{'descr': [%s], 'fortran_order': False, 'shape': (%d,), }",
		strings.TrimSuffix(descr.String(), ", "), records)
	const fixed = len(magic) + 2 + 4 // version, length
	text += strings.Repeat(" ", align-1-(fixed+len(text))%align) + "\n"
	dst = append(dst, magic...)
	dst = append(dst, 3, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(text)))
	return append(dst, text...)
}

// pythonString returns s as a string literal of Python.
func pythonString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
