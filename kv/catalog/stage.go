package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"gdb/internal/codec"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// stage is the file system that one transaction's Pebble sees: the directory with the sealed files
// and those it creates, nothing else. It turns Pebble's own commit into a preparation:
//
//   - Sealed files are never changed or removed on disk, only hidden, until the new seal is there.
//   - Files that are created are written through, and their checksums counted on the way.
//   - A failed write is kept as the error of the stage and reported to Pebble as done. Pebble ends
//     the process when its manifest cannot be written; here the transaction fails instead, because
//     a stage with an error is never sealed.
//
// Reads are passed on, with their errors, but a sealed file is compared with the seal before it is
// opened for the first time: Pebble may loop on a damaged table. Methods may be called from any
// goroutine.
type stage struct {
	vfs.FS // paths, disk usage
	c      *Catalog
	dir    string

	mu struct {
		sync.Mutex
		sealed   map[string]sealedFile
		verified map[string]bool // sealed files whose bytes were compared
		created  map[string]*stagedFile
		err      error
	}
}

// stagedFile is a file being made.
type stagedFile struct {
	vfs.File
	s    *stage
	path string
	size uint64 // guarded by s.mu, like sum and done
	sum  uint32
	done bool // the file is closed, and so durable
}

var errNotStaged = errors.New("a catalog transaction does not do this")

func newStage(c *Catalog, old *seal) *stage {
	s := &stage{FS: c.fs, c: c, dir: c.dir}
	s.mu.verified = make(map[string]bool)
	s.mu.sealed = make(map[string]sealedFile, len(old.files))
	s.mu.created = make(map[string]*stagedFile)
	for _, f := range old.files {
		s.mu.sealed[f.name] = f
	}
	return s
}

// verify compares the sealed files with the seal: the sizes of all files, and the bytes of the
// smallest ones until limit bytes are reached.
func (s *stage) verify(ctx context.Context, limit uint64) error {
	files, _ := s.files()
	slices.SortStableFunc(files, func(a, b sealedFile) int { return cmp.Compare(a.size, b.size) })
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("kv: verify %s: %w", s.dir, err)
		}
		whole := f.size <= limit
		if err := s.c.digest(f, whole); err != nil {
			return err
		}
		if whole {
			limit -= f.size
			s.mu.verified[f.name] = true
		}
	}
	return nil
}

// verifyOne compares the bytes of a file with the seal. It does nothing if that was done before or
// the file is not sealed.
func (s *stage) verifyOne(name string) error {
	s.mu.Lock()
	f, sealed := s.mu.sealed[name]
	done := s.mu.verified[name]
	s.mu.Unlock()
	if !sealed || done {
		return nil
	}
	if err := s.c.digest(f, true); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.verified[name] = true
	return nil
}

// files lists the visible files by name, and returns the error of the stage.
func (s *stage) files() ([]sealedFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var files []sealedFile
	for _, f := range s.mu.sealed {
		files = append(files, f)
	}
	for name, f := range s.mu.created {
		files = append(files, sealedFile{name, f.size, f.sum})
	}
	slices.SortFunc(files, func(a, b sealedFile) int { return strings.Compare(a.name, b.name) })
	return files, s.mu.err
}

// finish returns the files that a new seal lists, or the error of the stage.
func (s *stage) finish() ([]sealedFile, error) {
	s.mu.Lock()
	for _, f := range s.mu.created {
		if !f.done {
			s.failedLocked("close", f.path, errors.New("it was left open"))
		}
	}
	s.mu.Unlock()
	return s.files()
}

// discard removes the created files from disk. It ignores errors: a file that stays is not sealed,
// and the next transaction removes it.
func (s *stage) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.mu.created {
		_ = s.FS.Remove(s.PathJoin(s.dir, name))
	}
}

// failedLocked keeps the first error. Pebble is told that the operation succeeded.
func (s *stage) failedLocked(op, path string, err error) {
	if err != nil && s.mu.err == nil {
		s.mu.err = fmt.Errorf("kv: %s %s: %w", op, path, err)
	}
}

// has reports whether a path names a visible file.
func (s *stage) has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.PathBase(path)
	return s.mu.created[name] != nil || s.hasSealedLocked(name)
}

func (s *stage) hasSealedLocked(name string) bool {
	_, ok := s.mu.sealed[name]
	return ok
}

// inDir refuses paths outside the catalog's directory: a mistake of this package.
func (s *stage) inDir(path string) {
	if s.PathDir(path) != s.PathDir(s.PathJoin(s.dir, "x")) {
		panic(fmt.Sprintf("BUG: kv: staged path %s is not in %s", path, s.dir))
	}
}

