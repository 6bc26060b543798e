package shell

import (
	"fmt"
	"strings"

	"gdb/shell/words"

	"github.com/jedib0t/go-pretty/v6/text"
)

// screen draws the text being edited over what it drew before. It moves the cursor only relative to
// where it is, so that the text above stays.
type screen struct {
	columns, lines int
	cursorRow      int // the row, within what is drawn, in which the cursor was left
}

// view is what is to be drawn: prompts, text with a style for each rune, the cursor, and lines
// below.
type view struct {
	first, more string // prompts of the same width
	text        []rune
	styles      []string // for each rune "" or a style; nil for no styles
	cur         int
	below       []string
}

// draw returns the bytes to write to the terminal.
func (s *screen) draw(v view) string {
	rows, row, col := s.layout(v)
	below := v.below[:min(len(v.below), max(s.lines-2, 0))]
	room := max(s.lines-len(below), 1)
	if top := max(min(row-room/2, len(rows)-room), 0); len(rows) > room {
		rows, row = rows[top:top+room], row-top
	}
	var b strings.Builder
	b.WriteString(s.erase())
	b.WriteString(strings.Join(append(rows, below...), "\r\n"))
	if up := len(rows) + len(below) - 1 - row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	s.cursorRow = row
	return b.String()
}

// erase returns the bytes that go back to the first row that was drawn and clear everything below.
func (s *screen) erase() string {
	up := ""
	if s.cursorRow > 0 {
		up = fmt.Sprintf("\x1b[%dA", s.cursorRow)
	}
	s.cursorRow = 0
	return "\r" + up + "\x1b[J"
}

// layout cuts the text into rows of the terminal, and finds the row and the column of the cursor.
func (s *screen) layout(v view) (rows []string, row, col int) {
	var b strings.Builder
	b.WriteString(v.first)
	at, style := text.StringWidth(v.first), ""
	wrap := func(prompt string) {
		if style != "" {
			b.WriteString(words.StyleNone)
		}
		rows = append(rows, b.String())
		b.Reset()
		b.WriteString(prompt)
		b.WriteString(style)
		at = text.StringWidth(prompt)
	}
	for i := 0; i <= len(v.text); i++ {
		if i == len(v.text) || v.text[i] == '\n' || at+words.Width(v.text[i]) > s.columns {
			if i == v.cur && (at < s.columns || i < len(v.text) && v.text[i] == '\n') {
				row, col = len(rows), min(at, s.columns-1)
			}
			if i == len(v.text) {
				break
			}
			if v.text[i] == '\n' {
				wrap(v.more)
				continue
			}
			wrap("")
		}
		if i == v.cur {
			row, col = len(rows), at
		}
		if v.styles != nil && v.styles[i] != style {
			if style != "" {
				b.WriteString(words.StyleNone)
			}
			style = v.styles[i]
			b.WriteString(style)
		}
		b.WriteRune(words.Visible(v.text[i]))
		at += words.Width(v.text[i])
	}
	if style != "" {
		b.WriteString(words.StyleNone)
	}
	rows = append(rows, b.String())
	if v.cur == len(v.text) && at >= s.columns { // if the row is full, the cursor stands below it
		rows = append(rows, "")
		row, col = len(rows)-1, 0
	}
	return rows, row, col
}
