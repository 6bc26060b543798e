//go:build cuda && cgo && linux

package cuda

import (
	"strings"
	"testing"
)

func TestParametersOf(t *testing.T) {
	const ptx = `.version 7.5
.visible .entry none()
.visible .entry two(
	.param .u64 two_0,
	.param .f64 two_1
)
.visible .entry aligned(
	.param .u64 .ptr .align 4 aligned_0
)
.visible .entry narrow(
	.param .u64 narrow_0,
	.param .u32 narrow_1
)
.visible .entry open(`
	for name, want := range map[string]int{"none": 0, "two": 2, "aligned": 1} {
		if n, err := parametersOf(ptx, name); n != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, n, err, want)
		}
	}
	for name, want := range map[string]string{"open": "no list", "missing": "no list",
		"narrow": `parameter ".param .u32 narrow_1" is not of 8`} {
		if _, err := parametersOf(ptx, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
