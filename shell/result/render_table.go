package result

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gdb/internal/mem"
	"gdb/shell/words"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Bounds of what a box shows. Every other mode is complete.
const (
	BoxRows  = 40 // rows, unless .rows says otherwise
	boxCols  = 16
	boxRunes = 100  // characters of a cell
	boxLeast = 12   // columns that a cell keeps when it is cut to fit the terminal
	boxChunk = 1024 // rows of one box; further rows get another box, so memory is bounded
)

// Box says how boxes look.
type Box struct {
	Rows  int    // rows that are shown at most; 0 for all
	Width int    // columns of the terminal; 0 for any
	Color bool   // whether headers stand out
	More  string // how to see the rows that are left out
	Wide  string // how to see the columns that are left out
}

// boxRenderer draws a box for people. It shows units, and not more than fits on a screen.
type boxRenderer struct {
	Box
	w     io.Writer
	cols  []string
	cells [][]string // at most boxChunk rows
	seen  int
	notes []string
}

// Note keeps a line that is written below the box.
func (r *boxRenderer) Note(line string) { r.notes = append(r.notes, line) }

// Header keeps the names.
func (r *boxRenderer) Header(cols []string) error {
	r.cols = cols
	return nil
}

// Row keeps a row to draw; if the box is full it only counts the row.
func (r *boxRenderer) Row(vals []any) error {
	r.seen++
	if r.Rows > 0 && r.seen > r.Rows {
		return nil
	}
	if len(r.cells) == boxChunk {
		if _, err := io.WriteString(r.w, r.draw()); err != nil {
			return err
		}
		r.cells = r.cells[:0]
	}
	row := make([]string, min(len(vals), boxCols))
	for i := range row {
		row[i] = boxCell(vals[i])
	}
	r.cells = append(r.cells, row)
	return nil
}

func boxCell(v any) string {
	switch v := v.(type) {
	case words.Absent:
		return "-"
	case words.Count:
		return humanize.Comma(int64(v))
	case words.Size:
		return mem.FormatSize(int64(v))
	case words.Ratio:
		return strconv.FormatFloat(100*float64(v), 'f', 1, 64) + " %"
	case float32:
		return figure(float64(v))
	case float64:
		return figure(v)
	}
	s := words.Printable(words.Raw(v))
	if utf8.RuneCountInString(s) > boxRunes {
		s = string([]rune(s)[:boxRunes-1]) + "…"
	}
	return s
}

// Bounds of the numbers that a box writes without a power of ten.
const (
	figureDigits = 5
	figureMost   = 1e18
	figureLeast  = 1e-12
)

// figure returns a number for people: with five digits, or more before the decimal point, with
// separators between these, and without a power of ten.
func figure(v float64) string {
	size := math.Abs(v)
	switch {
	case size >= figureMost || size > 0 && size < figureLeast || v != v:
		return strconv.FormatFloat(v, 'g', figureDigits, 64)
	case size >= 1000:
		whole := max(0, figureDigits-1-int(math.Log10(size)))
		text := strconv.FormatFloat(v, 'f', whole, 64)
		before, after, point := strings.Cut(text, ".")
		n, _ := strconv.ParseInt(before, 10, 64) // below 2^63: figureMost
		if after = strings.TrimRight(after, "0"); point && after != "" {
			return humanize.Comma(n) + "." + after
		}
		return humanize.Comma(n)
	case size < 1e-4 && size > 0:
		text := strconv.FormatFloat(v, 'f', figureDigits-1-int(math.Floor(math.Log10(size))), 64)
		return strings.TrimRight(text, "0")
	}
	return strconv.FormatFloat(v, 'g', figureDigits, 64)
}

// fit cuts the widest cells, and then drops the last columns, until the box is as wide as the
// terminal. It returns the width of each column that is left.
func (r *boxRenderer) fit() []int {
	widths := make([]int, min(len(r.cols), boxCols))
	for i := range widths {
		widths[i] = text.StringWidth(r.cols[i])
		for _, row := range r.cells {
			widths[i] = max(widths[i], text.StringWidth(row[i]))
		}
	}
	for r.Width > 0 && len(widths) > 1 {
		excess := 1 - r.Width
		widest := 0
		for i, w := range widths {
			excess += w + 3 // a border and two blanks
			if w > widths[widest] {
				widest = i
			}
		}
		switch {
		case excess <= 0:
			return widths
		case widths[widest] > boxLeast:
			widths[widest] = max(widths[widest]-excess, boxLeast)
		default:
			widths = widths[:len(widths)-1]
		}
	}
	return widths
}

// draw returns the box of the kept rows.
func (r *boxRenderer) draw() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	widths := r.fit()
	line := func(cells []string, dress string) table.Row {
		row := table.Row{}
		for i, w := range widths {
			row = append(row, words.Dressed(words.Truncated(cells[i], w), dress))
		}
		return row
	}
	head := ""
	if r.Color {
		head = words.StyleBold
	}
	t.AppendHeader(line(r.cols, head))
	for _, row := range r.cells {
		t.AppendRow(line(row, ""))
	}
	out := t.Render() + "\n"
	if len(widths) < len(r.cols) {
		out += fmt.Sprintf("%d of %s columns shown; %s\n", len(widths),
			humanize.Comma(int64(len(r.cols))), r.Wide)
	}
	return out
}

// Footer draws the rows that are left, and says what is not shown.
func (r *boxRenderer) Footer() error {
	out := ""
	if len(r.cells) > 0 || r.seen == 0 {
		out = r.draw()
	}
	if r.Rows > 0 && r.seen > r.Rows {
		out += fmt.Sprintf("%d of %s rows shown; %s\n", r.Rows, humanize.Comma(int64(r.seen)),
			r.More)
	}
	for _, line := range r.notes {
		out += line + "\n"
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
		b = append(b, markdownEscapes.Replace(words.Raw(v))...)
		b = append(b, " |"...)
	}
	_, err := r.w.Write(append(b, '\n'))
	return err
}

// Footer does nothing.
func (r markdownRenderer) Footer() error { return nil }
