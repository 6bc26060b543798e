package cli

import (
	"fmt"
	"io"

	"gdb/internal/mem"
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

// Pool writes how memory is shared: its name and size, the parts, whose names take some columns,
// and what is left.
func (l *Lines) Pool(name string, p *mem.Pool, columns int) {
	l.Printf("%-*s %s\n", fieldIndent-1, name, mem.FormatSize(p.Bytes))
	for _, part := range p.Parts {
		what := ""
		if part.What != "" {
			what = " (" + part.What + ")"
		}
		l.Printf("  %-*s %10s%s\n", columns, part.Name, mem.FormatSize(part.Bytes), what)
	}
	if left := p.Left(); left >= 0 {
		l.Printf("  %-*s %10s\n", columns, "left", mem.FormatSize(left))
	} else {
		l.Printf("  %-*s %10s\n", columns, "too much by", mem.FormatSize(-left))
	}
}

// Reasons writes why something was chosen.
func (l *Lines) Reasons(why []string) {
	name := "why"
	for _, line := range why {
		l.Field(name, "%s", line)
		name = ""
	}
}
