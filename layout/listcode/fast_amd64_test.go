package listcode

import "testing"

// TestWithoutFastKernels: a processor that lacks the instructions of the fast kernels reads the
// same.
func TestWithoutFastKernels(t *testing.T) {
	defer func(before bool) { fast = before }(fast)
	fast = false
	t.Run("lists", TestListsAreWhatTheyWere)
	t.Run("counts", TestCounts)
	t.Run("moved", TestMovedLists)
	t.Run("places", TestPlaces)
	t.Run("ones", TestSelectBit)
	t.Run("kernels", TestKernels)
}
