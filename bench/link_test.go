package bench

import (
	"slices"
	"testing"
)

// TestParseBuffers: shares are read, and what is none is refused.
func TestParseBuffers(t *testing.T) {
	got, err := ParseBuffers("1/2, 1/16")
	if err != nil || !slices.Equal(got, []int{2, 16}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, list := range []string{"", "1/1", "1/2,", "2", "1/0", "2/4", "1/-2", "1/x"} {
		if got, err := ParseBuffers(list); err == nil {
			t.Errorf("%q: %v", list, got)
		}
	}
}
