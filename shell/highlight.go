package shell

import (
	"strings"

	"gdb/shell/lang"
	"gdb/shell/words"
)

// keywords returns the words of the language, in capitals.
func keywords() map[string]bool {
	known := map[string]bool{}
	for _, h := range lang.Heads() {
		known[h] = true
	}
	for _, st := range lang.Statements {
		for _, w := range strings.Fields(st.Head) {
			known[w] = true
		}
		for _, c := range st.Clauses {
			known[c.Word] = true
		}
	}
	for w := range wordTexts {
		known[strings.ToUpper(w)] = true
	}
	for w := range matchWords {
		if lang.IsWord(w[0]) && w == strings.ToUpper(w) && len(w) > 1 {
			known[w] = true
		}
	}
	return known
}

// highlighter returns a function that gives each rune of a text its style: keywords, quoted text,
// numbers, comments, and a quote that is not closed have styles of their own.
func highlighter() func(text string) []string {
	known := keywords()
	return func(text string) []string {
		styles := make([]string, 0, len(text))
		first := true // whether the token is the first of an item
		for i := 0; i < len(text); {
			n, style := painted(text, i, first, known)
			for range text[i : i+n] {
				styles = append(styles, style)
			}
			first = text[i] == ';' || style == words.StyleYellow ||
				first && (lang.IsBlank(text[i]) || style == words.StyleDim)
			i += n
		}
		return styles
	}
}

// painted returns the length and the style of the token that begins at text[i].
func painted(text string, i int, first bool, known map[string]bool) (n int, style string) {
	switch c := text[i]; {
	case lang.Comment(text, i) > 0:
		return lang.Comment(text, i), words.StyleDim
	case first && c == '.':
		line, _, _ := strings.Cut(text[i:], "\n")
		return len(line), words.StyleYellow
	case lang.IsQuote(c):
		if _, n = lang.Unquote(text[i:]); n == 0 {
			return len(text) - i, words.StyleRed
		}
		return n, words.StyleGreen
	case lang.IsWord(c):
		for i+n < len(text) && lang.IsWord(text[i+n]) {
			n++
		}
		if known[strings.ToUpper(text[i:i+n])] {
			style = words.StyleCyan
		}
		return n, style
	}
	return 1, ""
}
