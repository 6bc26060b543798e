// Package export gives a store back as tables: a file of Parquet for the nodes of each type and for
// the edges of each relation, with the ids and columns of the user, and the schema by which ingest
// makes an equal store of them.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest/schema"
	"gdb/layout/ingest/source"
	"gdb/layout/openfiles"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure Export.
type Options struct {
	// Out is the directory that is made. It may be there if it is empty.
	Out string
	// Memory bounds the memory of the process, in bytes.
	Memory int64
	// Progress is told how far a phase is; nil for nobody.
	Progress func(phase string, done, total int64, unit string)
	// Notes gets a line for each thing that the files cannot hold; nil for none.
	Notes io.Writer
}

// Errors of an export.
var (
	// ErrNotEmpty says that something is where the directory is to be.
	ErrNotEmpty = errors.New("it is there and not empty: choose another --out")
	// ErrPart says that an export runs or was killed there.
	ErrPart = errors.New("another export writes it now, or a killed one left it: delete it if " +
		"none runs")
	// ErrEdgeSplits says that a store cannot be exported whole.
	ErrEdgeSplits = errors.New("its edges are split, and files of edges do not say how")
)

// processBytes is what the process takes besides the buffers that are counted: the runtime, and the
// library that writes Parquet.
const processBytes = 96 << 20

// Export writes the tables of a store. The directory appears whole, or not at all. If files of all
// relations do not fit in memory, lists are read several times. Besides what is counted, the ends
// of files take memory until they are written, some 8 bytes a node.
func Export(ctx context.Context, s *layout.Store, dev blockdev.Device, fs vfs.FS,
	opt Options) (err error) {
	if len(s.Meta().EdgeSplits) > 0 {
		return fmt.Errorf("export %s: %w", s.Dir(), ErrEdgeSplits)
	}
	opened := openfiles.New(s, dev, mem.NewBudget(max(1, opt.Memory-processBytes)))
	defer func() { err = errors.Join(err, opened.Close()) }()
	e := &exporter{Options: opt, fs: fs, store: s, files: opened, meta: s.Meta(),
		part: files.PartPath(opt.Out), schema: &schema.Schema{Flags: map[string]string{}}}
	if err := e.make(); err != nil {
		return err
	}
	if err := e.write(ctx); err != nil {
		return errors.Join(fmt.Errorf("export to %s: %w", opt.Out, err), fs.RemoveAll(e.part))
	}
	return nil
}

// exporter is an export under way.
type exporter struct {
	Options
	fs    vfs.FS
	part  string // the directory, until it is whole
	store *layout.Store
	files *openfiles.Set
	meta  *kv.Meta
	dict  ids.Dictionary
	// deleted are nodes that are not written; nil for none.
	deleted *roaring.Bitmap
	schema  *schema.Schema
}

// make makes the directory, under a name that says that it is not whole.
func (e *exporter) make() error {
	names, err := e.fs.List(e.Out)
	switch {
	case err == nil && len(names) > 0:
		return fmt.Errorf("export to %s: %w", e.Out, ErrNotEmpty)
	case err != nil && !oserror.IsNotExist(err):
		return fmt.Errorf("export to %s: %w", e.Out, files.Cause(err))
	}
	if _, err := e.fs.Stat(e.part); err == nil {
		return fmt.Errorf("export to %s: %s: %w", e.Out, e.part, ErrPart)
	}
	for _, dir := range []string{e.part, e.fs.PathJoin(e.part, "edges"),
		e.fs.PathJoin(e.part, "nodes")} {
		if err := e.fs.MkdirAll(dir, 0o755); err != nil {
			return errors.Join(fmt.Errorf("export to %s: %w", e.Out, err), e.fs.RemoveAll(e.part))
		}
	}
	return nil
}

// nameCache is the size of the cache of names, a part of the memory.
const nameCache = 8

func (e *exporter) write(ctx context.Context) (err error) {
	if e.dict, err = e.files.IDs(ctx, max(1<<20, (e.Memory-processBytes)/nameCache)); err != nil {
		return err
	}
	if e.deleted, err = e.store.Deleted(ctx); err != nil {
		return err
	}
	if err := e.nodes(ctx); err != nil {
		return err
	}
	if err := e.edges(ctx); err != nil {
		return err
	}
	if err := e.schema.Write(e.fs, e.fs.PathJoin(e.part, schema.FileName)); err != nil {
		return err
	}
	for _, dir := range []string{"nodes", "edges", "."} {
		if err := files.SyncDir(e.fs, e.fs.PathJoin(e.part, dir)); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.fs.RemoveAll(e.Out); err != nil { // it is empty
		return err
	}
	if err := e.fs.Rename(e.part, e.Out); err != nil {
		return err
	}
	return files.SyncDir(e.fs, e.fs.PathDir(e.Out))
}

// note writes a line for the user.
func (e *exporter) note(format string, args ...any) {
	if e.Notes != nil {
		// A note that cannot be written must not end the export.
		_, _ = fmt.Fprintf(e.Notes, "export: "+format+"\n", args...)
	}
}

func (e *exporter) progress(phase string, done, total uint64, unit string) {
	if e.Progress != nil {
		e.Progress(phase, int64(done), int64(total), unit)
	}
}

// idsAreNumbers reports whether the ids of a type, or of all nodes, are integers.
func (e *exporter) idsAreNumbers(typ int) bool {
	if e.meta.Typed() {
		return e.meta.NodeTypes[typ].Keys != nil
	}
	return !e.meta.IDs.Kind.Text()
}

// given returns the value of a flag that a store was made with; "" if it was not given.
func (e *exporter) given(flag string) string {
	for _, arg := range e.meta.Source.Args {
		if name, value, _ := strings.Cut(arg, "="); name == "--"+flag {
			return cmp.Or(value, "true")
		}
	}
	return ""
}

// free returns a name of a column that is none of others.
func free(name string, others []kv.TableColumn) string {
	for slices.ContainsFunc(others, func(c kv.TableColumn) bool { return c.Name == name }) {
		name += "_"
	}
	return name
}

// typesOf returns the types that columns are stored as, for the schema.
func typesOf(columns []kv.TableColumn) map[string]string {
	types := map[string]string{}
	for _, c := range columns {
		types[c.Name] = c.Type
	}
	return types
}

// columnWord returns a column as flags of ingest name it.
func (e *exporter) columnWord(typ int, column string) string {
	if e.meta.Typed() {
		return e.meta.NodeTypes[typ].Name + source.ColumnSep + column
	}
	return column
}
