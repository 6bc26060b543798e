package cachesim

import (
	"testing"

	"gdb/layout"
	"gdb/sample/rowcache"
)

// Each policy allocates what its SlotBytes say, and little besides.
func TestSlotBytes(t *testing.T) {
	for _, slots := range []int{1, 3, 10, 1000, 100_003} {
		lru, s3, clock := &lru{}, &s3fifo{}, &clockPolicy{}
		for p, size := range map[rowcache.Policy]func() int{
			lru: func() int { return 4 * (len(lru.next) + len(lru.prev)) },
			s3: func() int {
				return 4*len(s3.newer) + len(s3.uses) + s3.ghost.Bytes()
			},
			clock: func() int { return len(clock.asked) },
		} {
			p.Start(make([]layout.NodeID, slots))
			if got, want := size(), p.SlotBytes()*slots; got > want+16 || got < want*9/10 {
				t.Errorf("%s takes %d bytes for %d slots, SlotBytes say %d", p.Name(), got, slots,
					want)
			}
		}
	}
}
