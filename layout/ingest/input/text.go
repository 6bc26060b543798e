package input

import (
	"bytes"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// bufferBytes holds a batch: large enough that a read costs little, small enough for the cache.
	bufferBytes = 1 << 20
	// rowBytesMax is the longest row; a longer one is a quote that does not end, or no text.
	rowBytesMax = 64 << 20
	// batchRows is the largest number of rows in a batch.
	batchRows = 1 << 16
	// vectorFloats bounds the values of a batch's Vector, but for one row.
	vectorFloats = 1 << 18
	// badMax ends a batch early, so that a file of nothing but bad rows takes no memory.
	badMax = 256
)

// TextReader reads the rows of one file. It is used from one goroutine, and must be closed.
type TextReader struct {
	Ahead
	spec Spec
	file *textFile
	rows int // largest number in a batch

	// Of the goroutine that parses.
	split   splitter
	pending []byte // read but not parsed yet; in the buffer of the batch before
	line    int64  // of pending
	begun   bool   // the header is behind us
	eof     bool
}

// OpenText starts to read a file.
func OpenText(fs vfs.FS, name string, spec Spec) (*TextReader, error) {
	return openText(fs, name, spec, bufferBytes)
}

func openText(fs vfs.FS, name string, spec Spec, buffer int) (*TextReader, error) {
	f, err := openFile(fs, name)
	if err != nil {
		return nil, err
	}
	r := &TextReader{spec: spec, file: f, rows: batchRows, line: 1,
		split: splitter{Format: spec.Format}}
	if n := len(spec.Vector); n > 0 {
		r.rows = min(r.rows, max(1, vectorFloats/n))
	}
	empty := func() *Batch {
		return &Batch{Where: Where{File: name, Unit: "line"}, Buffer: make([]byte, buffer)}
	}
	r.Start(r.fill, empty(), empty())
	return r, nil
}

// Close ends the reading.
func (r *TextReader) Close() error {
	r.Stop()
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("text: close %s: %w", r.file.name, err)
	}
	return nil
}

// fill reads and parses one batch. At the end of the file it returns io.EOF.
func (r *TextReader) fill(b *Batch) error {
	b.Reset(len(r.spec.Columns))
	for {
		size, err := r.read(b)
		if err != nil {
			return err
		}
		used := r.parse(b, b.Buffer[:size])
		r.pending = b.Buffer[used:size]
		switch {
		case b.Rows > 0 || len(b.Bad) > 0:
			return nil
		case r.eof && len(r.pending) == 0:
			return io.EOF
		case used > 0: // blank lines and comments
		case size >= rowBytesMax:
			return Wrong(At(r.file.name, r.line), "is this a text file, and are its quotes closed?",
				"a row is longer than %d MiB", rowBytesMax>>20)
		default:
			b.Buffer = append(make([]byte, 0, 2*len(b.Buffer)), b.Buffer[:size]...)
			b.Buffer = b.Buffer[:cap(b.Buffer)]
			r.pending = b.Buffer[:size]
		}
	}
}

// read fills the batch's buffer: what was left of the one before, then the file.
func (r *TextReader) read(b *Batch) (size int, err error) {
	if len(b.Buffer) < len(r.pending) {
		b.Buffer = make([]byte, len(r.pending))
	}
	size = copy(b.Buffer, r.pending)
	if r.eof {
		return size, nil
	}
	n, err := r.file.readFull(b.Buffer[size:], func(read []byte) int64 {
		return r.line + int64(bytes.Count(b.Buffer[:size+len(read)], []byte{'\n'}))
	})
	if err == io.EOF {
		r.eof, err = true, nil
	}
	return size + n, err
}

// parse reads rows from buf until it or the batch is full, and returns how much it used.
func (r *TextReader) parse(b *Batch, buf []byte) (used int) {
	if r.line == 1 {
		used = len(buf) - len(withoutBOM(buf))
	}
	quotes := r.spec.Quotes && bytes.IndexByte(buf, '"') >= 0
	for used < len(buf) && b.Rows < r.rows && len(b.Bad) < badMax {
		size, lines := r.split.next(buf[used:], r.eof, quotes)
		if size == 0 {
			break
		}
		used += size
		if len(r.split.fields) > 0 || r.split.what != "" {
			r.row(b)
		}
		r.line += int64(lines)
	}
	return used
}

// row appends the row that was split to the columns, or to Bad.
func (r *TextReader) row(b *Batch) {
	if r.spec.Header && !r.begun {
		r.begun = true
		return
	}
	bad := Bad{Line: r.line, What: r.split.what}
	switch fields := r.split.fields; {
	case bad.What != "":
	case len(fields) != r.spec.Width:
		bad.What = fmt.Sprintf("%d fields instead of %d", len(fields), r.spec.Width)
	default:
		if r.columns(b, &bad) && r.vector(b, &bad) {
			b.Place(r.line)
			return
		}
		b.Truncate(len(r.spec.Vector))
	}
	b.Bad = append(b.Bad, bad)
}

func (r *TextReader) columns(b *Batch, bad *Bad) bool {
	for i, c := range r.spec.Columns {
		if c.Kind == ID { // most columns of most files
			if id, ok := ParseID(r.split.fields[c.Field]); ok {
				b.Columns[i].IDs = append(b.Columns[i].IDs, id)
				continue
			}
		}
		if !r.spec.Append(&b.Columns[i], c, r.split.fields[c.Field], bad) {
			return false
		}
	}
	return true
}

func (r *TextReader) vector(b *Batch, bad *Bad) bool {
	for _, field := range r.spec.Vector {
		x, ok := r.spec.Number(field, r.split.fields[field], bad)
		if !ok {
			return false
		}
		b.Vector = append(b.Vector, x)
	}
	return true
}
