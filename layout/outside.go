package layout

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrInside is returned if a file would be written inside of a store.
var ErrInside = errors.New("it is inside of the store")

// CheckOutside returns an error if path, a file or folder that a command writes for its user, is
// inside of a store, where it would be taken for a part of the store, or removed. It follows links.
func CheckOutside(fs vfs.FS, path string) error {
	at := path
	if vfs.Root(fs) == vfs.Default {
		if abs, err := filepath.Abs(path); err == nil {
			at = filepath.Join(existing(filepath.Dir(abs)), filepath.Base(abs))
		}
	}
	for dir := fs.PathDir(at); ; dir = fs.PathDir(dir) {
		_, err := fs.Stat(fs.PathJoin(dir, "catalog", "SEAL"))
		if err == nil || isUnfinished(fs, dir) || hasData(fs, dir) {
			return fmt.Errorf("%s: %w %s: name a place outside of it", path, ErrInside, dir)
		}
		if dir == fs.PathDir(dir) {
			return nil
		}
	}
}

// existing returns dir with links resolved, as far as it exists.
func existing(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil || dir == filepath.Dir(dir) {
		return cmp.Or(real, dir)
	}
	return filepath.Join(existing(filepath.Dir(dir)), filepath.Base(dir))
}
