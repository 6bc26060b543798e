package rowfile

import (
	"fmt"
	"sort"

	"gdb/kv"
	"gdb/layout"
)

// A file of rows of several types has a section for each type, of rows of a width of its own, in
// the order of types. All have the same pages. A section begins with a page of its own, and one
// whose rows have no values takes no room. To readers all rows are as wide as the widest: what
// follows the values of a row are zeros.

// section is a kv.RowsSection with sizes that follow from it.
type section struct {
	kv.RowsSection
	nodes   uint64
	perPage int64
	begin   int64 // of its first page in the data area
	bytes   int64 // of its pages
	pieces  int64 // of a row, where rows are cut: see Split
}

// NewSectionsMeta lays out rows of several types in a file at path, NAME.rows. first is the first
// node of each type, and dims the number of values in its rows, which may be 0.
func NewSectionsMeta(name, path, dtype string, first []uint64, dims []int) (kv.RowsMeta, error) {
	widest := 0
	for _, d := range dims {
		widest = max(widest, d)
	}
	m, err := NewMeta(name, path, dtype, widest)
	if err != nil {
		return m, err
	}
	for i, d := range dims {
		m.Sections = append(m.Sections, kv.RowsSection{First: first[i], Dim: d,
			RowBytes: d * elementBytes(dtype)})
	}
	m.PageBytes, m.SumBytes = pageOf(m.Sections), sumLeast
	return m, nil
}

// pageOf returns the smallest multiple of 4 KiB in which rows of no section waste a sixteenth.
func pageOf(sections []kv.RowsSection) int {
	for page := layout.PageBytes; ; page += layout.PageBytes {
		fits := true
		for _, s := range sections {
			fits = fits && (s.RowBytes == 0 || page >= s.RowBytes &&
				page%s.RowBytes*wasteShare < page)
		}
		if fits {
			return page
		}
	}
}

// newSections returns the sections of rows of a number of nodes.
func newSections(m *kv.RowsMeta, nodes uint64) (all []section, err error) {
	begin := int64(0)
	for i, meta := range m.Sections {
		end := nodes
		if i+1 < len(m.Sections) {
			end = m.Sections[i+1].First
		}
		if meta.First > end || i == 0 && meta.First != 0 {
			return nil, fmt.Errorf("section %d has the rows %d to %d", i, meta.First, end)
		}
		s := section{RowsSection: meta, nodes: end - meta.First, begin: begin}
		if meta.RowBytes > 0 {
			s.perPage = int64(m.PageBytes / meta.RowBytes)
			s.bytes = (int64(s.nodes) + s.perPage - 1) / s.perPage * int64(m.PageBytes)
		}
		begin += s.bytes
		all = append(all, s)
	}
	return all, nil
}

// at returns where row number i of the section, or piece number i of its rows where each is width
// bytes, begins in the data area.
func (s *section) at(i uint64, page, width int64) int64 {
	if s.perPage == 0 {
		return s.begin
	}
	row, piece := int64(i), int64(0)
	if s.pieces > 1 {
		row, piece = row/s.pieces, row%s.pieces
	}
	return s.begin + row/s.perPage*page + row%s.perPage*int64(s.RowBytes) + piece*width
}

// section returns the section of a row; there are sections.
func (s *Shape) section(row uint64) *section {
	after := sort.Search(len(s.sections), func(i int) bool { return s.sections[i].First > row })
	return &s.sections[after-1]
}

// width returns how many bytes a row takes.
func (s *Shape) width(row uint64) int64 {
	if s.sections == nil {
		return int64(s.RowBytes)
	}
	of := s.section(row)
	if of.pieces > 1 {
		piece := int64(row-of.First) % of.pieces
		return min(int64(s.RowBytes), int64(of.RowBytes)-piece*int64(s.RowBytes))
	}
	return int64(of.RowBytes)
}

// run returns how many rows from row on are in one page, at most n.
func (s *Shape) run(row uint64, n int64) int64 {
	first, end, perPage := uint64(0), s.Nodes, s.PerPage
	if s.sections != nil {
		of := s.section(row)
		first, end, perPage = of.First, of.First+of.nodes, of.perPage*max(1, of.pieces)
		if of.pieces > 1 && of.RowBytes%s.RowBytes != 0 { // its last piece is narrower
			n = min(n, max(1, of.pieces-1-int64(row-first)%of.pieces))
		}
	}
	if perPage > 0 {
		n = min(n, perPage-int64(row-first)%perPage)
	}
	return min(n, int64(end-row))
}

// scanned returns how many rows from row on, at most n, a scan reads at a time to pages: rows of
// one section.
func (s *Shape) scanned(row uint64, n, pages int64) int64 {
	if s.sections == nil {
		return min(n, pages*s.PerPage)
	}
	of := s.section(row)
	if of.perPage > 0 {
		n = min(n, pages*of.perPage*max(1, of.pieces))
	}
	return min(n, int64(of.First+of.nodes-row))
}

// Page returns the rows of page n, from 1: the first, how many, and how many values and bytes each
// has.
func (s *Shape) Page(n int64) (first uint64, rows uint64, of kv.RowsSection) {
	if s.sections == nil {
		first = uint64(n-1) * uint64(s.PerPage)
		return first, min(uint64(s.PerPage), s.Nodes-first), kv.RowsSection{Dim: s.Dim,
			RowBytes: s.RowBytes}
	}
	at := (n - 1) * int64(s.PageBytes)
	i := sort.Search(len(s.sections), func(i int) bool {
		return s.sections[i].begin+s.sections[i].bytes > at
	})
	in := &s.sections[i]
	skipped := uint64((at - in.begin) / int64(s.PageBytes) * in.perPage)
	return in.First + skipped, min(uint64(in.perPage), in.nodes-skipped), in.RowsSection
}

// padded returns a function that makes rows of some number as wide as the widest, in memory that it
// uses again; nil if they are.
func (s *Shape) padded() func(rows []byte, n int) []byte {
	if s.sections == nil {
		return nil
	}
	var buf []byte
	return func(rows []byte, n int) []byte {
		if len(rows) == n*s.RowBytes {
			return rows
		}
		if need := n * s.RowBytes; cap(buf) < need {
			buf = make([]byte, need)
		}
		buf = buf[:n*s.RowBytes]
		width := len(rows) / max(n, 1)
		for i := range n {
			row := buf[i*s.RowBytes : (i+1)*s.RowBytes]
			clear(row[copy(row, rows[i*width:(i+1)*width]):])
		}
		return buf
	}
}
