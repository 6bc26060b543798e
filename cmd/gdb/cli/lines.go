package cli

import (
	"fmt"
	"io"

	"gdb/internal/message"
)

// Lines writes formatted text and keeps the first error.
type Lines struct {
	W   io.Writer
	Err error
}

// Printf writes formatted text.
func (l *Lines) Printf(format string, args ...any) {
	if l.Err == nil {
		_, l.Err = fmt.Fprintf(l.W, format, args...)
	}
}

// fieldIndent is where the text of a field begins.
const fieldIndent = 12

// Field writes a name and what is said of it, in as many lines as that takes.
func (l *Lines) Field(name, format string, args ...any) {
	text := message.WrapIndented(fmt.Sprintf(format, args...), fieldIndent)
	l.Printf("%-*s%s\n", fieldIndent, name, text[fieldIndent:])
}
