package columnar

import (
	"bufio"
	"errors"
	"io"
	"sync"

	"gdb/internal/mem"
	"gdb/layout/ingest/input"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

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

// Unwrap is the error of the file.
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

// valuesBytes is what the values of a page take in memory besides the bytes of the page: where
// texts begin, levels, and what is unpacked from fewer bits.
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
