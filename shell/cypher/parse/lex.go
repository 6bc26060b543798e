// Package parse reads openCypher statements, by the grammar of openCypher 9.
package parse

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gdb/shell/cypher/ast"
)

type kind uint8

const (
	tokEnd kind = iota
	tokName
	tokQuoted // `name`
	tokInt
	tokFloat
	tokString
	tokSign
)

// token is a word, number, text or sign. text of a string is without quotes and escapes.
type token struct {
	kind kind
	text string
	pos  int
	end  int
}

// lex cuts a statement into tokens, the last of which is tokEnd.
func lex(src string) ([]token, error) {
	var out []token
	for at := 0; at < len(src); {
		if n := blank(src[at:]); n != 0 {
			if n < 0 {
				return nil, ast.Syntax(at, "UnexpectedSyntax", "the comment is not closed")
			}
			at += n
			continue
		}
		t, err := one(src, at)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		at = t.end
	}
	return append(out, token{tokEnd, "", len(src), len(src)}), nil
}

// blank returns the bytes of white space or a comment at the start of s; -1 for a comment without
// end.
func blank(s string) int {
	switch {
	case strings.HasPrefix(s, "//"):
		line, _, _ := strings.Cut(s, "\n")
		return len(line)
	case strings.HasPrefix(s, "/*"):
		n := strings.Index(s[2:], "*/")
		if n < 0 {
			return -1
		}
		return n + 4
	}
	if r, n := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return n
	}
	return 0
}

func one(src string, at int) (token, error) {
	s := src[at:]
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == '\'' || r == '"':
		return quoted(src, at)
	case r == '`':
		return backticked(src, at)
	case r >= '0' && r <= '9', r == '.' && len(s) > 1 && digit(s[1]):
		return number(src, at)
	case letter(r):
		for n < len(s) {
			r, w := utf8.DecodeRuneInString(s[n:])
			if !letter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) {
				break
			}
			n += w
		}
		return token{tokName, s[:n], at, at + n}, nil
	}
	for _, sign := range []string{"..", "<=", ">=", "<>", "=~", "+="} {
		if strings.HasPrefix(s, sign) {
			n = len(sign)
		}
	}
	return token{tokSign, s[:n], at, at + n}, nil
}

func letter(r rune) bool {
	return r == '_' || r != utf8.RuneError && unicode.IsLetter(r) || unicode.Is(unicode.Pc, r)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// backticked reads `a name`, in which two backticks stand for one.
func backticked(src string, at int) (token, error) {
	var b strings.Builder
	for i := at + 1; i < len(src); i++ {
		if src[i] != '`' {
			b.WriteByte(src[i])
			continue
		}
		if i+1 < len(src) && src[i+1] == '`' {
			b.WriteByte('`')
			i++
			continue
		}
		return token{tokQuoted, b.String(), at, i + 1}, nil
	}
	return token{}, ast.Syntax(at, "UnexpectedSyntax", "the backtick is not closed")
}

// escapes are the letters after a backslash, besides u and U.
var escapes = map[byte]byte{'\\': '\\', '\'': '\'', '"': '"', '`': '`', 'b': '\b', 'f': '\f',
	'n': '\n', 'r': '\r', 't': '\t'}

func quoted(src string, at int) (token, error) {
	var b strings.Builder
	for i := at + 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == src[at]:
			return token{tokString, b.String(), at, i + 1}, nil
		case c != '\\' || i+1 == len(src):
			b.WriteByte(c)
		case src[i+1] == 'u' || src[i+1] == 'U':
			width := 4
			if src[i+1] == 'U' {
				width = 8
			}
			r, ok := hexRune(src[i+2:], width)
			if !ok {
				return token{}, ast.Syntax(i, "InvalidUnicodeLiteral",
					"\\%c wants %d hexadecimal digits of a character", src[i+1], width)
			}
			b.WriteRune(r)
			i += 1 + width
		default:
			i++
			e, ok := escapes[src[i]]
			if !ok {
				return token{}, ast.Syntax(i-1, "UnexpectedSyntax",
					"no escape begins with \\%c; a backslash is written \\\\", src[i])
			}
			b.WriteByte(e)
		}
	}
	return token{}, ast.Syntax(at, "UnexpectedSyntax", "the quote is not closed")
}

func hexRune(s string, width int) (rune, bool) {
	if len(s) < width {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:width], 16, 32)
	return rune(n), err == nil && utf8.ValidRune(rune(n))
}

// number reads 12, 0xFF, 0o17, 1.5, .5 and 1e9. A letter that follows is an error.
func number(src string, at int) (token, error) {
	s := src[at:]
	n, k := 0, tokInt
	if len(s) > 1 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'o') {
		n = 2
	} else {
		n, k = decimal(s)
	}
	for n < len(s) && (digit(s[n]) || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || s[n] == '_') {
		n++ // what is wrong among these is found when the number is read
	}
	t := token{k, s[:n], at, at + n}
	if _, err := literal(t, ""); err != nil && err.Detail == "InvalidNumberLiteral" {
		return t, err
	}
	return t, nil
}

// decimal returns the bytes of a decimal number and whether it is an integer.
func decimal(s string) (int, kind) {
	n, k := 0, tokInt
	digits := func() {
		for n < len(s) && digit(s[n]) {
			n++
		}
	}
	digits()
	if n+1 < len(s) && s[n] == '.' && digit(s[n+1]) {
		n, k = n+1, tokFloat
		digits()
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		e := n + 1
		if e < len(s) && (s[e] == '-' || s[e] == '+') {
			e++
		}
		if e < len(s) && digit(s[e]) {
			n, k = e, tokFloat
			digits()
		}
	}
	return n, k
}

// literal returns the value of a number with a sign.
func literal(t token, sign string) (any, *ast.Error) {
	if t.kind == tokFloat {
		f, err := strconv.ParseFloat(sign+t.text, 64)
		if err == nil {
			return f + 0, nil // there is no -0.0
		}
		if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
			return nil, ast.Syntax(t.pos, "FloatingPointOverflow", "%s is too large for a float",
				t.text)
		}
		return nil, ast.Syntax(t.pos, "InvalidNumberLiteral", "%s is no number", t.text)
	}
	base := 10
	if len(t.text) > 1 && t.text[0] == '0' && !digit(t.text[1]) {
		base = 0
	}
	n, err := strconv.ParseInt(sign+t.text, base, 64)
	if err == nil && !strings.Contains(t.text, "_") {
		return n, nil
	}
	if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
		return nil, ast.Syntax(t.pos, "IntegerOverflow", "%s%s does not fit in 64 bits", sign,
			t.text)
	}
	return nil, ast.Syntax(t.pos, "InvalidNumberLiteral", "%s is no number", t.text)
}
