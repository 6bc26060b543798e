package superbatch

import (
	"math"
	"testing"
)

// TestExtent holds that as many batches are found as there is room for, also where a superbatch's
// mean number of batches is a fraction.
func TestExtent(t *testing.T) {
	const rows = 1000 // that a batch misses
	for steps := 1.0; steps < 130; steps += 0.37 {
		for at := 0.0; at < steps; at += 7 {
			o := &Outlook{Steps: steps,
				Missed: func(batches float64) float64 { return rows * batches },
				Room: SweepRoom{Memory: 64 << 20, RowBytes: 64, BatchNodes: 1 << 10,
					Storage: 10.5 * rows * (64 + 9)}}
			n := o.extent(at)
			fits := func(n float64) bool {
				return o.Room.Fits(uint64(o.during(at, n)), int(math.Ceil(n)))
			}
			if left := steps - at; n > left || !fits(n) || n < left && fits(min(n+1, left)) {
				t.Fatalf("%v batches of %v from %v: not just what there is room for", n, steps,
					at)
			}
		}
	}
}
