package nodeindex

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/extsort"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/sstable"
)

const (
	// sortMost bounds the memory in which values are sorted, and sortLeast is what it takes.
	sortMost, sortLeast = 256 << 20, 1 << 20
	// tableFormat is the format of the file.
	tableFormat = sstable.TableFormatPebblev4
)

// Build makes the index of a column of the nodes of a type, or makes it again, and records it in
// the catalog. It sorts values in a third of the memory that budget has left. An index that is read
// meanwhile stays as it was for its readers.
func Build(ctx context.Context, st *layout.Store, dev blockdev.Device, budget *mem.Budget, label,
	property string) (m kv.IndexMeta, err error) {
	t, c, err := column(st.Meta(), label, property)
	if err != nil {
		return m, &UsageError{err}
	}
	m = kv.IndexMeta{Label: label, Property: property, Type: c.Type, Snapshot: st.Meta().Snapshot,
		Created: time.Now().UTC().Truncate(time.Second), Path: pathOf(label, property)}
	fs, tmp := st.FS(), st.Path("tmp", "index")
	if err := fs.MkdirAll(tmp, 0o755); err != nil {
		return m, fmt.Errorf("make %s: %w", tmp, err)
	}
	lock, err := files.Lock(fs, fs.PathJoin(tmp, "lock"))
	if errors.Is(err, files.ErrLockHeld) {
		return m, fmt.Errorf("another index of %s is being made: wait for it", st.Path())
	}
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, fs.RemoveAll(tmp), lock.Close()) }()
	opt := extsort.Options{FS: fs, Dir: tmp, Prefix: "values", Budget: budget, Memory: sortMost}
	if limit := budget.Limit(); limit > 0 {
		opt.Memory = max(min(opt.Memory, (limit-budget.Used())/3), sortLeast)
	}
	runs, err := extsort.SortEntries(opt, func(s *extsort.Strings) error {
		r, err := columnfile.Open(ctx, st, dev, c, budget)
		if err != nil {
			return err
		}
		return errors.Join(addValues(ctx, r, t.First, s), r.Close())
	})
	if err != nil {
		return m, err
	}
	if err := write(ctx, st, opt, runs, &m); err != nil {
		return m, err
	}
	return m, st.Catalog().PutIndex(ctx, m)
}

// addValues adds the values of a column of the nodes from first on: the first eight bytes of each
// are the key that it is sorted by first.
func addValues(ctx context.Context, r *columnfile.Reader, first uint64,
	s *extsort.Strings) error {
	var key []byte
	return r.Scan(ctx, 0, r.Rows, nil, func(at uint64, v *columnfile.Values) error {
		for i := range v.Rows {
			var some bool
			if key, some = appendRow(key[:0], r.Type, v, i); !some {
				continue
			}
			var head [8]byte
			copy(head[:], key)
			err := s.Add(extsort.Entry{Key: binary.BigEndian.Uint64(head[:]), Text: key,
				Aux: first + at + uint64(i)})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// write writes the file of an index from its sorted values, and sets how much it has.
func write(ctx context.Context, st *layout.Store, opt extsort.Options, runs []extsort.Run,
	m *kv.IndexMeta) (err error) {
	entries, err := extsort.OpenEntries(ctx, opt, runs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, entries.Close()) }()
	fs, path := st.FS(), st.Path(m.Path)
	if err := fs.MkdirAll(fs.PathDir(path), 0o755); err != nil {
		return fmt.Errorf("make %s: %w", fs.PathDir(path), err)
	}
	file, err := files.CreateAtomic(fs, path)
	if err != nil {
		return err
	}
	to := &output{file: file}
	w := sstable.NewWriter(to, sstable.WriterOptions{TableFormat: tableFormat})
	m.Values, err = fill(ctx, st, *m, entries, w)
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), file.Abort())
	}
	m.Bytes = to.bytes
	return file.CommitContext(ctx)
}

// fill adds all keys of an index, in order.
func fill(ctx context.Context, st *layout.Store, m kv.IndexMeta, entries *extsort.Entries,
	w *sstable.Writer) (values uint64, err error) {
	about, err := identity(m, st.Meta().UUID)
	if err != nil {
		return 0, err
	}
	if err := w.Set([]byte{keyMeta}, about); err != nil {
		return 0, err
	}
	var key []byte
	for {
		e, ok, err := entries.Next(ctx)
		if !ok || err != nil {
			return values, err
		}
		key = append(append(key[:0], keyValue), e.Text...)
		key = binary.BigEndian.AppendUint32(key, uint32(e.Aux))
		if err := w.Set(key, nil); err != nil {
			return values, err
		}
		values++
	}
}

// output is a file that a table is written to. Who made it commits it.
type output struct {
	file  *files.Atomic
	bytes int64
}

// Write writes the next bytes.
func (o *output) Write(b []byte) error {
	n, err := o.file.Write(b)
	o.bytes += int64(n)
	return err
}

// Finish does nothing.
func (o *output) Finish() error { return nil }

// Abort does nothing.
func (o *output) Abort() {}

// Drop takes an index away. One that is read meanwhile stays for its readers.
func Drop(ctx context.Context, st *layout.Store, label, property string) error {
	m := kv.IndexMeta{Label: label, Property: property}
	if err := st.Catalog().DropIndex(ctx, m.Name()); err != nil {
		return err
	}
	path := st.Path(pathOf(label, property))
	if err := st.FS().Remove(path); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove %s: %w", path, files.Cause(err))
	}
	return nil
}
