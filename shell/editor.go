package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// pipeEditor reads whole items from a stream without a line editor.
type pipeEditor struct {
	in      *bufio.Reader
	prompts io.Writer // nil for none
	pending string    // text after the last whole item
}

// Read returns the next items, as soon as the line that ends them is read. At the end of the
// stream it returns what is left, and io.EOF.
func (e *pipeEditor) Read() (string, error) {
	for {
		if e.prompts != nil {
			prompt := promptFirst
			if strings.TrimSpace(e.pending) != "" {
				prompt = promptMore
			}
			fmt.Fprint(e.prompts, prompt)
		}
		line, err := e.in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		text := e.pending + line
		if err != nil {
			e.pending = ""
			return text, err
		}
		whole := text[:len(text)-len(unfinished(text))]
		e.pending = text[len(whole):]
		if strings.TrimSpace(whole) != "" {
			return whole, nil
		}
	}
}

// What a terminal shows where a statement begins, and where it goes on.
const (
	promptFirst = "gdb> "
	promptMore  = "...> "
)

// unfinished is the end of text that is not a whole item.
func unfinished(text string) string {
	for {
		_, rest, whole := nextItem(text)
		if !whole {
			return text
		}
		text = rest
	}
}
