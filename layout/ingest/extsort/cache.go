package extsort

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// dropCache tells the kernel that a range of a file will not be read again soon. Under a memory
// cgroup the page cache is charged to the process: what is dropped need not be reclaimed from it
// when memory is short. It is advice only, and does nothing for files in memory.
func dropCache(f vfs.File, off, n int64) {
	if fd := f.Fd(); fd != vfs.InvalidFd && n > 0 {
		_ = unix.Fadvise(int(fd), off, n, unix.FADV_DONTNEED)
	}
}
