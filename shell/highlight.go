package shell

import "strings"

// keywords are the words of the language, in capitals.
func keywords() map[string]bool {
	words := map[string]bool{}
	for _, h := range heads() {
		words[h] = true
	}
	for _, st := range registry {
		for _, w := range strings.Fields(st.head) {
			words[w] = true
		}
		for _, c := range st.clauses {
			words[c.word] = true
		}
	}
	for w := range wordTexts {
		words[strings.ToUpper(w)] = true
	}
	for w := range matchWords {
		if isWord(w[0]) && w == strings.ToUpper(w) && len(w) > 1 {
			words[w] = true
		}
	}
	return words
}

// highlighter returns a function that gives each rune of a text its style: keywords, quoted text,
// numbers, comments, and a quote that is not closed.
func highlighter() func(text string) []string {
	words := keywords()
	return func(text string) []string {
		styles := make([]string, 0, len(text))
		first := true // of an item
		for i := 0; i < len(text); {
			n, style := painted(text, i, first, words)
			for range text[i : i+n] {
				styles = append(styles, style)
			}
			first = text[i] == ';' || style == styleYellow ||
				first && (isBlank(text[i]) || style == styleDim)
			i += n
		}
		return styles
	}
}

// painted is the length of what stands at text[i], and its style.
func painted(text string, i int, first bool, words map[string]bool) (n int, style string) {
	switch c := text[i]; {
	case comment(text, i) > 0:
		return comment(text, i), styleDim
	case first && c == '.':
		line, _, _ := strings.Cut(text[i:], "\n")
		return len(line), styleYellow
	case isQuote(c):
		if _, n = quoted(text[i:]); n == 0 {
			return len(text) - i, styleRed
		}
		return n, styleGreen
	case isWord(c):
		for i+n < len(text) && isWord(text[i+n]) {
			n++
		}
		if words[strings.ToUpper(text[i:i+n])] {
			style = styleCyan
		}
		return n, style
	}
	return 1, ""
}
