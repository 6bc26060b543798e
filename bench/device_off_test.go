//go:build !(cuda && cgo && linux)

package bench

import (
	"strings"
	"testing"
)

// TestDevicesWithoutCUDA asks a program that was built without CUDA.
func TestDevicesWithoutCUDA(t *testing.T) {
	r, err := Devices(t.Context())
	if err != nil || len(r.Rows) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	row := r.Rows[0]
	why, _ := row["why"].(string)
	if !strings.Contains(why, "go build -tags cuda ./cmd/gdb") {
		t.Errorf("why: %q", why)
	}
	for _, c := range r.Columns {
		if v, there := row[c]; !there || v != nil {
			t.Errorf("%s is %v", c, v)
		}
	}
}
