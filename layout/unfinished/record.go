// Package unfinished keeps the record of a commit to a store while it is made of files, by which a
// killed one is known: it goes on where it was, or is named and removed.
package unfinished

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/files"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/steps"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Record says of what a commit is made, and to which snapshot of the store.
type Record struct {
	Snapshot uint64 // of the store before
	Options  string // fingerprint of how the files are read
	Sources  []steps.SourceFile
}

// bytesMax is the largest record: of some hundred thousand files.
const bytesMax = 64 << 20

// Read returns the record at a path, or nil if there is none.
func Read(fs vfs.FS, path string) (*Record, error) {
	b, err := files.ReadSmall(fs, path, bytesMax)
	if err != nil && oserror.IsNotExist(err) {
		return nil, nil
	}
	r := &Record{}
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// Write writes the record to a path of the form STORE/tmp/FOLDER/NAME, durably.
func (r *Record) Write(fs vfs.FS, path string) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = errors.Join(fs.MkdirAll(fs.PathDir(path), 0o755), files.WriteAtomic(fs, path, b))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp := fs.PathDir(fs.PathDir(path)) // may be new, too
	return errors.Join(steps.SyncDir(fs, tmp), steps.SyncDir(fs, fs.PathDir(tmp)))
}

// Paths returns the files that the commit is made of.
func (r *Record) Paths() (paths []string) {
	for _, s := range r.Sources {
		paths = append(paths, s.Path)
	}
	return paths
}

// CheckSame fails unless another commit would be made of the same files in the same way.
func (r *Record) CheckSame(other *Record) error {
	const do = "give those of the first time, or leave --resume out, which begins anew"
	same := slices.EqualFunc(r.Sources, other.Sources, func(a, b steps.SourceFile) bool {
		return a.Path == b.Path && a.Size == b.Size && a.Modified.Equal(b.Modified)
	})
	switch {
	case !same:
		return input.Usage("--resume: the files are others than those of the commit that was "+
			"stopped, %v, or changed since: %s", r.Paths(), do)
	case r.Options != other.Options:
		return input.Usage("--resume: the options are others than those of the commit that was "+
			"stopped: %s", do)
	}
	return nil
}
