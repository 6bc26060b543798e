package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	// Of a dictionary: its identity, whether it adds to what is there, and the number of batches
	// before it, for which it does not hold.
	ID     int64
	Adds   bool
	Before int

	at int64
}

// isIPC says whether a file that begins with head is an Arrow file or the beginning of a stream.
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

// next is where what follows the message is.
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
