package columnfile

import (
	"encoding/binary"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
)

// A file of a column is a header (codec.Header), blocks of rows, after every 169 of them a page
// that says where they are, then the blocks of the dictionary, a directory of the pages, and an
// end. All but the blocks begin at a multiple of 512 bytes:
//
//	0        4096
//	+--------+---------+---------+---+--------+-----------+---+-----------+-----+
//	| header | block 1 | block 2 | … | page 1 | block 170 | … | directory | end |
//	+--------+---------+---------+---+--------+-----------+---+-----------+-----+
//
// All blocks but the last have the same number of rows, so the number of a row's block is computed.
// Where the block is, is in memory: 8 bytes a block.
const (
	fileLayout = 1
	// sharedLayout is the layout of a column that may have its values in features.
	sharedLayout = 2

	// pageEntries is the number of blocks that a page describes.
	pageEntries = (layout.PageBytes - pageHead) / entryBytes
	pageHead    = 24
	entryBytes  = 24

	endMagic = "GCND"
)

// Blocks, pages, the directory and the end begin with a checksum, four bytes of their own, and
// their number, u64. Blocks and pages are numbered from 1.
const (
	numberAt        = 8
	pageNumber      = 1 << 62 // the number of page p is pageNumber|p
	directoryNumber = 1 << 63
	endNumber       = directoryNumber + 1
)

// class says in which field of Values the rows of a column are.
type class uint8

const (
	ints class = iota
	floats
	texts
	lists
)

// classOf returns the class of a type; false if there is no such type.
func classOf(typ string) (class, bool) {
	switch typ {
	case Int64, Bool, Date, Timestamp:
		return ints, true
	case Float64:
		return floats, true
	case String:
		return texts, true
	case Sparse:
		return lists, true
	}
	return 0, false
}

// column is what a file of a column holds.
type column struct {
	kv.TableColumn
	class class
	seed  uint32 // of checksums
}

// newColumn checks what is known of a column before it is written.
func newColumn(m kv.TableColumn, uuid kv.UUID) (column, error) {
	k, ok := classOf(m.Type)
	switch {
	case !ok:
		return column{}, fmt.Errorf("column %q is of type %q, which is none", m.Name, m.Type)
	case (k == lists) != (m.Dim > 0) || m.Dim > 1<<32:
		return column{}, fmt.Errorf("column %q of type %s has %d dimensions", m.Name, m.Type,
			m.Dim)
	}
	return column{TableColumn: m, class: k,
		seed: codec.Checksum([]byte(layout.KindColumn), uuid[:], []byte(m.Path))}, nil
}

// sum returns the checksum of a block, page, directory or end, which begins with it.
func (c *column) sum(b []byte) uint32 { return codec.ChecksumUpdate(c.seed, b[4:]) }

// seal writes the number and the checksum to the front of b.
func (c *column) seal(number uint64, b []byte) {
	binary.LittleEndian.PutUint64(b[numberAt:], number)
	binary.LittleEndian.PutUint32(b, c.sum(b))
}

// verify checks what seal wrote.
func (c *column) verify(number uint64, b []byte) error {
	want := binary.LittleEndian.Uint32(b)
	if got := c.sum(b); got != want {
		return fmt.Errorf("checksum is %08x, its bytes give %08x", want, got)
	}
	if got := binary.LittleEndian.Uint64(b[numberAt:]); got != number {
		return fmt.Errorf("it has number %d, want %d", got, number)
	}
	return nil
}

// fields returns the fields of the header:
//
//	u32 layout, u64 dimensions, string type, string name; with features: string path,
//	u64 first node, u32 column
func (c *column) fields() []byte {
	var e codec.Enc
	version := uint32(fileLayout)
	if c.Shared.Path != "" {
		version = sharedLayout
	}
	e.U32(version)
	e.U64(uint64(c.Dim))
	e.String(c.Type)
	e.String(c.Name)
	if version == sharedLayout {
		e.String(c.Shared.Path)
		e.U64(c.Shared.First)
		e.U32(uint32(c.Shared.Column))
	}
	return e.B
}

// decodeFields decodes the fields of the header of the file at a path.
func decodeFields(b []byte, path string, uuid kv.UUID) (column, error) {
	d := codec.NewDec(b)
	version := d.U32()
	m := kv.TableColumn{Path: path, Dim: int(d.U64()), Type: d.String(), Name: d.String()}
	if version == sharedLayout {
		m.Shared = kv.FeatureAt{Path: d.String(), First: d.U64(), Column: int(d.U32())}
	}
	switch {
	case d.Err() != nil:
		return column{}, d.Err()
	case version != fileLayout && version != sharedLayout:
		return column{}, fmt.Errorf("%w: layout %d, this gdb reads %d and %d", kv.ErrFormat,
			version, fileLayout, sharedLayout)
	case d.Remaining() != 0:
		return column{}, fmt.Errorf("%d further bytes are unknown", d.Remaining())
	}
	return newColumn(m, uuid)
}

// entry is what a page says of a block: its length, how many of its rows are null, and its bounds.
type entry struct {
	bytes, nulls    uint32
	least, greatest uint64
}

// page describes consecutive blocks, which lie one after the other from a place in the file on:
//
//	0        4        8        16      24
//	+--------+--------+--------+-------+-------------------------------------------------+-------+
//	| crc32c | blocks | number | place | bytes u32, nulls u32, least u64, greatest u64 … | zeros |
//	+--------+--------+--------+-------+-------------------------------------------------+-------+
//
// Bounds are keys: see keyOfInt, keyOfFloat and keyOfString. In a block without values the least is
// above the greatest.
type page struct {
	place   uint64
	entries []entry
}

