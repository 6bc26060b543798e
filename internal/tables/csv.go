package tables

import (
	"encoding/csv"
	"io"
	"strconv"
)

// csvWriter writes comma-separated values under a line of names. A vector takes a column for each
// of its values, and these are called v0, v1 and so on.
type csvWriter struct {
	csv    *csv.Writer
	fields []string
}

// newCSV writes the line of names.
func newCSV(w io.Writer, columns []Column) (*csvWriter, error) {
	c := &csvWriter{csv: csv.NewWriter(w)}
	for _, column := range columns {
		if column.Kind != Vector {
			c.String(column.Name)
			continue
		}
		for i := range column.Width {
			c.String("v" + strconv.Itoa(i))
		}
	}
	return c, c.EndRow()
}

func (c *csvWriter) String(s string)   { c.fields = append(c.fields, s) }
func (c *csvWriter) Int64(v int64)     { c.String(strconv.FormatInt(v, 10)) }
func (c *csvWriter) Float32(v float32) { c.String(strconv.FormatFloat(float64(v), 'g', -1, 32)) }
func (c *csvWriter) Float64(v float64) { c.String(strconv.FormatFloat(v, 'g', -1, 64)) }
func (c *csvWriter) Vector(v []float32) {
	for _, x := range v {
		c.Float32(x)
	}
}

// EndRow writes a line.
func (c *csvWriter) EndRow() error {
	err := c.csv.Write(c.fields)
	c.fields = c.fields[:0]
	return err
}

// Close writes what is buffered.
func (c *csvWriter) Close() error {
	c.csv.Flush()
	return c.csv.Error()
}
