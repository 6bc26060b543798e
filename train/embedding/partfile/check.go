package partfile

import (
	"fmt"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Check returns an error unless all files to which the records of a checkpoint refer exist and
// have the right size. record refers to vectors and the optimizer's arrays, best only to vectors.
// Either may be nil.
func Check(fs vfs.FS, path string, spec Spec, record, best []byte) error {
	all := spec.files()
	for _, c := range []struct {
		record []byte
		files  []file
	}{{record, all}, {best, all[:1]}} {
		if c.record == nil {
			continue
		}
		generations, err := decode(&spec, c.record)
		if err != nil {
			return err
		}
		for part, generation := range generations {
			for _, f := range c.files {
				if generation == 0 { // it is as it began, and in no file
					break
				}
				if err := checkFile(fs, fs.PathJoin(path, name(part, generation, f.kind)),
					spec.fileBytes(part, &f)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkFile returns an error unless a file exists and has that many bytes.
func checkFile(fs vfs.FS, path string, bytes int64) error {
	info, err := fs.Stat(path)
	switch {
	case oserror.IsNotExist(err):
		return damage(path, "the file is missing")
	case err != nil:
		return fmt.Errorf("train: %w", err)
	case info.Size() != bytes:
		return damage(path, "it has %d bytes, want %d", info.Size(), bytes)
	}
	return nil
}
