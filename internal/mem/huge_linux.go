package mem

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. Advice only: without them the arena works, slower.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
