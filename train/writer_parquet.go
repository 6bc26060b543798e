package train

import (
	"fmt"

	"gdb/internal/parquet"
)

// parquetWriter writes a Parquet file of strings and floats.
type parquetWriter struct {
	*outputFile
	parquet *parquet.Writer
}

// Begin makes the columns.
func (w *parquetWriter) Begin(h PredictionHeader) error {
	if err := w.create(); err != nil {
		return err
	}
	var columns []parquet.Column
	for i, name := range columnNames(h) {
		kind := parquet.Float32
		if i < 2 {
			kind = parquet.String
		}
		columns = append(columns, parquet.Column{Name: name, Type: kind})
	}
	var err error
	if w.parquet, err = parquet.NewWriter(w.buf, columns); err != nil {
		return fmt.Errorf("train: write %s: %w", w.path, err)
	}
	return nil
}

// Write writes a row for each prediction.
func (w *parquetWriter) Write(p *Predictions) error {
	classes := len(p.Probabilities) / max(1, len(p.IDs))
	for i, id := range p.IDs {
		w.parquet.AddString(0, id)
		w.parquet.AddString(1, p.Labels[i])
		for k, v := range p.Probabilities[i*classes : (i+1)*classes] {
			w.parquet.AddFloat32(2+k, v)
		}
		if err := w.parquet.EndRow(); err != nil {
			return fmt.Errorf("train: write %s: %w", w.path, err)
		}
	}
	return nil
}

// Commit makes the file appear.
func (w *parquetWriter) Commit() error {
	if err := w.parquet.Close(); err != nil {
		return fmt.Errorf("train: write %s: %w", w.path, err)
	}
	return w.commit()
}
