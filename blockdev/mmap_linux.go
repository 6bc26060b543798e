package blockdev

import (
	"errors"
	"fmt"
	"os"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of the file behind fd, and advises the kernel of random access: by
// default a fault reads as much as read-ahead allows, 8 MiB on some disks, which makes it hundreds
// of times slower.
func mapFile(fd int, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%d bytes do not fit in the address space", size)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor: %w", err)
	}
	f := os.NewFile(uintptr(own), "mapped")
	m, err := mmap.MapRegion(f, int(size), mmap.RDONLY, 0, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	if err := unix.Madvise(m, unix.MADV_RANDOM); err != nil {
		return nil, errors.Join(fmt.Errorf("advise random access: %w", err), m.Unmap())
	}
	return m, nil
}

func unmap(b []byte) error {
	m := mmap.MMap(b)
	return m.Unmap()
}
