package runtimefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gdb/internal/files"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DirPrefix begins the names of directories of runtime files in the store's prep/.
const DirPrefix = "superbatch-"

// WorkDir is a directory of runtime files. Its owner holds the lock of its file LOCK, so a
// directory that can be locked belongs to a process that died.
type WorkDir struct {
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
		if !strings.HasPrefix(e, DirPrefix) {
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

// OpenDir makes and locks a directory of this name in prep. The caller calls Remove.
func OpenDir(fs vfs.FS, prep, name string) (*WorkDir, error) {
	path := fs.PathJoin(prep, DirPrefix+name)
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
func lockDir(fs vfs.FS, path string) (*WorkDir, error) {
	l, err := files.Lock(fs, fs.PathJoin(path, "LOCK"))
	if err != nil {
		return nil, err
	}
	return &WorkDir{fs: fs, Path: path, lock: l}, nil
}

// Remove deletes the directory and releases its lock.
func (d *WorkDir) Remove() error {
	err := d.fs.RemoveAll(d.Path)
	if err != nil {
		err = fmt.Errorf("superbatch: remove %s: %w", d.Path, err)
	}
	return errors.Join(err, d.lock.Close())
}
