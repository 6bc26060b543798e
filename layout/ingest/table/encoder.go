package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
)

// categoriesMax is the most categories of a column: each is a number in every row.
const categoriesMax = 1000

// Fill says what stands where a value is missing. The zero value fills nothing.
type Fill struct {
	On        bool
	Mean      bool    // the mean of the column
	Value     float32 // else
	Indicator bool    // a column more for each that has gaps: 1 where the value was missing
}

// ParseFill reads mean, zero or a number, and after a comma indicator.
func ParseFill(s string) (f Fill, err error) {
	if s == "" {
		return f, nil
	}
	value, more, both := strings.Cut(s, ",")
	f.On, f.Indicator = true, both
	if both && more != "indicator" {
		return f, fmt.Errorf("--fill %s: after the comma only indicator can stand", s)
	}
	switch value {
	case "mean":
		f.Mean = true
	case "zero":
	default:
		x, err := strconv.ParseFloat(value, 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return f, fmt.Errorf("--fill %s is not mean, zero or a number", s)
		}
		f.Value = float32(x)
	}
	return f, nil
}

// FeatureColumn is a column that features are made of.
type FeatureColumn struct {
	Field    int
	Name     string
	Dim      int // numbers in a row of it
	List     bool
	Category bool
}

// Encoder makes rows of features. Its memory is O(columns + categories).
type Encoder struct {
	columns []oneColumn
	fill    Fill
	dim     int
	row     []float32
	// strange, of an encoder that was restored, is told of categories that it does not know.
	strange func(column, word string)
}

// oneColumn is a column with what was measured.
type oneColumn struct {
	FeatureColumn
	values map[string]int // place of each category, in order of the words
	sum    []float64
	known  []uint64
	gaps   []uint64 // values that are missing
	first  int      // place in the row
	lacks  bool     // the table of a restored encoder does not have the column
}

// NewEncoder makes an encoder of some columns.
func NewEncoder(columns []FeatureColumn, fill Fill) *Encoder {
	e := &Encoder{fill: fill}
	for _, c := range columns {
		e.columns = append(e.columns, oneColumn{FeatureColumn: c, values: map[string]int{},
			sum: make([]float64, c.Dim), known: make([]uint64, c.Dim), gaps: make([]uint64, c.Dim)})
	}
	e.place()
	return e
}

// Restore makes an encoder that encodes as a store says its features were made. field returns where
// a table has a column, or -1. Numbers that the table lacks, or that are missing in a row, are NaN;
// a category that the store does not know is one of all zeros, and strange is told of it.
func Restore(stored []kv.EncodedColumn, field func(name string) int,
	strange func(column, word string)) *Encoder {
	e := &Encoder{fill: Fill{Indicator: true}, strange: strange}
	for i := range stored {
		s := &stored[i]
		c := oneColumn{FeatureColumn: FeatureColumn{Field: field(s.Name), Name: s.Name, Dim: s.Dim,
			List: s.List, Category: s.Category}, values: map[string]int{},
			known: make([]uint64, s.Dim), gaps: make([]uint64, s.Dim)}
		c.lacks = c.Field < 0
		for k, gap := range s.Gaps {
			if gap {
				c.gaps[k] = 1
			}
		}
		for k, word := range s.Words {
			c.values[word] = k
		}
		e.columns = append(e.columns, c)
	}
	e.place()
	return e
}

// Encoding describes the columns, for Restore; of a restored encoder those that its table has.
func (e *Encoder) Encoding() (columns []kv.EncodedColumn) {
	for _, c := range e.columns {
		if c.lacks {
			continue
		}
		of := kv.EncodedColumn{Name: c.Name, Dim: c.Dim, List: c.List, Category: c.Category}
		if c.Category {
			of.Dim, of.Words = 0, slices.Sorted(maps.Keys(c.values))
			columns = append(columns, of)
			continue
		}
		for k, gaps := range c.gaps {
			if e.fill.On {
				of.Fill = append(of.Fill, e.filled(&c, k))
			}
			of.Gaps = append(of.Gaps, gaps > 0 && e.fill.Indicator)
		}
		if !slices.Contains(of.Gaps, true) {
			of.Gaps = nil
		}
		columns = append(columns, of)
	}
	return columns
}

// filled returns what stands where number k of a column is missing.
func (e *Encoder) filled(c *oneColumn, k int) float32 {
	if e.fill.Mean && c.known[k] > 0 {
		return float32(c.sum[k] / float64(c.known[k]))
	}
	return e.fill.Value
}

// Measures reports whether all rows must be seen by Measure before the first is encoded.
func (e *Encoder) Measures() bool {
	return e.fill.Mean || e.fill.Indicator ||
		slices.ContainsFunc(e.columns, func(c oneColumn) bool { return c.Category })
}

// Plain reports whether rows are the same as a batch's Vector.
func (e *Encoder) Plain() bool { return !e.fill.On && !e.Measures() }

// Measure looks at a batch whose columns from number first on are the categories.
func (e *Encoder) Measure(b *input.Batch, first int) error {
	for i := range e.columns {
		c := &e.columns[i]
		if !c.Category {
			continue
		}
		for _, v := range b.Columns[first].Texts {
			if _, seen := c.values[string(v)]; seen || len(v) == 0 {
				continue
			}
			if len(c.values) == categoriesMax {
				return input.Wrong(b.File, "leave it out of --categorical",
					"column %q has more than %d categories", c.Name, categoriesMax)
			}
			c.values[string(v)] = 0
		}
		first++
	}
	width := e.vectorWidth()
	for i := range b.Rows {
		e.measureRow(b.Vector[i*width : (i+1)*width])
	}
	return nil
}

