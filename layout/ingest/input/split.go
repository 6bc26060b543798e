package input

import "bytes"

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
