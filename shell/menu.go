package shell

import (
	"strings"

	"gdb/shell/words"

	"github.com/jedib0t/go-pretty/v6/text"
)

// candidate is a word that may stand at the cursor.
type candidate struct {
	word string
	help string // one line
	name string // what it names, if it may stand in quotes
}

// menu lists candidates below the text. Tab walks through the list.
type menu struct {
	found []candidate
	start int    // where the word begins
	typed string // the part of the word that was typed
	at    int    // the candidate that is in the text; -1 for none
}

func (m *menu) on() bool { return len(m.found) > 0 }

// menuLines is how many candidates are shown at once.
const menuLines = 10

// lines returns the lines of the menu: words, with what they mean.
func (m *menu) lines(columns, lines int, color bool) []string {
	width := 0
	for _, c := range m.found {
		width = max(width, text.StringWidth(c.word))
	}
	show := max(min(menuLines, lines/2), 1)
	top := max(min(m.at-show/2, len(m.found)-show), 0)
	var out []string
	for i := top; i < min(top+show, len(m.found)); i++ {
		c := m.found[i]
		line := "  " + c.word + strings.Repeat(" ", width-text.StringWidth(c.word)) + "  " + c.help
		line = words.Truncated(strings.TrimRight(line, " "), columns-1)
		switch {
		case i == m.at && color:
			line = words.Dressed(line, words.StyleReverse)
		case i == m.at:
			line = ">" + line[1:]
		}
		out = append(out, line)
	}
	return out
}

// tab completes the word at the cursor as far as it is certain, and then opens the menu.
func (e *ttyEditor) tab() {
	start, found := e.complete(e.buf.String(), e.buf.cur)
	if len(found) == 0 {
		return
	}
	typed := string(e.buf.text[start:e.buf.cur])
	if len(found) == 1 {
		e.buf.replace(start, found[0].word)
		if e.buf.cur == len(e.buf.text) && !strings.HasSuffix(found[0].word, "/") &&
			!strings.HasSuffix(found[0].word, "(") && !strings.HasSuffix(found[0].word, "[") {
			e.buf.insert(" ")
		}
		return
	}
	if prefix := commonPrefix(found); len(prefix) > len(typed) {
		e.buf.replace(start, prefix)
		typed = prefix
	}
	e.menu = menu{found: found, start: start, typed: typed, at: -1}
}

// menuKey walks through the menu. Enter and Escape close it. Other keys close it too and then edit
// the text; menuKey returns false for those.
func (e *ttyEditor) menuKey(k key) (done bool) {
	m := &e.menu
	switch k.code {
	case keyTab, keyDown:
		m.at = (m.at + 1) % len(m.found)
	case keyBackTab, keyUp:
		m.at = (max(m.at, 0) + len(m.found) - 1) % len(m.found)
	case keyEnter:
		done = m.at >= 0
		e.menu = menu{}
		return done
	case keyEscape, keyCancel, keyInterrupt:
		e.buf.replace(m.start, m.typed)
		e.menu = menu{}
		return true
	default:
		e.menu = menu{}
		return false
	}
	e.buf.replace(m.start, m.found[m.at].word)
	return true
}

// commonPrefix returns the longest text with which all candidates begin.
func commonPrefix(found []candidate) string {
	prefix := found[0].word
	for _, c := range found[1:] {
		for !strings.HasPrefix(c.word, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return strings.ToValidUTF8(prefix, "")
}
