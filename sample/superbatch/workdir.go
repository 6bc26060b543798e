package superbatch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/files"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dirPrefix begins the names of directories of runtime files in the store's prep/.
const dirPrefix = "superbatch-"

// workDir is a directory of runtime files. Its owner holds the lock of its file LOCK, so a
// directory that can be locked belongs to a process that died.
type workDir struct {
	fs   vfs.FS
	Path string
	lock io.Closer
}

// RemoveDead removes from prep the directories of processes that died. prep need not exist.
func RemoveDead(fs vfs.FS, prep string) error {
	entries, err := fs.List(prep)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("superbatch: list %s: %w", prep, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e, dirPrefix) {
			continue
		}
		if dead, err := lockDir(fs, fs.PathJoin(prep, e)); err == nil {
			if err := dead.Remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// openDir makes and locks a directory of this name in prep. The caller calls Remove.
func openDir(fs vfs.FS, prep, name string) (*workDir, error) {
	path := fs.PathJoin(prep, dirPrefix+name)
	if err := fs.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("superbatch: make %s: %w", path, err)
	}
	d, err := lockDir(fs, path)
	if err != nil {
		return nil, fmt.Errorf("superbatch: use %s: %w", path, err)
	}
	return d, nil
}

// lockDir takes the lock of a directory, or returns an error if another process holds it.
func lockDir(fs vfs.FS, path string) (*workDir, error) {
	l, err := files.Lock(fs, fs.PathJoin(path, "LOCK"))
	if err != nil {
		return nil, err
	}
	return &workDir{fs: fs, Path: path, lock: l}, nil
}

// Remove deletes the directory and releases its lock.
func (d *workDir) Remove() error {
	err := d.fs.RemoveAll(d.Path)
	if err != nil {
		err = fmt.Errorf("superbatch: remove %s: %w", d.Path, err)
	}
	return errors.Join(err, d.lock.Close())
}

// remover removes files while other work goes on: a file system takes most of a second to remove a
// file of some GiB. Whoever writes files next calls Wait first, because the bound on storage counts
// these as removed.
type remover struct {
	mu  sync.Mutex // held as long as files are removed
	err error
}

// Begin starts to remove files, once those of earlier calls are removed.
func (r *remover) Begin(remove func() error) {
	r.mu.Lock()
	go func() {
		defer bug.Catch()
		defer r.mu.Unlock()
		r.err = errors.Join(r.err, remove())
	}()
}

// Wait waits until no file is being removed, and returns the errors since the last call.
func (r *remover) Wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.err
	r.err = nil
	return err
}
