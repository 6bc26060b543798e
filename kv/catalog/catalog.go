// Package catalog keeps the records of a store, and its sets of nodes and edges.
//
// It is a Pebble database with typed records; no raw key leaves this package. The directory lock is
// held for one transaction only: every method opens the database, does its work and closes it, so
// that a shell reads while a training runs. A busy lock is retried for lockWait.
package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"gdb/internal/files"
	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockWait is how long a busy catalog is retried.
const lockWait = 5 * time.Second

// Catalog is the metadata of one store. It holds no lock and no open file between calls, and may
// be used from any goroutine and by several processes at once.
type Catalog struct {
	fs       vfs.FS
	dir      string
	patience time.Duration // lockWait; shorter in tests
	opening  uint64        // digestOpenBytes; fewer in tests
	turn     chan struct{} // has room for the transaction under way, of those of this process
}

// New returns the catalog in dir. It does no I/O.
func New(fs vfs.FS, dir string) *Catalog {
	return &Catalog{fs: files.Guard(fs, dir), dir: dir, patience: lockWait,
		opening: digestOpenBytes, turn: make(chan struct{}, 1)}
}

// setHead is the record at the head of a stored set.
type setHead struct {
	Chunks uint32 // the number of parts, of chunkBytes each except the last
	Bytes  uint64 // the bytes of all parts together
	Count  uint64 // the number of members of the set
}

// Create makes the catalog with its first transaction: the metadata and the sets, synced. A store
// exists from that moment on. It returns ErrExists if there is a catalog already, and replaces what
// an unfinished Create left. Besides the arguments it takes a few MiB of memory.
func (c *Catalog) Create(ctx context.Context, m *kv.Meta, sets map[string]*roaring.Bitmap) error {
	if m.Format != kv.FormatVersion && m.Format != kv.TypedVersion {
		return fmt.Errorf("kv: create %s: %w: version %d, this gdb writes %d and %d", c.dir,
			kv.ErrFormat, m.Format, kv.FormatVersion, kv.TypedVersion)
	}
	if err := c.fs.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("kv: create %s: %w", c.dir, err)
	}
	if err := files.SyncDir(c.fs, c.fs.PathDir(c.dir)); err != nil {
		return fmt.Errorf("kv: create %s: %w", c.dir, err)
	}
	l, err := c.lock(ctx)
	if err != nil {
		return err
	}
	_, err = c.readSeal()
	switch {
	case err == nil:
		err = fmt.Errorf("kv: create %s: %w", c.dir, kv.ErrExists)
	case errors.Is(err, kv.ErrNoStore):
		err = c.transact(ctx, &seal{uuid: m.UUID}, func(w writer) error {
			return w.create(m, sets)
		})
	}
	return errors.Join(err, l.Close())
}

// create writes the first records. It writes the sets to files of their own, after the files of
// small records.
func (w writer) create(m *kv.Meta, sets map[string]*roaring.Bitmap) error {
	b, err := marshal(*m)
	if err != nil {
		return err
	}
	if err := w.put([]byte(keyMeta), b); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if err := w.putSet(name, sets[name]); err != nil {
			return err
		}
	}
	return nil
}

// PutSplits adds stored sets of nodes as splits, and replaces splits of the same name. It changes
// the sets and the metadata that lists them in one transaction. It is for stores without snapshots.
func (c *Catalog) PutSplits(ctx context.Context, sets map[string]*roaring.Bitmap) error {
	return c.Commit(ctx, nil, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		m.SetSplits(sets)
		return sets, nil
	})
}

// Commit changes the metadata, and replaces or adds the sets that change returns, in one
// transaction. set reads a stored set as it was. A change of Snapshot keeps a record of the former
// one, and its sets: a set that has lost members, or has new ones among the former nodes, gets
// another name. It also keeps the records held, of snapshots between the two.
func (c *Catalog) Commit(ctx context.Context, held []kv.SnapshotMeta, change func(m *kv.Meta,
	set func(name string) (*roaring.Bitmap, error)) (map[string]*roaring.Bitmap, error)) error {
	return c.update(ctx, func(w writer) error {
		was, err := w.meta()
		if err != nil {
			return err
		}
		m, err := w.meta()
		if err != nil {
			return err
		}
		m.Rewrites = 0
		sets, err := change(m, func(name string) (*roaring.Bitmap, error) {
			return w.set(was.StoredSet(name))
		})
		if err != nil {
			return err
		}
		if m.Snapshot != was.Snapshot {
			if err := w.keepFormer(was, m, held, sets); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(sets)) {
			to := m.StoredSet(name)
			if err := errors.Join(w.dropSet(to), w.putSet(to, sets[name])); err != nil {
				return err
			}
		}
		return w.putMeta(m)
	})
}

