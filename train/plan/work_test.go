package plan

import (
	"math"
	"testing"
)

// TestShared holds when works end that share cores, against times found by hand.
func TestShared(t *testing.T) {
	for _, c := range []struct {
		what  string
		cores float64
		works []Work
		want  []float64
	}{
		{"nothing", 2, nil, nil},
		{"no work", 2, []Work{{}, {1, 1}}, []float64{0, 1}},
		{"enough cores", 2, []Work{{3, 3}, {2, 1}}, []float64{3, 2}},
		{"a step on all cores, and a device", 2, []Work{{1, 2}, {4, 0}}, []float64{1, 4}},
		{"two steps on all cores", 2, []Work{{1, 2}, {1, 2}}, []float64{2, 2}},
		{"one longer", 2, []Work{{1, 2}, {2, 4}}, []float64{2, 3}},
		{"three on one core", 1, []Work{{1, 1}, {2, 2}, {3, 3}}, []float64{3, 5, 6}},
		// Slowed k times the second takes (1+k)/2, and both have 2/k + 0.5/((1+k)/2) of two
		// cores: k is (1+√17)/4.
		{"half a device", 2, []Work{{1, 2}, {1, 0.5}}, []float64{1.25, 1.140388}},
	} {
		got := shared(c.cores, c.works...)
		for i := range c.want {
			if math.Abs(got[i]-c.want[i]) > 1e-4 {
				t.Errorf("%s: end after %v, want %v", c.what, got, c.want)
				break
			}
		}
	}
}

// TestSharedBounds holds that works which share cores take no less than each alone, nor than their
// computing needs of all cores, nor longer than one after the other.
func TestSharedBounds(t *testing.T) {
	for cores := 1.0; cores < 20; cores *= 1.7 {
		for i := range 200 {
			works := []Work{{float64(i%7) / 3, 0}, {1, 0}, {float64(1+i%3) / 2, 0}}
			sum, cpu, longest := 0.0, 0.0, 0.0
			for k := range works {
				w := &works[k]
				w.CPU = w.Seconds * cores * float64((i/7+3*k)%11) / 10
				sum, cpu, longest = sum+w.Seconds, cpu+w.CPU, max(longest, w.Seconds)
			}
			end := 0.0
			for k, e := range shared(cores, works...) {
				if end = max(end, e); e < works[k].Seconds-1e-6 {
					t.Fatalf("%v on %g cores: %g ends after %g", works, cores, works[k], e)
				}
			}
			if end < max(longest, cpu/cores)-1e-5 || end > sum+1e-5 {
				t.Fatalf("%v on %g cores end after %g", works, cores, end)
			}
		}
	}
}
