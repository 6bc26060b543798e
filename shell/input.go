package shell

import (
	"strings"

	"gdb/shell/lang"
)

// nextItem cuts the first item off text: a statement with its semicolon, or the line of a dot
// command or of a bare word. It drops blank space and comments before the item. whole says that
// text holds the end of the item; if not, the item is all that is left.
func nextItem(text string) (item, rest string, whole bool) {
	text = skipBlank(text)
	if strings.HasPrefix(text, ".") {
		line, rest, ended := strings.Cut(text, "\n")
		return strings.TrimSpace(line), rest, ended
	}
	if line, rest, ended := strings.Cut(text, "\n"); bareWord(line) != "" {
		return bareWord(line), rest, ended
	}
	end := statementEnd(text)
	if end < 0 {
		return strings.TrimSpace(text), "", false
	}
	return strings.TrimSpace(text[:end]), text[end:], true
}

// byteOrderMark begins the text files of some editors.
const byteOrderMark = "\ufeff"

// bareWord returns the session command that a line stands for if it is one word that needs no
// semicolon: words that leave other shells leave this one too. It returns "" for all other lines.
func bareWord(line string) string {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "quit", "quit;", "exit", "exit;", "\\q":
		return ".quit"
	case "help", "?", "\\?": // HELP; is the statement
		return ".help"
	}
	return ""
}

// skipBlank drops white space, lone semicolons and comments at the start of text.
func skipBlank(text string) string {
	i := 0
	for i < len(text) {
		switch n := lang.Comment(text, i); {
		case n > 0:
			i += n
		case lang.IsBlank(text[i]) || text[i] == ';':
			i++
		case strings.HasPrefix(text[i:], byteOrderMark):
			i += len(byteOrderMark)
		default:
			return text[i:]
		}
	}
	return ""
}

// statementEnd returns the offset after the first semicolon outside quotes and comments, or -1.
func statementEnd(text string) int {
	for i := 0; i < len(text); i++ {
		if n := lang.Skipped(text, i); n > 0 {
			i += n - 1
		} else if text[i] == ';' {
			return i + 1
		}
	}
	return -1
}

// complete reports whether text ends between items, so that it can run.
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
