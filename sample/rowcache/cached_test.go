package rowcache

import (
	"testing"
)

func TestCacheRows(t *testing.T) {
	for _, dim := range []int{1, 3, 100, 128} {
		for _, slot := range []int{0, 8} {
			last := 0
			for bytes := int64(0); bytes < 1<<20; bytes += 777 {
				n := RowsIn(bytes, dim, slot)
				size := func(n int) int64 { return int64(n*(4*dim+4+slot)) + slotIndexBytes(n) }
				if n > 0 && size(n) > bytes {
					t.Fatalf("%d rows of %d take %d bytes, not %d", n, dim, size(n), bytes)
				}
				if size(n+1) <= bytes || n < last {
					t.Fatalf("%d rows of %d in %d bytes: one more fits", n, dim, bytes)
				}
				last = n
			}
		}
	}
}
