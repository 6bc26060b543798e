package ids

import (
	"encoding/binary"

	"gdb/internal/codec"
)

// DumpBlock prints a block of a dictionary file of the given kind, from the field at which d
// stands, behind the checksum. b is the whole block. It does not print headers, and prints in
// hexadecimal what it cannot decode.
func DumpBlock(d *codec.Dump, kind string, b []byte) {
	if len(b) != BlockBytes {
		d.Hex(d.Remaining())
		return
	}
	n, flags := int(binary.LittleEndian.Uint16(b[4:])), binary.LittleEndian.Uint16(b[6:])
	switch {
	case string(b[4:8]) == trailerMagic:
		dumpTrailer(d, b)
	case flags == flagIndex:
		dumpIndex(d, kind, b, n)
	case kind == ForwardKind:
		dumpForward(d, b)
	case kind == ReverseKind:
		dumpReverse(d, b)
	}
	d.Hex(d.Remaining())
}

func dumpTrailer(d *codec.Dump, b []byte) {
	c := codec.NewDec(b[8:])
	d.Field(4, "magic %q", trailerMagic)
	d.Field(8, "entries %d", c.U64())
	d.Field(8, "data blocks %d", c.U64())
	d.Field(8, "index blocks %d", c.U64())
	d.Zeros(d.Remaining())
}

func dumpIndex(d *codec.Dump, kind string, b []byte, n int) {
	keyBytes, format := 4, "first node %d"
	if kind == ForwardKind {
		keyBytes, format = 8, "first hash %016x"
	}
	if n > keysPerBlock(keyBytes) {
		return
	}
	d.Field(2, "keys %d", n)
	d.Field(2, "flags %d: index", flagIndex)
	for i := range n {
		d.Field(keyBytes, format, getKey(b, keyBytes, i))
	}
	d.Zeros(d.Remaining())
}

func dumpForward(d *codec.Dump, b []byte) {
	f, err := decodeForward(b)
	if err != nil {
		d.Note("not readable: %v", err)
		return
	}
	d.Field(2, "entries %d", f.n)
	d.Field(2, "flags: carried %t", f.carried)
	for i := range f.n {
		d.Field(8, "hash %016x of entry %d", f.hash(i), i)
	}
	for i := range f.n {
		d.Field(4, "node %d of entry %d", f.node(i), i)
	}
	dumpHeap(d, f.n, f.ends, f.heap)
}

func dumpReverse(d *codec.Dump, b []byte) {
	r, err := decodeReverse(b)
	if err != nil {
		d.Note("not readable: %v", err)
		return
	}
	d.Field(2, "ids %d", r.n)
	d.Field(2, "flags 0")
	d.Field(4, "first node %d", r.first)
	dumpHeap(d, r.n, r.ends, r.heap)
}

// dumpHeap prints the end offsets and the ids of a data block.
func dumpHeap(d *codec.Dump, n int, ends, heap []byte) {
	for i := range n {
		d.Field(2, "end %d of id %d", binary.LittleEndian.Uint16(ends[2*i:]), i)
	}
	for i := range n {
		id := heapItem(ends, heap, i)
		d.Field(len(id), "id %d %q", i, id)
	}
	d.Zeros(d.Remaining())
}
