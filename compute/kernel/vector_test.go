package kernel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestExact holds the kernels whose every value is one rounded operation or none: all levels give
// the bits of the specification.
func TestExact(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			checkFlat(t, p)
			checkRows(t, p)
		})
	})
}

func checkFlat(t *rapid.T, p *Pool) {
	mem := newMemory(t)
	defer mem.free()
	n := rapid.OneOf(size(100), rapid.IntRange(0, 3*flatPart)).Draw(t, "n")
	x, y := mem.values(n), mem.values(n)
	specials(mem, y)
	var key = rapid.Uint64().Draw(t, "key")
	rate := rapid.Float32Range(0, 0.99).Draw(t, "rate")
	for _, c := range []struct {
		name string
		run  func(x []float32)
		ref  func(x []float32)
	}{
		{"Add", func(x []float32) { Add(p, x, y) }, func(x []float32) { refAdd(x, y) }},
		{"scale", func(x []float32) { level().scale(x, 0.3) },
			func(x []float32) { refScale(x, 0.3) }},
		{"ReLUGrad", func(x []float32) { DropoutReLUGrad(p, x, y, 0) },
			func(x []float32) { refReLUGrad(x, y, 1) }},
		{"DropoutReLUGrad", func(x []float32) { DropoutReLUGrad(p, x, y, 0.3) },
			func(x []float32) { refReLUGrad(x, y, 1/(1-float32(0.3))) }},
		{"Dropout", func(x []float32) { Dropout(p, x, 0, rate, key) },
			func(x []float32) { plainly(func() { Dropout(nil, x, 0, rate, key) }) }},
	} {
		got, want := mem.copyOf(x), mem.copyOf(x)
		c.run(got)
		c.ref(want)
		for i := range got {
			if a, b := got[i], want[i]; a != b && !(a != a && b != b) {
				t.Fatalf("%s: value %d is %v, want %v", c.name, i, a, b)
			}
		}
	}
}

// specials puts a zero of each sign, infinities and a NaN into x.
func specials(mem *memory, x []float32) {
	if len(x) == 0 {
		return
	}
	inf := math.Inf(1)
	for _, v := range []float64{0, math.Copysign(0, -1), inf, -inf, math.NaN()} {
		x[mem.rng.IntN(len(x))] = float32(v)
	}
}

// plainly runs fn at the level Plain.
func plainly(fn func()) {
	defer active.Store(active.Load())
	active.Store(&plainOps)
	fn()
}

func checkRows(t *rapid.T, p *Pool) {
	mem := newMemory(t)
	defer mem.free()
	rows, n := size(70).Draw(t, "rows"), size(300).Draw(t, "columns")
	x, bias := mem.values(rows*n), mem.values(n)
	specials(mem, x)
	got, want := mem.copyOf(x), mem.copyOf(x)
	BiasReLU(p, got, bias, rows, n)
	refBiasReLU(want, bias, rows, n)
	equal(t, "BiasReLU", got, want)
	y := mem.values(rows * n)
	got, want = mem.copyOf(y), mem.copyOf(y)
	Bias(p, got, bias, rows, n)
	refBias(want, bias, rows, n)
	equal(t, "Bias", got, want)
}

func TestColumnSum(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows := rapid.OneOf(size(100), rapid.IntRange(0, 3*columnSlab)).Draw(t, "rows")
			n := rapid.OneOf(size(50), size(600)).Draw(t, "columns")
			x, got := mem.values(rows*n), mem.values(n)
			want, bound := mem.zeros(n), mem.zeros(n)
			refColumnSum(want, x, rows, n)
			refColumnSum(bound, absolute(x), rows, n)
			if rapid.Bool().Draw(t, "accumulate") {
				refAdd(want, got)
				refAdd(bound, absolute(got))
				ColumnSum(p, got, x, rows, n, true)
			} else {
				ColumnSum(p, got, x, rows, n, false)
			}
			within(t, "ColumnSum", got, want, bound, 2*float64(rows+2))
		})
	})
}

// TestDropoutDraws looks at how many values are dropped, and whether neighbors and keys depend on
// each other: 5 standard deviations of the binomial distribution.
func TestDropoutDraws(t *testing.T) {
	const n = 1 << 21
	ones := func(key uint64, rate float32) []bool {
		x := make([]float32, n)
		for i := range x {
			x[i] = 1
		}
		Dropout(nil, x, 0, rate, key)
		kept := make([]bool, n)
		for i, v := range x {
			if kept[i] = v != 0; kept[i] && v != 1/(1-rate) {
				t.Fatalf("value %d is %v", i, v)
			}
		}
		return kept
	}
	for _, rate := range []float32{0.1, 0.5, 0.9} {
		for key := range uint64(3) {
			a, b := ones(key, rate), ones(key+1<<40, rate)
			keep := 1 - float64(rate)
			for _, lag := range []int{0, 1, 2, 16, 47, 256, 1 << 20} {
				count := 0
				for i := range n - lag {
					if a[i] && a[i+lag] {
						count++
					}
				}
				share := keep * keep
				if lag == 0 {
					share = keep
				}
				binomial(t, "lag", lag, count, n-lag, share)
			}
			count := 0
			for i := range a {
				if a[i] && b[i] {
					count++
				}
			}
			binomial(t, "two keys", 0, count, n, keep*keep)
		}
	}
}

func binomial(t *testing.T, what string, lag, count, n int, share float64) {
	t.Helper()
	mean := float64(n) * share
	// Overlapping pairs depend on each other, which at most doubles the deviation.
	if dev := 2 * math.Sqrt(mean*(1-share)); math.Abs(float64(count)-mean) > 5*dev {
		t.Errorf("%s %d: %d of %d, want %.0f ± %.0f", what, lag, count, n, mean, dev)
	}
}

// TestDropoutLevels: all levels drop the same values out, and scale the others to the same bits.
func TestDropoutLevels(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 3, 4, 7, 16, 37, 4099} {
			for _, first := range []int{0, 5, dropoutBlock - 20} {
				for key, rate := range []float32{0.1, 0.5, 0.9} {
					got := make([]float32, n)
					for i := range got {
						got[i] = float32(i + 1)
					}
					want := slices.Clone(got)
					Dropout(nil, got, first, rate, uint64(key))
					plainly(func() { Dropout(nil, want, first, rate, uint64(key)) })
					if !slices.Equal(got, want) {
						t.Fatalf("%d values from %d on, rate %v: other values than of plain", n,
							first, rate)
					}
				}
			}
		}
	})
}

func TestDropoutRate(t *testing.T) {
	x := []float32{1, 2, 3}
	Dropout(nil, x, 0, 0, 7)
	if x[0] != 1 || x[1] != 2 || x[2] != 3 {
		t.Errorf("rate 0 changes values: %v", x)
	}
	for _, rate := range []float32{-0.1, 1, float32(math.NaN())} {
		if !panics(func() { Dropout(nil, x, 0, rate, 7) }) {
			t.Errorf("rate %v is taken", rate)
		}
	}
}
