//go:build cuda && cgo && linux

package bench

import (
	"testing"

	"gdb/internal/cuda/cudatest"
)

// TestDevices measures the device, and then one that fails.
func TestDevices(t *testing.T) {
	m := cudatest.Start(t, "../compute/backend/cuda/kernels/kernels.cu")
	t.Cleanup(func() {
		if n := m.Count("allocations") + m.Count("locked"); n != 0 {
			t.Errorf("%d pieces of memory were not freed", n)
		}
	})
	r, err := Devices(t.Context())
	if err != nil || len(r.Rows) == 0 {
		t.Fatalf("%v, %v", r, err)
	}
	for _, row := range r.Rows {
		for _, c := range []string{"copy_bytes_per_s", "gflops", "tf32_gflops", "call_us",
			"graph_us", "inner_bytes_per_s", "gather_share", "mean_share"} {
			if v, _ := row[c].(float64); !(v > 0) {
				t.Errorf("%s is %v", c, row[c])
			}
		}
		if row["name"] == "" || row["why"] != nil || row["memory_bytes"].(int64) <= 0 {
			t.Errorf("%v", row)
		}
	}
	m.Set(t, "fail_copy", 1)
	r, err = Devices(t.Context())
	if err != nil || len(r.Rows) != 1 || r.Rows[0]["why"] == nil || r.Rows[0]["gflops"] != nil {
		t.Errorf("a device that fails: %v, %v", r, err)
	}
}