// Create makes a new file. A name that is sealed is never used again, so this cannot hurt.
func (s *stage) Create(path string, category vfs.DiskWriteCategory) (vfs.File, error) {
	s.inDir(path)
	name := s.PathBase(path)
	f := &stagedFile{s: s, path: path}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasSealedLocked(name) {
		s.failedLocked("create", path, errNotStaged)
	}
	if s.mu.err == nil {
		file, err := s.FS.Create(path, category)
		s.failedLocked("create", path, err)
		f.File = file
	}
	if s.mu.err != nil {
		f.File = vfs.NewMemFile(nil)
	}
	s.mu.created[name] = f
	return f, nil
}

// Open opens a visible file for reading.
func (s *stage) Open(path string, opts ...vfs.OpenOption) (vfs.File, error) {
	if !s.has(path) {
		return nil, &os.PathError{Op: "open", Path: path, Err: oserror.ErrNotExist}
	}
	if err := s.verifyOne(s.PathBase(path)); err != nil {
		return nil, err
	}
	return s.FS.Open(path, opts...)
}

// Stat describes a visible file, or the directory.
func (s *stage) Stat(path string) (vfs.FileInfo, error) {
	if path != s.dir && !s.has(path) {
		return nil, &os.PathError{Op: "stat", Path: path, Err: oserror.ErrNotExist}
	}
	return s.FS.Stat(path)
}

// List lists the visible files.
func (s *stage) List(dir string) ([]string, error) {
	if dir != s.dir {
		return nil, fmt.Errorf("list %s: %w", dir, errNotStaged)
	}
	files, _ := s.files()
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	return names, nil
}

// Remove hides a sealed file and removes a created one.
func (s *stage) Remove(path string) error {
	s.inDir(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.PathBase(path)
	switch {
	case s.hasSealedLocked(name):
		delete(s.mu.sealed, name)
	case s.mu.created[name] == nil:
		return &os.PathError{Op: "remove", Path: path, Err: oserror.ErrNotExist}
	case s.mu.err == nil:
		s.failedLocked("remove", path, s.FS.Remove(path))
		fallthrough
	default:
		delete(s.mu.created, name)
	}
	return nil
}

// Rename renames a created file.
func (s *stage) Rename(from, to string) error {
	s.inDir(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.mu.created[s.PathBase(from)]
	if f == nil || s.hasSealedLocked(s.PathBase(to)) {
		s.failedLocked("rename", from, errNotStaged)
		return nil
	}
	if s.mu.err == nil {
		s.failedLocked("rename", from, s.FS.Rename(from, to))
	}
	delete(s.mu.created, s.PathBase(from))
	s.mu.created[s.PathBase(to)] = f
	return nil
}

// OpenDir opens the directory; syncing it is left to the seal.
func (s *stage) OpenDir(string) (vfs.File, error) { return vfs.NewMemFile(nil), nil }

// MkdirAll has nothing to do: the directory was made before.
func (s *stage) MkdirAll(string, os.FileMode) error { return nil }

// Lock has nothing to do: the catalog holds the lock around the transaction.
func (s *stage) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Link fails: a stage does not support it.
func (s *stage) Link(string, string) error { return errNotStaged }

// OpenReadWrite fails: a stage does not support it.
func (s *stage) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errNotStaged
}

// RemoveAll fails: a stage does not support it.
func (s *stage) RemoveAll(string) error { return errNotStaged }

// ReuseForWrite fails: a stage does not support it.
func (s *stage) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errNotStaged
}

// Unwrap returns the file system below.
func (s *stage) Unwrap() vfs.FS { return s.FS }

// Write appends to the file and to its checksum.
func (f *stagedFile) Write(p []byte) (int, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	// The checksum first: a file may change the bytes it is given to write.
	n := len(p)
	f.sum, f.size = codec.ChecksumUpdate(f.sum, p), f.size+uint64(n)
	if f.s.mu.err == nil {
		_, err := f.File.Write(p)
		f.s.failedLocked("write", f.path, err)
	}
	return n, nil
}

// WriteAt fails: the checksum needs the bytes in order.
func (f *stagedFile) WriteAt([]byte, int64) (int, error) { return 0, errNotStaged }

// Preallocate does nothing: the files are small.
func (f *stagedFile) Preallocate(int64, int64) error { return nil }

// Sync does nothing: Close syncs, once.
func (f *stagedFile) Sync() error { return nil }

// SyncData does nothing: Close syncs, once.
func (f *stagedFile) SyncData() error { return nil }

// SyncTo does nothing: Close syncs, once.
func (f *stagedFile) SyncTo(int64) (bool, error) { return false, nil }

// Close makes the file durable.
func (f *stagedFile) Close() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.failedLocked("sync", f.path, f.File.Sync())
	f.s.failedLocked("close", f.path, f.File.Close())
	f.done = true
	return nil
}
