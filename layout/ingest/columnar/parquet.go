package columnar

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"gdb/internal/mem"
	"gdb/layout/ingest/input"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquetFile reads Parquet.
type parquetFile struct {
	name    string
	file    *parquet.File
	disk    *disk
	columns []column
	held    pageMemory
}

// footerSign ends a file, after four bytes with the length of the footer.
const footerSign = "PAR1"

// checkFooter returns an error if the footer is longer than the file, or takes more memory than it
// may before it is known to be one.
func checkFooter(name string, d *disk, bound int64) error {
	end := make([]byte, 8)
	if d.size < int64(len(footerSign)+len(end)) {
		return fmt.Errorf("it has %d bytes", d.size)
	}
	if _, err := d.ReadAt(end, d.size-int64(len(end))); err != nil {
		return err
	}
	footer := int64(binary.LittleEndian.Uint32(end))
	switch {
	case string(end[4:]) != footerSign:
		return errors.New("it does not end as one does: was it cut off?")
	case footer > d.size-int64(len(footerSign)+len(end)):
		return fmt.Errorf("its footer has %d bytes, and the file %d", footer, d.size)
	case bound > 0 && footer > bound:
		return input.Wrong(name, "give more --memory, or write fewer columns: one column of lists "+
			"for many numbers", "the list of its columns takes %s, and %s may be used",
			mem.FormatSize(footer), mem.FormatSize(bound))
	}
	return nil
}

func openParquet(name string, d *disk, bound int64) (*parquetFile, error) {
	if err := checkFooter(name, d, bound); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(d, d.size, parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, err
	}
	columns := columnsOf(f.Root())
	markHalves(columns, f.Metadata().Schema)
	return &parquetFile{name: name, file: f, disk: d, columns: columns,
		held: pageMemory{name: name, bound: bound / 2}}, nil
}

// markHalves makes columns of float16 columns of numbers: their types have lost what their elements
// of the schema say.
func markHalves(columns []column, schema []format.SchemaElement) {
	var halves []bool // by leaf
	for _, e := range schema {
		if e.Type.Valid { // a leaf
			_, half := e.LogicalType.Value.(*format.Float16Type)
			halves = append(halves, half)
		}
	}
	for i := range columns {
		c := &columns[i]
		if c.leaf < len(halves) && halves[c.leaf] && c.what != "lists of lists" {
			c.form, c.half = float32s, true
		}
	}
}

func (t *parquetFile) rows() int64 { return t.file.NumRows() }

func (t *parquetFile) pandas() string {
	notes, _ := t.file.Lookup("pandas")
	return notes
}

// listValuesMost bounds the elements of all lists of a batch.
const listValuesMost = 1 << 22

// pageBytes is what writers make pages of. A page that is larger is found when it is read.
const pageBytes = 1 << 20

// checkMemory returns an error if a page of each of some columns takes more than may be used.
func (t *parquetFile) checkMemory(columns []int) error {
	bound := t.held.bound
	most, rows := int64(0), int64(0)
	for _, g := range t.file.Metadata().RowGroups {
		sum := int64(0)
		for _, c := range columns {
			if leaf := t.columns[c].leaf; leaf < len(g.Columns) {
				sum += min(g.Columns[leaf].MetaData.TotalUncompressedSize, pageBytes)
			}
		}
		if sum > most {
			most, rows = sum, g.NumRows
		}
	}
	if bound <= 0 || most <= bound {
		return nil
	}
	return input.Wrong(t.name, fmt.Sprintf("give more --memory, or write row groups of fewer than "+
		"%d rows, or one column of lists", rows), "reading a page of each of %d columns takes %s, "+
		"and %s may be used", len(columns), mem.FormatSize(most), mem.FormatSize(bound))
}

// openGroup begins a row group.
func (t *parquetFile) openGroup(i int, cursors []*cursor) (rows int64, err error) {
	groups := t.file.RowGroups()
	if i == len(groups) {
		return 0, io.EOF
	}
	chunks := groups[i].ColumnChunks()
	for _, c := range cursors {
		if c.leaf >= len(chunks) {
			return 0, fmt.Errorf("a row group has %d columns", len(chunks))
		}
		p := &pages{column: c.column, pages: chunks[c.leaf].Pages(),
			ahead: newPageHeaders(t.disk, &t.file.Metadata().RowGroups[i].Columns[c.leaf]),
			held:  &t.held}
		if err := c.setGroup(p); err != nil {
			return 0, err
		}
	}
	return groups[i].NumRows(), nil
}

