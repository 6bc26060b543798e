package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// RecordsMost bounds the records of a file, which several machines may share. The oldest are
	// dropped.
	RecordsMost = 64

	recordsBytesMost = 1 << 20 // largest size of a file
)

// Record is a measurement, and when it was made.
type Record interface{ When() time.Time }

// ReadRecords returns the records of a file by name, none if the file does not exist. If the file
// holds something else, the error names it.
func ReadRecords[T Record](fs vfs.FS, path string) (map[string]T, error) {
	all := map[string]T{}
	b, err := ReadSmall(fs, path, recordsBytesMost)
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

// WriteRecords replaces a file, and makes its directory if needed. It removes the oldest records
// from all if there are more than RecordsMost.
func WriteRecords[T Record](fs vfs.FS, path string, all map[string]T) error {
	for len(all) > RecordsMost {
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
	// It has a temporary name of its own, since another process may write the file too.
	to, err := CreateAtomicAs(fs, path, fmt.Sprintf("%s.%d", path, os.Getpid()))
	if err != nil {
		return err
	}
	if _, err := to.Write(append(b, '\n')); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), to.Abort())
	}
	return to.Commit()
}
