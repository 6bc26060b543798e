package ipc

import (
	"errors"
	"fmt"
	"time"
)

// Type is what the values of a field are.
type Type uint8

// The types, by their numbers in files.
const (
	Null Type = 1 + iota
	Int
	Float
	Binary
	Text
	Bool
	Decimal
	Date
	Time
	Timestamp
	Interval
	List
	Struct
	Union
	FixedBinary
	FixedList
	Map
	Duration
	LargeBinary
	LargeText
	LargeList
	RunEnd
	BinaryView
	TextView
	ListView
	LargeListView
)

var typeNames = []string{"none", "null", "int", "float", "binary", "text", "bool", "decimal",
	"date", "time", "timestamp", "interval", "list", "struct", "union", "fixed-size binary",
	"fixed-size list", "map", "duration", "large binary", "large text", "large list",
	"run-end encoded", "binary view", "text view", "list view", "large list view"}

// String names the type for messages.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Field describes a column, or what is inside of one.
type Field struct {
	Name   string
	Type   Type
	Bits   int           // of integers, floats and what is of time
	Signed bool          // of integers
	Unit   time.Duration // of dates and timestamps
	// Size is the number of elements of a fixed-size list.
	Size     int
	Dict     *Dict // nil if values stand in the column itself
	Children []*Field

	sparse bool // of unions
}

// Dict says that a column holds places in a dictionary, which are integers.
type Dict struct {
	ID     int64
	Bits   int
	Signed bool
}

const (
	// fieldsMax bounds the fields of a file, and depthMax how deep they lie in each other.
	fieldsMax, depthMax = 1 << 20, 32
)

// schema reads the descriptions of the columns.
func schema(t table) (fields []*Field, err error) {
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
func fieldsOf(t table, slot, depth int, left *int) (fields []*Field) {
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

func fieldOf(t table, depth int, left *int) *Field {
	f := &Field{Name: t.text(0), Type: Type(t.byteOf(2))}
	if typ, ok := t.child(3); ok {
		f.setType(typ)
	}
	if d, ok := t.child(4); ok {
		f.Dict = &Dict{ID: d.long(0), Bits: 32, Signed: true}
		if index, ok := d.child(1); ok {
			f.Dict.Bits, f.Dict.Signed = index.word(0), index.byteOf(1) != 0
		}
	}
	f.Children = fieldsOf(t, 5, depth-1, left)
	return f
}

// setType reads what belongs to the type.
func (f *Field) setType(t table) {
	switch f.Type {
	case Int:
		f.Bits, f.Signed = t.word(0), t.byteOf(1) != 0
	case Float:
		if precision := t.short(0, 0); precision >= 0 && precision <= 2 {
			f.Bits = 16 << precision
		}
	case Date:
		f.Bits, f.Unit = 64, time.Millisecond
		if t.short(0, 1) == 0 {
			f.Bits, f.Unit = 32, 24*time.Hour
		}
	case Duration:
		f.Bits = 64
	case Time:
		if f.Bits = t.word(1); t.field(1) == 0 {
			f.Bits = 32
		}
	case Timestamp:
		f.Bits, f.Unit = 64, time.Second
		for range min(3, t.short(0, 0)) {
			f.Unit /= 1000
		}
	case Union:
		f.sparse = t.short(0, 0) == 0
	case FixedList:
		f.Size = t.word(0)
	}
}

// Width is the number of bytes of a number; 0 if it has no such number of bits as is read.
func Width(bits int) int {
	switch bits {
	case 8, 16, 32, 64:
		return bits / 8
	}
	return 0
}

// buffers is how many a column has in a batch, but for those of views, and what is inside of it.
func (f *Field) buffers(dictionary bool) (n int, children []*Field) {
	if f.Dict != nil && !dictionary {
		return 2, nil
	}
	switch f.Type {
	case Null:
		return 0, nil
	case RunEnd:
		return 0, f.Children
	case Struct, FixedList:
		return 1, f.Children
	case Union:
		if f.sparse {
			return 1, f.Children
		}
		return 2, f.Children
	case List, LargeList, Map:
		return 2, f.Children
	case ListView, LargeListView:
		return 3, f.Children
	case Binary, Text, LargeBinary, LargeText:
		return 3, nil
	}
	return 2, nil
}
