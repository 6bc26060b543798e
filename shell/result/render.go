// Package result writes what a statement answers. It holds the renderers that show rows on a
// terminal or write them as CSV, JSON and the like, and the files that INTO writes.
package result

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"gdb/shell/words"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Modes lists the output modes that a user can name. auto is box on a terminal and csv elsewhere.
var Modes = []string{"auto", "box", "csv", "tsv", "json", "jsonl", "md", "line", "none"}

// Renderer writes one result. Header comes first, once, and Footer last. All renderers but the box
// write each row as it comes.
type Renderer interface {
	Header(cols []string) error
	Row(vals []any) error
	Footer() error
}

// Noter is implemented by a renderer that shows lines for people below the result.
type Noter interface{ Note(line string) }

// Valuer is implemented by a renderer that takes values of openCypher as they are; others take text
// for lists, maps, entities and times.
type Valuer interface{ TakesValues() }

// NewRenderer returns the renderer of a mode; box says how boxes look.
func NewRenderer(mode string, w io.Writer, box Box) Renderer {
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
		return markdownRenderer{w}
	case "line":
		return &lineRenderer{w: w}
	case "none":
		return Discard{}
	}
	return &boxRenderer{w: w, Box: box}
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
		r.cells = append(r.cells, words.Raw(v))
	}
	return r.w.Write(r.cells)
}

// Footer flushes.
func (r *csvRenderer) Footer() error {
	r.w.Flush()
	return r.w.Error()
}

// jsonRenderer writes objects whose fields are in the order of the columns: as an array, or one
// object on each line.
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
		cell, err := json.Marshal(jsonValue(v))
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

// jsonValue replaces numbers that JSON does not have by their names.
func jsonValue(v any) any {
	var f float64
	switch v := v.(type) {
	case float32:
		f = float64(v)
	case float64:
		f = v
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return words.Raw(v)
	}
	return v
}

// Footer closes the array.
func (r *jsonRenderer) Footer() error {
	if !r.array {
		return nil
	}
	_, err := io.WriteString(r.w, "]\n")
	return err
}

// lineRenderer writes a line for each value, and an empty line between rows.
type lineRenderer struct {
	w     io.Writer
	cols  []string
	width int
	rows  int
}

// Header keeps the names.
func (r *lineRenderer) Header(cols []string) error {
	r.cols = cols
	for _, c := range cols {
		r.width = max(r.width, text.StringWidth(c))
	}
	return nil
}

// Row writes one line for each column, with the names right-aligned.
func (r *lineRenderer) Row(vals []any) error {
	var b strings.Builder
	if r.rows > 0 {
		b.WriteByte('\n')
	}
	r.rows++
	for i, v := range vals {
		b.WriteString(strings.Repeat(" ", r.width-text.StringWidth(r.cols[i])))
		fmt.Fprintf(&b, "%s = %s\n", r.cols[i], words.Raw(v))
	}
	_, err := io.WriteString(r.w, b.String())
	return err
}

// Footer does nothing.
func (r *lineRenderer) Footer() error { return nil }

// Discard is a renderer that drops all rows, for statements of which only the cost is of interest.
type Discard struct{}

// Header does nothing.
func (Discard) Header([]string) error { return nil }

// Row does nothing.
func (Discard) Row([]any) error { return nil }

// Footer does nothing.
func (Discard) Footer() error { return nil }
