package kernel

import (
	"slices"
	"testing"
)

// TestCopyColumns copies columns, and nothing beside them.
func TestCopyColumns(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 6}
	y := []float32{0, 0, 0, 0, 0, 0, 0, 0}
	CopyColumns(NewPool(2), y, x, Columns{Rows: 2, Count: 2, ToWidth: 4, To: 1, FromWidth: 3,
		From: 1})
	if want := []float32{0, 2, 3, 0, 0, 5, 6, 0}; !slices.Equal(y, want) {
		t.Errorf("got %v, want %v", y, want)
	}
}
