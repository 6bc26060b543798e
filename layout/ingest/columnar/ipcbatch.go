package columnar

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// ipcColumn is a column of a batch, or what is inside of one.
type ipcColumn struct {
	*ipcField
	Rows     int64
	Nulls    int64
	Buffers  []*ipcBuffer
	Children []*ipcColumn
}

// ipcBuffer is a part of a column. It is used from one goroutine.
type ipcBuffer struct {
	file     *ipcFile
	at, size int64 // in the file
	codec    codec
	unpacked []byte
	scratch  []byte
}

// codec is how buffers are compressed.
type codec int8

const (
	plain codec = iota - 1
	lz4Frame
	zstdFrame
)

// Batch opens a batch of rows: it reads their description.
func (f *ipcFile) Batch(p ipcPlace) ([]*ipcColumn, error) {
	return f.columns(p, f.Fields, false)
}

// Values opens the values of a dictionary of field.
func (f *ipcFile) Values(p ipcPlace, field *ipcField) (*ipcColumn, error) {
	columns, err := f.columns(p, []*ipcField{field}, true)
	if err != nil {
		return nil, err
	}
	return columns[0], nil
}

func (f *ipcFile) columns(p ipcPlace, fields []*ipcField, dictionary bool) (columns []*ipcColumn,
	err error) {
	m, err := f.message(p.at)
	if err != nil {
		return nil, err
	}
	batch := m.header
	if dictionary {
		batch, _ = m.header.child(1)
	}
	w := walk{file: f, m: m, batch: batch, codec: plain}
	w.nodes, w.nodesLeft = batch.vector(1, 16)
	w.buffers, w.buffersLeft = batch.vector(2, 16)
	w.views, w.viewsLeft = batch.vector(4, 8)
	if c, ok := batch.child(3); ok {
		if w.codec = codec(c.byteOf(0)); w.codec > zstdFrame || w.codec < 0 {
			return nil, fmt.Errorf("it is compressed by method %d, which is not read", w.codec)
		}
	}
	for _, field := range fields {
		c, err := w.column(field, dictionary)
		if err != nil {
			return nil, err
		}
		if c.Rows != p.Rows {
			return nil, fmt.Errorf("column %q has %d rows of %d", field.Name, c.Rows, p.Rows)
		}
		columns = append(columns, c)
	}
	return columns, batch.err()
}

// walk hands out the nodes and buffers that a batch lists, in order of the fields.
type walk struct {
	file                                                     *ipcFile
	m                                                        *message
	batch                                                    table
	codec                                                    codec
	nodes, nodesLeft, buffers, buffersLeft, views, viewsLeft int
}

// errList says that a batch lists less than its columns have.
var errList = errors.New("a batch has fewer parts than its columns need")

func (w *walk) column(f *ipcField, dictionary bool) (*ipcColumn, error) {
	if w.nodesLeft == 0 {
		return nil, errList
	}
	c := &ipcColumn{ipcField: f, Rows: w.batch.i64(w.nodes), Nulls: w.batch.i64(w.nodes + 8)}
	w.nodes, w.nodesLeft = w.nodes+16, w.nodesLeft-1
	n, children := f.buffers(dictionary)
	const version5 = 4
	switch {
	case f.Dict != nil && !dictionary:
	case f.Type == ipcTextView || f.Type == ipcBinaryView:
		more := w.batch.i64(w.views)
		if w.viewsLeft == 0 || more < 0 || more > int64(w.buffersLeft) {
			return nil, errList
		}
		n += int(more)
		w.views, w.viewsLeft = w.views+8, w.viewsLeft-1
	case f.Type == ipcUnion && w.m.version < version5:
		n++
	}
	for range n {
		b, err := w.buffer()
		if err != nil {
			return nil, err
		}
		c.Buffers = append(c.Buffers, b)
	}
	for _, child := range children {
		inside, err := w.column(child, false)
		if err != nil {
			return nil, err
		}
		c.Children = append(c.Children, inside)
	}
	return c, nil
}

