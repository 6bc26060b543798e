package query

import (
	"fmt"

	"gdb/internal/mem"
	"gdb/shell/result"
	"gdb/shell/words"
)

// collector is a renderer that keeps rows in memory.
type collector struct {
	budget  *mem.Budget
	held    int64
	columns []result.Column
	rows    [][]any
}

// Header keeps the names.
func (c *collector) Header(cols []string) error {
	for _, name := range cols {
		c.columns = append(c.columns, result.Column{Name: name})
	}
	return nil
}

// Row keeps a row.
func (c *collector) Row(vals []any) error {
	bytes := int64(rowBytes * len(vals))
	row := make([]any, len(vals))
	for i, v := range vals {
		cell := words.Of(v)
		c.columns[i].Take(cell)
		bytes += int64(len(cell.Text))
		row[i] = cell
	}
	if err := c.budget.Reserve("rows of a result", bytes); err != nil {
		return fmt.Errorf("%w; LIMIT rows, or write them with INTO", err)
	}
	c.held += bytes
	c.rows = append(c.rows, row)
	return nil
}

// Footer does nothing.
func (c *collector) Footer() error { return nil }

// convert gives every value the type of its column.
func (c *collector) convert() {
	for _, row := range c.rows {
		for i, v := range row {
			cell, _ := v.(words.Cell)
			if cell.Kind == words.Empty {
				row[i] = nil
				continue
			}
			switch cell = cell.As(c.columns[i].Kind); cell.Kind {
			case words.Int:
				row[i] = cell.Int
			case words.Float:
				row[i] = cell.Float
			default:
				row[i] = cell.Text
			}
		}
	}
}
