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
)

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
