package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"

	"gdb/internal/files"
	"gdb/internal/tables"
	"gdb/kv"
	"gdb/kv/ids"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Vectors gives access to the vectors of all nodes.
type Vectors interface {
	// Dim returns the number of values in a vector.
	Dim() int
	// Each calls fn with the vectors of all nodes in ascending order, several consecutive nodes at
	// a time. rows is (n, Dim), for the nodes from first on, and valid during the call.
	Each(ctx context.Context, fn func(first int, rows []float32) error) error
}

// VectorExtensions returns the extensions of the known formats.
func VectorExtensions() []string { return []string{".csv", ".parquet", ".npy"} }

// CheckVectors returns an error if the extension of path names no known format.
func CheckVectors(path string) error {
	if !slices.Contains(VectorExtensions(), filepath.Ext(path)) {
		return fmt.Errorf("vectors to %s: unknown format %q: use .csv, .parquet or .npy", path,
			filepath.Ext(path))
	}
	return nil
}

// WriteVectors writes the vectors of all nodes of a store to a file, which appears whole or not at
// all. In NumPy's files ids are integers if all of them are; elsewhere they are text, as given.
func WriteVectors(ctx context.Context, fs vfs.FS, path string, names ids.Dictionary, m *kv.Meta,
	src Vectors) error {
	if err := CheckVectors(path); err != nil {
		return err
	}
	f, err := files.CreateAtomic(fs, path)
	if err != nil {
		return err
	}
	w := &vectorWriter{names: names, buf: bufio.NewWriterSize(f, 1<<20), dim: src.Dim()}
	err = w.begin(ctx, filepath.Ext(path), m)
	if err == nil {
		err = src.Each(ctx, func(first int, rows []float32) error {
			return w.rows(ctx, first, rows)
		})
	}
	if err == nil {
		err = errors.Join(w.close(), w.buf.Flush())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), f.Abort())
	}
	return f.Commit()
}

// vectorWriter writes one file.
type vectorWriter struct {
	names ids.Dictionary
	buf   *bufio.Writer
	dim   int

	csv     *csv.Writer   // nil if table is used
	table   tables.Writer // nil if csv is used
	numbers bool          // ids are integers
	fields  []string
	nodes   []kv.NodeID
	ids     []string
}

// begin writes the beginning of the file.
func (w *vectorWriter) begin(ctx context.Context, extension string, m *kv.Meta) (err error) {
	if extension == ".csv" {
		w.csv = csv.NewWriter(w.buf)
		w.fields = []string{"id"}
		for i := range w.dim {
			w.fields = append(w.fields, "v"+strconv.Itoa(i))
		}
		return w.csv.Write(w.fields)
	}
	id := tables.Column{Name: "id", Kind: tables.String}
	if extension == ".npy" {
		if w.numbers = m.IDs.Kind != kv.IDsString; w.numbers {
			id.Kind = tables.Int64
		} else if id.Width, err = w.longestID(ctx, m.Nodes); err != nil {
			return err
		}
	}
	w.table, err = tables.NewWriter(w.buf, extension, []tables.Column{id,
		{Name: "vector", Kind: tables.Vector, Width: w.dim}}, m.Nodes)
	return err
}

// idsOnce is how many ids are read at a time.
const idsOnce = 8192

// longestID returns the length of the longest id in characters, which is the width of ids in a file
// of NumPy. It reads all ids.
func (w *vectorWriter) longestID(ctx context.Context, nodes uint64) (longest int, err error) {
	for first := uint64(0); first < nodes; first += idsOnce {
		if err := w.readIDs(ctx, int(first), int(min(idsOnce, nodes-first))); err != nil {
			return 0, err
		}
		for _, id := range w.ids {
			longest = max(longest, utf8.RuneCountInString(id))
		}
	}
	return longest, nil
}

// readIDs reads the ids of some nodes.
func (w *vectorWriter) readIDs(ctx context.Context, first, count int) (err error) {
	w.nodes = w.nodes[:0]
	for i := range count {
		w.nodes = append(w.nodes, kv.NodeID(first+i))
	}
	if w.ids, err = w.names.External(ctx, w.nodes, w.ids[:0]); err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	return nil
}

// rows writes the vectors of some nodes.
func (w *vectorWriter) rows(ctx context.Context, first int, rows []float32) error {
	if err := w.readIDs(ctx, first, len(rows)/w.dim); err != nil {
		return err
	}
	for i, id := range w.ids {
		if err := w.row(id, rows[i*w.dim:][:w.dim]); err != nil {
			return err
		}
	}
	return nil
}

func (w *vectorWriter) row(id string, v []float32) error {
	if w.csv != nil {
		w.fields[0] = id
		for k, x := range v {
			w.fields[1+k] = strconv.FormatFloat(float64(x), 'g', -1, 32)
		}
		return w.csv.Write(w.fields)
	}
	if w.numbers {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fmt.Errorf("id %q is no integer: %w", id, err)
		}
		w.table.Int64(n)
	} else {
		w.table.String(id)
	}
	w.table.Vector(v)
	return w.table.EndRow()
}

// close writes the end of the file.
func (w *vectorWriter) close() error {
	if w.csv != nil {
		w.csv.Flush()
		return w.csv.Error()
	}
	return w.table.Close()
}