func (p *page) encode(b []byte) {
	clear(b)
	e := codec.Enc{B: b[:4]}
	e.U32(uint32(len(p.entries)))
	e.U64(0) // room for the number
	e.U64(p.place)
	for _, x := range p.entries {
		e.U32(x.bytes)
		e.U32(x.nulls)
		e.U64(x.least)
		e.U64(x.greatest)
	}
}

// decode decodes a verified page.
func (p *page) decode(b []byte) error {
	d := codec.NewDec(b[4:])
	n := d.U32()
	d.U64()
	p.place = d.U64()
	if n == 0 || n > pageEntries {
		return fmt.Errorf("%d blocks in a page of %d", n, pageEntries)
	}
	p.entries = p.entries[:0]
	for range n {
		p.entries = append(p.entries, entry{d.U32(), d.U32(), d.U64(), d.U64()})
	}
	return d.Err()
}

// end is the last page of a file. Largest and raw are the largest numbers of bytes of a block, as
// it is stored and as it is decompressed.
//
//	u32 crc32c, "GCND", u64 number, u32 rows of a block, u32 flags: 1 if all values are 1,
//	u64 rows, nulls, strings of the dictionary, pages, u64 place of the directory, u32 largest,
//	u32 raw, string least, string greatest, zeros
type end struct {
	pages, directory uint64
	largest, raw     uint32
}

func (c *column) encodeEnd(x end) []byte {
	e := codec.Enc{B: make([]byte, 4, layout.PageBytes)}
	e.Bytes([]byte(endMagic))
	e.U64(0) // room for the number
	e.U32(uint32(c.BlockRows))
	flags := uint32(0)
	if c.Ones {
		flags = 1
	}
	e.U32(flags)
	for _, v := range []uint64{c.Rows, c.Nulls, c.Dictionary, x.pages, x.directory} {
		e.U64(v)
	}
	e.U32(x.largest)
	e.U32(x.raw)
	e.String(c.Least)
	e.String(c.Greatest)
	e.Pad(layout.PageBytes)
	c.seal(endNumber, e.B)
	return e.B
}

// decodeEnd verifies and decodes the end of a file of size bytes.
func (c *column) decodeEnd(b []byte, size int64) (x end, err error) {
	if err := c.verify(endNumber, b); err != nil {
		return x, err
	}
	d := codec.NewDec(b[4:])
	if magic := string(d.Bytes(4)); magic != endMagic {
		return x, fmt.Errorf("magic of the end is %q, want %q", magic, endMagic)
	}
	d.U64()
	c.BlockRows, c.Ones = int(d.U32()), d.U32()&1 != 0
	c.Rows, c.Nulls, c.Dictionary, x.pages, x.directory = d.U64(), d.U64(), d.U64(), d.U64(),
		d.U64()
	x.largest, x.raw = d.U32(), d.U32()
	c.Least, c.Greatest = d.String(), d.String()
	blocks := c.blocks() + c.dictionaryBlocks()
	switch {
	case d.Err() != nil:
		return x, d.Err()
	case c.BlockRows < 1 || c.BlockRows > rowsMost || c.Rows > 1<<40 || c.Dictionary > dictMost ||
		blocks > 1<<32-1 || x.raw > rawMost || int64(x.largest) > size || c.Nulls > c.Rows:
		return x, fmt.Errorf("%d rows in blocks of %d, %d nulls, %d strings, blocks of up to %d "+
			"bytes", c.Rows, c.BlockRows, c.Nulls, c.Dictionary, x.raw)
	case x.pages != (blocks+pageEntries-1)/pageEntries:
		return x, fmt.Errorf("%d pages for %d blocks", x.pages, blocks)
	case x.directory%alignBytes != 0 ||
		x.directory+uint64(directoryBytes(x.pages))+layout.PageBytes != uint64(size):
		return x, fmt.Errorf("file is %d bytes long, which does not fit a directory at %d of "+
			"%d pages", size, x.directory, x.pages)
	}
	return x, nil
}

// blocks returns the number of blocks of rows.
func (c *column) blocks() uint64 { return ceil(c.Rows, c.BlockRows) }

// dictionaryBlocks returns the number of blocks of the dictionary, which follow those of rows.
func (c *column) dictionaryBlocks() uint64 { return ceil(c.Dictionary, c.BlockRows) }

func ceil(n uint64, by int) uint64 {
	if by < 1 {
		return 0
	}
	return (n + uint64(by) - 1) / uint64(by)
}

// rowsOf returns the number of rows of a block, counted from 1; one of the dictionary has strings.
func (c *column) rowsOf(n uint64) int {
	rows, before := c.Rows, uint64(0)
	if b := c.blocks(); n > b {
		rows, before = c.Dictionary, b
	}
	return int(min(uint64(c.BlockRows), rows-(n-before-1)*uint64(c.BlockRows)))
}

// directoryHead is the size of what precedes the places of pages in the directory: a checksum, four
// zeros and the number.
const directoryHead = 16

// directoryBytes returns the length of a directory of this number of pages, in whole sectors.
func directoryBytes(pages uint64) int64 { return aligned(directoryHead + 8*int64(pages)) }

// aligned rounds up to whole sectors.
func aligned(n int64) int64 { return (n + alignBytes - 1) &^ (alignBytes - 1) }
