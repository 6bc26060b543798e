package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"gdb/internal/bug"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// newFile is a file that is written beside its name and takes it once it is whole and on disk: who
// looks there finds what was there before, or all of it. Whoever creates it commits or discards it.
// Of several who write to one name at a time, the last to finish gives it its contents.
type newFile struct {
	vfs.File
	fs         vfs.FS
	path, part string
}

// createNewFile begins a file that will be at path.
func createNewFile(fs vfs.FS, path string) (*newFile, error) {
	f, part, err := createBeside(fs, path, ".part")
	if err != nil {
		return nil, err
	}
	return &newFile{f, fs, path, part}, nil
}

// begun counts the files that this process began.
var begun atomic.Uint64

// createBeside begins a file whose name is that of path, what no one else has, and an ending. Its
// errors are of path, which the user knows, and say what to do.
func createBeside(fs vfs.FS, path, ending string) (f vfs.File, name string, err error) {
	if info, err := fs.Stat(path); err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("%s is a folder: name a file", path)
	}
	name = fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), begun.Add(1), ending)
	if f, err = fs.Create(name, vfs.WriteCategoryUnspecified); err == nil {
		return f, name, nil
	}
	var of *os.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	folder := fs.PathDir(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: no file can be made in the folder %s: name one that exists and that "+
			"you may write to", err, folder)
	}
	return nil, "", fmt.Errorf("%s: %w", path, err)
}

// commit gives the file its name. After an error nothing is left beside it; the name then stands
// for what it stood for before, or for the whole file if only its directory could not be synced.
func (f *newFile) commit(ctx context.Context) error {
	synced := make(chan error, 1)
	go func() {
		defer bug.Catch()
		synced <- f.Sync()
	}()
	var err error
	select {
	case err = <-synced:
		if e := f.Close(); err == nil {
			err = e
		}
	case <-ctx.Done(): // a disk may take seconds for what was written
		err = ctx.Err()
		go func() {
			defer bug.Catch()
			_ = errors.Join(<-synced, f.Close()) // of a file that is removed
		}()
	}
	if err == nil {
		err = f.fs.Rename(f.part, f.path)
	}
	if err != nil {
		return errors.Join(err, f.fs.Remove(f.part))
	}
	dir, err := f.fs.OpenDir(f.fs.PathDir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// discard leaves nothing behind.
func (f *newFile) discard() error {
	return errors.Join(f.Close(), f.fs.Remove(f.part))
}
