package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gdb/internal/files"
	"gdb/internal/message"
	"gdb/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Latest is the last snapshot of a store, as OpenAt takes it.
const Latest = "latest"

// OpenAt opens a store as OpenLive does, as of a snapshot: "" or Latest, a number, a name that
// keeps one, a day (2026-11-01, with all of it) or a time (2026-11-01T15:04:05Z). Files of the
// snapshot stay until the caller calls Close, whatever is compacted.
func OpenAt(ctx context.Context, fs vfs.FS, dir, at string) (*Store, error) {
	opening, err := readerLock(fs, dir, openingName) // keeps all files until it is known which
	if err != nil {
		return nil, fmt.Errorf("layout: open %s: %w", dir, err)
	}
	s, err := openSnapshot(ctx, fs, dir, at)
	if err == nil {
		s.reads, err = readerLock(fs, dir, strconv.FormatUint(s.meta.Snapshot, 10))
	}
	return s, errors.Join(err, opening.Close())
}

func openSnapshot(ctx context.Context, fs vfs.FS, dir, at string) (*Store, error) {
	s, err := OpenLive(ctx, fs, dir)
	if err != nil || at == "" || at == Latest {
		return s, err
	}
	h, err := s.History(ctx)
	if err != nil {
		return nil, fmt.Errorf("layout: open %s: %w", dir, err)
	}
	number, err := snapshotAt(h, at)
	if err != nil {
		return nil, fmt.Errorf("layout: open %s: %w", dir, err)
	}
	commits, err := heldNames(fs, dir)
	if err != nil {
		return nil, err
	}
	of := &Store{fs: s.fs, dir: s.dir, meta: h.On(number), catalog: s.catalog}
	commits, there := between(commits, of.meta, number)
	if !there {
		return nil, fmt.Errorf("layout: open %s: %w: the files of snapshot %d are gone, since "+
			"nothing kept it; %s snapshots lists those that can be read, and keeps them", dir,
			kv.ErrNoSnapshot, number, message.Program)
	}
	if err := of.openAll(ctx, commits); err != nil {
		return nil, err
	}
	return of, nil
}

// between returns the commits that make a snapshot of what m describes, and whether all have files.
func between(commits []uint64, m *kv.Meta, number uint64) (some []uint64, there bool) {
	if m == nil {
		return nil, false
	}
	for _, c := range commits {
		if c > m.Snapshot && c <= number {
			some = append(some, c)
		}
	}
	return some, uint64(len(some)) == number-m.Snapshot
}

// History returns what is known of the snapshots of a store that is open as of the last one.
func (s *Store) History(ctx context.Context) (*kv.History, error) {
	h, err := s.catalog.History(ctx)
	if err == nil {
		h.Held = slices.DeleteFunc(s.HeldRecords(), func(of kv.SnapshotMeta) bool {
			return of.Number <= h.Head.Snapshot // they were written out meanwhile
		})
	}
	return h, err
}

// TypesAt returns how many nodes of each type a typed store had at an earlier snapshot, which is
// named as OpenAt takes it. Nodes of a type that came later follow these. It fails if the snapshot
// cannot be read any more, or if nodes were deleted since.
func (s *Store) TypesAt(ctx context.Context, at string) (counts []uint64, err error) {
	h, err := s.History(ctx)
	if err != nil {
		return nil, fmt.Errorf("layout: %s: %w", s.dir, err)
	}
	number, err := snapshotAt(h, at)
	if err != nil {
		return nil, fmt.Errorf("layout: %s: %w", s.dir, err)
	}
	m := h.On(number)
	switch {
	case number < s.meta.Moved:
		return nil, s.errMoved(number)
	case m == nil || m.Snapshot != number:
		return nil, fmt.Errorf("layout: %s: %w: the files of snapshot %d are gone, so which nodes "+
			"of each type came later is not known; %s snapshots keep NAME --at N keeps one", s.dir,
			kv.ErrNoSnapshot, number, message.Program)
	}
	for _, t := range m.NodeTypes {
		counts = append(counts, t.Nodes)
	}
	return counts, nil
}

// Shift says where nodes are that follow each other.
type Shift struct{ Was, Now, Nodes uint64 }

// ShiftsSince returns where the nodes that a typed store had at an earlier snapshot are now: those
// of each type, in order, none of which has a smaller number than then. It fails as TypesAt does.
func (s *Store) ShiftsSince(ctx context.Context, number uint64) (all []Shift, err error) {
	counts, err := s.TypesAt(ctx, strconv.FormatUint(number, 10))
	was := uint64(0)
	for i, n := range counts {
		all = append(all, Shift{Was: was, Now: s.meta.NodeTypes[i].First, Nodes: n})
		was += n
	}
	return all, err
}