// pages reads the column of a row group, a page at a time.
type pages struct {
	column *column
	pages  parquet.Pages
	ahead  *pageHeaders
	held   *pageMemory
	page   parquet.Page
	bytes  int64 // of held: the page's and the dictionary's
	// levels of definition say which values of the page are there, and repeats which begin a row;
	// nil where all do.
	levels, repeats []byte
	values          pageValues // those that are there
	count, at       int        // values in the page, and of these the next to take
	used            int        // the next one that is there
	ended           bool       // the row group has no more pages
}

// fit returns how many of the next n rows have no more text than limit, at least one. A batch ends
// with a page.
func (p *pages) fit(c *cursor, n, limit int) (int, error) {
	if err := p.ensure(); err != nil {
		return 0, err
	}
	rows, bytes, used := 0, 0, p.used
	for i := p.at; i < p.count; i++ {
		if begins := p.repeats == nil || p.repeats[i] == 0; begins {
			if rows == n || rows > 0 && bytes > limit {
				break
			}
			rows++
		}
		if p.isFull(i) {
			bytes += len(p.values.text(used))
			used++
		}
	}
	return max(1, rows), nil
}

// isFull reports whether a value of the page is there.
func (p *pages) isFull(i int) bool { return p.levels == nil || int(p.levels[i]) == p.column.full }

// take reads n rows of the column.
func (p *pages) take(c *cursor, n int) error {
	if c.list {
		return p.takeLists(c, n)
	}
	for left := n; left > 0; {
		if err := p.ensure(); err != nil {
			return err
		}
		k := min(left, p.count-p.at)
		left -= k
		for end := p.at + k; p.at < end; {
			first, full := p.at, p.isFull(p.at)
			if p.at = end; p.levels != nil {
				for p.at = first + 1; p.at < end && p.isFull(p.at) == full; p.at++ {
				}
			}
			p.give(c, p.at-first, full)
		}
	}
	return nil
}

// give appends the next n values, all of which are there or none.
func (p *pages) give(c *cursor, n int, full bool) {
	if !full {
		c.addNulls(n)
		return
	}
	p.values.add(c, p.used, p.used+n)
	p.used += n
}

// takeLists reads n rows of lists.
func (p *pages) takeLists(c *cursor, n int) error {
	for begun := false; ; {
		err := p.ensure()
		switch {
		case err == errEnded && len(c.ends) == n-1 && begun:
			c.ends = append(c.ends, c.len())
			return nil
		case err != nil:
			return err
		}
		if p.repeats[p.at] == 0 { // the first of a row
			if begun {
				c.ends = append(c.ends, c.len())
				if len(c.ends) == n {
					return nil
				}
			}
			begun = true
		}
		if int(p.levels[p.at]) >= c.present {
			p.give(c, 1, p.isFull(p.at))
		}
		p.at++
		if c.len() > listValuesMost {
			return input.Wrong(p.held.name, "write shorter lists",
				"column %q has lists of more than %d values", c.name, listValuesMost)
		}
	}
}

// errEnded says that a row group has fewer rows than it says.
var errEnded = errors.New("a row group has fewer values than it says")

// ensure makes sure that there are values to take.
func (p *pages) ensure() error {
	for p.at == p.count {
		p.drop()
		if err := p.nextPage(); err != nil {
			return err
		}
	}
	return nil
}

// nextPage reads a page, if it and the pages of the other columns fit in memory.
func (p *pages) nextPage() error {
	if p.ended {
		return errEnded
	}
	bytes, err := p.ahead.next()
	if err == nil {
		err = p.held.take(p.column.name, bytes)
	}
	if err == nil {
		p.bytes += bytes
		p.page, err = p.pages.ReadPage()
	}
	if err == io.EOF {
		p.ended = true
		return errEnded
	}
	var large *pageError
	switch {
	case errors.As(err, &large):
		return err
	case err != nil:
		return fmt.Errorf("column %q: %w", p.column.name, err)
	}
	// The library keeps the page before until it has read this one.
	p.held.free(p.bytes - bytes - p.ahead.dictionary)
	p.bytes = bytes + p.ahead.dictionary
	p.levels, p.repeats = p.page.DefinitionLevels(), p.page.RepetitionLevels()
	p.values, p.count = valuesOf(p.column, p.page), int(p.page.NumValues())
	return nil
}