func (w writer) putMeta(m *kv.Meta) error {
	if err := m.Check(); err != nil {
		return fmt.Errorf("kv: commit: %w", err)
	}
	b, err := marshal(*m)
	if err != nil {
		return err
	}
	return w.put([]byte(keyMeta), b)
}

// dropSet removes a set with all its parts. It does nothing if there is no such set.
func (w writer) dropSet(name string) error {
	h := setHead{}
	err := w.get([]byte(keySet+name), func(payload []byte) error { return unmarshal(payload, &h) })
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	for i := range h.Chunks {
		if err == nil {
			err = w.remove(chunkKey(name, i))
		}
	}
	if err == nil {
		err = w.remove([]byte(keySet + name))
	}
	return err
}

// putSet writes a set in the portable roaring format, in parts.
func (w writer) putSet(name string, set *roaring.Bitmap) error {
	if err := checkName("set", name); err != nil {
		return err
	}
	parts := &chunkWriter{w: w, name: name}
	if _, err := set.WriteTo(parts); err != nil {
		return fmt.Errorf("kv: write set %q: %w", name, err)
	}
	if err := parts.flush(); err != nil {
		return err
	}
	b, err := marshal(setHead{parts.n, parts.size, set.GetCardinality()})
	if err != nil {
		return err
	}
	return w.put([]byte(keySet+name), b)
}

