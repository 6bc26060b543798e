package shell

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Modes are the output modes that a user can name; auto is box on a terminal and csv elsewhere.
var Modes = []string{"auto", "box", "csv", "tsv", "json", "jsonl", "md"}

// boxRows is how many rows the box shows; every other mode is complete.
const boxRows = 40

// renderer writes one result. Header comes first, once; Footer last. All but box and md stream.
type renderer interface {
	Header(cols []string) error
	Row(vals []any) error
	Footer() error
}

func newRenderer(mode string, w io.Writer) renderer {
	switch mode {
	case "csv":
		return &csvRenderer{w: csv.NewWriter(w)}
	case "tsv":
		r := &csvRenderer{w: csv.NewWriter(w)}
		r.w.Comma = '\t'
		return r
	case "json":
		return &jsonRenderer{w: w, array: true}
	case "jsonl":
		return &jsonRenderer{w: w}
	case "md":
		return &tableRenderer{w: w, markdown: true}
	}
	return &tableRenderer{w: w, most: boxRows}
}

// raw writes a value as scripts want it: no units, no separators.
func raw(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

type csvRenderer struct {
	w     *csv.Writer
	cells []string
}

// Header writes the names of the columns.
func (r *csvRenderer) Header(cols []string) error { return r.w.Write(cols) }

// Row writes one record.
func (r *csvRenderer) Row(vals []any) error {
	r.cells = r.cells[:0]
	for _, v := range vals {
		r.cells = append(r.cells, raw(v))
	}
	return r.w.Write(r.cells)
}

// Footer flushes.
func (r *csvRenderer) Footer() error {
	r.w.Flush()
	return r.w.Error()
}

// jsonRenderer writes objects with the columns in their order: an array, or one object a line.
type jsonRenderer struct {
	w     io.Writer
	array bool
	cols  [][]byte
	rows  int
}

// Header keeps the names.
func (r *jsonRenderer) Header(cols []string) error {
	for _, c := range cols {
		b, err := json.Marshal(c)
		if err != nil {
			return err
		}
		r.cols = append(r.cols, b)
	}
	if r.array {
		_, err := io.WriteString(r.w, "[")
		return err
	}
	return nil
}

// Row writes one object.
func (r *jsonRenderer) Row(vals []any) error {
	b := []byte{}
	if r.array && r.rows > 0 {
		b = append(b, ',', '\n', ' ')
	}
	b = append(b, '{')
	for i, v := range vals {
		if i > 0 {
			b = append(b, ',')
		}
		cell, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("shell: write column %s: %w", r.cols[i], err)
		}
		b = append(append(append(b, r.cols[i]...), ':'), cell...)
	}
	b = append(b, '}')
	if !r.array {
		b = append(b, '\n')
	}
	r.rows++
	_, err := r.w.Write(b)
	return err
}

// Footer closes the array.
func (r *jsonRenderer) Footer() error {
	if !r.array {
		return nil
	}
	_, err := io.WriteString(r.w, "]\n")
	return err
}

// tableRenderer draws a box, at most most rows of it, or a whole Markdown table.
type tableRenderer struct {
	w        io.Writer
	t        table.Writer
	markdown bool
	most     int
	rows     int
}

// Header begins the table.
func (r *tableRenderer) Header(cols []string) error {
	r.t = table.NewWriter()
	r.t.SetStyle(table.StyleLight)
	r.t.Style().Format.Header = text.FormatDefault
	head := table.Row{}
	for _, c := range cols {
		head = append(head, c)
	}
	r.t.AppendHeader(head)
	return nil
}

// Row adds a row, or only counts it when the box is full.
func (r *tableRenderer) Row(vals []any) error {
	r.rows++
	if r.most > 0 && r.rows > r.most {
		return nil
	}
	row := table.Row{}
	for _, v := range vals {
		row = append(row, r.cell(v))
	}
	r.t.AppendRow(row)
	return nil
}

func (r *tableRenderer) cell(v any) string {
	if f, ok := v.(float32); ok && !r.markdown {
		return strconv.FormatFloat(float64(f), 'g', 5, 32)
	}
	if f, ok := v.(float64); ok && !r.markdown {
		return strconv.FormatFloat(f, 'g', 5, 64)
	}
	return raw(v)
}

// Footer draws the table.
func (r *tableRenderer) Footer() error {
	out := r.t.Render() + "\n"
	if r.markdown {
		out = r.t.RenderMarkdown() + "\n"
	}
	if r.most > 0 && r.rows > r.most {
		out += fmt.Sprintf("%d of %s shown; every other --mode is complete\n", r.most,
			humanize.Comma(int64(r.rows)))
	}
	_, err := io.WriteString(r.w, out)
	return err
}