// drop gives a page back, of which nothing is waiting.
func (p *pages) drop() {
	if p.page != nil {
		parquet.Release(p.page)
	}
	p.page, p.values = nil, pageValues{}
	p.levels, p.repeats, p.count, p.at, p.used = nil, nil, 0, 0, 0
}

func (p *pages) close() error {
	p.drop()
	p.held.free(p.bytes)
	p.bytes = 0
	return p.pages.Close()
}

// pageMemory counts the bytes of the pages that are in memory, of all columns that are read. A page
// of a few bytes on disk may unpack to any size: its header, which is read before it, says so.
type pageMemory struct {
	name  string // of the file
	bound int64  // 0 is any
	mu    struct {
		sync.Mutex
		used int64
	}
}

// take counts bytes of a column, or is an error if there is no room for them.
func (m *pageMemory) take(column string, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bound > 0 && m.mu.used+bytes > m.bound {
		return &pageError{input.Wrong(m.name, "give more --memory, or write smaller pages: "+
			"pyarrow.parquet.write_table(…, data_page_size=65536, write_batch_size=64)",
			"a page of column %q takes %s in memory, others %s, and %s may be used for all",
			column, mem.FormatSize(bytes), mem.FormatSize(m.mu.used), mem.FormatSize(m.bound))}
	}
	m.mu.used += bytes
	return nil
}

func (m *pageMemory) free(bytes int64) {
	m.mu.Lock()
	m.mu.used -= bytes
	m.mu.Unlock()
}

// pageError says that a page does not fit in memory.
type pageError struct{ error }

// Unwrap returns the error of the file.
func (e *pageError) Unwrap() error { return e.error }

// pageHeaders reads the headers of a column's pages in a row group, ahead of the pages.
type pageHeaders struct {
	disk       io.ReaderAt
	at, end    int64
	packed     bool
	dictionary int64 // bytes of the dictionary in memory, once its header was read
}

// headerRead is how much of a file is read for a header at first: most are smaller.
const headerRead = 512

func newPageHeaders(d *disk, c *format.ColumnChunk) *pageHeaders {
	h := &pageHeaders{disk: d, at: c.MetaData.DataPageOffset,
		packed: c.MetaData.Codec != format.Uncompressed}
	if first := c.MetaData.DictionaryPageOffset; first != 0 {
		h.at = first
	}
	h.end = h.at + c.MetaData.TotalCompressedSize
	return h
}

// next reads the header of the next page, and of a dictionary before it, and returns the memory
// that they take while they are read; io.EOF behind the last.
func (h *pageHeaders) next() (bytes int64, err error) {
	for h.at < h.end {
		section := io.NewSectionReader(h.disk, h.at, h.end-h.at)
		buffered := bufio.NewReaderSize(section, headerRead)
		var header format.PageHeader
		var protocol thrift.CompactProtocol
		if err := thrift.NewDecoder(protocol.NewReader(buffered)).Decode(&header); err != nil {
			return 0, err
		}
		read, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, err
		}
		packed, unpacked := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
		if packed < 0 || unpacked < 0 {
			return 0, errors.New("a page has a negative size")
		}
		h.at += read - int64(buffered.Buffered()) + packed
		if h.packed {
			bytes += packed
		}
		bytes += unpacked + valuesBytes(&header)
		if header.Type != format.DictionaryPage {
			return bytes, nil
		}
		h.dictionary = unpacked + valuesBytes(&header)
	}
	return 0, io.EOF
}

// valuesBytes returns the memory that the values of a page take besides the bytes of the page: for
// the places where texts begin, for levels, and for what is unpacked from fewer bits.
func valuesBytes(h *format.PageHeader) int64 {
	const plain, packed = 6, 12
	n, encoding := int64(0), format.Plain
	switch {
	case h.DataPageHeader.Valid:
		n, encoding = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
	case h.DataPageHeaderV2.Valid:
		n, encoding = int64(h.DataPageHeaderV2.V.NumValues), h.DataPageHeaderV2.V.Encoding
	case h.DictionaryPageHeader.Valid:
		n = int64(h.DictionaryPageHeader.V.NumValues)
	}
	if encoding == format.Plain {
		return n * plain
	}
	return n * packed
}
