package train

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// parquetGroup is how many rows a row group has: the writer holds one in memory.
const parquetGroup = 1 << 16

// parquetWriter writes a Parquet file of strings and floats.
type parquetWriter struct {
	*outputFile
	parquet *parquet.GenericWriter[any]
	columns []int // place in a row of each column of columnNames
	row     parquet.Row
	rows    int // in the row group
}

// Begin makes the schema. Parquet orders columns by name.
func (w *parquetWriter) Begin(h PredictionHeader) error {
	if err := w.create(); err != nil {
		return err
	}
	names := columnNames(h)
	group := parquet.Group{}
	for i, name := range names {
		group[name] = parquet.Leaf(parquet.FloatType)
		if i < 2 {
			group[name] = parquet.String()
		}
	}
	schema := parquet.NewSchema("predictions", group)
	place := map[string]int{}
	for i, path := range schema.Columns() {
		place[path[0]] = i
	}
	for _, name := range names {
		w.columns = append(w.columns, place[name])
	}
	w.row = make(parquet.Row, len(names))
	w.parquet = parquet.NewGenericWriter[any](w.buf, schema, parquet.Compression(&parquet.Zstd))
	return nil
}

// Write writes a row for each prediction.
func (w *parquetWriter) Write(p *Predictions) error {
	n := len(w.columns) - 2
	for i, id := range p.IDs {
		w.set(0, parquet.ValueOf(id))
		w.set(1, parquet.ValueOf(p.Labels[i]))
		for k := range n {
			w.set(2+k, parquet.ValueOf(p.Probabilities[i*n+k]))
		}
		if _, err := w.parquet.WriteRows([]parquet.Row{w.row}); err != nil {
			return fmt.Errorf("train: write %s: %w", w.path, err)
		}
		if w.rows++; w.rows%parquetGroup == 0 {
			if err := w.parquet.Flush(); err != nil {
				return fmt.Errorf("train: write %s: %w", w.path, err)
			}
		}
	}
	return nil
}

func (w *parquetWriter) set(column int, v parquet.Value) {
	at := w.columns[column]
	w.row[at] = v.Level(0, 0, at)
}

// Commit makes the file appear.
func (w *parquetWriter) Commit() error {
	if err := w.parquet.Close(); err != nil {
		return fmt.Errorf("train: write %s: %w", w.path, err)
	}
	return w.commit()
}
