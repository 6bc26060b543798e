// Package columns keeps the rows of a result by columns, in the buffers of Apache Arrow's columnar
// format: a program that knows the format uses them without copying a string.
package columns

import (
	"fmt"

	"gdb/internal/mem"
	"gdb/shell/words"
)

// Table is a renderer that keeps rows as columns. It takes values of openCypher as they are: lists,
// maps, nodes, relationships, paths and times; see Column.
type Table struct {
	Columns []*Column
	Rows    int

	budget *mem.Budget
	held   int64
}

// NewTable returns a table without rows. What they take is counted in budget until Release.
func NewTable(budget *mem.Budget) *Table { return &Table{budget: budget} }

// TakesValues says that values of openCypher need not be made text.
func (t *Table) TakesValues() {}

// Header names the columns.
func (t *Table) Header(names []string) error {
	for _, name := range names {
		t.Columns = append(t.Columns, &Column{Name: name, kind: Null})
	}
	return nil
}

// holdBytes is how much memory is reserved at a time.
const holdBytes = 64 << 10

// Row adds a row.
func (t *Table) Row(vals []any) error {
	for i, v := range vals {
		if err := t.Columns[i].Append(plain(v)); err != nil {
			return err
		}
	}
	t.Rows++
	if more := t.Bytes() - t.held; more > 0 {
		more += holdBytes
		if err := t.budget.Reserve("rows of a result", more); err != nil {
			return fmt.Errorf("%w; LIMIT rows, or ask for fewer columns", err)
		}
		t.held += more
	}
	return nil
}

// Footer does nothing.
func (t *Table) Footer() error { return nil }

// Bytes returns the memory that the columns take: twice their buffers, which grow by doubling.
func (t *Table) Bytes() (n int64) {
	for _, c := range t.Columns {
		n += c.size()
	}
	return 2 * n
}

// Release no longer counts the columns in the budget.
func (t *Table) Release() {
	t.budget.Release(t.held)
	t.held = 0
}

// plain makes values of openCypher of those that only the shell's own statements have.
func plain(v any) any {
	switch v.(type) {
	case int, uint32, uint64, float32, words.Count, words.Size, words.Ratio, words.Absent:
		switch c := words.Of(v); c.Kind {
		case words.Int:
			return c.Int
		case words.Float:
			return c.Float
		}
		return nil
	}
	return v
}
