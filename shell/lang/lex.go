package lang

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"gdb/shell/words"
)

// SyntaxError points at a place of a statement. Its message has three lines: what is wrong, the
// line of the statement, and a caret below the place.
type SyntaxError struct {
	Src, Msg string
	Pos      int // byte offset in Src

	// AtEnd and Want are for completion: AtEnd says that Src is right but ends too soon, and Want
	// lists what could follow.
	AtEnd bool
	Want  []string
	Slot  Clause
	Place *MatchPlace

	// Foreign says that what stands there is of openCypher, and not of the shell's own MATCH.
	Foreign bool
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
			r = words.Visible(r)
		}
		drawn.WriteRune(r)
		switch {
		case i >= at:
		case r == '\t':
			pad.WriteRune(r)
		default:
			pad.WriteString(strings.Repeat(" ", words.Width(r)))
		}
	}
	return fmt.Sprintf("syntax error at column %d: %s\n  %s\n  %s^", len(before)+1, e.Msg,
		drawn.String(), pad.String())
}

// excerptMost is how many columns of a line are shown around a mistake. excerptBefore is how many
// of these stand before the caret if the beginning is left out.
const (
	excerptMost   = 76
	excerptBefore = 50
)

// excerpt cuts a line to the part around the rune at, and returns where that rune is then.
func excerpt(line []rune, at int) ([]rune, int) {
	all := 0
	for _, r := range line {
		all += words.Width(r)
	}
	if all <= excerptMost {
		return line, at
	}
	from, columns := at, 0
	for ; from > 0 && columns < excerptBefore; from-- {
		columns += words.Width(line[from-1])
	}
	to := at
	for ; to < len(line) && columns < excerptMost; to++ {
		columns += words.Width(line[to])
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

// tokenKind tells quoted strings from words that look like them.
type tokenKind uint8

const (
	tokWord   tokenKind = iota // letters, digits, '_', '-', '.', '/', '@'
	tokString                  // 'quoted', text without the quotes
	tokPunct                   // one of , ; # : and anything else
	tokEnd
)

// token is a word, a quoted text or a sign of a statement.
type token struct {
	kind tokenKind
	text string
	pos  int
}

// lexer cuts a statement into tokens, one at a time, since a list of nodes may have millions.
type lexer struct {
	src string
	at  int // the offset in bytes of the next token
}

// next returns the next token; at the end it returns tokEnd each time. It returns an error at a
// quote that is not closed.
func (l *lexer) next() (token, error) {
	for l.at < len(l.src) {
		c, start := l.src[l.at], l.at
		switch {
		case Comment(l.src, l.at) > 0:
			l.at += Comment(l.src, l.at)
		case IsBlank(c):
			l.at++
		case IsQuote(c):
			text, n := Unquote(l.src[l.at:])
			if n == 0 {
				return token{}, &SyntaxError{Src: l.src, Pos: start, Msg: "the quote is not closed"}
			}
			l.at += n
			return token{tokString, text, start}, nil
		case IsWord(c):
			for l.at < len(l.src) && IsWord(l.src[l.at]) {
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

// CheckQuotes returns an error at a quote that is not closed.
func CheckQuotes(src string) error {
	for l := (lexer{src: src}); ; {
		if t, err := l.next(); err != nil || t.kind == tokEnd {
			return err
		}
	}
}

// IsBlank reports whether c is white space.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// IsQuote reports whether c begins quoted text. The same quote ends it.
func IsQuote(c byte) bool { return c == '\'' || c == '"' }

// Unquote reads a quoted string at the start of s, where two quotes stand for one. It returns the
// text and the number of bytes read; 0 if the quote is not closed.
func Unquote(s string) (string, int) {
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

// IsWord reports whether c can occur in a word that needs no quotes.
func IsWord(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == '/' || c == '@' ||
		'0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// Comment returns the length of the comment that begins at text[i] and goes to the end of the line;
// 0 if no comment begins there. A comment begins with "--" at the start or after a blank or a
// semicolon: a--b is a word. The arrows of a pattern are not comments, so that the parser can say
// how hops are written.
func Comment(text string, i int) int {
	rest := text[i:]
	if !strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "-->") ||
		strings.HasPrefix(rest, "--(") ||
		i > 0 && !IsBlank(text[i-1]) && text[i-1] != ';' {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\n")
	return len(line)
}

// Skipped returns how many bytes at text[i] are quoted text or a comment; 0 if they are neither. No
// sign inside them has a meaning.
func Skipped(text string, i int) int {
	if !IsQuote(text[i]) {
		return Comment(text, i)
	}
	if _, n := Unquote(text[i:]); n > 0 {
		return n
	}
	return len(text) - i
}

// Literal returns a text as it is written in WHERE: numbers as they are, everything else in quotes.
func Literal(text string) string {
	if _, ok := words.ParseNumber(text); ok {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
