// Package words formats words for messages and screens: it quotes, cuts, suggests and colors them.
// It also holds the values that the cells of a statement's columns may have, of a Kind each.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"gdb/internal/message"

	"github.com/jedib0t/go-pretty/v6/text"
)

// QuotedMost bounds the characters of a word in a message.
const QuotedMost = 60

// Quoted returns a word in quotes for a message. It cuts a word that is too long for a message.
func Quoted(word string) string {
	if utf8.RuneCountInString(word) <= QuotedMost {
		return strconv.Quote(word)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.*q", QuotedMost, word), `"`) + `…"`
}

// Near returns a text that suggests the closest of among within distance 2, without regard to case;
// "" if there is none.
func Near(w string, among []string) string {
	best, least := "", 3
	for _, a := range among {
		if len(w) > len(a)+2*utf8.UTFMax {
			continue // a long word, such as a pasted text, is near nothing
		}
		d := message.Distance(strings.ToUpper(w), strings.ToUpper(a))
		if a != w && d < least && d < len(a) {
			best, least = a, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// Visible returns the rune that is shown for a rune of the text. A tab takes one column.
func Visible(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return '\ufffd'
	}
	return r
}

// Width returns how many columns a rune takes on a terminal.
func Width(r rune) int { return max(text.RuneWidth(Visible(r)), 0) }

// Truncated cuts s to a width, with an ellipsis.
func Truncated(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	return text.Trim(s, width-1) + "…"
}

// Printable replaces control characters, so that an id cannot move the cursor.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\ufffd'
		}
		return Visible(r)
	}, s)
}

// Styles of the terminal, as select-graphic-rendition sequences.
const (
	StyleNone    = "\x1b[0m"
	StyleBold    = "\x1b[1m"
	StyleDim     = "\x1b[2m"
	StyleReverse = "\x1b[7m"
	StyleRed     = "\x1b[31m"
	StyleGreen   = "\x1b[32m"
	StyleYellow  = "\x1b[33m"
	StyleCyan    = "\x1b[36m"
)

// Dressed returns s in a style; a style of "" leaves it as it is.
func Dressed(s, style string) string {
	if style == "" || s == "" {
		return s
	}
	return style + s + StyleNone
}
