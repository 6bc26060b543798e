package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrRefused is wrapped if a file of a store is not a regular file, or is a link where links are
// not allowed.
var ErrRefused = errors.New("refused")

// guard opens regular files only, and follows no links in some directories of a store.
type guard struct {
	vfs.FS
	unlinked []string // directories in which nothing may be a link, themselves included
}

// Guard returns fs for the store in dir. Files that are opened must be regular. A link to a regular
// file counts as one, so that large files of a store may be on another disk, but not in the folders
// of dir that unlinked names, where files are written too. A file system in memory, which has only
// files, is returned as it is; so is a guarded one, unless unlinked names folders.
func Guard(fs vfs.FS, dir string, unlinked ...string) vfs.FS {
	if vfs.Root(fs) != vfs.Default {
		return fs
	}
	if g, guarded := fs.(*guard); guarded {
		if len(unlinked) == 0 {
			return fs
		}
		fs = g.FS
	}
	g := &guard{FS: fs}
	for _, name := range unlinked {
		g.unlinked = append(g.unlinked, filepath.Join(dir, name))
	}
	return g
}

// Behind returns the file system that Guard was given, for files that belong to no store.
func Behind(fs vfs.FS) vfs.FS {
	if g, guarded := fs.(*guard); guarded {
		return g.FS
	}
	return fs
}

// Unwrap returns the file system behind the guard.
func (g *guard) Unwrap() vfs.FS { return g.FS }

// refused returns the error for a path that is what the text says.
func refused(path, what string) error {
	return fmt.Errorf("%s is %s, and is %w", path, what, ErrRefused)
}

// links returns an error if part of a path is a link, from the unlinked directory that contains it
// on.
func (g *guard) links(paths ...string) error {
	for _, path := range paths {
		for _, dir := range g.unlinked {
			rel, err := filepath.Rel(dir, path)
			if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
				continue
			}
			for part := filepath.Clean(path); len(part) >= len(dir); part = filepath.Dir(part) {
				info, err := os.Lstat(part) //lint:os a vfs.FS follows links
				if err == nil && info.Mode()&os.ModeSymlink != 0 {
					return refused(part, "a link")
				}
			}
		}
	}
	return nil
}

// regular returns an error if opening path would wait, or is not opening a file. It returns nil if
// path does not exist.
func (g *guard) regular(path string) error {
	if err := g.links(path); err != nil {
		return err
	}
	info, err := g.FS.Stat(path)
	if errors.Is(err, syscall.ELOOP) {
		return refused(path, "a link in a circle")
	}
	if err != nil || info.Mode().IsRegular() {
		return nil
	}
	what := "no regular file"
	switch mode := info.Mode(); {
	case mode.IsDir():
		what = "a directory"
	case mode&os.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&os.ModeDevice != 0:
		what = "a device"
	case mode&os.ModeSocket != 0:
		what = "a socket"
	}
	return refused(path, what)
}

// Open opens a regular file.
func (g *guard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := g.regular(name); err != nil {
		return nil, err
	}
	return g.FS.Open(name, opts...)
}

// OpenReadWrite opens a regular file, or makes it.
func (g *guard) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	if err := g.regular(name); err != nil {
		return nil, err
	}
	return g.FS.OpenReadWrite(name, category, opts...)
}

// Create creates a file. Whatever was at its path is removed first, also a link.
func (g *guard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.links(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return g.FS.Create(name, category)
}

// ReuseForWrite renames a file and opens it for writing from the start.
func (g *guard) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.links(from, to); err != nil {
		return nil, err
	}
	return g.FS.ReuseForWrite(from, to, category)
}

// Link makes another name for a file.
func (g *guard) Link(from, to string) error {
	if err := g.links(from, to); err != nil {
		return err
	}
	return g.FS.Link(from, to)
}

// Remove removes a file or an empty directory. Of a link, it removes the link.
func (g *guard) Remove(name string) error {
	if err := g.links(filepath.Dir(name)); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

// RemoveAll removes a directory with its contents. Of a link, it removes the link.
func (g *guard) RemoveAll(name string) error {
	if err := g.links(filepath.Dir(name)); err != nil {
		return err
	}
	return g.FS.RemoveAll(name)
}

// Rename renames a file.
func (g *guard) Rename(from, to string) error {
	if err := g.links(from, filepath.Dir(to)); err != nil {
		return err
	}
	return g.FS.Rename(from, to)
}

// MkdirAll makes a directory and those above it.
func (g *guard) MkdirAll(dir string, perm os.FileMode) error {
	if err := g.links(dir); err != nil {
		return err
	}
	return g.FS.MkdirAll(dir, perm)
}

// Lock locks a file.
func (g *guard) Lock(name string) (io.Closer, error) {
	if err := g.regular(name); err != nil {
		return nil, err
	}
	return g.FS.Lock(name)
}

// List lists a directory.
func (g *guard) List(dir string) ([]string, error) {
	if err := g.links(dir); err != nil {
		return nil, err
	}
	return g.FS.List(dir)
}

// OpenDir opens a directory, to sync it.
func (g *guard) OpenDir(name string) (vfs.File, error) {
	if err := g.links(name); err != nil {
		return nil, err
	}
	return g.FS.OpenDir(name)
}

// Stat describes a file, or returns an error for a link where links are not allowed.
func (g *guard) Stat(name string) (vfs.FileInfo, error) {
	if err := g.links(name); err != nil {
		return nil, err
	}
	return g.FS.Stat(name)
}
