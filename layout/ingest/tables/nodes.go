// Package tables writes the columns of tables of nodes and of edges.
package tables

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/table"
)

// Source is what sources have whose tables of nodes are stored.
type Source interface {
	TableColumns(ctx context.Context, t *source.TableInfo, columns []int,
		fn func(*source.ColumnChunk) error) error
}

// Columns are the columns of a table.
type Columns struct {
	Columns []kv.TableColumn
	Files   []kv.FileMeta
}

// columnBytes bounds what writing a column takes: buffers, and a dictionary of strings.
const columnBytes = 12 << 20

// Nodes writes the columns of each table in the order of its rows, which its nodes have too. As
// many are written in one pass as memory allows. The result is by type, nil for one without a
// table. shared returns the feature of a type that has the values of a column, if there is one.
func Nodes(ctx context.Context, w *steps.Work, src source.Source, types []kv.NodeTypeMeta,
	shared func(typ int, column string) kv.FeatureAt) ([]*Columns, error) {
	info := src.Info()
	all := make([]*Columns, len(types))
	for i := range info.Tables {
		t := &info.Tables[i]
		of := &types[t.Type]
		out, err := steps.Do(ctx, w, "columns "+of.Name,
			func(ctx context.Context, out *Columns) error {
				w := &tableWriter{Work: w, src: src.(Source), t: t, name: of.Name, rows: of.Nodes,
					shared: shared}
				err := w.write(ctx, out)
				w.KeepFiles(out.Files...)
				return err
			})
		if err != nil {
			return nil, err
		}
		all[t.Type] = out
	}
	return all, nil
}

// tableWriter writes the columns of a table.
type tableWriter struct {
	*steps.Work
	src  Source
	t    *source.TableInfo
	name string // of the type
	rows uint64

	shared func(typ int, column string) kv.FeatureAt
}

func (w *tableWriter) write(ctx context.Context, out *Columns) error {
	atOnce := max(1, int(w.Memory.Sort/columnBytes))
	for first := 0; first < len(w.t.Columns); first += atOnce {
		var some []int
		for c := first; c < min(first+atOnce, len(w.t.Columns)); c++ {
			some = append(some, c)
		}
		if err := w.pass(ctx, some, out); err != nil {
			return err
		}
	}
	return nil
}

// pass writes some columns in one pass over the table.
func (w *tableWriter) pass(ctx context.Context, columns []int, out *Columns) (err error) {
	bytes := int64(len(columns)) * columnBytes
	if err := w.Budget.Reserve("writing columns", bytes); err != nil {
		return err
	}
	defer w.Budget.Release(bytes)
	var writers []*columnfile.Writer
	defer func() {
		for _, c := range writers {
			err = errors.Join(err, c.Abort())
		}
	}()
	for _, c := range columns {
		info := &w.t.Columns[c]
		path := columnPath(w.name, info.Name, c)
		writer, err := columnfile.NewWriter(w.FS, w.Path(path), columnfile.Spec{
			UUID: w.Journal.UUID, Name: info.Name, Path: path, Type: info.Type,
			Shared: w.sharedOf(info)})
		if err != nil {
			return err
		}
		writers = append(writers, writer)
	}
	rows := uint64(0)
	err = w.src.TableColumns(ctx, w.t, columns,
		func(c *source.ColumnChunk) error {
			for k, writer := range writers {
				if err := writer.Append(&c.Columns[k]); err != nil {
					return err
				}
			}
			rows += uint64(c.Columns[0].Rows)
			w.Progress("write columns of "+w.name, rows, w.rows, "rows")
			return ctx.Err()
		})
	if err == nil && rows != w.rows {
		err = fmt.Errorf("ingest: the table of %s had %d rows, and has %d: it changed while it "+
			"was read", w.name, w.rows, rows)
	}
	for err == nil && len(writers) > 0 {
		var column kv.TableColumn
		var file kv.FileMeta
		column, file, err = writers[0].Finish()
		writers = writers[1:]
		out.Columns, out.Files = append(out.Columns, column), append(out.Files, file)
	}
	return err
}

// sharedOf returns the feature that has the values of a column; only those of floats are left out.
func (w *tableWriter) sharedOf(c *table.Stored) (none kv.FeatureAt) {
	if c.Type != columnfile.Float64 {
		return none
	}
	return w.shared(w.t.Type, c.Name)
}

// plainName matches names of columns that files may have.
var plainName = regexp.MustCompile(`^[A-Za-z][\w-]{0,63}$`)

// columnPath returns the path of a column: its name if a file may be called so, and its number
// behind it, since file systems may take names in small and large letters for the same.
func columnPath(typ, name string, number int) string {
	path := "columns/" + typ + "." + strconv.Itoa(number)
	if plainName.MatchString(name) {
		path += "-" + name
	}
	return path + ".column"
}
