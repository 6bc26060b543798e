package probe

import (
	"errors"
	"fmt"

	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// storageShare and storageMost bound the runtime files of superbatches: one part in
	// storageShare of the free disk, and storageMost bytes.
	storageShare, storageMost = 4, 64 << 30
	// storageUnknown bounds them on a file system that does not report its free space.
	storageUnknown = 1 << 30
)

// storage returns how many bytes of runtime files the store's disk has room for.
func storage(s *layout.Store) (int64, error) {
	usage, err := s.FS().GetDiskUsage(s.Path())
	if errors.Is(err, vfs.ErrUnsupported) {
		return storageUnknown, nil
	}
	if err != nil {
		return 0, fmt.Errorf("probe: ask for the free space of %s: %w", s.Path(), err)
	}
	return int64(min(usage.AvailBytes/storageShare, storageMost)), nil
}
