package mem

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// sharedFile makes a file of n bytes that has no name, and that nobody can resize.
func sharedFile(n int64) (fd int, err error) {
	fd, err = unix.MemfdCreate("gdb", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	if err = unix.Ftruncate(fd, n); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// emptyShared frees the pages of shared memory, which is zero afterwards.
func emptyShared(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_REMOVE); err != nil {
		return fmt.Errorf("mem: free shared pages: %w", err)
	}
	return nil
}
