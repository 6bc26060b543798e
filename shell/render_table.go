package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"gdb/internal/mem"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// What the box shows at most; every other mode is complete.
const (
	boxRows  = 40
	boxCols  = 16
	boxRunes = 100 // of a cell
)

// boxRenderer draws a box for people: units, and not more than fits a screen.
type boxRenderer struct {
	w    io.Writer
	t    table.Writer
	cols int
	rows int
}

// Header begins the table.
func (r *boxRenderer) Header(cols []string) error {
	r.t = table.NewWriter()
	r.t.SetStyle(table.StyleLight)
	r.t.Style().Format.Header = text.FormatDefault
	r.cols = len(cols)
	head := table.Row{}
	for _, c := range cols[:min(len(cols), boxCols)] {
		head = append(head, c)
	}
	r.t.AppendHeader(head)
	return nil
}

// Row adds a row, or only counts it when the box is full.
func (r *boxRenderer) Row(vals []any) error {
	r.rows++
	if r.rows > boxRows {
		return nil
	}
	row := table.Row{}
	for _, v := range vals[:min(len(vals), boxCols)] {
		row = append(row, boxCell(v))
	}
	r.t.AppendRow(row)
	return nil
}

func boxCell(v any) string {
	switch v := v.(type) {
	case count:
		return humanize.Comma(int64(v))
	case size:
		return mem.FormatSize(int64(v))
	case ratio:
		return strconv.FormatFloat(100*float64(v), 'f', 1, 64) + " %"
	case float32:
		return strconv.FormatFloat(float64(v), 'g', 5, 32)
	case float64:
		return strconv.FormatFloat(v, 'g', 5, 64)
	}
	s := printable(raw(v))
	if utf8.RuneCountInString(s) > boxRunes {
		s = string([]rune(s)[:boxRunes-1]) + "…"
	}
	return s
}

// printable replaces control characters: an id must not move the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, s)
}

// Footer draws the table.
func (r *boxRenderer) Footer() error {
	out := r.t.Render() + "\n"
	if r.rows > boxRows {
		out += fmt.Sprintf("%d of %s rows shown; every other --mode is complete\n", boxRows,
			humanize.Comma(int64(r.rows)))
	}
	if r.cols > boxCols {
		out += fmt.Sprintf("%d of %s columns shown; every other --mode is complete\n", boxCols,
			humanize.Comma(int64(r.cols)))
	}
	_, err := io.WriteString(r.w, out)
	return err
}

// markdownRenderer writes a Markdown table, row by row.
type markdownRenderer struct{ w io.Writer }

// Header writes the names and the rule below them.
func (r markdownRenderer) Header(cols []string) error {
	vals, rule := make([]any, len(cols)), make([]any, len(cols))
	for i, c := range cols {
		vals[i], rule[i] = c, "---"
	}
	if err := r.Row(vals); err != nil {
		return err
	}
	return r.Row(rule)
}

var markdownEscapes = strings.NewReplacer("|", `\|`, `\`, `\\`, "\r\n", "<br/>", "\n", "<br/>")

// Row writes one line.
func (r markdownRenderer) Row(vals []any) error {
	b := []byte("|")
	for _, v := range vals {
		b = append(b, ' ')
		b = append(b, markdownEscapes.Replace(raw(v))...)
		b = append(b, " |"...)
	}
	_, err := r.w.Write(append(b, '\n'))
	return err
}

// Footer does nothing.
func (r markdownRenderer) Footer() error { return nil }
