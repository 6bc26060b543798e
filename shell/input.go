package shell

import "strings"

// nextItem cuts the first item off text: a statement with its semicolon, or the line of a dot
// command. Blank space and comments before it are dropped, comments within are blanked, so that
// columns stay. whole says that the item has its end; without, text ends before it.
func nextItem(text string) (item, rest string, whole bool) {
	text = skipBlank(text)
	if strings.HasPrefix(text, ".") {
		line, rest, ended := strings.Cut(text, "\n")
		return strings.TrimSpace(line), rest, ended
	}
	end := statementEnd(text)
	if end < 0 {
		return strings.TrimSpace(blankComments(text)), "", false
	}
	return strings.TrimSpace(blankComments(text[:end])), text[end:], true
}

// skipBlank drops white space, lone semicolons and comment lines at the start of text.
func skipBlank(text string) string {
	for lineStart := true; text != ""; {
		switch c := text[0]; {
		case lineStart && strings.HasPrefix(text, "--"):
			_, text, _ = strings.Cut(text, "\n")
		case c == ' ' || c == '\t' || c == '\r' || c == ';':
			text = text[1:]
		case c == '\n':
			lineStart, text = true, text[1:]
		default:
			return text
		}
	}
	return ""
}

// statementEnd is the offset after the first semicolon outside quotes and comments, or -1.
func statementEnd(text string) int {
	inQuote, lineStart := false, true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case lineStart && !inQuote && strings.HasPrefix(text[i:], "--"):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return -1
			}
			i += n
		case c == '\n':
			lineStart = true
		case c == ';' && !inQuote:
			return i + 1
		case c == '\'':
			inQuote, lineStart = !inQuote, false
		case c != ' ' && c != '\t':
			lineStart = false
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
