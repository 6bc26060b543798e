// Package keys finds out how the integer ids of types with tables are kept in a store, writes their
// columns, and leads from them to rows while edges are read.
package keys

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// Source is what sources have whose types of nodes may have integers as ids: see package source.
type Source interface {
	IntegerKeys() []int
	Keys(ctx context.Context, typ int, fn func(*source.IDChunk) error) error
	UseKeys(index []source.KeyIndex)
}

// Found says of each type how its integer ids are kept; nil where ids are text.
type Found struct {
	Types []*Type
	Files []kv.FileMeta
}

// Type are the integer ids of a type.
type Type struct {
	Meta            kv.KeysMeta
	Rows            uint64
	Least, Greatest uint64
	Runs            []extsort.Run // (id, row) by id, where ids do not ascend
}

// Of returns the integer ids of a type, or nil.
func (f *Found) Of(typ int) *Type {
	if typ >= len(f.Types) {
		return nil
	}
	return f.Types[typ]
}

// Find finds out how integer ids are kept, and writes their columns below work. Ids that count up
// by one take a pass over the table and no file; those that ascend another pass and a column;
// others are sorted, which takes 8 or 16 bytes a row of temporary disk. names has all types.
func Find(ctx context.Context, work *steps.Work, src Source, names []string,
	note func(format string, args ...any)) (*Found, error) {
	out := &Found{Types: make([]*Type, len(names))}
	for _, typ := range src.IntegerKeys() {
		w := writer{work: work, src: src, typ: typ, name: names[typ], note: note, out: out}
		if err := w.write(ctx); err != nil {
			return nil, err
		}
	}
	work.KeepFiles(out.Files...)
	return out, nil
}

// writer writes the ids of a type.
type writer struct {
	work *steps.Work
	src  Source
	typ  int
	name string
	note func(format string, args ...any)
	out  *Found
	keys Type
}

// errChanged is the error of a table that has other ids than when they were counted.
var errChanged = errors.New("ingest: a table changed while it was read")

// errNotInteger ends the reading of ids of which one is no integer.
var errNotInteger = errors.New("an id is no integer")

func (w *writer) write(ctx context.Context) error {
	dense, ascend, err := w.look(ctx)
	switch {
	case errors.Is(err, errNotInteger):
		return nil
	case err != nil:
		return err
	case dense:
		w.keys.Meta.Base = w.keys.Least
	default:
		if err := w.columns(ctx, ascend); err != nil {
			return err
		}
	}
	w.out.Types[w.typ] = &w.keys
	return nil
}

// look counts the ids and finds out whether they count up by one, or ascend.
func (w *writer) look(ctx context.Context) (dense, ascend bool, err error) {
	dense, ascend = true, true
	k, last := &w.keys, uint64(0)
	err = w.src.Keys(ctx, w.typ, func(c *source.IDChunk) error {
		if k.Rows == 0 && len(c.Ints) > 0 {
			k.Least, k.Greatest, last = c.Ints[0], c.Ints[0], c.Ints[0]-1
		}
		for i, id := range c.Ints {
			if id == input.NotKey {
				w.note("ids of %s are read as text, since %s is no integer", w.name,
					c.Position(i))
				return errNotInteger
			}
			dense = dense && id == last+1
			ascend = ascend && (id > last || k.Rows+uint64(i) == 0)
			last = id
			k.Least, k.Greatest = min(k.Least, id), max(k.Greatest, id)
		}
		k.Rows += uint64(len(c.Ints))
		w.work.Progress("read ids", k.Rows, 0, "rows")
		return ctx.Err()
	})
	return dense, ascend, err
}

// intColumnBytes bounds what writing a column of integers takes: it has no dictionary.
const intColumnBytes = 2 << 20

// columns writes the ids in the order of rows, and, unless they ascend, sorted beside their rows.
func (w *writer) columns(ctx context.Context, ascend bool) error {
	budget, bytes := w.work.Budget, int64(2*intColumnBytes)
	if err := budget.Reserve("writing columns of ids", bytes); err != nil {
		return err
	}
	defer budget.Release(bytes)
	k := &w.keys
	err := w.column("rows", &k.Meta.Rows, func(rows *intColumn) error {
		if ascend {
			return w.src.Keys(ctx, w.typ, func(c *source.IDChunk) error {
				return errors.Join(rows.add(c.Ints...), ctx.Err())
			})
		}
		return w.sort(ctx, rows)
	})
	if err != nil || ascend {
		return err
	}
	w.work.KeepRuns(k.Runs)
	twice := uint64(math.MaxUint64)
	err = w.column("sorted", &k.Meta.Sorted, func(sorted *intColumn) error {
		return w.column("places", &k.Meta.Places, func(places *intColumn) error {
			last := uint64(input.NoKey)
			return w.eachSorted(ctx, func(id, row uint64) error {
				if id == last {
					twice = min(twice, row)
				}
				last = id
				return errors.Join(sorted.add(id), places.add(row))
			})
		})
	})
	if err == nil && twice != math.MaxUint64 {
		err = w.errTwice(ctx, twice)
	}
	return err
}

