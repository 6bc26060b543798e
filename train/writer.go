package train

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"gdb/internal/files"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// NewPredictionWriter returns a writer to path, in the format that its extension names: .csv,
// .parquet or .npy. The columns are id, prediction and, if asked for, p:LABEL for each class.
func NewPredictionWriter(fs vfs.FS, path string) (PredictionWriter, error) {
	out := &outputFile{fs: fs, path: path}
	switch ext := filepath.Ext(path); ext {
	case ".csv":
		return &csvWriter{outputFile: out}, nil
	case ".parquet", ".npy":
		return &predictionTable{outputFile: out}, nil
	default:
		return nil, fmt.Errorf("train: predictions to %s: unknown format %q: use .csv, .parquet "+
			"or .npy", path, ext)
	}
}

// outputFile is a file that appears whole, or not at all.
type outputFile struct {
	fs   vfs.FS
	path string
	file *files.Atomic // nil before it is created
	buf  *bufio.Writer
}

func (o *outputFile) create() error {
	f, err := files.CreateAtomic(o.fs, o.path)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	o.file, o.buf = f, bufio.NewWriterSize(f, 1<<20)
	return nil
}

func (o *outputFile) commit() error {
	if err := o.buf.Flush(); err != nil {
		return errors.Join(fmt.Errorf("train: write %s: %w", o.path, err), o.file.Abort())
	}
	if err := o.file.Commit(); err != nil {
		return fmt.Errorf("train: write %s: %w", o.path, err)
	}
	return nil
}

// Abort removes what was written, unless the file has appeared.
func (o *outputFile) Abort() error {
	if o.file == nil {
		return nil
	}
	return o.file.Abort()
}

// WantsLongestID returns false: most formats do not need it.
func (o *outputFile) WantsLongestID() bool { return false }

// columnNames returns the names of the columns.
func columnNames(h PredictionHeader) []string {
	names := []string{"id", "prediction"}
	if h.Probabilities {
		for _, c := range h.Classes {
			names = append(names, "p:"+c)
		}
	}
	return names
}

// csvWriter writes comma-separated values with a header line.
type csvWriter struct {
	*outputFile
	csv    *csv.Writer
	fields []string
}

// Begin writes the header line.
func (w *csvWriter) Begin(h PredictionHeader) error {
	if err := w.create(); err != nil {
		return err
	}
	w.csv = csv.NewWriter(w.buf)
	w.fields = columnNames(h)
	return w.line()
}

// Write writes a line for each prediction.
func (w *csvWriter) Write(p *Predictions) error {
	n := len(w.fields) - 2
	for i, id := range p.IDs {
		w.fields[0], w.fields[1] = id, p.Labels[i]
		for k := range n {
			w.fields[2+k] = strconv.FormatFloat(float64(p.Probabilities[i*n+k]), 'g', -1, 32)
		}
		if err := w.line(); err != nil {
			return err
		}
	}
	return nil
}

func (w *csvWriter) line() error {
	if err := w.csv.Write(w.fields); err != nil {
		return fmt.Errorf("train: write %s: %w", w.path, err)
	}
	return nil
}

// Commit makes the file appear.
func (w *csvWriter) Commit() error {
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return fmt.Errorf("train: write %s: %w", w.path, err)
	}
	return w.commit()
}