func (w *walk) buffer() (*ipcBuffer, error) {
	if w.buffersLeft == 0 {
		return nil, errList
	}
	at, size := w.batch.i64(w.buffers), w.batch.i64(w.buffers+8)
	w.buffers, w.buffersLeft = w.buffers+16, w.buffersLeft-1
	if at < 0 || size < 0 || at > w.m.bytes-size {
		return nil, errShort
	}
	return &ipcBuffer{file: w.file, at: w.m.body + at, size: size, codec: w.codec}, nil
}

// errRows says that a column has fewer values than rows.
var errRows = errors.New("a column has fewer values than rows")

// Empty says whether nothing is in the buffer.
func (b *ipcBuffer) Empty() bool { return b.size == 0 }

// Unpacked is the memory that the buffer takes once it is read: nothing, if it is not compressed.
func (b *ipcBuffer) Unpacked() (int64, error) {
	if b.codec == plain || b.size == 0 {
		return 0, nil
	}
	head, err := b.file.read(b.at, min(8, b.size))
	if err != nil {
		return 0, err
	}
	if len(head) < 8 {
		return 0, errShort
	}
	n := int64(binary.LittleEndian.Uint64(head))
	if n == -1 { // this one is not compressed
		b.codec, b.at, b.size = plain, b.at+8, b.size-8
		return 0, nil
	}
	if n < 0 {
		return 0, fmt.Errorf("a buffer has %d bytes", n)
	}
	return n, nil
}

// Read returns n bytes at an offset, valid until the next call.
func (b *ipcBuffer) Read(off, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if off < 0 || n < 0 || off > math.MaxInt64-n {
		return nil, errRows
	}
	if b.codec != plain {
		if err := b.unpack(off + n); err != nil {
			return nil, err
		}
	}
	if b.unpacked != nil {
		return b.unpacked[off : off+n], nil
	}
	if off > b.size-n {
		return nil, errRows
	}
	if int64(cap(b.scratch)) < n {
		b.scratch = make([]byte, n)
	}
	b.scratch = b.scratch[:n]
	return b.scratch, b.file.readInto(b.scratch, b.at+off)
}

const (
	// unpackAtOnce is how many bytes are set aside before they are there: a length may be a lie.
	unpackAtOnce = 1 << 20
	// readAhead is how much is read of what is compressed at a time, and windowMax what a
	// decompressor may look back, in bytes.
	readAhead, windowMax = 64 << 10, 16 << 20
	// headShare is the part of a buffer below which only the head of it is unpacked: what a look
	// at the first rows wants.
	headShare = 8
)

// unpack makes the bytes of a compressed buffer, up to end at least.
func (b *ipcBuffer) unpack(end int64) error {
	n, err := b.Unpacked()
	if err != nil || b.codec == plain || b.size == 0 || end <= int64(len(b.unpacked)) {
		return err
	}
	if end > n {
		return errRows
	}
	if b.unpacked == nil && end < n/headShare {
		n = end
	}
	packed := bufio.NewReaderSize(io.NewSectionReader(b.file.r, b.at+8, b.size-8),
		int(min(readAhead, b.size)))
	var r io.Reader = lz4.NewReader(packed)
	if b.codec == zstdFrame {
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(uint64(max(n, windowMax))))
		if err != nil {
			return fmt.Errorf("a compressed buffer: %w", err)
		}
		defer z.Close()
		r = z
	}
	b.unpacked = nil
	out := make([]byte, min(n, max(unpackAtOnce, 4*b.size)))
	for have := 0; ; {
		got, err := io.ReadFull(r, out[have:])
		if have += got; err != nil {
			return fmt.Errorf("%w: a buffer has %d bytes of %d: %s", errPacked, have, n,
				err.Error())
		}
		if int64(have) == n {
			b.unpacked = out
			return nil
		}
		out = append(out, make([]byte, min(n-int64(have), int64(have)))...)
	}
}

// errPacked says that what was compressed is damaged.
var errPacked = errors.New("its compressed contents are damaged")
