package shell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError points at a place of a statement. Its message has three lines: what, and where with
// a caret below.
type SyntaxError struct {
	Src, Msg string
	Pos      int // byte offset in Src

	// For completion: whether Src is right but ends too soon, and what could follow.
	atEnd bool
	want  []string
	slot  clause
	place *matchPlace
}

// Error shows the line of the statement that holds the mistake, with a caret below the place.
func (e *SyntaxError) Error() string {
	start := strings.LastIndexByte(e.Src[:e.Pos], '\n') + 1
	line, _, _ := strings.Cut(e.Src[start:], "\n")
	before := e.Src[start:e.Pos]
	var shown, pad strings.Builder
	for i, r := range strings.TrimSuffix(line, "\r") {
		if r != '\t' {
			r = visible(r)
		}
		shown.WriteRune(r)
		switch {
		case i >= len(before):
		case r == '\t':
			pad.WriteRune(r)
		default:
			pad.WriteString(strings.Repeat(" ", runeWidth(r)))
		}
	}
	return fmt.Sprintf("syntax error at column %d: %s\n  %s\n  %s^",
		utf8.RuneCountInString(before)+1, e.Msg, shown.String(), pad.String())
}

// tokenKind separates quoted strings from words that look like them.
type tokenKind uint8

const (
	tokWord   tokenKind = iota // letters, digits, '_', '-', '.', '/', '@'
	tokString                  // 'quoted', text without the quotes
	tokPunct                   // one of , ; # : and anything else
	tokEnd
)

type token struct {
	kind tokenKind
	text string
	pos  int
}

// lex cuts src into tokens; the last is tokEnd. An open quote is an error at the quote.
func lex(src string) ([]token, error) {
	var out []token
	for i := 0; i < len(src); {
		c, start := src[i], i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '\'':
			text, n := quoted(src[i:])
			if n == 0 {
				return nil, &SyntaxError{Src: src, Pos: start, Msg: "the quote is not closed"}
			}
			i += n
			out = append(out, token{tokString, text, start})
		case isWord(c):
			for i < len(src) && isWord(src[i]) {
				i++
			}
			out = append(out, token{tokWord, src[start:i], start})
		default:
			_, n := utf8.DecodeRuneInString(src[i:])
			i += n
			out = append(out, token{tokPunct, src[start:i], start})
		}
	}
	return append(out, token{tokEnd, "", len(src)}), nil
}

// quoted reads a quoted string at the start of s, where two quotes stand for one, and returns its
// text and the bytes read; 0 if it is not closed.
func quoted(s string) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		return b.String(), i + 1
	}
	return "", 0
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == '/' || c == '@' ||
		'0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// blankComments replaces lines that begin with "--", outside quotes, by as many spaces.
func blankComments(text string) string {
	out, inQuote := []byte(text), false
	for i, lineStart := 0, true; i < len(out); i++ {
		switch c := out[i]; {
		case lineStart && !inQuote && strings.HasPrefix(text[i:], "--"):
			for i < len(out) && out[i] != '\n' {
				out[i] = ' '
				i++
			}
		case c == '\n':
			lineStart = true
		case c == '\'':
			inQuote, lineStart = !inQuote, false
		case c != ' ' && c != '\t':
			lineStart = false
		}
	}
	return string(out)
}
