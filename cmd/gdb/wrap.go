package main

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// screenColumns is the width that all text fits.
	screenColumns = 80
	// noteLines is the most lines that a note takes.
	noteLines = 3
)

// wrapped breaks lines for a screen at blanks, and cuts those that would take more than three.
// Bars, which move the cursor themselves, pass as they are.
type wrapped struct{ w io.Writer }

// Write takes whole lines, or parts of bars.
func (t *wrapped) Write(b []byte) (int, error) {
	if bytes.ContainsAny(b, "\r\x1b") || !bytes.HasSuffix(b, []byte("\n")) {
		return t.w.Write(b)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		out.WriteString(wrap(strings.TrimSuffix(line, "\n")))
		out.WriteByte('\n')
	}
	if _, err := io.WriteString(t.w, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// wrap breaks a line at blanks; the lines that follow are indented. Words that are longer than a
// line, such as paths, stay whole.
func wrap(line string) string {
	if utf8.RuneCountInString(line) <= screenColumns {
		return line
	}
	var out []string
	now, empty := "", true
	for _, word := range strings.SplitAfter(line, " ") {
		end := now + strings.TrimSuffix(word, " ")
		if !empty && utf8.RuneCountInString(end) > screenColumns {
			out, now = append(out, strings.TrimRight(now, " ")), "  "
			if len(out) == noteLines && !strings.HasPrefix(line, programName+": ") {
				return strings.Join(out, "\n") + " …"
			}
		}
		now, empty = now+word, false
	}
	return strings.Join(append(out, now), "\n")
}
