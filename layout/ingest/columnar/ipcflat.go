package columnar

import (
	"encoding/binary"
	"errors"
)

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

// bytes are n bytes at an offset, n at most 8 where they are not there.
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

// field is where field i is; 0 if it was left out.
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

// byteOf is field i, of one byte.
func (t table) byteOf(i int) byte {
	if at := t.field(i); at != 0 {
		return t.flat.bytes(at, 1)[0]
	}
	return 0
}

// short is field i, of two bytes; other if it was left out.
func (t table) short(i, other int) int {
	if at := t.field(i); at != 0 {
		return int(int16(t.u16(at)))
	}
	return other
}

// word is field i, of four bytes.
func (t table) word(i int) int {
	if at := t.field(i); at != 0 {
		return int(int32(t.u32(at)))
	}
	return 0
}

// long is field i, of eight bytes.
func (t table) long(i int) int64 {
	if at := t.field(i); at != 0 {
		return t.i64(at)
	}
	return 0
}

// child is the table that field i refers to.
func (t table) child(i int) (c table, ok bool) {
	at := t.field(i)
	if at == 0 {
		return table{}, false
	}
	return t.table(at + t.u32(at)), true
}

// vector is where the n elements of a field begin, which have a size.
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

// text is a field that is a string.
func (t table) text(i int) string {
	at, n := t.vector(i, 1)
	if n == 0 {
		return ""
	}
	return string(t.flat.bytes(at, n))
}
