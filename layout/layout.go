// Package layout opens a store, which is a directory of files: it loads the metadata and sets of
// nodes, and opens, reads, verifies and writes files of the store. Packages in its folder know what
// the files hold, such as neighbor lists (listfile) and rows (rowfile).
package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/kv/catalog"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// NodeID is an internal node id: nodes of a graph are numbered from 0.
type NodeID = kv.NodeID

// MaxNodes is the number of different ids.
const MaxNodes = 1 << 32

// Direction says which lists of a node are meant: in-lists hold the sources of its in-edges, and
// out-lists the targets of its out-edges.
type Direction uint8

// The directions.
const (
	In Direction = iota
	Out
)

// String returns "in" or "out".
func (d Direction) String() string { return [...]string{In: "in", Out: "out"}[d] }

// ErrCorrupt is wrapped by every CorruptionError.
var ErrCorrupt = errors.New("damaged")

// CorruptionError says that bytes of a store differ from those that were written.
type CorruptionError struct {
	Path   string
	Block  int64 // block or page number, 0 for the header; -1 for the whole file
	Offset int64 // of the block in the file, in bytes
	What   string
}

// Error names the file, block and offset, says what is wrong and what to do.
func (e *CorruptionError) Error() string {
	if e.Block < 0 {
		return fmt.Sprintf("layout: %s: %s", e.Path, e.What)
	}
	remedy := "run " + message.Program + " check"
	if strings.HasPrefix(e.Path, "prep/") {
		remedy = "delete the file: it is made again"
	}
	return fmt.Sprintf("layout: %s block %d at offset %d: %s; %s", e.Path, e.Block, e.Offset,
		e.What, remedy)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptionError) Unwrap() error { return ErrCorrupt }

// CatalogName is the file that findings about the metadata name.
const CatalogName = "catalog"

// Store is an opened store: its metadata in memory. It holds no file open, except that one of
// OpenAt has a lock that keeps its files until Close.
type Store struct {
	fs      vfs.FS
	dir     string
	meta    *kv.Meta
	catalog *catalog.Catalog

	base   *Store   // of a store that was appended to; else nil
	levels []*Level // what was appended

	recorded *kv.Meta  // the metadata of the catalog, where held commits change them; else nil
	held     []*Commit // small commits that are in no level of files
	reads    *reading  // of OpenAt, else nil
}

// open loads the metadata of the store in dir. The error wraps kv.ErrNoStore, kv.ErrDamaged,
// kv.ErrFormat or kv.ErrBusy if one of these is the cause.
func open(ctx context.Context, fs vfs.FS, dir string) (*Store, error) {
	fs = files.Guard(fs, dir, "runs")
	c := catalog.New(fs, fs.PathJoin(dir, "catalog"))
	m, err := c.Meta(ctx)
	if errors.Is(err, kv.ErrNoStore) && isUnfinished(fs, dir) {
		return nil, fmt.Errorf("layout: open %s: %w yet: an ingest into it is not finished; wait "+
			"for it, or if none is running give its command again with --resume, or delete the "+
			"directory", dir, kv.ErrNoStore)
	}
	if errors.Is(err, kv.ErrNoStore) && hasData(fs, dir) {
		return nil, fmt.Errorf("layout: open %s: %w", dir, &CorruptionError{Path: CatalogName,
			Block: -1,
			What:  "its SEAL is missing beside the files of a store; restore it from a copy"})
	}
	if errors.Is(err, kv.ErrNoStore) || err != nil && oserror.IsNotExist(err) {
		return nil, fmt.Errorf("layout: %s: %w", dir, noStore(fs, dir))
	}
	if err != nil {
		if info, e := fs.Stat(dir); e == nil && !info.IsDir() {
			return nil, fmt.Errorf("layout: %s: %w", dir, noStore(fs, dir))
		}
		return nil, fmt.Errorf("layout: open %s: %w", dir, err)
	}
	return &Store{fs: fs, dir: dir, meta: m, catalog: c}, nil
}

// noStore returns an error that says what dir is instead of a store, and what to do.
func noStore(fs vfs.FS, dir string) error {
	switch info, err := fs.Stat(dir); {
	case err != nil:
		return fmt.Errorf("%w: there is nothing of that name: %s ingest makes stores",
			kv.ErrNoStore, message.Program)
	case !info.IsDir():
		return fmt.Errorf("%w, but a file: %s ingest %s --out STORE makes one of it",
			kv.ErrNoStore, message.Program, dir)
	}
	return fmt.Errorf("%w: if it holds source files, %s ingest %s --out STORE makes one of them",
		kv.ErrNoStore, message.Program, dir)
}

// IngestPath is the folder of a store where an ingest keeps what it needs to resume. It has a file
// JournalName until the store is complete.
const IngestPath, JournalName = "tmp/ingest", "journal"

// FirstPath is where an ingest has the store whose nodes it then puts in order.
const FirstPath = "tmp/first"

func isUnfinished(fs vfs.FS, dir string) bool {
	for _, path := range []string{IngestPath + "/" + JournalName, FirstPath} {
		_, err := fs.Stat(fs.PathJoin(append([]string{dir}, strings.Split(path, "/")...)...))
		if err == nil {
			return true
		}
	}
	return false
}

// hasData reports whether dir has files of a graph.
func hasData(fs vfs.FS, dir string) bool {
	path, _ := TopologyPaths(In)
	_, err := fs.Stat(fs.PathJoin(append([]string{dir}, strings.Split(path, "/")...)...))
	return err == nil
}

// NewStore returns the store in dir with the given metadata. It is for a store that is being
// written, whose catalog does not exist yet.
func NewStore(fs vfs.FS, dir string, meta *kv.Meta) *Store {
	return &Store{fs: fs, dir: dir, meta: meta,
		catalog: catalog.New(fs, fs.PathJoin(dir, "catalog"))}
}

