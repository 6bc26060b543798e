package rowfile

import (
	"encoding/binary"
	"fmt"
	"strings"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
)

// A file of rows is a header (codec.Header), which counts as page 0, and pages of PageBytes. With R
// = PageBytes/RowBytes, page p, from 1, holds rows (p-1)*R … p*R-1, followed by zeros:
//
//	4096                     4096 + PageBytes
//	+-------+-------+---+-------+--------------------+
//	| row 0 | row 1 | … | zeros | row R | row R+1 …   |
//	+-------+-------+---+-------+--------------------+
//
// A row never straddles a page, and a page is the smallest multiple of 4 KiB that wastes less than
// a sixteenth. So a row is in as few sectors as possible, and the file is at most 1/15 larger than
// the data.
//
// The checksums are in a file of their own, NAME.crc, so that a page holds rows only and a single
// row can be verified: one u32 for every SumBytes of the pages, in pages of 4 KiB:
//
//	0        4                                         4096
//	+--------+-----------------------------------------+
//	| crc32c | sums of units 1023(p-1), 1023(p-1)+1, …     |   zeros after the last
//	+--------+-----------------------------------------+
//
// The page's own checksum is codec.BlockSum of kind GCRC, the store, the page number and what
// follows it. A unit's checksum is the CRC32C of the kind GROW, the store's UUID and the unit's
// bytes; it need not cover the unit's number, since the checksum's place tells that. In memory the
// checksums take 4 bytes per unit: 1/128 of the data for rows of 512 bytes, 1/1024 from 4 KiB on.
// They can stay on disk: see rowSums.
const (
	sumLeast = 512 // the smallest unit, in bytes: a sector
	sumMost  = 4096

	SumsPerPage = (layout.PageBytes - 4) / 4
	rowsLayout  = 1
	// sectionsLayout is rowsLayout with sections, of which sectionFields bytes tell each.
	sectionsLayout, sectionFields = 2, 12

	wasteShare  = 16
	rowBytesMax = 64 << 20
)

// pageFor returns the size of a page for rows: the smallest multiple of 4 KiB that holds a row and
// wastes less than a sixteenth.
func pageFor(rowBytes int) int {
	for page := layout.PageBytes; ; page += layout.PageBytes {
		if page >= rowBytes && page%rowBytes*wasteShare < page {
			return page
		}
	}
}

// sumFor returns how many bytes a checksum covers: a row if its size is a power of two of sectors,
// so that it is verified alone; 4096 if rows are whole pages; else a sector.
func sumFor(rowBytes int) int {
	switch {
	case rowBytes%sumMost == 0:
		return sumMost
	case rowBytes >= sumLeast && rowBytes < sumMost && rowBytes&(rowBytes-1) == 0:
		return rowBytes
	}
	return sumLeast
}

// NewMeta lays out rows of this name, type and dimension in a file at path, NAME.rows.
func NewMeta(name, path, dtype string, dim int) (kv.RowsMeta, error) {
	m := kv.RowsMeta{Name: name, Path: path, DType: dtype, Dim: dim}
	m.RowBytes = dim * elementBytes(dtype)
	if m.RowBytes <= 0 || m.RowBytes > rowBytesMax || dim > rowBytesMax {
		return m, fmt.Errorf("rows of %d elements of type %q cannot be stored", dim, dtype)
	}
	if !strings.HasSuffix(path, ".rows") {
		return m, fmt.Errorf("a file of rows is called NAME.rows, not %q", path)
	}
	m.PageBytes, m.SumBytes = pageFor(m.RowBytes), sumFor(m.RowBytes)
	return m, nil
}

// NewSparseMeta lays out sparse rows of dim columns, of a number of words each: see NewMeta.
func NewSparseMeta(name, path string, dim, words int) (kv.RowsMeta, error) {
	m, err := NewMeta(name, path, F32, words)
	m.DType, m.Dim = Sparse, dim
	if err == nil && dim < 1 {
		err = fmt.Errorf("sparse rows of %d columns cannot be stored", dim)
	}
	return m, err
}

// Shape is a kv.RowsMeta, with sizes that follow from it.
type Shape struct {
	kv.RowsMeta
	Nodes   uint64
	PerPage int64 // rows in a page; of the widest, if there are sections

	sections []section
}

// NewShape returns the shape, or an error if rows are not laid out as this program reads them.
func NewShape(m kv.RowsMeta, nodes uint64) (Shape, error) {
	want, err := NewMeta(m.Name, m.Path, m.DType, m.Dim)
	if m.DType == Sparse {
		want, err = NewSparseMeta(m.Name, m.Path, m.Dim, m.RowBytes/4)
	}
	if len(m.Sections) > 0 {
		var first []uint64
		var dims []int
		for _, s := range m.Sections {
			first, dims = append(first, s.First), append(dims, s.Dim)
		}
		want, err = NewSectionsMeta(m.Name, m.Path, m.DType, first, dims)
	}
	if err == nil && !want.Equal(&m) {
		err = fmt.Errorf("rows of %d bytes in pages of %d with sums of %d cannot be read: want "+
			"%d, %d and %d", m.RowBytes, m.PageBytes, m.SumBytes, want.RowBytes, want.PageBytes,
			want.SumBytes)
	}
	if err == nil && nodes > layout.MaxNodes {
		err = fmt.Errorf("%d rows are more than ids of 32 bits", nodes)
	}
	s := Shape{RowsMeta: m, Nodes: nodes}
	if err == nil {
		s.PerPage = int64(m.PageBytes / m.RowBytes)
		s.sections, err = newSections(&s.RowsMeta, nodes)
	}
	return s, err
}

