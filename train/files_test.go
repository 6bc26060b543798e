package train

import (
	"gdb/internal/files"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readAll reads a file of a test whole.
func readAll(fs vfs.FS, path string) ([]byte, error) { return files.ReadSmall(fs, path, 1<<30) }

// writeSynced writes a file of a test, in its place.
func writeSynced(fs vfs.FS, path string, parts ...[]byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	for _, b := range parts {
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return f.Close()
}