// Parts returns the bounds of the store's partitions (see kv.Meta.PartBounds), or nil if its nodes
// are in one.
func (s *Store) Parts() []uint64 { return s.meta.PartBounds() }

// WithFeatures returns the store with other features: a file of rows that was computed from its
// own.
func (s *Store) WithFeatures(rows kv.RowsMeta) *Store {
	of, meta := *s, *s.meta
	meta.Features, meta.FeatureNames = []kv.RowsMeta{rows}, nil
	of.meta = &meta
	return &of
}

// Meta returns the store's metadata. The caller must not change it.
func (s *Store) Meta() *kv.Meta { return s.meta }

// Catalog returns the store's catalog.
func (s *Store) Catalog() *catalog.Catalog { return s.catalog }

// FS returns the file system of the store.
func (s *Store) FS() vfs.FS { return s.fs }

// Dir returns the directory of the store.
func (s *Store) Dir() string { return s.dir }

// PrepDir is the folder of what is made of a store and can be made again.
const PrepDir = "prep"

// Path returns the path of a store file, given relative to the store, with slashes. Each snapshot
// has a folder of its own in the place of PrepDir, so that nothing made of another one is read.
func (s *Store) Path(elem ...string) string {
	parts := []string{s.dir}
	for _, e := range elem {
		parts = append(parts, strings.Split(e, "/")...)
	}
	if len(parts) > 1 {
		switch parts[1] {
		case PrepDir:
			parts[1] = prepDir(s.meta.Snapshot)
		case "runs", "tmp", LevelsDir:
		default: // a file of the graph
			parts[0] = s.Base().dir
		}
	}
	return s.fs.PathJoin(parts...)
}

// Split loads a stored set of nodes: train, val, test, train@K, ….
func (s *Store) Split(ctx context.Context, name string) (*roaring.Bitmap, error) {
	sets, err := s.Splits(ctx, name)
	if err == nil && sets[name] == nil {
		err = fmt.Errorf("layout: set %q: %w", name, kv.ErrNotFound)
	}
	return sets[name], err
}

// Splits loads several sets in one transaction, so that all are from one moment. They may differ
// from those that Meta lists, if somebody has replaced them since. Sets that do not exist are left
// out.
func (s *Store) Splits(ctx context.Context, names ...string) (map[string]*roaring.Bitmap, error) {
	now, sets, err := s.catalog.Splits(ctx, s.Recorded().Snapshot, names...)
	if err != nil {
		return nil, err
	}
	for name, set := range sets {
		what := ""
		if !set.IsEmpty() && uint64(set.Maximum()) >= s.meta.Nodes {
			what = fmt.Sprintf("set %q has node %d of %d", name, set.Maximum(), s.meta.Nodes)
		}
		for _, c := range now.Splits {
			if got := set.GetCardinality(); c.Name == name && c.Count != got {
				what = fmt.Sprintf("set %q has %d nodes, want %d", name, got, c.Count)
			}
		}
		if what != "" {
			return nil, &CorruptionError{Path: CatalogName, Block: -1, What: what}
		}
	}
	return sets, nil
}

// Deleted returns the nodes that were deleted and keep their numbers, as those of a store of one
// type of nodes do; nil if there are none.
func (s *Store) Deleted(ctx context.Context) (*roaring.Bitmap, error) {
	if s.meta.Deleted == "" {
		return nil, nil
	}
	return s.catalog.Set(ctx, s.meta.Deleted)
}

// OutOfRange returns the error for a node that the graph does not have.
func OutOfRange(v NodeID, nodes uint64) error {
	return fmt.Errorf("layout: node %d is not below the %d nodes", v, nodes)
}

// ErrInside is returned if a file would be written inside of a store.
var ErrInside = errors.New("it is inside of the store")

// CheckOutside returns an error if path, a file or folder that a command writes for its user, is
// inside of a store, where it would be taken for a part of the store, or removed. It follows links.
func CheckOutside(fs vfs.FS, path string) error {
	at := path
	if vfs.Root(fs) == vfs.Default {
		if abs, err := filepath.Abs(path); err == nil {
			at = filepath.Join(existing(filepath.Dir(abs)), filepath.Base(abs))
		}
	}
	for dir := fs.PathDir(at); ; dir = fs.PathDir(dir) {
		_, err := fs.Stat(fs.PathJoin(dir, "catalog", "SEAL"))
		if err == nil || isUnfinished(fs, dir) || hasData(fs, dir) {
			return fmt.Errorf("%s: %w %s: name a place outside of it", path, ErrInside, dir)
		}
		if dir == fs.PathDir(dir) {
			return nil
		}
	}
}

// existing returns dir with links resolved, as far as it exists.
func existing(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil || dir == filepath.Dir(dir) {
		return cmp.Or(real, dir)
	}
	return filepath.Join(existing(filepath.Dir(dir)), filepath.Base(dir))
}

// WritePrep writes a file of the store's prep directory from its parts: either completely, or the
// file stays as it was. path is relative to the store.
func (s *Store) WritePrep(path string, parts ...[]byte) error {
	prep, path := s.Path("prep"), s.Path(path)
	if err := s.FS().MkdirAll(prep, 0o755); err != nil {
		return fmt.Errorf("layout: make %s: %w", prep, err)
	}
	f, err := files.CreateAtomic(s.FS(), path)
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	w := blockdev.NewWriter(f)
	for _, p := range parts {
		if _, err = w.Write(p); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Finish()
	} else {
		w.Stop()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("layout: write %s: %w", path, err), f.Abort())
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	return nil
}
