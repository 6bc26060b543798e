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
	// The kinds below are integers to a Writer, and only files of Parquet have them: 0 or 1, days,
	// and microseconds since 1970, UTC.
	Bool
	Date
	Timestamp
)

// Column describes one column of a table.
type Column struct {
	Name string
	Kind Kind
	// Width is the length of a Vector, or the length in characters of the longest string of a
	// String column. Only NumPy's arrays need the latter, since all their strings have one width.
	Width int
	// Optional says that values may be null. Only files of Parquet know it.
	Optional bool
}

// NullWriter is a Writer of columns that may be optional.
type NullWriter interface {
	Writer
	// Null adds a null to an optional column.
	Null()
}

// NewParquet starts a table of Parquet on w. The caller calls Close.
func NewParquet(w io.Writer, columns []Column) (NullWriter, error) { return newParquet(w, columns) }

// Writer writes one table. A row is one value for each column, of the column's kind and in the
// order of columns, and then EndRow. One goroutine may use it. After an error it must not be used.
type Writer interface {
	Int64(v int64)
	Float32(v float32)
	Float64(v float64)
	String(s string)
	Vector(v []float32)
	// EndRow ends a row. After it returns, strings of the row are no longer used.
	EndRow() error
	// Close writes what is buffered and the end of the file. It leaves the destination open.
	Close() error
}

// NewWriter starts a table with this number of rows on w, in the format that a file's extension
// names: ".csv", ".parquet" or ".npy". It returns nil for other extensions. Only NumPy needs the
// number of rows. The caller calls Close.
func NewWriter(w io.Writer, extension string, columns []Column, rows uint64) (Writer, error) {
	switch extension {
	case ".csv":
		return newCSV(w, columns)
	case ".parquet":
		return newParquet(w, columns)
	case ".npy":
		return newNumpy(w, columns, rows)
	}
	return nil, nil
}