// at returns where a row begins in the data area, which follows the header.
func (s *Shape) at(row uint64) int64 {
	if s.sections != nil {
		of := s.section(row)
		return of.at(row-of.First, int64(s.PageBytes), int64(s.RowBytes))
	}
	return int64(row)/s.PerPage*int64(s.PageBytes) + int64(row)%s.PerPage*int64(s.RowBytes)
}

// DataBytes returns the size of all pages, in bytes.
func (s *Shape) DataBytes() int64 {
	if s.sections != nil {
		last := s.sections[len(s.sections)-1]
		return last.begin + last.bytes
	}
	return (int64(s.Nodes) + s.PerPage - 1) / s.PerPage * int64(s.PageBytes)
}

// units returns the number of checksums.
func (s *Shape) units() int64 { return s.DataBytes() / int64(s.SumBytes) }

// SumsBytes returns the size of the file of checksums, in bytes.
func (s *Shape) SumsBytes() int64 {
	return codec.HeaderBytes + (s.units()+SumsPerPage-1)/SumsPerPage*layout.PageBytes
}

// fields returns the fields of the headers of both files:
//
//	u32 layout, u32 dim, u32 row, page and sum bytes, u64 rows, string type, string name
//
// If there are sections, layout is sectionsLayout, and their number (u32) and for each its first
// row (u64) and width (u32 values) follow.
func (s *Shape) fields() []byte {
	var e codec.Enc
	version := rowsLayout
	if s.sections != nil {
		version = sectionsLayout
	}
	for _, v := range []int{version, s.Dim, s.RowBytes, s.PageBytes, s.SumBytes} {
		e.U32(uint32(v))
	}
	e.U64(s.Nodes)
	e.String(s.DType)
	e.String(s.Name)
	if s.sections != nil {
		e.U32(uint32(len(s.sections)))
		for _, of := range s.sections {
			e.U64(of.First)
			e.U32(uint32(of.Dim))
		}
	}
	return e.B
}

// decodeFields decodes and checks the fields. The path is not among them.
func decodeFields(b []byte) (Shape, error) {
	d := codec.NewDec(b)
	version := d.U32()
	m := kv.RowsMeta{Dim: int(d.U32()), RowBytes: int(d.U32()), PageBytes: int(d.U32()),
		SumBytes: int(d.U32())}
	nodes := d.U64()
	m.DType, m.Name = d.String(), d.String()
	m.Path = ".rows"
	if version == sectionsLayout {
		n := d.U32()
		for range min(int(n), d.Remaining()/sectionFields) {
			s := kv.RowsSection{First: d.U64(), Dim: int(d.U32())}
			s.RowBytes = s.Dim * elementBytes(m.DType)
			m.Sections = append(m.Sections, s)
		}
		if int(n) != len(m.Sections) || n == 0 {
			return Shape{}, fmt.Errorf("%d sections, and the bytes of %d", n, len(m.Sections))
		}
	}
	switch {
	case d.Err() != nil:
		return Shape{}, d.Err()
	case version != rowsLayout && version != sectionsLayout:
		return Shape{}, fmt.Errorf("row layout %d, this gdb reads %d and %d", version, rowsLayout,
			sectionsLayout)
	case d.Remaining() != 0:
		return Shape{}, fmt.Errorf("%d further bytes are unknown", d.Remaining())
	}
	s, err := NewShape(m, nodes)
	s.Path = ""
	return s, err
}

// UnitSum returns the checksum of a unit of rows; seed is layout.SumSeed of KindRows.
func UnitSum(seed uint32, unit []byte) uint32 { return codec.ChecksumUpdate(seed, unit) }

// SumAt returns checksum i of a page of checksums.
func SumAt(page []byte, i int) uint32 { return binary.LittleEndian.Uint32(page[4+4*i:]) }

// MetaOf returns the rows that are, or whose checksums are, in a file of a store. labels is set if
// they are the labels.
func MetaOf(meta *kv.Meta, path string) (m kv.RowsMeta, labels *kv.LabelsMeta, ok bool) {
	for _, m := range meta.Features {
		if path == m.Path || path == layout.SumsPath(m.Path) {
			return m, nil, true
		}
	}
	if l := meta.Labels; l != nil && (path == l.Rows.Path || path == layout.SumsPath(l.Rows.Path)) {
		return l.Rows, l, true
	}
	return m, nil, false
}
