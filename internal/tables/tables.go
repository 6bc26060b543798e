package tables

import "io"

// Kind is the type of a column.
type Kind uint8

// The kinds of columns.
const (
	Int64 Kind = iota
	Float32
	Float64
	String
	Vector // Width 32-bit floats
)

// Column describes one column of a table.
type Column struct {
	Name string
	Kind Kind
	// Width is the length in characters of the longest string of a String column, which only
	// NumPy's arrays need, whose strings have one width; and the length of a Vector.
	Width int
}

// Writer writes one table. A row is one value for each column, in the order of the columns and of
// its kind, and then EndRow. It is for one goroutine; after an error it is of no more use.
type Writer interface {
	Int64(v int64)
	Float32(v float32)
	Float64(v float64)
	String(s string)
	Vector(v []float32)
	// EndRow ends a row. Strings are not used after it returns.
	EndRow() error
	// Close writes what is buffered and the end of the file. It leaves the destination open.
	Close() error
}

// NewWriter starts a table of so many rows on w, in the format that a file's extension names:
// ".parquet" or ".npy". It returns nil if the extension is of no such format. Parquet does not need
// to know the number of rows beforehand.
func NewWriter(w io.Writer, extension string, columns []Column, rows uint64) (Writer, error) {
	switch extension {
	case ".parquet":
		return newParquet(w, columns)
	case ".npy":
		return newNumpy(w, columns, rows)
	}
	return nil, nil
}