// NodesAt returns how many nodes the store had at an earlier snapshot, which is named as OpenAt
// takes it; its files may be gone. Nodes that came later have the numbers from there on.
func (s *Store) NodesAt(ctx context.Context, at string) (uint64, error) {
	h, err := s.History(ctx)
	if err != nil {
		return 0, fmt.Errorf("layout: %s: %w", s.dir, err)
	}
	number, err := snapshotAt(h, at)
	if err != nil {
		return 0, fmt.Errorf("layout: %s: %w", s.dir, err)
	}
	if number < s.meta.Moved {
		return 0, s.errMoved(number)
	}
	of, _ := h.Find(number)
	return of.Nodes, nil
}

// errMoved says that nodes were deleted after a snapshot, and others moved up.
func (s *Store) errMoved(number uint64) error {
	return fmt.Errorf("layout: %s: snapshot %d deleted nodes, and those behind them moved up: "+
		"which came after snapshot %d is not known; name one from %d on", s.dir, s.meta.Moved,
		number, s.meta.Moved)
}

// HeldRecords returns the records of small commits that no level of files has yet.
func (s *Store) HeldRecords() (all []kv.SnapshotMeta) {
	edges := s.Recorded().Edges
	for _, c := range s.held {
		edges += uint64(c.Added.Len()) - c.Removed
		all = append(all, kv.SnapshotMeta{Number: c.Snapshot, Created: c.Created,
			Nodes: c.Nodes + c.New, Edges: edges})
	}
	return all
}

// Readable says of snapshots of a store whether their files are there.
func (s *Store) Readable(h *kv.History) (func(number uint64) bool, error) {
	commits, err := heldNames(s.fs, s.dir)
	return func(number uint64) bool {
		of, found := h.Find(number)
		_, there := between(commits, h.On(of.Number), of.Number)
		return found && there
	}, err
}

// snapshotAt returns the number of the snapshot that a text names.
func snapshotAt(h *kv.History, at string) (uint64, error) {
	number, err := strconv.ParseUint(at, 10, 64)
	if err != nil {
		if number, err = namedSnapshot(h, at); err != nil {
			return 0, err
		}
	}
	s, found := h.Find(number)
	if !found {
		return 0, fmt.Errorf("%w: number %d: the last one is %d; %s snapshots lists them",
			kv.ErrNoSnapshot, number, h.Last(), message.Program)
	}
	return s.Number, nil
}

// namedSnapshot returns the number of the snapshot that a name keeps, or that was the last at a
// time.
func namedSnapshot(h *kv.History, at string) (uint64, error) {
	for _, hold := range h.Holds {
		if hold.Name == at {
			return hold.Snapshot, nil
		}
	}
	until, err := time.Parse(time.DateOnly, at)
	if err == nil {
		until = until.AddDate(0, 0, 1).Add(-time.Nanosecond)
	} else if until, err = time.Parse(time.RFC3339, at); err != nil {
		return 0, fmt.Errorf("%w: %q is neither a number, nor a day (2026-11-01), a time "+
			"(2026-11-01T15:04:05Z), latest, or a name that %s snapshots lists", kv.ErrNoSnapshot,
			at, message.Program)
	}
	all := h.All()
	for _, s := range slices.Backward(all) {
		if !s.Created.After(until) {
			return s.Number, nil
		}
	}
	return 0, fmt.Errorf("%w: the store was made at %s, after %s", kv.ErrNoSnapshot,
		all[0].Created.Format(time.RFC3339), at)
}

// CheckSnapshotName refuses names that OpenAt would take for something else.
func CheckSnapshotName(name string) error {
	_, number := strconv.ParseUint(name, 10, 64)
	_, day := time.Parse(time.DateOnly, name)
	_, at := time.Parse(time.RFC3339, name)
	if number == nil || day == nil || at == nil || name == Latest || strings.TrimSpace(name) == "" {
		return fmt.Errorf("%q cannot be the name of a snapshot: it says which one is meant", name)
	}
	return nil
}

// Close ends the reading of a store that OpenAt opened: files that only it needed may be removed.
// Further calls, and those of other stores, do nothing.
func (s *Store) Close() error {
	if s == nil || s.reads == nil {
		return nil
	}
	reads := s.reads
	s.reads = nil
	return reads.Close()
}

// readersDir returns the folder of the locks of readers. A lock is a file that is called after the
// number of the snapshot that is read, and is held by who reads it: a file that nobody holds was
// left by a process that was killed.
func readersDir(fs vfs.FS, dir string) string { return fs.PathJoin(dir, "tmp", ReadersDir) }

// ReadersDir is the folder in the store's tmp that has the locks of readers.
const ReadersDir = "readers"

// openingName stands for the number while a reader opens a store.
const openingName = "opening"

