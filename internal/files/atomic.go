package files

import (
	"context"
	"errors"
	"fmt"
	"os"

	"gdb/internal/bug"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// partEnding ends the name of a file while it is written.
const partEnding = ".tmp"

// PartPath returns the name under which the file at path is written. It is the same for all
// writers, so that a later one replaces what a killed one left. Two must not write at the same
// time.
func PartPath(path string) string { return path + partEnding }

// Atomic is a file that does not have its final name yet. The caller calls Commit or Abort.
type Atomic struct {
	vfs.File
	fs         vfs.FS
	path, part string
	done       bool
}

// CreateAtomic creates the file that will be at path.
func CreateAtomic(fs vfs.FS, path string) (*Atomic, error) {
	return CreateAtomicAs(fs, path, PartPath(path))
}

// CreateAtomicAs creates the file that will be at path, under the name part in the same directory.
// It is for writers that may write to one path at the same time, each with its own part.
func CreateAtomicAs(fs vfs.FS, path, part string) (*Atomic, error) {
	f, err := fs.Create(part, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, Cause(err))
	}
	return &Atomic{File: f, fs: fs, path: path, part: part}, nil
}

// Write writes to the file. An error does not name the file, since its present name means nothing
// to a user; the caller adds the final one.
func (f *Atomic) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, Cause(err)
}

// Cause returns err without the name of the file on which an operation of the system failed, if err
// begins with that.
func Cause(err error) error {
	switch e := err.(type) {
	case *os.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

// Commit gives the file its name. If it returns no error, the file is durable. After an error
// nothing is left under the temporary name; the final name stands for what it stood for before, or
// for the whole new file if only its directory could not be synced.
func (f *Atomic) Commit() error {
	err := f.Sync()
	if err != nil {
		err = fmt.Errorf("sync %s: %w", f.path, Cause(err))
	}
	return f.commitSynced(err)
}

// CommitContext does what Commit does, but does not wait for the disk once ctx is done. Then the
// file is removed, and closed as soon as it is synced.
func (f *Atomic) CommitContext(ctx context.Context) error {
	synced := make(chan error, 1)
	go func() {
		defer bug.Catch()
		synced <- f.Sync()
	}()
	select {
	case err := <-synced:
		if err != nil {
			err = fmt.Errorf("sync %s: %w", f.path, Cause(err))
		}
		return f.commitSynced(err)
	case <-ctx.Done():
		f.done = true
		go func() {
			defer bug.Catch()
			_ = errors.Join(<-synced, f.Close()) // of a file that is removed
		}()
		return errors.Join(ctx.Err(), f.fs.Remove(f.part))
	}
}

// commitSynced commits a file, given the result of syncing it.
func (f *Atomic) commitSynced(synced error) error {
	f.done = true
	err := errors.Join(synced, f.Close())
	if err == nil {
		if err = f.fs.Rename(f.part, f.path); err != nil {
			err = fmt.Errorf("name %s: %w", f.path, Cause(err))
		}
	}
	if err != nil {
		return errors.Join(err, f.fs.Remove(f.part))
	}
	return SyncDir(f.fs, f.fs.PathDir(f.path))
}

// Abort removes the file. After Commit it does nothing.
func (f *Atomic) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.Close(), f.fs.Remove(f.part))
}

// pieceBytes is how much is written together, from a copy, since a vfs.File may change what it is
// given.
const pieceBytes = 1 << 20

// WriteAtomic writes a file of these parts, which it does not change; it appears whole or not at
// all. An error names the offset where writing ended.
func WriteAtomic(fs vfs.FS, path string, parts ...[]byte) error {
	f, err := CreateAtomic(fs, path)
	if err != nil {
		return err
	}
	largest := 0
	for _, b := range parts {
		largest = max(largest, len(b))
	}
	offset, piece := int64(0), make([]byte, min(largest, pieceBytes))
	for _, b := range parts {
		for len(b) > 0 {
			n, err := f.Write(piece[:copy(piece, b)])
			offset += int64(n)
			if err != nil {
				return errors.Join(fmt.Errorf("write %s at offset %d: %w", f.path, offset, err),
					f.Abort())
			}
			b = b[n:]
		}
	}
	return f.Commit()
}

// SyncDir makes the names in a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}
