package shell

import "strings"

// nextItem cuts the first item off text: a statement with its semicolon, or the line of a dot
// command. Blank space and comments before it are dropped. whole says that the item has its end;
// without, text ends before it.
func nextItem(text string) (item, rest string, whole bool) {
	text = skipBlank(text)
	if strings.HasPrefix(text, ".") {
		line, rest, ended := strings.Cut(text, "\n")
		return strings.TrimSpace(line), rest, ended
	}
	end := statementEnd(text)
	if end < 0 {
		return strings.TrimSpace(text), "", false
	}
	return strings.TrimSpace(text[:end]), text[end:], true
}

// skipBlank drops white space, lone semicolons and comments at the start of text.
func skipBlank(text string) string {
	i := 0
	for i < len(text) {
		if n := comment(text, i); n > 0 {
			i += n
		} else if isBlank(text[i]) || text[i] == ';' {
			i++
		} else {
			break
		}
	}
	return text[i:]
}

// statementEnd is the offset after the first semicolon outside quotes and comments, or -1.
func statementEnd(text string) int {
	for i := 0; i < len(text); i++ {
		if n := skipped(text, i); n > 0 {
			i += n - 1
		} else if text[i] == ';' {
			return i + 1
		}
	}
	return -1
}

// complete says whether text ends between items, so that it can run.
func complete(text string) bool {
	for {
		item, rest, whole := nextItem(text)
		if item == "" {
			return true
		}
		if !whole {
			return strings.HasPrefix(item, ".") // a dot command ends with its line
		}
		text = rest
	}
}
