package extsort

import (
	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dropCache tells the kernel that a range of a file will not be read again soon. Under a memory
// cgroup the page cache is charged to the process: what is dropped need not be reclaimed from it
// when memory is short. It is advice only, and does nothing for files in memory.
func dropCache(f vfs.File, off, n int64) {
	if n > 0 {
		_ = blockdev.DropCache(f, off, n)
	}
}
