package columns

import (
	"gdb/internal/mem"
)

// Layout says where the buffers of a column are.
type Layout struct {
	Name  string `json:"name"`
	Type  Kind   `json:"type"`
	Zone  string `json:"zone,omitempty"` // of timestamps
	Rows  int    `json:"rows"`
	Nulls int    `json:"nulls"`
	// Valid is the bitmap of the rows that are not null, if some are; Offsets, int32, where strings
	// and lists begin, and where the last ends; Values the text of strings, a bit for each bool,
	// int32 for dates, and else int64 or float64.
	Valid   Buffer   `json:"valid"`
	Offsets Buffer   `json:"offsets"`
	Values  Buffer   `json:"values"`
	Fields  []Layout `json:"fields,omitempty"`
}

// Buffer is the place of its first byte, and its bytes; {0, 0} for none.
type Buffer [2]int64

// alignment is what places of buffers are multiples of.
const alignment = 8

// writer joins buffers.
type writer struct {
	parts [][]byte
	bytes int64
}

// Layouts returns where the buffers of all columns are if parts are joined.
func (t *Table) Layouts() (of []Layout, parts [][]byte) {
	of, w := []Layout{}, &writer{}
	for _, c := range t.Columns {
		of = append(of, w.column(c))
	}
	return of, w.parts
}

// put adds a buffer.
func (w *writer) put(data []byte) Buffer {
	b := Buffer{w.bytes, int64(len(data))}
	w.parts = append(w.parts, data)
	w.bytes += b[1]
	if over := w.bytes % alignment; over > 0 {
		w.parts = append(w.parts, make([]byte, alignment-over))
		w.bytes += alignment - over
	}
	return b
}

func (w *writer) column(c *Column) Layout {
	l := Layout{Name: c.Name, Type: c.kind, Zone: c.zone, Rows: c.rows, Nulls: c.nulls}
	if c.kind == Null {
		return l
	}
	if c.nulls > 0 {
		l.Valid = w.put(c.valid)
	}
	switch c.kind {
	case String, List:
		l.Offsets = w.put(mem.BytesOf(append([]int32{0}, c.offsets...)))
		if c.kind == String {
			l.Values = w.put(c.text)
		}
	case Bool:
		bits := make([]byte, (c.rows+7)/8)
		for i, v := range c.ints {
			bits[i/8] |= byte(v) << (i % 8)
		}
		l.Values = w.put(bits)
	case Date:
		days := make([]int32, c.rows)
		for i, v := range c.ints {
			days[i] = int32(v)
		}
		l.Values = w.put(mem.BytesOf(days))
	case Float:
		l.Values = w.put(mem.BytesOf(c.floats))
	case Int, Timestamp, Time:
		l.Values = w.put(mem.BytesOf(c.ints))
	}
	for _, f := range c.fields {
		l.Fields = append(l.Fields, w.column(f))
	}
	return l
}