func (e *Encoder) measureRow(vector []float32) {
	for i := range e.columns {
		c := &e.columns[i]
		if c.Category {
			continue
		}
		for k, x := range vector[:c.Dim] {
			if x != x {
				c.gaps[k]++
				continue
			}
			c.sum[k] += float64(x)
			c.known[k]++
		}
		vector = vector[c.Dim:]
	}
}

func (e *Encoder) vectorWidth() (width int) {
	for _, c := range e.columns {
		if !c.Category && !c.lacks {
			width += c.Dim
		}
	}
	return width
}

// Finish ends the measuring: the categories of a column are numbered in the order of their words.
func (e *Encoder) Finish() {
	for _, c := range e.columns {
		for i, v := range slices.Sorted(maps.Keys(c.values)) {
			c.values[v] = i
		}
	}
	e.place()
}

// place lays out the row.
func (e *Encoder) place() {
	e.dim = 0
	for i := range e.columns {
		c := &e.columns[i]
		c.first = e.dim
		if c.Category {
			e.dim += len(c.values)
			continue
		}
		e.dim += c.Dim
		for _, gap := range c.gaps {
			if gap > 0 && e.fill.Indicator {
				e.dim++
			}
		}
	}
}

// Dim returns the number of numbers in a row.
func (e *Encoder) Dim() int { return e.dim }

// Encode returns the rows of a batch, valid until the next call.
func (e *Encoder) Encode(b *input.Batch, first int) ([]float32, error) {
	if cap(e.row) < b.Rows*e.dim {
		e.row = make([]float32, b.Rows*e.dim)
	}
	rows, width := e.row[:b.Rows*e.dim], e.vectorWidth()
	clear(rows)
	for i := range b.Rows {
		err := e.encodeRow(b, first, i, b.Vector[i*width:(i+1)*width], rows[i*e.dim:(i+1)*e.dim])
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (e *Encoder) encodeRow(b *input.Batch, first, i int, vector, row []float32) error {
	for k := range e.columns {
		c := &e.columns[k]
		if c.lacks {
			e.missing(c, row)
			continue
		}
		if !c.Category {
			e.numbers(c, vector[:c.Dim], row)
			vector = vector[c.Dim:]
			continue
		}
		v := b.Columns[first].Texts[i]
		first++
		if len(v) == 0 {
			continue
		}
		at, known := c.values[string(v)]
		if !known && e.strange != nil {
			e.strange(c.Name, string(v))
			continue
		}
		if !known {
			return fmt.Errorf("columns: %s: the file changed while it was read", b.File)
		}
		row[c.first+at] = 1
	}
	return nil
}

// missing makes all values of a column NaN.
func (e *Encoder) missing(c *oneColumn, row []float32) {
	n := c.Dim
	if c.Category {
		n = len(c.values)
	}
	for _, gap := range c.gaps {
		if gap > 0 {
			n++
		}
	}
	for k := range n {
		row[c.first+k] = float32(math.NaN())
	}
}

// numbers fills the numbers of a column, and the indicators behind them.
func (e *Encoder) numbers(c *oneColumn, vector, row []float32) {
	flag := c.first + c.Dim
	for k, x := range vector {
		gap := x != x
		if gap && e.fill.On {
			x = e.filled(c, k)
		}
		row[c.first+k] = x
		if c.gaps[k] > 0 && e.fill.Indicator {
			if gap {
				row[flag] = 1
			}
			flag++
		}
	}
}

// Names name the numbers of a row in their order. A category is COLUMN=WORD, and the indicator of a
// column's gaps COLUMN=missing.
func (e *Encoder) Names() (names []kv.ColumnMeta) {
	for _, c := range e.columns {
		switch {
		case c.Category:
			for _, v := range slices.Sorted(maps.Keys(c.values)) {
				names = append(names, kv.ColumnMeta{Name: c.Name + "=" + v})
			}
			continue
		case c.List:
			names = append(names, kv.ColumnMeta{Name: c.Name, Dim: c.Dim})
		default:
			names = append(names, kv.ColumnMeta{Name: c.Name})
		}
		for k, gaps := range c.gaps {
			if gaps == 0 || !e.fill.Indicator {
				continue
			}
			name := c.Name
			if c.List {
				name = fmt.Sprintf("%s[%d]", name, k)
			}
			names = append(names, kv.ColumnMeta{Name: name + "=missing"})
		}
	}
	return names
}

// Describe returns what the columns were made of, in a few words; "" if they are as they were.
func (e *Encoder) Describe() string {
	var parts []string
	gaps, values := 0, uint64(0)
	for _, c := range e.columns {
		if c.Category {
			parts = append(parts, fmt.Sprintf("%s has %d categories", c.Name, len(c.values)))
		}
		for _, g := range c.gaps {
			if g > 0 {
				gaps++
				values += g
			}
		}
	}
	if gaps > 0 {
		columns, are := "columns", "values are"
		if gaps == 1 {
			columns = "column"
		}
		if values == 1 {
			are = "value is"
		}
		parts = append(parts, fmt.Sprintf("%d %s had gaps: %d %s filled", gaps, columns,
			values, are))
	}
	return strings.Join(parts, "; ")
}
