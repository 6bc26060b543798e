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
		put := func(part, style string) {
			for range part {
				styles = append(styles, style)
			}
		}
		lineStart, first := true, true
		for text != "" {
			n, style := 1, ""
			switch c := text[0]; {
			case lineStart && strings.HasPrefix(text, "--"), first && c == '.':
				if n = strings.IndexByte(text, '\n'); n < 0 {
					n = len(text)
				}
				style = styleDim
				if c == '.' {
					style = styleYellow
				}
			case c == '\'':
				if _, n = quoted(text); n == 0 {
					n, style = len(text), styleRed
				} else {
					style = styleGreen
				}
			case isWord(c):
				for n < len(text) && isWord(text[n]) {
					n++
				}
				if words[strings.ToUpper(text[:n])] {
					style = styleCyan
				}
			}
			put(text[:n], style)
			blank := text[0] == ' ' || text[0] == '\t'
			first = text[0] == ';' || style == styleYellow ||
				first && (blank || text[0] == '\n' || style == styleDim)
			lineStart = text[0] == '\n' || text[0] == ';' || lineStart && blank
			text = text[n:]
		}
		return styles
	}
}
