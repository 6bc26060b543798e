package superbatch

import (
	"math"
	"testing"

	"gdb/layout/rowfile"
)

// skewedLoad returns a load whose first batches miss most rows. Batch i takes apart[i] seconds if
// it is read apart, and 1 second packed, as long as a step. sweep returns the seconds that a sweep
// for some number of batches takes.
func skewedLoad(apart []float64, sweep func(batches int) float64) func(n float64) Weighed {
	return func(n float64) (w Weighed) {
		for _, s := range apart[:int(n)] {
			w.Add(Costs{Byte: 1, Step: 1}, 1, rowfile.ReadCost{Bytes: int64(s)},
				rowfile.ReadCost{Bytes: 1})
		}
		w.Sweep = sweep(int(n))
		return w
	}
}

// TestPart: a sweep is for all batches, for the first ones if that saves more than a little, or for
// none if reading rows one by one takes no longer.
func TestPart(t *testing.T) {
	even, front := []float64{9, 9, 9, 9, 9, 9, 9, 9}, []float64{90, 40, 2, 1, 1, 1, 1, 1}
	flat := func(seconds float64) func(int) float64 {
		return func(int) float64 { return seconds }
	}
	each := func(batches int) float64 { return 20 + 8*float64(batches) }
	for _, c := range []struct {
		name  string
		apart []float64
		sweep func(int) float64
		free  float64
		ahead bool
		want  float64
	}{
		{"one sweep for all", even, flat(30), 0, false, 8},
		{"a sweep costs more than it saves", even, flat(70), 0, false, 0},
		{"it would cost nothing", even, flat(70), 70, false, 8},
		{"the first ones miss most", front, each, 0, false, 2},
		{"the others save nothing beside training either", front, each, 0, true, 2},
		// 8 + 30 s for all, 4 + 30 s for half and the others 4.9 s apart: 1 % more.
		{"parts take longer", []float64{40, 20, 2, 1.9, 1.9, 1, 1, 1}, flat(30), 0, false, 8},
		// For half 2 + 20 s, the other two 2 s apart; for all 4 + 20.5 s: 2 % is too little.
		{"a part saves too little", []float64{40, 20, 1, 1}, func(n int) float64 {
			return 20 + float64(n/4)/2
		}, 0, false, 4},
		// A sweep for the first one costs more than it saves there, though the rest gains.
		{"free time for the others does not pay for it", []float64{2, 9}, func(n int) float64 {
			return []float64{2, 18}[n-1]
		}, 0, true, 0},
		{"a part saves enough", []float64{40, 20, 1, 1}, func(n int) float64 {
			return 20 + float64(n/4)
		}, 0, false, 2},
	} {
		n := float64(len(c.apart))
		if got := Part(n, c.free, c.ahead, skewedLoad(c.apart, c.sweep)); got != c.want {
			t.Errorf("%s: for %g batches, want %g", c.name, got, c.want)
		}
	}
}

// TestWeighed: a batch takes a step or its reading, whichever is longer, and what is read at the
// same time
// is free for a sweep.
func TestWeighed(t *testing.T) {
	var w Weighed
	c := Costs{Read: 0.5, Byte: 0.25, Written: 0.125, Step: 3}
	w.Add(c, 2, rowfile.ReadCost{Reads: 4, Bytes: 12}, rowfile.ReadCost{Reads: 1, Bytes: 4})
	w.Add(c, 1, rowfile.ReadCost{Reads: 1, Bytes: 2}, rowfile.ReadCost{Reads: 1, Bytes: 16})
	want := Weighed{Apart: 2*5 + 3, Packed: 2*3 + 4.5, ApartIdle: 2, PackedIdle: 2 * 1.5,
		Sweep: 0.125 * (2*4 + 16), Written: 0.125 * (2*4 + 16)}
	if w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
	w.Sweep += 5
	for free, want := range map[float64]float64{0: 18.5, 3: 15.5, 9: 10.5} {
		if got := w.Once(free); math.Abs(got-want) > 1e-12 {
			t.Errorf("with %g s free: %g s, want %g", free, got, want)
		}
	}
}
