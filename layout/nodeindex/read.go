package nodeindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Reader is an open index. It may be used from any goroutine, and takes some KiB of memory.
type Reader struct {
	kv.IndexMeta
	path  string
	table *sstable.Reader
}

// open opens the index that a record describes. It returns an error that wraps kv.ErrNotFound if
// the file is gone.
func open(ctx context.Context, st *layout.Store, m kv.IndexMeta) (*Reader, error) {
	r := &Reader{IndexMeta: m, path: st.Path(m.Path)}
	f, err := st.FS().Open(r.path)
	if oserror.IsNotExist(err) {
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", m.Name(), err)
	}
	from, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(r.damaged(err), f.Close())
	}
	if r.table, err = sstable.NewReader(ctx, from, sstable.ReaderOptions{}); err != nil {
		return nil, r.damaged(err) // NewReader has closed the file
	}
	if err := r.check(st.Meta().UUID); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// check compares what the file is with its record.
func (r *Reader) check(uuid kv.UUID) (err error) {
	want, err := identity(r.IndexMeta, uuid)
	if err != nil {
		return err
	}
	it, err := r.table.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return r.damaged(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	entry := it.First()
	if entry == nil {
		return r.damaged(errors.Join(errors.New("it is empty"), it.Error()))
	}
	got, _, err := entry.Value(nil)
	if err != nil {
		return r.damaged(err)
	}
	if !bytes.Equal(entry.K.UserKey, []byte{keyMeta}) || !bytes.Equal(got, want) {
		return r.damaged(errors.New("it is of another store, snapshot or column"))
	}
	return nil
}

// damaged says of an error which file it is of, and what to do.
func (r *Reader) damaged(err error) error {
	return fmt.Errorf("%w: index %s, %s: %w; %s index STORE %s makes it again", kv.ErrDamaged,
		r.Name(), r.path, err, message.Program, r.Name())
}

// Close closes the file.
func (r *Reader) Close() error { return r.table.Close() }

// exact is the greatest integer up to which a float64 holds each.
const exact = 1 << 53

// key returns the key of a value, an int64, a float64 or a string, which numbers equal also if they
// are of the other type; some is false if the column cannot have it, and ok if the index cannot
// tell.
func (r *Reader) key(v any) (key []byte, some, ok bool) {
	key = []byte{keyValue}
	switch v := v.(type) {
	case int64:
		switch {
		case r.Type == columnfile.String:
			return nil, false, true
		case r.Type != columnfile.Float64:
			return appendInt(key, v), true, true
		case v > exact || v < -exact:
			return nil, false, false
		}
		return appendFloat(key, float64(v)), true, true
	case float64:
		switch {
		case r.Type == columnfile.Float64:
			return appendFloat(key, v), v == v, true
		case r.Type != columnfile.Int64 || v != math.Trunc(v):
			return nil, false, true
		case v > exact || v < -exact:
			return nil, false, false
		}
		return appendInt(key, int64(v)), true, true
	case string:
		return appendText(key, []byte(v)), r.Type == columnfile.String, true
	}
	return nil, false, true
}

// Find appends the nodes that may have a value to nodes, in order: int64, also for bool (0 and 1),
// date and timestamp; float64; or a string, of which only the first 256 bytes count. It is not ok
// if these are more than most, or the index cannot tell them, as of numbers past 2^53 that it holds
// as others.
func (r *Reader) Find(v any, most int, nodes []layout.NodeID) (_ []layout.NodeID, ok bool,
	err error) {
	key, some, ok := r.key(v)
	if !some || !ok {
		return nodes, ok, nil
	}
	end := binary.BigEndian.AppendUint32(bytes.Clone(key), math.MaxUint32)
	it, err := r.table.NewIter(sstable.NoTransforms, key, append(end, 0),
		sstable.AssertNoBlobHandles)
	if err != nil {
		return nodes, false, r.damaged(err)
	}
	had := len(nodes)
	for e := it.SeekGE(key, 0); e != nil; e = it.Next() {
		node, is := bytes.CutPrefix(e.K.UserKey, key)
		if !is || len(node) != 4 {
			err = errors.New("its keys have another form")
			break
		}
		if len(nodes)-had == most {
			return nodes[:had], false, it.Close()
		}
		nodes = append(nodes, layout.NodeID(binary.BigEndian.Uint32(node)))
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return nodes[:had], false, r.damaged(err)
	}
	return nodes, true, nil
}

// Set has the indexes of a store as of when they were first asked for. It may be used from any
// goroutine.
type Set struct {
	st *layout.Store
	mu struct {
		sync.Mutex
		all    []kv.IndexMeta
		loaded bool
		open   map[string]*Reader
	}
}

// NewSet returns the indexes of a store. The caller calls Close.
func NewSet(st *layout.Store) *Set { return &Set{st: st} }

// All returns the records of all indexes, also of those that are of other snapshots.
func (s *Set) All(ctx context.Context) ([]kv.IndexMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allLocked(ctx)
}

func (s *Set) allLocked(ctx context.Context) (all []kv.IndexMeta, err error) {
	if !s.mu.loaded {
		if s.mu.all, err = s.st.Catalog().Indexes(ctx); err != nil {
			return nil, err
		}
		s.mu.loaded = true
	}
	return s.mu.all, nil
}

// Of returns the index of a column of the nodes of a type; nil if there is none. If there is one
// that cannot be used, because it is of another snapshot or its file is gone, why says so.
func (s *Set) Of(ctx context.Context, label, property string) (r *Reader, why string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.allLocked(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, m := range all {
		if m.Label != label || m.Property != property {
			continue
		}
		if why := Stale(m, s.st); why != "" {
			return nil, why, nil
		}
		if r := s.mu.open[m.Name()]; r != nil {
			return r, "", nil
		}
		r, err := open(ctx, s.st, m)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, "its file is gone", nil
		}
		if err == nil {
			if s.mu.open == nil {
				s.mu.open = map[string]*Reader{}
			}
			s.mu.open[m.Name()] = r
		}
		return r, "", err
	}
	return nil, "", nil
}

// Stale says why an index does not hold for a store as it is open; "" if it does.
func Stale(m kv.IndexMeta, st *layout.Store) string {
	if now := st.Meta().Snapshot; m.Snapshot != now {
		return fmt.Sprintf("it is of snapshot %d, and this is %d", m.Snapshot, now)
	}
	return ""
}

// Close closes all indexes. None may be in use.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range s.mu.open {
		errs = append(errs, r.Close())
	}
	s.mu.open = nil
	return errors.Join(errs...)
}