// readersOpened numbers the locks of this process.
var readersOpened atomic.Uint64

// reading is the lock of a reader.
type reading struct {
	fs   vfs.FS
	path string
	lock io.Closer
}

// readerLock says that a snapshot is read. Where nothing can be written it does nothing: nobody
// can compact such a store either.
func readerLock(fs vfs.FS, dir, snapshot string) (*reading, error) {
	if _, err := fs.Stat(fs.PathJoin(dir, "catalog", "SEAL")); err != nil {
		return nil, nil // no store: who opens it says so
	}
	fs = files.Guard(fs, dir)
	folder := readersDir(fs, dir)
	r := &reading{fs: fs, path: fs.PathJoin(folder, fmt.Sprintf("%s-%d-%d", snapshot,
		os.Getpid(), readersOpened.Add(1)))}
	err := fs.MkdirAll(folder, 0o755)
	if err == nil {
		r.lock, err = files.Lock(fs, r.path)
	}
	if errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("say that it is read: %w", err)
	}
	return r, nil
}

// KeepAll has commits and compactions remove no file of the store in dir until the caller calls
// Close.
func KeepAll(fs vfs.FS, dir string) (io.Closer, error) { return readerLock(fs, dir, openingName) }

// Close removes the lock.
func (r *reading) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.fs.Remove(r.path), r.lock.Close())
}

// beingRead returns which snapshots are read, as the names of the locks say, and removes locks that
// nobody holds.
func beingRead(fs vfs.FS, dir string) (map[string]bool, error) {
	fs = files.Guard(fs, dir)
	folder := readersDir(fs, dir)
	names, err := fs.List(folder)
	if err != nil && !oserror.IsNotExist(err) {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	read := map[string]bool{}
	for _, name := range names {
		lock, err := files.Lock(fs, fs.PathJoin(folder, name))
		switch {
		case errors.Is(err, files.ErrLockHeld):
			of, _, _ := strings.Cut(name, "-")
			read[of] = true
		case err != nil && !oserror.IsNotExist(err) && !errors.Is(err, files.ErrLockRemoved):
			return nil, err
		case err == nil:
			if err := errors.Join(fs.Remove(fs.PathJoin(folder, name)), lock.Close()); err != nil {
				return nil, err
			}
		}
	}
	return read, nil
}

// Needs is what a store's snapshots need of its folder.
type Needs struct {
	Folders []string // of bases and levels, relative to the store; "" for the store's own files
	Commits []uint64 // whose files are needed
	Prep    []string // the folders of what was made of them
	// Forget lists snapshots that nothing keeps, and whose files would otherwise have to stay.
	Forget []uint64
	// All says that a reader is just opening the store: nothing may be removed.
	All bool
}

// freeMost is how many snapshots that nothing keeps stay readable: a record of each takes some KiB.
const freeMost = 100

// Needed says which files of a store, which is open as of the last snapshot, are needed: those of
// that one, those of snapshots that names, runs and readers keep, and those of the last freeMost
// others that have no files of their own. The rest can be forgotten.
func Needed(s *Store, h *kv.History) (n Needs, err error) {
	read, err := beingRead(s.fs, s.dir)
	if err != nil {
		return n, err
	}
	n.All = read[openingName]
	n.add(h, h.Last())
	free := slices.Clone(n.Folders)
	kept, others, on := h.Holders(), 0, map[uint64]bool{}
	for _, of := range slices.Backward(h.All()) {
		if kept[of.Number] != nil || read[strconv.FormatUint(of.Number, 10)] {
			if m := n.add(h, of.Number); m != nil {
				on[m.Snapshot] = true
			}
		}
	}
	for _, of := range slices.Backward(h.Snapshots) {
		if of.Meta == nil || on[of.Number] {
			continue
		}
		if others++; others > freeMost || of.Same > 0 || slices.ContainsFunc(of.Meta.Folders(),
			func(path string) bool { return !slices.Contains(free, path) }) {
			n.Forget = append(n.Forget, of.Number)
		} else {
			n.add(h, of.Number)
		}
	}
	return n, nil
}

// add adds what a snapshot needs, and returns what it stands on.
func (n *Needs) add(h *kv.History, number uint64) *kv.Meta {
	m := h.On(number)
	if m == nil {
		return nil // it is gone
	}
	n.Folders = append(n.Folders, m.Folders()...)
	for c := m.Snapshot + 1; c <= number; c++ {
		n.Commits = append(n.Commits, c)
	}
	n.Prep = append(n.Prep, prepDir(number))
	return m
}

// prepDir returns the folder of what is made of a snapshot.
func prepDir(snapshot uint64) string {
	if snapshot == 0 {
		return PrepDir
	}
	return PrepDir + "-" + strconv.FormatUint(snapshot, 10)
}
