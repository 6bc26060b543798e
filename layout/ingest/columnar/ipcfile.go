package columnar

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	magic = "ARROW1"
	// continuation stands before the length of a message, but in old files.
	continuation = 1<<32 - 1
	// rowsMax is more than any batch has, and leaves room for sums and products.
	rowsMax = 1 << 40
)

// The kinds of messages.
const (
	schemaMessage = 1 + iota
	dictionaryMessage
	batchMessage
)

// ipcFile is an opened Arrow file or stream.
type ipcFile struct {
	Fields  []*ipcField
	Batches []ipcPlace
	// Dicts are the dictionaries, in the order in which they are to be read.
	Dicts []ipcPlace
	Rows  int64

	r    io.ReaderAt
	size int64
}

// ipcPlace is where a batch of rows, or of values of a dictionary, is.
type ipcPlace struct {
	Rows int64
	// Of a dictionary: its identity, whether it adds to the values before it, and the number of
	// batches before it, for which it does not hold.
	ID     int64
	Adds   bool
	Before int

	at int64
}

// isIPC reports whether a file that begins with head is an Arrow file or the beginning of a stream.
func isIPC(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magic)) || len(head) >= 8 &&
		binary.LittleEndian.Uint32(head) == continuation
}

// openIPC reads the descriptions of a file or stream of a size.
func openIPC(r io.ReaderAt, size int64) (*ipcFile, error) {
	f := &ipcFile{r: r, size: size}
	head, err := f.read(0, min(8, size))
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte(magic)) {
		err = f.footer()
	} else {
		err = f.stream()
	}
	if err != nil {
		return nil, err
	}
	for _, b := range f.Batches {
		f.Rows += b.Rows
	}
	return f, nil
}

// errShort says that a file ends before what it describes.
var errShort = errors.New("it ends too soon: it was not written to its end, or was cut")

// read reads n bytes at an offset.
func (f *ipcFile) read(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || at > f.size-n {
		return nil, errShort
	}
	b := make([]byte, n)
	return b, f.readInto(b, at)
}

// readInto fills b from an offset.
func (f *ipcFile) readInto(b []byte, at int64) error {
	n, err := f.r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return errShort
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
}

// message is a description and where the buffers that it describes are.
type message struct {
	kind    byte
	version int
	header  table
	body    int64
	bytes   int64 // of the body
}

// next returns where the next message is.
func (m *message) next() int64 { return m.body + m.bytes }

// message reads the one at an offset; nil at the end of a stream.
func (f *ipcFile) message(at int64) (*message, error) {
	head, err := f.read(at, 4)
	if err != nil {
		return nil, err
	}
	if n := binary.LittleEndian.Uint32(head); n == continuation {
		at += 4
		if head, err = f.read(at, 4); err != nil {
			return nil, err
		}
	}
	n := int64(int32(binary.LittleEndian.Uint32(head)))
	if n == 0 {
		return nil, nil
	}
	buf, err := f.read(at+4, n)
	if err != nil {
		return nil, err
	}
	t := (&flat{buf: buf}).root()
	m := &message{version: t.short(0, 0), kind: t.byteOf(1), body: at + 4 + n, bytes: t.long(3)}
	header, ok := t.child(2)
	if err := t.err(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("a message in it is empty")
	}
	if m.header = header; m.bytes < 0 || m.body > f.size-m.bytes {
		return nil, errShort
	}
	return m, nil
}

// footer reads the end of a file, which lists what is in it.
func (f *ipcFile) footer() error {
	end, err := f.read(f.size-10, 10)
	if err != nil || string(end[4:]) != magic {
		return errors.Join(err, errShort)
	}
	n := int64(int32(binary.LittleEndian.Uint32(end)))
	buf, err := f.read(f.size-10-n, n)
	if err != nil {
		return err
	}
	t := (&flat{buf: buf}).root()
	s, ok := t.child(1)
	if !ok {
		return errors.New("it describes no columns")
	}
	if f.Fields, err = schema(s); err != nil {
		return err
	}
	for slot := 2; slot <= 3; slot++ {
		const blockBytes = 24
		at, n := t.vector(slot, blockBytes)
		for i := range n {
			place := t.i64(at + i*blockBytes)
			m, err := f.message(place)
			if err != nil {
				return err
			}
			if m == nil {
				return errShort
			}
			if err := f.add(m, place, 0); err != nil {
				return err
			}
		}
	}
	return t.err()
}

// stream reads the descriptions of a stream, one after the other, to its end.
func (f *ipcFile) stream() error {
	for at := int64(0); at < f.size; {
		m, err := f.message(at)
		if err != nil {
			return err
		}
		if m == nil {
			break
		}
		if m.kind == schemaMessage && f.Fields == nil {
			f.Fields, err = schema(m.header)
		} else {
			err = f.add(m, at, len(f.Batches))
		}
		if err != nil {
			return err
		}
		at = m.next()
	}
	if f.Fields == nil {
		return errors.New("it describes no columns")
	}
	return nil
}

// add takes a message of rows or of a dictionary.
func (f *ipcFile) add(m *message, at int64, before int) error {
	p := ipcPlace{at: at, Before: before}
	batch := m.header
	if m.kind == dictionaryMessage {
		p.ID, p.Adds = m.header.long(0), m.header.byteOf(2) != 0
		b, ok := m.header.child(1)
		if !ok {
			return errors.New("a dictionary in it is empty")
		}
		batch = b
	} else if m.kind != batchMessage {
		return fmt.Errorf("a message in it is of kind %d, which is not read", m.kind)
	}
	if p.Rows = batch.long(0); p.Rows < 0 || p.Rows > rowsMax {
		return fmt.Errorf("a batch has %d rows", p.Rows)
	}
	if m.kind == dictionaryMessage {
		f.Dicts = append(f.Dicts, p)
	} else {
		f.Batches = append(f.Batches, p)
	}
	return batch.err()
}

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

// columns opens the columns of a batch of rows, or of one of a dictionary's values: it reads their
// description.
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

// Empty reports whether nothing is in the buffer.
func (b *ipcBuffer) Empty() bool { return b.size == 0 }

// Unpacked returns the memory that the buffer takes once it is read: nothing, if it is not
// compressed.
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
	// unpackAtOnce is how many bytes are allocated before they are read: a length may be a lie.
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