// sort writes the ids in the order of rows, and sorts them.
func (w *writer) sort(ctx context.Context, rows *intColumn) (err error) {
	row := uint64(0)
	var rec []uint64
	to := w.sorter(w.work.Memory.Sort)
	w.keys.Runs, err = extsort.SortWords(to, func(s *extsort.Words) error {
		return w.src.Keys(ctx, w.typ, func(c *source.IDChunk) error {
			rec = rec[:0]
			for _, id := range c.Ints {
				if w.keys.narrow() {
					rec = append(rec, id<<32|row)
				} else {
					rec = append(rec, id, row)
				}
				row++
			}
			return errors.Join(s.Add(rec), rows.add(c.Ints...), ctx.Err())
		})
	})
	return err
}

// narrow reports whether an id and its row fit in a word.
func (k *Type) narrow() bool { return k.Greatest>>32 == 0 && k.Rows>>32 == 0 }

// sorter returns the options of the runs of (id, row).
func (w *writer) sorter(memory int64) extsort.Options {
	width := 2
	if w.keys.narrow() {
		width = 1
	}
	return w.work.Sorter(fmt.Sprintf("keys-%d", w.typ), width, memory)
}

// eachSorted calls fn with the ids in ascending order, each with its row.
func (w *writer) eachSorted(ctx context.Context, fn func(id, row uint64) error) error {
	opt := w.sorter(w.work.Memory.Merge)
	return extsort.Merge(ctx, opt, w.keys.Runs, func(words []uint64) error {
		for i := 0; i < len(words); i++ {
			id, row := words[i]>>32, words[i]&(1<<32-1)
			if !w.keys.narrow() {
				id, row = words[i], words[i+1]
				i++
			}
			if err := fn(id, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachID calls fn with the ids in ascending order, each with its row if they are sorted. Others
// ascend by row.
func (w *writer) eachID(ctx context.Context, sorted bool, fn func(id, row uint64) error) error {
	if sorted {
		return w.eachSorted(ctx, fn)
	}
	return w.src.Keys(ctx, w.typ, func(c *source.IDChunk) error {
		for _, id := range c.Ints {
			if err := fn(id, 0); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// ErrTwoRows is the error of a row whose id another row has.
func ErrTwoRows(where, id string) error {
	return input.Wrong(where, "a row is a node: give each an id of its own, and name the column "+
		"of ids by --id-col TYPE.COLUMN", "another row has the id %s too", id)
}

// errTwice returns the error of a row whose id an earlier row has.
func (w *writer) errTwice(ctx context.Context, row uint64) error {
	err := w.src.Keys(ctx, w.typ, func(c *source.IDChunk) error {
		if row < uint64(c.Len()) {
			return ErrTwoRows(c.Position(int(row)), fmt.Sprint(c.Ints[row]))
		}
		row -= uint64(c.Len())
		return nil
	})
	if err == nil {
		err = errChanged
	}
	return err
}

// column writes a column of the type's ids.
func (w *writer) column(what string, meta **kv.TableColumn, fill func(*intColumn) error) error {
	path := "ids/" + w.name + "." + what + ".column"
	out, err := columnfile.NewWriter(w.work.FS, w.work.Path(path), columnfile.Spec{
		UUID: w.work.Journal.UUID, Name: what, Path: path, Type: columnfile.Int64})
	if err != nil {
		return err
	}
	c := &intColumn{out: out}
	if err = fill(c); err == nil {
		err = c.flush()
	}
	if err != nil {
		return errors.Join(err, out.Abort())
	}
	column, file, err := out.Finish()
	*meta, w.out.Files = &column, append(w.out.Files, file)
	return err
}

// intColumn writes integers to a column.
type intColumn struct {
	out    *columnfile.Writer
	values columnfile.Values
}

// intsTogether is how many integers are handed on at a time.
const intsTogether = 8192

func (c *intColumn) add(ints ...uint64) error {
	for _, n := range ints {
		c.values.Ints = append(c.values.Ints, int64(n))
		if len(c.values.Ints) == intsTogether {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *intColumn) flush() error {
	c.values.Rows = len(c.values.Ints)
	err := c.out.Append(&c.values)
	c.values.Reset()
	return err
}
