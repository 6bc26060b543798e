package input

import (
	"bytes"
	"fmt"
	"io"
	"math"

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
		if c.Kind == ID || c.Kind == Reference { // most columns of most files
			id, ok := ParseID(r.split.fields[c.Field])
			if ok && (c.Kind == ID || id <= math.MaxInt64) {
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

// splitter cuts rows out of a buffer. The first error of a row is in what.
type splitter struct {
	Format
	fields [][]byte
	what   string
}

// next cuts the first row of buf into s.fields. It returns how many bytes and line ends the row
// takes; size 0 says that the row goes on after buf. last says that nothing comes after buf.
// Quoted fields are unescaped in place.
func (s *splitter) next(buf []byte, last, quotes bool) (size, lines int) {
	s.fields, s.what = s.fields[:0], ""
	size = bytes.IndexByte(buf, '\n') + 1
	line := buf
	switch {
	case size > 0:
		line = buf[:size-1]
	case !last:
		return 0, 0
	default:
		size = len(buf)
	}
	if quotes && s.Quotes && bytes.IndexByte(line, '"') >= 0 {
		return s.quoted(buf, last)
	}
	s.line(trimCR(line))
	return size, 1
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// line cuts a line without quotes.
func (s *splitter) line(line []byte) {
	if len(line) == 0 || s.Comment != 0 && line[0] == s.Comment {
		return
	}
	if s.Delim == 0 {
		s.blanks(line)
		return
	}
	for {
		i := bytes.IndexByte(line, s.Delim)
		if i < 0 {
			break
		}
		s.fields = append(s.fields, trim(line[:i]))
		line = line[i+1:]
	}
	s.fields = append(s.fields, trim(line))
	if len(s.fields) == 1 && len(s.fields[0]) == 0 {
		s.fields = s.fields[:0] // a line of blanks
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func (s *splitter) blanks(line []byte) {
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			return
		}
		start := i
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		s.fields = append(s.fields, line[start:i:i])
	}
}

// trim cuts blanks around a field; they are not part of it unless it is quoted.
func trim(f []byte) []byte {
	for len(f) > 0 && isBlank(f[0]) {
		f = f[1:]
	}
	for len(f) > 0 && isBlank(f[len(f)-1]) {
		f = f[:len(f)-1]
	}
	return f
}

// quoted cuts a row with quotes in it, which may be several lines long. Where the row ends is
// found before anything is changed, since an incomplete row is looked at again.
func (s *splitter) quoted(buf []byte, last bool) (size, lines int) {
	size, lines, closed := s.rowEnd(buf)
	switch {
	case size == 0 && !last:
		return 0, 0
	case size == 0:
		size = len(buf)
	}
	if !closed {
		s.what = "a quoted field does not end"
		return size, lines
	}
	row := buf[:size]
	if row[len(row)-1] == '\n' {
		row = row[:len(row)-1]
	}
	row = trimCR(row)
	for {
		start := row
		for len(start) > 0 && start[0] == ' ' {
			start = start[1:]
		}
		if len(start) == 0 || start[0] != '"' {
			i := bytes.IndexByte(row, s.Delim)
			if i < 0 {
				s.fields = append(s.fields, trim(row))
				return size, lines
			}
			s.fields, row = append(s.fields, trim(row[:i])), row[i+1:]
			continue
		}
		field, rest := unquote(start[1:])
		s.fields = append(s.fields, field)
		for len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return size, lines
		}
		if rest[0] != s.Delim {
			s.what = "there is text after a closing quote"
			return size, lines
		}
		row = rest[1:]
	}
}

// rowEnd finds the end of the row that buf begins with: its size with the line end (0 if the end
// is not in buf), how many lines it takes, and whether its quotes are closed.
func (s *splitter) rowEnd(buf []byte) (size, lines int, closed bool) {
	lines = 1
	inside, fieldStart := false, true
	for i := 0; i < len(buf); i++ {
		c := buf[i]
		switch {
		case inside && c == '"':
			if i+1 < len(buf) && buf[i+1] == '"' {
				i++
				continue
			}
			inside = false
		case inside:
			if c == '\n' {
				lines++
			}
		case c == '"' && fieldStart:
			inside, fieldStart = true, false
		case c == '\n':
			return i + 1, lines, true
		case c == s.Delim:
			fieldStart = true
		case c != ' ':
			fieldStart = false
		}
	}
	return 0, lines, !inside
}

// unquote takes what comes after an opening quote and returns the field, unescaped in place, and
// what comes after the closing quote.
func unquote(b []byte) (field, rest []byte) {
	n := 0
	for i := 0; i < len(b); i++ {
		if b[i] == '"' {
			if i+1 == len(b) || b[i+1] != '"' {
				return b[:n:n], b[i+1:]
			}
			i++
		}
		b[n] = b[i]
		n++
	}
	return b[:n:n], nil
}

// TextRows cuts the beginning of a file, as far as whole rows go and up to n of them; all says that
// it is the whole file. Rows are copies. A header is a row here.
func TextRows(head []byte, all bool, f Format, n int) [][]string {
	s := &splitter{Format: f}
	buf := append([]byte(nil), withoutBOM(head)...)
	var rows [][]string
	for len(buf) > 0 && len(rows) < n {
		size, _ := s.next(buf, all, true)
		if size == 0 {
			break
		}
		if len(s.fields) > 0 && s.what == "" {
			row := make([]string, len(s.fields))
			for i, f := range s.fields {
				row[i] = string(f)
			}
			rows = append(rows, row)
		}
		buf = buf[size:]
	}
	return rows
}

// withoutBOM cuts the mark that some programs write at the beginning of UTF-8 files.
func withoutBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }
