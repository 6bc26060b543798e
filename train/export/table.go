package export

import (
	"bufio"
	"context"
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
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Extensions returns the extensions of the formats that tables of nodes have.
func Extensions() []string { return []string{".csv", ".parquet", ".npy"} }

// CheckPath returns an error if the extension of path names no format. what says what the file
// would hold.
func CheckPath(what, path string) error {
	if !slices.Contains(Extensions(), filepath.Ext(path)) {
		return fmt.Errorf("%s to %s: unknown format %q: use .csv, .parquet or .npy", what, path,
			filepath.Ext(path))
	}
	return nil
}

// TableSpec says what a Table has.
type TableSpec struct {
	FS   vfs.FS
	Path string // its extension is the format: see CheckPath
	// Nodes are those that have a row; nil is all nodes of the store that Meta describes.
	Nodes *roaring.Bitmap
	Meta  *kv.Meta
	Names ids.Dictionary
	// Ends, if it is not nil, says that Nodes are numbers of edges, and tells their ends, whose ids
	// take two columns.
	Ends func(edge kv.NodeID) (src, dst kv.NodeID)
	// Columns follow the column of the nodes' ids.
	Columns []tables.Column
}

// Table writes a file with a row for each of some nodes, under the ids that the user gave them. The
// file appears whole on Commit, or not at all. In NumPy's files ids are integers if all of them
// are; elsewhere they are text.
type Table struct {
	TableSpec
	file    *files.Atomic
	buf     *bufio.Writer
	out     tables.Writer
	numbers bool // ids are integers
	ids     []string
}

// CreateTable begins a table.
func CreateTable(ctx context.Context, s TableSpec) (*Table, error) {
	t := &Table{TableSpec: s}
	extension := filepath.Ext(s.Path)
	id := tables.Column{Name: "id", Kind: tables.String}
	if extension == ".npy" {
		if t.numbers = !s.Meta.IDs.Kind.Text(); t.numbers {
			id.Kind = tables.Int64
		} else if err := t.longestID(ctx, &id.Width); err != nil {
			return nil, err
		}
	}
	named := []tables.Column{id}
	if s.Ends != nil {
		src, dst := id, id
		src.Name, dst.Name = "src", "dst"
		named = []tables.Column{src, dst}
	}
	rows := s.Meta.Nodes
	if s.Nodes != nil {
		rows = s.Nodes.GetCardinality()
	}
	var err error
	if t.file, err = files.CreateAtomic(s.FS, s.Path); err != nil {
		return nil, err
	}
	t.buf = bufio.NewWriterSize(t.file, 1<<20)
	t.out, err = tables.NewWriter(t.buf, extension, append(named, s.Columns...),
		rows)
	if err != nil {
		return nil, errors.Join(t.failed(err), t.Abort())
	}
	return t, nil
}

// idsOnce is how many ids are read at a time.
const idsOnce = 8192

// longestID finds the length of the longest id in characters, which is the width of ids in a file
// of NumPy. It reads all ids.
func (t *Table) longestID(ctx context.Context, longest *int) error {
	all := t.Nodes
	if t.Ends != nil {
		all = nil
	}
	next := sample.NodesOf(all, t.Meta.Nodes)
	for buf := make([]kv.NodeID, idsOnce); ; {
		nodes := next(buf)
		if len(nodes) == 0 {
			return nil
		}
		if err := t.readIDs(ctx, nodes); err != nil {
			return err
		}
		for _, id := range t.ids {
			*longest = max(*longest, utf8.RuneCountInString(id))
		}
	}
}

func (t *Table) readIDs(ctx context.Context, nodes []kv.NodeID) (err error) {
	if t.ids, err = t.Names.External(ctx, nodes, t.ids[:0]); err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	return nil
}

// Rows writes the rows of the next nodes. values adds what stands behind the id of nodes[i].
func (t *Table) Rows(ctx context.Context, nodes []kv.NodeID,
	values func(i int, row tables.Writer)) error {
	each, named := 1, nodes
	if t.Ends != nil {
		each, named = 2, nil
		for _, e := range nodes {
			src, dst := t.Ends(e)
			named = append(named, src, dst)
		}
	}
	if err := t.readIDs(ctx, named); err != nil {
		return err
	}
	for i := range nodes {
		for _, id := range t.ids[each*i : each*(i+1)] {
			if err := t.writeID(id); err != nil {
				return t.failed(err)
			}
		}
		values(i, t.out)
		if err := t.out.EndRow(); err != nil {
			return t.failed(err)
		}
	}
	return nil
}

func (t *Table) writeID(id string) error {
	if !t.numbers {
		t.out.String(id)
		return nil
	}
	v, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return fmt.Errorf("id %q is no integer: %w", id, err)
	}
	t.out.Int64(v)
	return nil
}

// Commit makes the file appear.
func (t *Table) Commit() error {
	err := t.out.Close()
	if err == nil {
		err = t.buf.Flush()
	}
	if err == nil {
		err = t.file.Commit()
	}
	return t.failed(err)
}

// Abort removes what was written. After Commit it does nothing.
func (t *Table) Abort() error { return t.file.Abort() }

// failed adds the name of the file to an error; nil stays nil.
func (t *Table) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", t.Path, err)
}
