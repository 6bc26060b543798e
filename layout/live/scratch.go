package live

import (
	"io"
	"os"
	"strings"

	"gdb/layout/ingest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scratch is a file system whose files below a folder are in memory: what a small commit reads its
// sources to, which need not be durable, and would take a hundred syncs.
type scratch struct {
	vfs.FS
	memory vfs.FS
	dir    string
}

// scratchMost bounds the sources that are read to memory, in bytes; tests have fewer.
var scratchMost = int64(1 << 20)

// inMemory returns a file system whose files below dir are in memory.
func inMemory(fs vfs.FS, dir string) (vfs.FS, error) {
	s := &scratch{fs, vfs.NewMem(), dir}
	return s, s.memory.MkdirAll(dir, 0o755)
}

// fitsMemory reports whether the sources have at most scratchMost bytes. It says no where that
// cannot be told.
func fitsMemory(fs vfs.FS, opt *ingest.Options) bool {
	paths := append([]string{opt.Edges, opt.Nodes, opt.Features, opt.Labels}, opt.Sources...)
	for _, path := range opt.Splits {
		paths = append(paths, path)
	}
	total, found := int64(0), 0
	add := func(path string) bool {
		info, err := fs.Stat(path)
		if err != nil || info.IsDir() || !info.Mode().IsRegular() {
			return false
		}
		total, found = total+info.Size(), found+1
		return total <= scratchMost
	}
	for _, path := range paths {
		if path == "" || add(path) {
			continue
		}
		names, err := fs.List(path)
		if err != nil {
			return false
		}
		for _, name := range names {
			if !add(fs.PathJoin(path, name)) {
				return false
			}
		}
	}
	return found > 0
}

// at returns the file system of a path.
func (s *scratch) at(path string) vfs.FS {
	if strings.HasPrefix(path, s.dir) {
		return s.memory
	}
	return s.FS
}

// Unwrap returns nil, since the file system below lacks the files in memory.
func (s *scratch) Unwrap() vfs.FS { return nil }

// Create calls the file system that has the path.
func (s *scratch) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.at(name).Create(name, category)
}

// Link calls the file system that has the path.
func (s *scratch) Link(from, to string) error { return s.at(from).Link(from, to) }

// Open calls the file system that has the path.
func (s *scratch) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return s.at(name).Open(name, opts...)
}

// OpenReadWrite calls the file system that has the path.
func (s *scratch) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	return s.at(name).OpenReadWrite(name, category, opts...)
}

// OpenDir calls the file system that has the path.
func (s *scratch) OpenDir(name string) (vfs.File, error) { return s.at(name).OpenDir(name) }

// Remove calls the file system that has the path.
func (s *scratch) Remove(name string) error { return s.at(name).Remove(name) }

// RemoveAll calls the file system that has the path.
func (s *scratch) RemoveAll(name string) error { return s.at(name).RemoveAll(name) }

// Rename calls the file system that has the path.
func (s *scratch) Rename(from, to string) error { return s.at(from).Rename(from, to) }

// ReuseForWrite calls the file system that has the path.
func (s *scratch) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.at(from).ReuseForWrite(from, to, category)
}

// MkdirAll calls the file system that has the path.
func (s *scratch) MkdirAll(dir string, mode os.FileMode) error {
	return s.at(dir).MkdirAll(dir, mode)
}

// Lock calls the file system that has the path.
func (s *scratch) Lock(name string) (io.Closer, error) { return s.at(name).Lock(name) }

// List calls the file system that has the path.
func (s *scratch) List(dir string) ([]string, error) { return s.at(dir).List(dir) }

// Stat calls the file system that has the path.
func (s *scratch) Stat(name string) (vfs.FileInfo, error) { return s.at(name).Stat(name) }

// GetDiskUsage tells of the disk.
func (s *scratch) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	return s.FS.GetDiskUsage(path)
}
