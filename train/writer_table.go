package train

import (
	"fmt"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"gdb/internal/tables"
)

// predictionTable writes predictions as a table of typed columns: Parquet, or a structured array of
// NumPy. Ids and predictions are strings, and probabilities 32-bit floats. In NumPy, where strings
// have one width, ids or labels are 64-bit integers if all of them are integers. Predicted numbers
// are 32-bit floats.
type predictionTable struct {
	*outputFile
	out               tables.Writer
	classes           int // number of columns of probabilities
	intIDs, intLabels bool
	numbers           bool // the labels are numbers
}

func (w *predictionTable) numpy() bool { return filepath.Ext(w.path) == ".npy" }

// WantsLongestID returns true for NumPy, where the header holds the width of ids.
func (w *predictionTable) WantsLongestID() bool { return w.numpy() }

// Begin makes the columns.
func (w *predictionTable) Begin(h PredictionHeader) error {
	if err := w.create(); err != nil {
		return err
	}
	labels, integers := labelWidth(h)
	w.intIDs, w.intLabels = w.numpy() && h.IntegerIDs, w.numpy() && integers && !h.Numbers
	w.numbers = h.Numbers
	var columns []tables.Column
	for _, name := range columnNames(h) {
		columns = append(columns, tables.Column{Name: name, Kind: tables.Float32})
	}
	w.classes = len(columns) - 2
	columns[0].Kind, columns[0].Width = tables.String, h.LongestID
	if !w.numbers {
		columns[1].Kind, columns[1].Width = tables.String, labels
	}
	if w.intIDs {
		columns[0].Kind = tables.Int64
	}
	if w.intLabels {
		columns[1].Kind = tables.Int64
	}
	var err error
	w.out, err = tables.NewWriter(w.buf, filepath.Ext(w.path), columns, h.Nodes)
	return w.failed(err)
}

// failed adds the name of the file to an error.
func (w *predictionTable) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("train: write %s: %w", w.path, err)
}

// labelWidth returns the length of the longest prediction in characters, and whether all
// predictions are integers in their usual form.
func labelWidth(h PredictionHeader) (width int, integers bool) {
	longest, sum := 1, 0
	integers = !h.Multi
	for _, c := range h.Classes {
		n := utf8.RuneCountInString(c)
		longest, sum = max(longest, n), sum+n+1
		v, err := strconv.ParseInt(c, 10, 64)
		integers = integers && err == nil && strconv.FormatInt(v, 10) == c
	}
	if h.Multi {
		return sum, false
	}
	return longest, integers
}

// Write writes a row for each prediction.
func (w *predictionTable) Write(p *Predictions) error {
	for i, id := range p.IDs {
		if err := w.text(id, w.intIDs); err != nil {
			return err
		}
		if err := w.label(p.Labels[i]); err != nil {
			return err
		}
		for k := range w.classes {
			w.out.Float32(p.Probabilities[i*w.classes+k])
		}
		if err := w.out.EndRow(); err != nil {
			return w.failed(err)
		}
	}
	return nil
}

// label adds a prediction: a string, or the number that it spells.
func (w *predictionTable) label(s string) error {
	if !w.numbers {
		return w.text(s, w.intLabels)
	}
	v, err := strconv.ParseFloat(s, 32)
	if err != nil {
		return w.failed(fmt.Errorf("%q is no number: %w", s, err))
	}
	w.out.Float32(float32(v))
	return nil
}

// text adds a string, or the integer that it spells.
func (w *predictionTable) text(s string, integer bool) error {
	if !integer {
		w.out.String(s)
		return nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return w.failed(fmt.Errorf("%q is no integer: %w", s, err))
	}
	w.out.Int64(v)
	return nil
}

// Commit makes the file appear.
func (w *predictionTable) Commit() error {
	if err := w.out.Close(); err != nil {
		return w.failed(err)
	}
	return w.commit()
}
