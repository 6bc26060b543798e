package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdb/internal/bug"
	"gdb/internal/message"
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

// lineEditor reads items from the user: statements and session commands. Implementations are
// ttyEditor and pipeEditor.
type lineEditor interface {
	// Read returns one or more whole items. draft is the text in the line at first. At the end of
	// input Read returns io.EOF, together with text that is left; after Ctrl-C it returns
	// errInterrupted.
	Read(ctx context.Context, draft string) (string, error)
	// AddHistory adds a text to those that can be recalled.
	AddHistory(text string) error
}

// errInterrupted says that the user dropped the input.
var errInterrupted = errors.New("shell: interrupted")

// promptFirst returns the prompt where a statement begins.
func promptFirst() string { return message.Program + "> " }

// promptMore returns the prompt where a statement goes on, of the same width.
func promptMore() string { return strings.Repeat(".", len(message.Program)) + "> " }

// pipeEditor reads items from a stream that the user cannot edit.
type pipeEditor struct {
	lines   chan inputLine
	in      *bufio.Reader
	prompts io.Writer // nil to show no prompts
	pending []byte    // text after the last whole item
}

type inputLine struct {
	text string
	err  error
}

func newPipeEditor(in io.Reader, prompts io.Writer) *pipeEditor {
	return &pipeEditor{in: bufio.NewReader(in), prompts: prompts, lines: make(chan inputLine, 1)}
}

// Read returns items as soon as it has read the line that ends them. It ignores the draft.
func (e *pipeEditor) Read(ctx context.Context, _ string) (string, error) {
	for {
		if e.prompts != nil {
			prompt := promptFirst()
			if len(bytes.TrimSpace(e.pending)) > 0 {
				prompt = promptMore()
			}
			fmt.Fprint(e.prompts, prompt)
		}
		line, err := e.line(ctx)
		waits := len(e.pending) > 0
		e.pending = append(e.pending, line...)
		if err == nil && waits && !strings.Contains(line, ";") {
			continue // the line ends nothing; a statement of many lines is scanned only once
		}
		text := string(e.pending)
		if err != nil {
			e.pending = nil
			return text, err
		}
		rest := unfinished(text)
		e.pending = append(e.pending[:0], rest...)
		if whole := text[:len(text)-len(rest)]; strings.TrimSpace(whole) != "" {
			return whole, nil
		}
	}
}

// line reads a line. Reading a stream cannot be cancelled: when ctx ends, the reading goroutine is
// left behind, and the session ends.
func (e *pipeEditor) line(ctx context.Context) (string, error) {
	go func() {
		defer bug.Catch()
		text, err := e.readLine()
		e.lines <- inputLine{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case l := <-e.lines:
		return l.text, l.err
	}
}

// readLine reads a line of at most ScriptBytes.
func (e *pipeEditor) readLine() (string, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line)+len(e.pending) > ScriptBytes:
			return "", errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return string(line), err
		}
	}
}

// AddHistory does nothing: the history keeps only what was typed.
func (e *pipeEditor) AddHistory(string) error { return nil }

// unfinished returns the end of text that is not a whole item.
func unfinished(text string) string {
	for {
		item, rest, whole := nextItem(text)
		if item == "" {
			return ""
		}
		if !whole {
			return text
		}
		text = rest
	}
}
