package result

import (
	"math"
	"testing"
)

// TestFigures holds that boxes write numbers as people read them.
func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 1.2e6: "1,200,000",
		-1234567.8: "-1,234,568", 1234.56: "1,234.6", 1000: "1,000", 99999.6: "100,000",
		999.996: "1000", 1.2e-5: "0.000012", -1.23456789e-7: "-0.00000012346",
		1e15:        "1,000,000,000,000,000",
		math.Inf(1): "+Inf"} {
		if got := boxCell(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := boxCell(float32(1e6)); got != "1,000,000" {
		t.Error(got)
	}
}
