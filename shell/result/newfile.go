package result

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"gdb/internal/files"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CreateFile begins a file that will be at path. If several processes write to one name at a time,
// the contents come from the one that finishes last. Errors name path, which the user knows, and
// say what to do.
func CreateFile(fs vfs.FS, path string) (*files.Atomic, error) {
	name, err := nameBeside(fs, path, ".part")
	if err != nil {
		return nil, err
	}
	f, err := files.CreateAtomicAs(fs, path, name)
	return f, explainCreate(fs, path, err)
}

// createBeside begins a file beside path. Its name is the name of path, a part that no one else
// has, and an ending.
func createBeside(fs vfs.FS, path, ending string) (f vfs.File, name string, err error) {
	if name, err = nameBeside(fs, path, ending); err != nil {
		return nil, "", err
	}
	f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
	return f, name, explainCreate(fs, path, err)
}

// begun counts the files that this process has begun.
var begun atomic.Uint64

// nameBeside returns a name in the folder of path that no one else has. It fails if path is a
// folder or lies in a store.
func nameBeside(fs vfs.FS, path, ending string) (string, error) {
	if err := layout.CheckOutside(fs, path); err != nil {
		return "", err
	}
	if info, err := fs.Stat(path); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a folder: name a file", path)
	}
	return fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), begun.Add(1), ending), nil
}

// explainCreate adds to an error what to do about a file that cannot be made beside path. It
// returns nil if err is nil.
func explainCreate(fs vfs.FS, path string, err error) error {
	if err == nil {
		return nil
	}
	if of := errors.Unwrap(err); of != nil {
		err = of // without the temporary name, which means nothing to the user
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: no file can be made in the folder %s: name one that exists and that "+
			"you may write to", err, fs.PathDir(path))
	}
	return fmt.Errorf("%s: %w", path, err)
}
