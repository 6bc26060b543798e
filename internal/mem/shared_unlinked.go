package mem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// unlinkedFile makes a file of n bytes in the folder for temporary files and removes its name, for
// systems without memfd_create. Holders of the descriptor could resize it; those of gdb do not.
func unlinkedFile(n int64) (fd int, err error) {
	f, err := os.CreateTemp("", "gdb-shared-")
	if err != nil {
		return -1, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil {
		return -1, fmt.Errorf("remove the name of a shared file: %w", err)
	}
	if err := f.Truncate(n); err != nil {
		return -1, err
	}
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}
