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
	before := []rune(e.Src[start:e.Pos])
	all := []rune(strings.TrimSuffix(line, "\r"))
	shown, at := excerpt(all, min(len(before), len(all)))
	var drawn, pad strings.Builder
	for i, r := range shown {
		if r != '\t' {
			r = visible(r)
		}
		drawn.WriteRune(r)
		switch {
		case i >= at:
		case r == '\t':
			pad.WriteRune(r)
		default:
			pad.WriteString(strings.Repeat(" ", runeWidth(r)))
		}
	}
	return fmt.Sprintf("syntax error at column %d: %s\n  %s\n  %s^", len(before)+1, e.Msg,
		drawn.String(), pad.String())
}

// excerptMost is how much of a line is shown around a mistake, in columns, and excerptBefore how
// much of that before the caret if something is left out there.
const (
	excerptMost   = 76
	excerptBefore = 50
)

// excerpt cuts a line to what stands around the rune at, and returns where that is then.
func excerpt(line []rune, at int) ([]rune, int) {
	all := 0
	for _, r := range line {
		all += runeWidth(r)
	}
	if all <= excerptMost {
		return line, at
	}
	from, columns := at, 0
	for ; from > 0 && columns < excerptBefore; from-- {
		columns += runeWidth(line[from-1])
	}
	to := at
	for ; to < len(line) && columns < excerptMost; to++ {
		columns += runeWidth(line[to])
	}
	var out []rune
	if from > 0 {
		out = append(out, '…')
		at = at - from + 1
	}
	out = append(out, line[from:to]...)
	if to < len(line) {
		out = append(out, '…')
	}
	return out, at
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

// lexer cuts a statement into tokens, one at a time: a list of nodes may have millions.
type lexer struct {
	src string
	at  int // of what comes next, in bytes
}

// next returns the next token, tokEnd at the end and from then on. An open quote is an error at the
// quote.
func (l *lexer) next() (token, error) {
	for l.at < len(l.src) {
		c, start := l.src[l.at], l.at
		switch {
		case comment(l.src, l.at) > 0:
			l.at += comment(l.src, l.at)
		case isBlank(c):
			l.at++
		case isQuote(c):
			text, n := quoted(l.src[l.at:])
			if n == 0 {
				return token{}, &SyntaxError{Src: l.src, Pos: start, Msg: "the quote is not closed"}
			}
			l.at += n
			return token{tokString, text, start}, nil
		case isWord(c):
			for l.at < len(l.src) && isWord(l.src[l.at]) {
				l.at++
			}
			return token{tokWord, l.src[start:l.at], start}, nil
		default:
			_, n := utf8.DecodeRuneInString(l.src[l.at:])
			l.at += n
			return token{tokPunct, l.src[start:l.at], start}, nil
		}
	}
	return token{tokEnd, "", len(l.src)}, nil
}

// checkQuotes fails at a quote that is not closed.
func checkQuotes(src string) error {
	for l := (lexer{src: src}); ; {
		if t, err := l.next(); err != nil || t.kind == tokEnd {
			return err
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isQuote says that c begins quoted text: which of the two it is, ends it.
func isQuote(c byte) bool { return c == '\'' || c == '"' }

// quoted reads a quoted string at the start of s, where two quotes stand for one, and returns its
// text and the bytes read; 0 if it is not closed.
func quoted(s string) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != s[0] {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == s[0] {
			b.WriteByte(s[0])
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

// comment is the length of the comment that begins at text[i], to the end of the line; 0 if none
// does. It begins with "--" after a blank, a semicolon or nothing: a--b is a word. Arrows of a
// pattern are no comment, so that the parser can say how hops are written here.
func comment(text string, i int) int {
	rest := text[i:]
	if !strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "-->") ||
		i > 0 && !isBlank(text[i-1]) && text[i-1] != ';' {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\n")
	return len(line)
}

// skipped is how many bytes at text[i] are quoted text or a comment, which nothing in them ends.
func skipped(text string, i int) int {
	if !isQuote(text[i]) {
		return comment(text, i)
	}
	if _, n := quoted(text[i:]); n > 0 {
		return n
	}
	return len(text) - i
}
