package message

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// ScreenColumns is the width that all text must fit, in columns.
	ScreenColumns = 80
	// noteLines is the largest number of lines of a note.
	noteLines = 3
)

// Writer wraps lines at blanks to fit a screen, and cuts notes after three lines. Progress bars,
// which move the cursor themselves, pass unchanged.
type Writer struct {
	w io.Writer
	// whole begins the lines that are never cut, which are errors.
	whole string
}

// NewWriter returns a Writer in front of w that never cuts errors of the program with this name.
func NewWriter(w io.Writer, program string) *Writer { return &Writer{w: w, whole: program + ": "} }

// Write writes b, which must be whole lines, or part of a bar.
func (t *Writer) Write(b []byte) (int, error) {
	if bytes.ContainsAny(b, "\r\x1b") || !bytes.HasSuffix(b, []byte("\n")) {
		return t.w.Write(b)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		out.WriteString(t.line(strings.TrimSuffix(line, "\n")))
		out.WriteByte('\n')
	}
	if _, err := io.WriteString(t.w, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// line wraps a line, and cuts it unless it is an error.
func (t *Writer) line(line string) string {
	lines := broken(line)
	if len(lines) > noteLines && !strings.HasPrefix(line, t.whole) {
		return strings.Join(lines[:noteLines], "\n") + " …"
	}
	return strings.Join(lines, "\n")
}

// Wrap wraps a line at blanks, and indents the lines that follow. Words longer than a line, such as
// paths, stay whole.
func Wrap(line string) string { return strings.Join(broken(line), "\n") }

// WrapIndented wraps a text into lines that all begin in this column.
func WrapIndented(text string, column int) string {
	indent := strings.Repeat(" ", column)
	return strings.Join(brokenAt(indent+text, indent), "\n")
}

func broken(line string) []string { return brokenAt(line, "  ") }

// brokenAt wraps a line; the lines that follow begin with indent.
func brokenAt(line, indent string) (out []string) {
	if utf8.RuneCountInString(line) <= ScreenColumns {
		return []string{line}
	}
	now, empty := "", true
	for _, word := range strings.SplitAfter(line, " ") {
		end := now + strings.TrimSuffix(word, " ")
		if !empty && utf8.RuneCountInString(end) > ScreenColumns {
			out, now = append(out, strings.TrimRight(now, " ")), indent
		}
		now, empty = now+word, false
	}
	return append(out, now)
}
