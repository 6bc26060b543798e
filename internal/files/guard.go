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

// ErrRefused says that what stands in place of a file of a store is no regular file, or a link
// where none may be.
var ErrRefused = errors.New("refused")

// guard opens regular files only, and follows no links in some directories of a store.
type guard struct {
	vfs.FS
	unlinked []string // directories in which nothing may be a link, themselves included
}

// Guard returns fs for the store in dir. Files that are opened must be regular. A link to a regular
// file is one, so that large files of a store may be kept on another disk, but not in the folders
// of dir that unlinked names, where files are written too. A file system in memory, where nothing
// but files is, is returned as it is; so is one that is guarded, unless unlinked names folders.
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

// Behind returns the file system that Guard was given, for files that are no store's.
func Behind(fs vfs.FS) vfs.FS {
	if g, guarded := fs.(*guard); guarded {
		return g.FS
	}
	return fs
}

// Unwrap returns the file system behind.
func (g *guard) Unwrap() vfs.FS { return g.FS }

// refused is the error of a path.
func refused(path, what string) error {
	return fmt.Errorf("%s is %s, and is %w", path, what, ErrRefused)
}

// links fails if a part of path is a link, from the unlinked directory on that it is in.
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

// regular fails if path is something that opening it would wait for, or change. That it is not
// there is no error here.
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

// Create makes a file anew; what stands there is removed first, a link too.
func (g *guard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.links(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return g.FS.Create(name, category)
}

// ReuseForWrite renames a file and opens it to be written anew.
func (g *guard) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.links(from, to); err != nil {
		return nil, err
	}
	return g.FS.ReuseForWrite(from, to, category)
}

// Link makes another name of a file.
func (g *guard) Link(from, to string) error {
	if err := g.links(from, to); err != nil {
		return err
	}
	return g.FS.Link(from, to)
}

// Remove removes a file or an empty directory, and of a link the link.
func (g *guard) Remove(name string) error {
	if err := g.links(filepath.Dir(name)); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

// RemoveAll removes a directory with all in it, and of a link the link.
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

// Stat tells about a file, and of a link where it may not be nothing.
func (g *guard) Stat(name string) (vfs.FileInfo, error) {
	if err := g.links(name); err != nil {
		return nil, err
	}
	return g.FS.Stat(name)
}
