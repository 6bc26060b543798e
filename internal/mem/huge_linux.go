package mem

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. Advice only: without them the arena works, slower.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// populate gives pages memory, and returns whether this system can: Linux can from 5.14 on.
func populate(b []byte) bool { return unix.Madvise(b, unix.MADV_POPULATE_WRITE) == nil }
