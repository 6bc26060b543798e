package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gdb/layout/columnfile"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/table"
)

// relationShift is where the number of a relation begins in the key of a row of its table: the row
// is below, which no store has 2^48 of.
const relationShift = 48

// Rows numbers the edges of each table in the order of the source. It encodes the rows of tables
// with columns for edges that carry them, or else writes a run of each table: entries by table and
// number, with the row as text. A run takes a buffer of 256 KiB until all are finished.
type Rows struct {
	work  *steps.Work
	info  *source.Info
	read  map[uint16]uint64             // edges of each table
	open  map[uint16]*extsort.RunWriter // of each table; nil if edges carry their rows
	runs  []extsort.Run
	bytes []byte // of a row
}

// Open begins. carried says that edges carry their rows.
func (e *Rows) Open(w *steps.Work, info *source.Info, carried bool) {
	e.work, e.info, e.read = w, info, map[uint16]uint64{}
	if len(info.EdgeTables) > 0 && !carried {
		e.open = map[uint16]*extsort.RunWriter{}
	}
}

// Row returns row i of a chunk, valid until the next call: for edges that carry their rows.
func (e *Rows) Row(c *source.EdgeChunk, i int) []byte {
	if len(c.Columns) == 0 {
		return nil
	}
	e.bytes = appendRow(e.bytes[:0], c.Columns, i)
	return e.bytes
}

// Add takes a chunk of edges, and returns the number of the first.
func (e *Rows) Add(c *source.EdgeChunk) (first uint64, err error) {
	table := uint16(0)
	if e.info.Ranged && len(c.TypeInt) > 0 {
		table = uint16(c.TypeInt[0])
	}
	first = e.read[table]
	e.read[table] += uint64(c.Len())
	if e.open == nil || len(c.Columns) == 0 {
		return first, nil
	}
	run := e.open[table]
	if run == nil {
		if run, err = e.work.NewRun(fmt.Sprintf("edge-rows-%d", table)); err != nil {
			return 0, err
		}
		e.open[table] = run
	}
	for i := 0; i < c.Len() && err == nil; i++ {
		e.bytes = appendRow(e.bytes[:0], c.Columns, i)
		err = run.Add(extsort.Entry{Key: uint64(table)<<relationShift | (first + uint64(i)),
			Text: e.bytes})
	}
	return first, err
}

// Finish returns the runs of rows.
func (e *Rows) Finish() ([]extsort.Run, error) {
	err := e.Close()
	return e.runs, err
}

// Close closes the runs. After Finish it does nothing.
func (e *Rows) Close() error {
	var errs []error
	for _, table := range slices.Sorted(maps.Keys(e.open)) {
		run, err := e.open[table].Finish()
		e.runs, errs = append(e.runs, run), append(errs, err)
	}
	e.open = nil
	return errors.Join(errs...)
}

// appendRow encodes row i of some columns: a bit for each that is not null, and then the values of
// these: integers as varints, floats as they are, strings after their lengths.
func appendRow(b []byte, columns []columnfile.Values, i int) []byte {
	bits := len(b)
	b = append(b, make([]byte, (len(columns)+7)/8)...)
	for k := range columns {
		v := &columns[k]
		if v.Null(i) {
			continue
		}
		b[bits+k/8] |= 1 << (k % 8)
		switch {
		case len(v.Ints) > 0:
			b = binary.AppendVarint(b, v.Ints[i])
		case len(v.Floats) > 0:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Floats[i]))
		default:
			s := v.Strings.At(i)
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	return b
}

// errRow says that a row of a temporary file is not what was written.
var errRow = fmt.Errorf("ingest: a row of a table of edges: %w", extsort.ErrDamaged)

// rowDecoder reads what appendRow writes.
type rowDecoder struct {
	columns []table.Stored
	b       []byte
	bits    []byte
}

// decode appends the columns from … of a row to the values to, and passes over those before.
func (d *rowDecoder) decode(row []byte, from int, to []*columnfile.Values) error {
	bits := (len(d.columns) + 7) / 8
	if len(row) < bits {
		return errRow
	}
	d.bits, d.b = row[:bits], row[bits:]
	for k := range from + len(to) {
		var v *columnfile.Values
		if k >= from {
			v = to[k-from]
		}
		if err := d.value(k, v); err != nil {
			return err
		}
	}
	return nil
}

// value takes the value of column k, and appends it to v unless that is nil.
func (d *rowDecoder) value(k int, v *columnfile.Values) error {
	typ := d.columns[k].Type
	if d.bits[k/8]>>(k%8)&1 == 0 {
		if v != nil {
			v.AddNull(typ)
		}
		return nil
	}
	n, size := 8, 0
	switch typ {
	case columnfile.Float64:
	case columnfile.String:
		length, head := binary.Uvarint(d.b)
		if head <= 0 || length > uint64(len(d.b)-head) {
			return errRow
		}
		n, size = head+int(length), head
	default:
		_, n = binary.Varint(d.b)
	}
	if n <= 0 || n > len(d.b) {
		return errRow
	}
	field := d.b[size:n]
	if d.b = d.b[n:]; v == nil {
		return nil
	}
	switch typ {
	case columnfile.Float64:
		v.Floats = append(v.Floats, math.Float64frombits(binary.LittleEndian.Uint64(field)))
	case columnfile.String:
		v.Strings.Add(field)
	default:
		x, _ := binary.Varint(field)
		v.Ints = append(v.Ints, x)
	}
	v.AddRow(true)
	return nil
}
