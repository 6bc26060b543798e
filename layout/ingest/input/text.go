package input

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"gdb/internal/bug"

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
	spec     Spec
	file     *textFile
	rows     int // largest number in a batch
	free     chan *Batch
	full     chan *Batch
	stop     chan struct{}
	stopOnce sync.Once
	working  sync.WaitGroup
	last     *Batch // what Next returned

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
	r := &TextReader{spec: spec, file: f, rows: batchRows, free: make(chan *Batch, 2),
		full: make(chan *Batch, 1), stop: make(chan struct{}), line: 1,
		split: splitter{Format: spec.Format}}
	if n := len(spec.Vector); n > 0 {
		r.rows = min(r.rows, max(1, vectorFloats/n))
	}
	for range cap(r.free) {
		r.free <- &Batch{File: name, Unit: "line", buf: make([]byte, buffer),
			Columns: make([]Values, len(spec.Columns))}
	}
	r.working.Go(r.work)
	return r, nil
}

// Next returns the next batch, valid until the following call, or io.EOF.
func (r *TextReader) Next(ctx context.Context) (*Batch, error) {
	if r.last != nil {
		r.free <- r.last
		r.last = nil
	}
	select {
	case b, ok := <-r.full:
		if !ok {
			return nil, io.EOF
		}
		if b.err != nil {
			return nil, b.err
		}
		r.last = b
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the reading.
func (r *TextReader) Close() error {
	r.stopOnce.Do(func() { close(r.stop) })
	r.working.Wait()
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("text: close %s: %w", r.file.name, err)
	}
	return nil
}

// work fills batches until the end of the file, an error, or Close.
func (r *TextReader) work() {
	defer bug.Catch()
	defer close(r.full)
	for {
		var b *Batch
		select {
		case b = <-r.free:
		case <-r.stop:
			return
		}
		b.err = r.fill(b)
		if b.err == io.EOF {
			return
		}
		failed := b.err != nil
		select {
		case r.full <- b:
		case <-r.stop:
			return
		}
		if failed {
			return
		}
	}
}

// fill reads and parses one batch. At the end of the file it returns io.EOF.
func (r *TextReader) fill(b *Batch) error {
	b.reset()
	for {
		size, err := r.read(b)
		if err != nil {
			return err
		}
		used := r.parse(b, b.buf[:size])
		r.pending = b.buf[used:size]
		switch {
		case b.Rows > 0 || len(b.Bad) > 0:
			return nil
		case r.eof && len(r.pending) == 0:
			return io.EOF
		case used > 0: // blank lines and comments
		case size >= rowBytesMax:
			return &LineError{File: r.file.name, Line: r.line,
				What: fmt.Sprintf("a row is longer than %d MiB", rowBytesMax>>20),
				Do:   "is this a text file, and are its quotes closed?"}
		default:
			b.buf = append(make([]byte, 0, 2*len(b.buf)), b.buf[:size]...)
			b.buf = b.buf[:cap(b.buf)]
			r.pending = b.buf[:size]
		}
	}
}

// read fills the batch's buffer: what was left of the one before, then the file.
func (r *TextReader) read(b *Batch) (size int, err error) {
	if len(b.buf) < len(r.pending) {
		b.buf = make([]byte, len(r.pending))
	}
	size = copy(b.buf, r.pending)
	if r.eof {
		return size, nil
	}
	n, err := r.file.readFull(b.buf[size:], func(read []byte) int64 {
		return r.line + int64(bytes.Count(b.buf[:size+len(read)], []byte{'\n'}))
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
			b.place(r.line)
			return
		}
		b.truncate(b.Rows, len(r.spec.Vector))
	}
	b.Bad = append(b.Bad, bad)
}

// place counts a row and notes its line.
func (b *Batch) place(line int64) {
	switch {
	case b.Rows == 0:
		b.First = line
	case b.Lines != nil:
		b.Lines = append(b.Lines, line)
	case line != b.First+int64(b.Rows):
		b.Lines = b.lines[:0]
		for i := range b.Rows {
			b.Lines = append(b.Lines, b.First+int64(i))
		}
		b.Lines = append(b.Lines, line)
		b.lines = b.Lines
	}
	b.Rows++
}

func (b *Batch) reset() {
	b.truncate(0, 0)
	b.Rows, b.First, b.Lines, b.Bad, b.err = 0, 0, nil, b.Bad[:0], nil
}

// truncate cuts the columns to n rows.
func (b *Batch) truncate(n, dim int) {
	for i := range b.Columns {
		b.Columns[i].Truncate(n)
	}
	b.Vector = b.Vector[:min(n*dim, len(b.Vector))]
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
