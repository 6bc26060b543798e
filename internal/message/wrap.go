package message

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// ScreenColumns is the width that all text fits.
	ScreenColumns = 80
	// noteLines is the most lines that a note takes.
	noteLines = 3
)

// Writer breaks lines for a screen at blanks, and cuts notes that would take more than three.
// Bars, which move the cursor themselves, pass as they are.
type Writer struct {
	w io.Writer
	// whole is how a line begins that is never cut: an error.
	whole string
}

// NewWriter returns a Writer in front of w that never cuts the errors of the program of that name.
func NewWriter(w io.Writer, program string) *Writer { return &Writer{w: w, whole: program + ": "} }

// Write takes whole lines, or parts of bars.
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

// line breaks a line, and cuts it unless it is an error.
func (t *Writer) line(line string) string {
	lines := broken(line)
	if len(lines) > noteLines && !strings.HasPrefix(line, t.whole) {
		return strings.Join(lines[:noteLines], "\n") + " …"
	}
	return strings.Join(lines, "\n")
}

// Wrap breaks a line at blanks; the lines that follow are indented. Words that are longer than a
// line, such as paths, stay whole.
func Wrap(line string) string { return strings.Join(broken(line), "\n") }

// WrapIndented breaks a text into lines that begin in a column.
func WrapIndented(text string, column int) string {
	indent := strings.Repeat(" ", column)
	return strings.Join(brokenAt(indent+text, indent), "\n")
}

func broken(line string) []string { return brokenAt(line, "  ") }

// brokenAt breaks a line; those that follow begin with an indent.
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