// Meta loads the metadata. It returns ErrNoStore if there is no catalog, and ErrDamaged if its
// bytes are wrong.
func (c *Catalog) Meta(ctx context.Context) (*kv.Meta, error) {
	var m *kv.Meta
	err := c.view(ctx, func(r reader) (err error) {
		m, err = r.meta()
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (r reader) meta() (*kv.Meta, error) {
	m := &kv.Meta{}
	err := r.get([]byte(keyMeta), func(b []byte) error {
		format := struct{ Format, Manifest int }{}
		if err := json.Unmarshal(b, &format); err != nil {
			return kv.DamagedFile(r.c.rel(""), "metadata: %v", err)
		}
		if format.Manifest > kv.ManifestVersion {
			return fmt.Errorf("kv: %s: %w: manifest version %d, this gdb reads %d", r.c.dir,
				kv.ErrFormat, format.Manifest, kv.ManifestVersion)
		}
		if format.Format != kv.FormatVersion && format.Format != kv.TypedVersion {
			return fmt.Errorf("kv: %s: %w: version %d, this gdb reads %d and %d: ingest its "+
				"source again, or read it with the gdb that wrote it", r.c.dir, kv.ErrFormat,
				format.Format, kv.FormatVersion, kv.TypedVersion)
		}
		if err := unmarshal(b, m); err != nil {
			return kv.DamagedFile(r.c.rel(""), "metadata: %v", err)
		}
		return nil
	})
	if errors.Is(err, kv.ErrNotFound) {
		return nil, kv.DamagedFile(r.c.rel(""), "the metadata is missing")
	}
	if err == nil && m.UUID != r.s.uuid {
		return nil, kv.DamagedFile(r.c.rel(sealName), "it is of store %s, the metadata of %s",
			r.s.uuid, m.UUID)
	}
	if err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, kv.DamagedFile(r.c.rel(""), "metadata: %v", err)
	}
	return m, nil
}

// Set loads a stored set by name.
func (c *Catalog) Set(ctx context.Context, name string) (*roaring.Bitmap, error) {
	var set *roaring.Bitmap
	err := c.view(ctx, func(r reader) (err error) {
		set, err = r.set(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

// Splits loads the stored sets of some names as of a snapshot, and the metadata that lists them, in
// one transaction: if another process replaces them meanwhile, all are the old ones or all the new
// ones. Names without a set are left out.
func (c *Catalog) Splits(ctx context.Context, snapshot uint64, names ...string) (m *kv.Meta,
	sets map[string]*roaring.Bitmap, err error) {
	err = c.view(ctx, func(r reader) (err error) {
		if m, err = r.meta(); err != nil {
			return err
		}
		former := m.Snapshot != snapshot
		if former {
			if m, err = r.former(snapshot); err != nil {
				return err
			}
		}
		sets = map[string]*roaring.Bitmap{}
		for _, name := range names {
			switch set, err := r.set(m.StoredSet(name)); {
			case err == nil && former:
				set.RemoveRange(m.Nodes, 1<<32) // commits add to it
				fallthrough
			case err == nil:
				sets[name] = set
			case !errors.Is(err, kv.ErrNotFound):
				return err
			}
		}
		return nil
	})
	return m, sets, err
}

func (r reader) set(name string) (*roaring.Bitmap, error) {
	head := setHead{}
	err := r.get([]byte(keySet+name), func(b []byte) error {
		if err := unmarshal(b, &head); err != nil {
			return kv.DamagedFile(r.c.rel(""), "head of set %q: %v", name, err)
		}
		return nil
	})
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("kv: set %q: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	parts := &chunkReader{r: r, name: name, n: head.Chunks}
	set := roaring.New()
	n, err := set.ReadFrom(parts)
	if err == nil {
		err = set.Validate()
	}
	if err == nil && (uint64(n) != head.Bytes || set.GetCardinality() != head.Count) {
		err = fmt.Errorf("%d members in %d bytes, want %d in %d", set.GetCardinality(), n,
			head.Count, head.Bytes)
	}
	if err == nil {
		if _, end := parts.Read(make([]byte, 1)); end != io.EOF {
			err = fmt.Errorf("bytes follow its end (%w)", end)
		}
	}
	if errors.Is(err, kv.ErrDamaged) || err == nil {
		return set, err
	}
	return nil, kv.DamagedFile(r.c.rel(""), "set %q: %v", name, err)
}

// PutRun writes the record of a run, and replaces a record of the same name.
func (c *Catalog) PutRun(ctx context.Context, m kv.RunMeta) error {
	if err := checkName("run", m.Name); err != nil {
		return err
	}
	b, err := marshal(runRecord{m, number(m.Best), number(m.Test)})
	if err != nil {
		return err
	}
	return c.update(ctx, func(w writer) error { return w.put([]byte(keyRun+m.Name), b) })
}

// DeleteRun removes the record of a run, if there is one.
func (c *Catalog) DeleteRun(ctx context.Context, name string) error {
	return c.update(ctx, func(w writer) error { return w.remove([]byte(keyRun + name)) })
}

// Runs returns the records of all runs, ordered by name.
func (c *Catalog) Runs(ctx context.Context) ([]kv.RunMeta, error) {
	var runs []kv.RunMeta
	err := c.view(ctx, func(r reader) (err error) {
		runs, err = r.runs()
		return err
	})
	return runs, err
}

func (r reader) runs() (runs []kv.RunMeta, err error) {
	err = r.each(keyRun, func(name string, b []byte) error {
		m, err := r.run(name, b)
		runs = append(runs, m)
		return err
	})
	return runs, err
}

// run decodes the record of a run.
func (r reader) run(name string, b []byte) (kv.RunMeta, error) {
	m := runRecord{}
	if err := unmarshal(b, &m); err != nil {
		return kv.RunMeta{}, kv.DamagedFile(r.c.rel(""), "run %q: %v", name, err)
	}
	m.RunMeta.Best, m.RunMeta.Test = float64(m.Best), float64(m.Test)
	return m.RunMeta, nil
}

// PutProfile stores a measured profile (JSON) under a name, for example the name of a device.
func (c *Catalog) PutProfile(ctx context.Context, name string, profile []byte) error {
	if !json.Valid(profile) {
		return fmt.Errorf("kv: profile %q is not JSON", name)
	}
	if err := checkName("profile", name); err != nil {
		return err
	}
	return c.update(ctx, func(w writer) error { return w.put([]byte(keyProfile+name), profile) })
}

// Profile loads a profile. It returns ErrNotFound if there is none of that name.
func (c *Catalog) Profile(ctx context.Context, name string) ([]byte, error) {
	var profile []byte
	err := c.view(ctx, func(r reader) error {
		return r.get([]byte(keyProfile+name), func(b []byte) error {
			profile = bytes.Clone(b)
			return nil
		})
	})
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("kv: profile %q: %w", name, err)
	}
	return profile, err
}
