// Package measured keeps what was measured of a machine in files of the user, by name, so that it
// is not measured again by the next process. A process that writes a file replaces it whole: of two
// that write at the same time one loses its record, and measures again.
package measured

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"gdb/internal/atomicfile"
	"gdb/internal/smallfile"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// Most bounds the records of a file, which several machines may share: the oldest give way.
	Most = 64

	bytesMost = 1 << 20 // of a file
)

// Record is what was measured, at some time.
type Record interface{ When() time.Time }

// Read returns the records of a file by name; none if it is not there. A file of something else is
// an error that says where it is.
func Read[T Record](fs vfs.FS, path string) (map[string]T, error) {
	all := map[string]T{}
	b, err := smallfile.Read(fs, path, bytesMost)
	if oserror.IsNotExist(err) {
		return all, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, &all); err != nil {
			err = fmt.Errorf("read %s: %w; delete it to have one made anew", path, err)
		}
	}
	return all, err
}

// Write replaces a file, and makes its directory if need be. Of more than Most records the oldest
// are taken out of all.
func Write[T Record](fs vfs.FS, path string, all map[string]T) error {
	for len(all) > Most {
		delete(all, slices.MinFunc(slices.Sorted(maps.Keys(all)), func(a, b string) int {
			return all[a].When().Compare(all[b].When())
		}))
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	dir := fs.PathDir(path)
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	// Until it is whole it has a name of its own, since another process may write one too.
	to, err := atomicfile.CreateAs(fs, path, fmt.Sprintf("%s.%d", path, os.Getpid()))
	if err != nil {
		return err
	}
	if _, err := to.Write(append(b, '\n')); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), to.Abort())
	}
	return to.Commit()
}
