package columns

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/rowfile"
)

// chunkBytes is how much of the encoded rows, and of those that the store has, is made at a time.
const chunkBytes = 4 << 20

// version is the version of the files of encoded columns. Files of another version are made anew.
const version = 1

// Open returns the store with the encoded columns of its types as features: a file in prep/, which
// is made if it does not exist.
func (e *Encoders) Open(ctx context.Context, s *layout.Store, dev blockdev.Device,
	budget *mem.Budget) (*layout.Store, error) {
	m, path := s.Meta(), e.path(s)
	dims, firsts := e.dims(m)
	rows, err := rowfile.NewSectionsMeta("columns", path+".rows", rowfile.F32, firsts, dims)
	if err != nil {
		return nil, err
	}
	made, err := rowfile.Made(s, path)
	if err == nil && !made {
		_, err = rowfile.Make(s, path, func() error {
			return e.write(ctx, s, dev, path, budget)
		})
	}
	if err != nil {
		return nil, err
	}
	return s.WithFeatures(rows), nil
}

// path is the path of the file without its extension: it has a hash of all that the rows depend on.
func (e *Encoders) path(s *layout.Store) string {
	of, err := json.Marshal([]any{version, s.Meta().UUID.String(), s.Meta().NodeTypes, e})
	if err != nil {
		panic("BUG: encode what columns depend on: " + err.Error())
	}
	return fmt.Sprintf("prep/columns-%x", sha256.Sum256(of))[:len("prep/columns-")+16]
}

// write writes the rows of all types to PATH.part.rows and .crc. It takes chunkBytes, as much for
// rows of the store, and a reader of each column of a type.
func (e *Encoders) write(ctx context.Context, s *layout.Store, dev blockdev.Device, path string,
	budget *mem.Budget) (err error) {
	m := s.Meta()
	dims, firsts := e.dims(m)
	w := &writing{store: s, dev: dev, budget: budget,
		shared: columnfile.NewFeatures(s, dev, budget)}
	w.to, err = rowfile.NewWriter(s.FS(), s.Path(path+".part"), rowfile.Spec{UUID: m.UUID,
		Name: "columns", Path: path + ".rows", DType: rowfile.F32, Nodes: m.Nodes, Dims: dims,
		First: firsts})
	if err != nil {
		return err
	}
	if err := errors.Join(w.types(ctx, e), w.shared.Close()); err != nil {
		return errors.Join(err, w.to.Abort())
	}
	_, _, err = w.to.Finish()
	return err
}

// writing writes encoded rows.
type writing struct {
	store  *layout.Store
	dev    blockdev.Device
	budget *mem.Budget
	to     *rowfile.Writer
	stored *rowfile.Reader // the store's features; nil if it has none
	shared *columnfile.Features
}

func (w *writing) types(ctx context.Context, e *Encoders) (err error) {
	if err := w.budget.Reserve("encoding columns", 2*chunkBytes); err != nil {
		return err
	}
	defer w.budget.Release(2 * chunkBytes)
	m := w.store.Meta()
	if len(m.Features) > 0 {
		w.stored, err = rowfile.Open(ctx, w.store, w.dev, m.Features[0], w.budget)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.stored.Close()) }()
	}
	for i := range e.Types {
		if err := w.rowsOf(ctx, &m.NodeTypes[i], &e.Types[i]); err != nil {
			return fmt.Errorf("columns of %s: %w", e.Types[i].Name, err)
		}
	}
	return nil
}

// rowsOf writes the rows of a type.
func (w *writing) rowsOf(ctx context.Context, of *kv.NodeTypeMeta, t *Type) (err error) {
	readers, err := w.open(ctx, of, t)
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
	}()
	if err != nil {
		return err
	}
	dim, stored := t.Dim(), 0
	if len(t.Vectors) > 0 {
		stored = w.stored.Meta().Dim
	}
	encoders := make([]*encoder, len(t.Columns))
	for i := range t.Columns {
		encoders[i] = newEncoder(&t.Columns[i], readers[i].Meta().Type)
	}
	// A power of two, so that columns whose values are in features read the same rows together.
	chunk := uint64(1) << (bits.Len(uint(max(1, chunkBytes/4/max(1, dim, stored)))) - 1)
	chunk = min(chunk, columnfile.RowsTogether)
	buf := make([]float32, min(chunk, of.Nodes)*uint64(dim))
	for first := uint64(0); first < of.Nodes; first += chunk {
		rows := int(min(chunk, of.Nodes-first))
		clear(buf)
		at, err := w.vectors(ctx, t, layout.NodeID(of.First+first), rows, buf)
		if err != nil {
			return err
		}
		for i, c := range encoders {
			if err := c.scan(ctx, readers[i], first, rows, buf[at:], dim); err != nil {
				return err
			}
			at += c.Dim()
		}
		for i := range rows {
			if err := w.to.AddF32(buf[i*dim : (i+1)*dim]); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens the columns of a type, in the order of its encoders.
func (w *writing) open(ctx context.Context, of *kv.NodeTypeMeta, t *Type) (
	all []*columnfile.Reader, err error) {
	for i := range t.Columns {
		at := slices.IndexFunc(of.Columns, func(m kv.TableColumn) bool {
			return m.Name == t.Columns[i].Name
		})
		if at < 0 {
			return all, lacks(t.Columns[i].Name)
		}
		r, err := w.shared.Open(ctx, of.Columns[at])
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// vectors copies the vectors of rows, and returns how many values of a row they are.
func (w *writing) vectors(ctx context.Context, t *Type, first layout.NodeID, rows int,
	buf []float32) (at int, err error) {
	if len(t.Vectors) == 0 {
		return 0, nil
	}
	width, dim := w.stored.Meta().Dim, t.Dim()
	stored := make([]float32, rows*width)
	if err := w.stored.Scan(ctx, first, rows, stored); err != nil {
		return 0, err
	}
	for _, v := range t.Vectors {
		for i := range rows {
			copy(buf[i*dim+at:], stored[i*width+v.First:i*width+v.First+v.Dim])
		}
		at += v.Dim
	}
	return at, nil
}

// scan encodes rows of a column to the first values of rows of dim values.
func (e *encoder) scan(ctx context.Context, r *columnfile.Reader, first uint64, rows int,
	out []float32, dim int) error {
	own := e.Dim()
	return r.Scan(ctx, first, uint64(rows), nil, func(at uint64, v *columnfile.Values) error {
		for i := range v.Rows {
			row := out[(int(at-first)+i)*dim:]
			e.encode(v, i, row[:own])
		}
		return nil
	})
}
