package rowfile

import (
	"errors"
	"fmt"
	"time"

	"gdb/internal/files"
	"gdb/layout"

	"github.com/cockroachdb/errors/oserror"
)

// Made reports whether a file of rows is at a path of the store, without its extension.
func Made(s *layout.Store, path string) (bool, error) {
	_, err := s.FS().Stat(s.Path(path + ".rows"))
	if oserror.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// Make makes a file of rows, computed from the store, at a path in prep/, without its extension:
// write writes it to PATH.part, and then it gets its name. Nobody else makes it meanwhile.
func Make(s *layout.Store, path string, write func() error) (took time.Duration, err error) {
	begun, fs, prefix := time.Now(), s.FS(), s.Path(path)
	if err := fs.MkdirAll(s.Path("prep"), 0o755); err != nil {
		return 0, err
	}
	lock, err := files.Lock(fs, prefix+".lock")
	if errors.Is(err, files.ErrLockHeld) {
		return 0, fmt.Errorf("another training makes %s.rows now: wait until it has begun its "+
			"first epoch (%w)", path, err)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, fs.Remove(prefix+".lock"), lock.Close()) }()
	if err := write(); err != nil {
		return 0, errors.Join(err, Remove(s, path+".part"))
	}
	for _, ext := range []string{".crc", ".rows"} { // the file that is looked for is last
		if err := fs.Rename(prefix+".part"+ext, prefix+ext); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), files.SyncDir(fs, s.Path("prep"))
}

// Remove removes a file of rows, if it exists.
func Remove(s *layout.Store, path string) error {
	var all error
	for _, ext := range []string{".rows", ".crc"} {
		if err := s.FS().Remove(s.Path(path + ext)); err != nil && !oserror.IsNotExist(err) {
			all = errors.Join(all, err)
		}
	}
	return all
}
