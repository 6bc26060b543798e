package superbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gdb/internal/rng"
	"gdb/sample/superbatch/runtimefile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TimeWriting writes this number of bytes to a runtime file in prep, in records as a sweep does,
// and returns the time until they were synced to disk. The file is removed.
func TimeWriting(fs vfs.FS, prep, name string, bytes int64) (took time.Duration, err error) {
	d, err := runtimefile.OpenDir(fs, prep, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Remove()) }()
	w, err := runtimefile.Identity{FS: fs, Dir: d.Path}.Create(runtimefile.KindRows)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	// Not zeros, which some disks need not write.
	payload, draw := make([]byte, bufferMost), rng.NewStream(1)
	for i := 0; i < len(payload); i += 8 {
		binary.LittleEndian.PutUint64(payload[i:], draw.Uint64())
	}
	begun := time.Now()
	for w.Size < bytes {
		if _, err := w.Append(payload); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	if err := w.File.Sync(); err != nil {
		return 0, fmt.Errorf("superbatch: sync %s: %w", w.ID.Path(w.Kind), err)
	}
	return time.Since(begun), nil
}
