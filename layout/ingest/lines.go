package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// lineBytes is the buffer of a text file; a line may not be longer.
const lineBytes = 1 << 20

// bytesAtEOL are what may stand before a newline.
const carriageReturn = "\r"

// lineFile reads a text file, plain or compressed by its name (.gz, .zst), a buffer of whole lines
// at a time.
type lineFile struct {
	path string
	f    vfs.File
	r    io.Reader
	done func()
	buf  []byte
	have int // bytes in buf
	eof  bool
	line int64 // number of the first line of the next buffer
}

func openLines(fs vfs.FS, path string) (*lineFile, error) {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("ingest: open %s: %w", path, err)
	}
	l := &lineFile{path: path, f: f, r: f, done: func() {}, buf: make([]byte, lineBytes), line: 1}
	switch {
	case strings.HasSuffix(path, ".gz"):
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, errors.Join(l.broken(err), f.Close())
		}
		l.r = z
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, errors.Join(l.broken(err), f.Close())
		}
		l.r, l.done = z, z.Close
	}
	return l, nil
}

func (l *lineFile) broken(err error) error {
	return &BadInputError{Where: fmt.Sprintf("%s line %d", l.path, l.line),
		What: "the file can't be read on: " + err.Error(), Do: "it is cut off or damaged"}
}

// Close closes the file.
func (l *lineFile) Close() error {
	l.done()
	return l.f.Close()
}

// next returns the next whole lines, valid until the following call, and the number of the first;
// nil at the end.
func (l *lineFile) next() (lines []byte, first int64, err error) {
	for !l.eof && l.have < len(l.buf) {
		n, err := l.r.Read(l.buf[l.have:])
		l.have += n
		if errors.Is(err, io.EOF) {
			l.eof = true
		} else if err != nil {
			return nil, l.line, l.broken(err)
		}
	}
	if l.have == 0 {
		return nil, l.line, nil
	}
	end := l.have
	if !l.eof {
		if end = bytes.LastIndexByte(l.buf[:l.have], '\n') + 1; end == 0 {
			return nil, l.line, &BadInputError{Where: fmt.Sprintf("%s line %d", l.path, l.line),
				What: "the line is longer than 1 MiB", Do: "is this a text file?"}
		}
	}
	out := make([]byte, end)
	copy(out, l.buf[:end])
	l.have = copy(l.buf, l.buf[end:l.have])
	first = l.line
	l.line += int64(bytes.Count(out, []byte{'\n'}))
	return out, first, nil
}

// textFormat is how the lines of a file are cut.
type textFormat struct {
	delim   byte // 0: any run of blanks and tabs
	comment byte // lines that begin with it are skipped; 0: none
	header  bool // the first line is a header
}

// eachLine calls fn with the fields of each line that is not blank, a comment or the header. The
// fields are valid until flush, which is called after each buffer of lines. A *BadInputError of fn
// may be skipped by skip, which returns nil to go on.
func (f textFormat) eachLine(ctx context.Context, fs vfs.FS, path string,
	fn func(line int64, fields [][]byte) error, flush func() error,
	skip func(error) error) (err error) {
	l, err := openLines(fs, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var fields [][]byte
	for header := f.header; ; {
		lines, n, err := l.next()
		if err != nil || lines == nil {
			return err
		}
		for ; len(lines) > 0; n++ {
			line := lines
			if i := bytes.IndexByte(lines, '\n'); i >= 0 {
				line, lines = lines[:i], lines[i+1:]
			} else {
				lines = nil
			}
			line = bytes.TrimSuffix(line, []byte(carriageReturn))
			if len(line) == 0 || f.comment != 0 && line[0] == f.comment {
				continue
			}
			if header {
				header = false
				continue
			}
			if fields, err = f.split(line, fields[:0]); err != nil {
				err = &BadInputError{Where: fmt.Sprintf("%s line %d", path, n), What: err.Error()}
			} else if len(fields) > 0 {
				err = fn(n, fields)
			}
			if err != nil {
				if err = skip(err); err != nil {
					return err
				}
			}
		}
		if err := errors.Join(flush(), ctx.Err()); err != nil {
			return err
		}
	}
}

// split cuts a line to fields, appended to out.
func (f textFormat) split(line []byte, out [][]byte) ([][]byte, error) {
	if f.delim == 0 {
		return append(out, bytes.Fields(line)...), nil
	}
	if bytes.IndexByte(line, '"') >= 0 && f.delim != '\t' {
		return f.splitQuoted(line, out)
	}
	for {
		i := bytes.IndexByte(line, f.delim)
		if i < 0 {
			return append(out, bytes.TrimSpace(line)), nil
		}
		out = append(out, bytes.TrimSpace(line[:i]))
		line = line[i+1:]
	}
}

// splitQuoted cuts a line with fields in double quotes, in which two stand for one.
func (f textFormat) splitQuoted(line []byte, out [][]byte) ([][]byte, error) {
	for {
		rest := bytes.TrimLeft(line, " ")
		if len(rest) == 0 || rest[0] != '"' {
			i := bytes.IndexByte(line, f.delim)
			if i < 0 {
				return append(out, bytes.TrimSpace(line)), nil
			}
			out, line = append(out, bytes.TrimSpace(line[:i])), line[i+1:]
			continue
		}
		var field []byte
		i := 1
		for ; i < len(rest); i++ {
			if rest[i] == '"' {
				if i+1 == len(rest) || rest[i+1] != '"' {
					break
				}
				i++
			}
			field = append(field, rest[i])
		}
		if i >= len(rest) {
			return nil, errors.New("a quoted field is not closed on its line")
		}
		out = append(out, field)
		rest = bytes.TrimLeft(rest[i+1:], " ")
		if len(rest) == 0 {
			return out, nil
		}
		if rest[0] != f.delim {
			return nil, fmt.Errorf("%q after a quoted field, want %q", rest[0], f.delim)
		}
		line = rest[1:]
	}
}
