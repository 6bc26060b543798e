package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ipcType is what the values of a field are.
type ipcType uint8

// The types, by their numbers in files.
const (
	ipcNull ipcType = 1 + iota
	ipcInt
	ipcFloat
	ipcBinary
	ipcText
	ipcBool
	ipcDecimal
	ipcDate
	ipcTime
	ipcTimestamp
	ipcInterval
	ipcList
	ipcStruct
	ipcUnion
	ipcFixedBinary
	ipcFixedList
	ipcMap
	ipcDuration
	ipcLargeBinary
	ipcLargeText
	ipcLargeList
	ipcRunEnd
	ipcBinaryView
	ipcTextView
	ipcListView
	ipcLargeListView
)

var typeNames = []string{"none", "null", "int", "float", "binary", "text", "bool", "decimal",
	"date", "time", "timestamp", "interval", "list", "struct", "union", "fixed-size binary",
	"fixed-size list", "map", "duration", "large binary", "large text", "large list",
	"run-end encoded", "binary view", "text view", "list view", "large list view"}

// String names the type for messages.
func (t ipcType) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// ipcField describes a column, or what is inside of one.
type ipcField struct {
	Name   string
	Type   ipcType
	Bits   int           // of integers, floats and what is of time
	Signed bool          // of integers
	Unit   time.Duration // of dates and timestamps
	// Size is the number of elements of a fixed-size list.
	Size     int
	Dict     *ipcDict // nil if values stand in the column itself
	Children []*ipcField

	sparse bool // of unions
}

// ipcDict says that a column holds places in a dictionary, which are integers.
type ipcDict struct {
	ID     int64
	Bits   int
	Signed bool
}

const (
	// fieldsMax bounds the fields of a file, and depthMax how deep they lie in each other.
	fieldsMax, depthMax = 1 << 20, 32
)

// schema reads the descriptions of the columns.
func schema(t table) (fields []*ipcField, err error) {
	if t.short(0, 0) != 0 {
		return nil, errors.New("its numbers are big-endian, which is not read")
	}
	left := fieldsMax
	fields = fieldsOf(t, 1, depthMax, &left)
	if left < 0 {
		return nil, fmt.Errorf("it has over %d columns, or columns inside of columns too deep",
			fieldsMax)
	}
	return fields, t.err()
}

// fieldsOf reads a vector of fields; left is negative behind it if there are too many.
func fieldsOf(t table, slot, depth int, left *int) (fields []*ipcField) {
	at, n := t.vector(slot, 4)
	if *left -= n; *left < 0 || n > 0 && depth == 0 {
		*left = -1
		return nil
	}
	for i := 0; i < n && !t.bad && *left >= 0; i++ {
		at := at + 4*i
		f := t.table(at + t.u32(at))
		fields = append(fields, fieldOf(f, depth, left))
	}
	return fields
}

func fieldOf(t table, depth int, left *int) *ipcField {
	f := &ipcField{Name: t.text(0), Type: ipcType(t.byteOf(2))}
	if typ, ok := t.child(3); ok {
		f.setType(typ)
	}
	if d, ok := t.child(4); ok {
		f.Dict = &ipcDict{ID: d.long(0), Bits: 32, Signed: true}
		if index, ok := d.child(1); ok {
			f.Dict.Bits, f.Dict.Signed = index.word(0), index.byteOf(1) != 0
		}
	}
	f.Children = fieldsOf(t, 5, depth-1, left)
	return f
}

// setType reads what belongs to the type.
func (f *ipcField) setType(t table) {
	switch f.Type {
	case ipcInt:
		f.Bits, f.Signed = t.word(0), t.byteOf(1) != 0
	case ipcFloat:
		if precision := t.short(0, 0); precision >= 0 && precision <= 2 {
			f.Bits = 16 << precision
		}
	case ipcDate:
		f.Bits, f.Unit = 64, time.Millisecond
		if t.short(0, 1) == 0 {
			f.Bits, f.Unit = 32, 24*time.Hour
		}
	case ipcDuration:
		f.Bits = 64
	case ipcTime:
		if f.Bits = t.word(1); t.field(1) == 0 {
			f.Bits = 32
		}
	case ipcTimestamp:
		f.Bits, f.Unit = 64, time.Second
		for range min(3, t.short(0, 0)) {
			f.Unit /= 1000
		}
	case ipcUnion:
		f.sparse = t.short(0, 0) == 0
	case ipcFixedList:
		f.Size = t.word(0)
	}
}

// ipcWidth returns the bytes of a number of bits; 0 if numbers of so few or many bits are not read.
func ipcWidth(bits int) int {
	switch bits {
	case 8, 16, 32, 64:
		return bits / 8
	}
	return 0
}

// buffers returns the number of buffers of a column in a batch, without the additional ones of
// views, and the fields inside of it.
func (f *ipcField) buffers(dictionary bool) (n int, children []*ipcField) {
	if f.Dict != nil && !dictionary {
		return 2, nil
	}
	switch f.Type {
	case ipcNull:
		return 0, nil
	case ipcRunEnd:
		return 0, f.Children
	case ipcStruct, ipcFixedList:
		return 1, f.Children
	case ipcUnion:
		if f.sparse {
			return 1, f.Children
		}
		return 2, f.Children
	case ipcList, ipcLargeList, ipcMap:
		return 2, f.Children
	case ipcListView, ipcLargeListView:
		return 3, f.Children
	case ipcBinary, ipcText, ipcLargeBinary, ipcLargeText:
		return 3, nil
	}
	return 2, nil
}

// errFlat says that a description points outside of itself.
var errFlat = errors.New("a description in it points outside of itself")

// flat reads a flatbuffer, the form of all descriptions in Arrow files: tables whose fields may be
// left out and are found through offsets. A read outside of the buffer gives zero and is
// remembered, so that bad is looked at once, behind all reads.
type flat struct {
	buf []byte
	bad bool
}

func (d *flat) err() error {
	if d.bad {
		return errFlat
	}
	return nil
}

// bytes returns n bytes at an offset, or 8 zeros if they are outside of the buffer.
func (d *flat) bytes(at, n int) []byte {
	if at < 0 || n < 0 || at > len(d.buf)-n {
		d.bad = true
		return make([]byte, 8)
	}
	return d.buf[at : at+n]
}

func (d *flat) u16(at int) int { return int(binary.LittleEndian.Uint16(d.bytes(at, 2))) }

func (d *flat) u32(at int) int { return int(binary.LittleEndian.Uint32(d.bytes(at, 4))) }

func (d *flat) i64(at int) int64 { return int64(binary.LittleEndian.Uint64(d.bytes(at, 8))) }

// table is a table of a flatbuffer.
type table struct {
	*flat
	at     int
	fields int // where the offsets of its fields are
	bytes  int // of those offsets, and of their head
}

func (d *flat) root() table { return d.table(d.u32(0)) }

func (d *flat) table(at int) table {
	t := table{flat: d, at: at}
	t.fields = at - int(int32(d.u32(at)))
	t.bytes = d.u16(t.fields)
	return t
}

// field returns where field i is; 0 if it was left out.
func (t table) field(i int) int {
	slot := 4 + 2*i
	if slot+2 > t.bytes {
		return 0
	}
	if off := t.u16(t.fields + slot); off != 0 {
		return t.at + off
	}
	return 0
}

// byteOf returns field i, of one byte.
func (t table) byteOf(i int) byte {
	if at := t.field(i); at != 0 {
		return t.flat.bytes(at, 1)[0]
	}
	return 0
}

// short returns field i, of two bytes; other if it was left out.
func (t table) short(i, other int) int {
	if at := t.field(i); at != 0 {
		return int(int16(t.u16(at)))
	}
	return other
}

// word returns field i, of four bytes.
func (t table) word(i int) int {
	if at := t.field(i); at != 0 {
		return int(int32(t.u32(at)))
	}
	return 0
}

// long returns field i, of eight bytes.
func (t table) long(i int) int64 {
	if at := t.field(i); at != 0 {
		return t.i64(at)
	}
	return 0
}

// child returns the table that field i refers to.
func (t table) child(i int) (c table, ok bool) {
	at := t.field(i)
	if at == 0 {
		return table{}, false
	}
	return t.table(at + t.u32(at)), true
}

// vector returns where the n elements of field i begin, each of which has size bytes.
func (t table) vector(i, size int) (at, n int) {
	ref := t.field(i)
	if ref == 0 {
		return 0, 0
	}
	ref += t.u32(ref)
	if n = t.u32(ref); n > len(t.buf)/size || ref+4 > len(t.buf)-n*size {
		t.bad = true
		return 0, 0
	}
	return ref + 4, n
}

// text returns field i, a string.
func (t table) text(i int) string {
	at, n := t.vector(i, 1)
	if n == 0 {
		return ""
	}
	return string(t.flat.bytes(at, n))
}
