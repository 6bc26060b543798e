package rowcache

import (
	"testing"

	"gdb/layout"
)

// TestSlotBytes: the policy allocates what its SlotBytes say.
func TestSlotBytes(t *testing.T) {
	for _, slots := range []int{1, 3, 10, 1000, 100_003} {
		p := &sieve{}
		p.Start(make([]layout.NodeID, slots))
		if got, want := 4*len(p.newer)+len(p.asked), p.SlotBytes()*slots; got != want {
			t.Errorf("%s takes %d bytes for %d slots, SlotBytes say %d", p.Name(), got, slots, want)
		}
	}
}
