package bf16

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gdb/compute/kernel"
)

// widened are values as float32.
func widened(x []Number) []float32 {
	f := make([]float32, len(x))
	refWiden(f, x)
	return f
}

// closeTo fails unless values are near those that float32 kernels compute from the same numbers.
func closeTo(t failer, what string, got, want []float32, terms int) {
	t.Helper()
	for i, g := range got {
		limit := float64(terms+4) * 1e-6 * (1 + math.Abs(float64(want[i])))
		if d := math.Abs(float64(g - want[i])); !(d <= limit) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, g, want[i])
		}
	}
}

// eachSame runs a kernel at every level: the bits must equal those of the level plain, which it
// returns.
func eachSame(t failer, what string, run func() []float32) (want []float32) {
	t.Helper()
	for i, o := range levels() {
		active.Store(o)
		got := run()
		if i == 0 {
			want = got
		}
		equal(t, what+" "+o.name, got, want)
	}
	return want
}

// TestHeadProducts holds products of heads, and those whose second operand is of floats, against
// the kernels of float32.
func TestHeadProducts(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		m, k, n := size(130).Draw(t, "m"), size(70).Draw(t, "k"), size(70).Draw(t, "n")
		heads := rapid.IntRange(1, 4).Draw(t, "heads")
		add := rapid.Bool().Draw(t, "accumulate")
		mem := newMemory(seed(t))
		defer mem.free()
		a, b, g := mem.numbers(m*heads*k, false), mem.numbers(k*heads*n, false),
			mem.numbers(m*heads*n, false)
		for _, f := range []struct {
			name  string
			size  int
			terms int
			half  func(c []float32)
			want  func(c []float32)
			same  bool // at all levels, to the bit
			// toHalf is half with a result of Numbers, and compared with it.
			toHalf func(c []Number)
		}{
			{"GEMM of heads", m * heads * n, k, func(c []float32) {
				GEMM(p, c, a, b, kernel.Shape{M: m, K: k, N: n, Heads: heads, Add: add})
			}, func(c []float32) {
				kernel.GEMM(p, c, widened(a), widened(b), kernel.Shape{M: m, K: k, N: n,
					Heads: heads, Add: add})
			}, true, nil},
			{"GEMM of heads", m * heads * n, k, func(c []float32) {
				GEMM(p, c, a, b, kernel.Shape{M: m, K: k, N: n, Heads: heads, Add: add})
			}, func([]float32) {}, true, func(c []Number) {
				GEMM(p, c, a, b, kernel.Shape{M: m, K: k, N: n, Heads: heads, Add: add})
			}},
			{"GEMMTA of heads", k * heads * n, m, func(c []float32) {
				GEMMTA(p, c, a, g, kernel.Shape{M: m, K: k, N: n, Heads: heads, Add: add})
			}, func(c []float32) {
				kernel.GEMMTA(p, c, widened(a), widened(g), kernel.Shape{M: m, K: k, N: n,
					Heads: heads, Add: add})
			}, true, nil},
			{"GEMMTB of heads", m * heads * k, n, func(c []float32) {
				GEMMTB(p, c, g, b, kernel.Shape{M: m, N: n, K: k, Heads: heads, Add: add})
			}, func(c []float32) {
				kernel.GEMMTB(p, c, widened(g), widened(b), kernel.Shape{M: m, N: n, K: k,
					Heads: heads, Add: add})
			}, true, nil},
			{"GEMMTB of heads", m * heads * k, n, func(c []float32) {
				GEMMTB(p, c, g, b, kernel.Shape{M: m, N: n, K: k, Heads: heads, Add: add})
			}, func([]float32) {}, true, func(c []Number) {
				GEMMTB(p, c, g, b, kernel.Shape{M: m, N: n, K: k, Heads: heads, Add: add})
			}},
			{"GEMMWidened", m * heads * n, k, func(c []float32) {
				GEMMWidened(p, c, a, widened(b), kernel.Shape{M: m, K: k, N: n, Heads: heads,
					Add: add})
			}, func(c []float32) {
				kernel.GEMM(p, c, widened(a), widened(b), kernel.Shape{M: m, K: k, N: n,
					Heads: heads, Add: add})
			}, false, nil},
			{"GEMMTAWidened", k * heads * n, m, func(c []float32) {
				GEMMTAWidened(p, c, a, widened(g), kernel.Shape{M: m, K: k, N: n, Heads: heads,
					Add: add})
			}, func(c []float32) {
				kernel.GEMMTA(p, c, widened(a), widened(g), kernel.Shape{M: m, K: k, N: n,
					Heads: heads, Add: add})
			}, false, nil},
		} {
			start := mem.floats(f.size)
			want := copyOf(mem, start)
			f.want(want)
			run := func() []float32 {
				got := copyOf(mem, start)
				f.half(got)
				return got
			}
			if f.toHalf != nil {
				rounded, numbers := of[Number](mem, f.size), of[Number](mem, f.size)
				refNarrow(numbers, start)
				start = widened(numbers)
				refNarrow(rounded, run())
				f.toHalf(numbers)
				equal(t, f.name+" to Numbers", numbers, rounded)
				continue
			}
			if f.same {
				closeTo(t, f.name, eachSame(t, f.name, run), want, f.terms)
				continue
			}
			active.Store(levels()[len(levels())-1])
			closeTo(t, f.name, run(), want, f.terms)
		}
	})
}

// TestHeads holds sums of rows weighted by head, their gradients and products of entries against
// the kernels of float32.
func TestHeads(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSegments(t, 12)
		defer s.m.free()
		heads, d := rapid.IntRange(1, 4).Draw(t, "heads"), size(70).Draw(t, "head")
		shared, add := rapid.Bool().Draw(t, "shared"), rapid.Bool().Draw(t, "accumulate")
		wide, read := heads*d, heads*d
		if shared {
			read = d
		}
		if d == 0 {
			return
		}
		x, g := s.m.numbers(s.rows*read, false), s.m.numbers(s.lists*wide, false)
		w := s.m.floats(s.entry * heads)
		check := func(name string, size int, half, whole func(out []float32)) {
			start := s.m.floats(size)
			want := copyOf(s.m, start)
			whole(want)
			got := eachSame(t, name, func() []float32 {
				got := copyOf(s.m, start)
				half(got)
				return got
			})
			closeTo(t, fmt.Sprint(name, " shared ", shared), got, want, 12*heads*s.lists+d)
		}
		check("WeightedHeads", s.lists*wide, func(out []float32) {
			WeightedHeads(p, out, x, w, kernel.Lists{Off: s.off, Idx: s.idx, Heads: heads, Cols: d,
				Shared: shared}, add)
		}, func(out []float32) {
			kernel.EdgeSum(p, out, widened(x), w, kernel.Lists{Off: s.off, Idx: s.idx,
				Heads: heads, Cols: d, Shared: shared}, add)
		})
		check("WeightedHeadsGrad", s.rows*read, func(out []float32) {
			WeightedHeadsGrad(p, out, g, w, &s.back, kernel.RowGrad{Heads: heads, Cols: d,
				Shared: shared, Fresh: min(s.fresh, s.rows)})
		}, func(out []float32) {
			if shared {
				s.back.EdgeSumSharedGrad(p, out, widened(g), w, kernel.RowGrad{Heads: heads,
					Cols: d, Fresh: min(s.fresh, s.rows)})
				return
			}
			s.back.EdgeSumGrad(p, out, widened(g), w, kernel.RowGrad{Heads: heads, Cols: d,
				Fresh: min(s.fresh, s.rows)})
		})
		check("EdgeDot", s.entry*heads, func(out []float32) {
			EdgeDot(p, out, g, x, kernel.Lists{Off: s.off, Idx: s.idx, Heads: heads, Cols: d,
				Shared: shared})
		}, func(out []float32) {
			kernel.EdgeDot(p, out, widened(g), widened(x), kernel.Lists{Off: s.off, Idx: s.idx,
				Heads: heads, Cols: d, Shared: shared})
		})
	})
}

// TestElements holds what is computed of values against the kernels of float32, rounded.
func TestElements(t *testing.T) {
	p := kernel.NewPool(3)
	defer p.Close()
	const n = 37
	for _, rows := range []int{0, 1, 110, 5000} {
		mem := newMemory(uint64(rows))
		dy, y := mem.floats(rows*n), mem.numbers(rows*n, false)
		want, got := copyOf(mem, dy), of[Number](mem, rows*n)
		rounded := of[Number](mem, rows*n)
		kernel.DropoutReLUGrad(p, want, widened(y), 0.3)
		refNarrow(rounded, want)
		ReLUGrad(p, got, dy, y, 0.3)
		equal(t, "ReLUGrad", got, rounded)
		in := copyOf(mem, dy)
		ReLUGrad(p, in, in, y, 0.3)
		equal(t, "ReLUGrad in place", in, want)
		eachLevel(t, func(t *testing.T) { testELUGrad(t, p, mem, dy, y) })
		bias := mem.floats(n)
		copy(want, dy)
		kernel.BiasReLU(p, want, bias, rows, n)
		kernel.Dropout(p, want, 0, 0.4, 77)
		refNarrow(rounded, want)
		Elements(p, got, dy, rows, n, func(values []float32, row int) {
			kernel.BiasReLU(nil, values, bias, len(values)/n, n)
			kernel.Dropout(nil, values, row*n, 0.4, 77)
		})
		equal(t, "Elements", got, rounded)
		eachLevel(t, func(t *testing.T) { testActivate(t, p, mem, dy, y, bias, rows, n) })
		sum, sums := make([]float32, n), make([]float32, n)
		kernel.ColumnSum(p, sum, widened(y), rows, n, false)
		ColumnSum(p, sums, y, rows, n)
		closeTo(t, "ColumnSum", sums, sum, rows)
		mem.free()
	}
}

// testActivate holds activations against those that are computed step by step, where draws begin a
// few positions before a block of them ends.
func testActivate(t *testing.T, p *kernel.Pool, mem *memory, x []float32, half []Number,
	bias []float32, rows, n int) {
	want, got := of[Number](mem, rows*n), of[Number](mem, rows*n)
	for _, a := range []Activation{{}, {Bias: bias, ReLU: true}, {ELU: true},
		{Bias: bias, ELU: true, Rate: 0.4, First: 1<<20 - 50, Key: 77}, {Rate: 0.5, Key: 5},
		{Bias: bias, ReLU: true, Rate: 0.3, First: 1<<20 - 2*n, Key: 8}, {Bias: bias}} {
		step := func(values []float32, row int) { a.apply(values, row, n) }
		Elements(p, want, x, rows, n, step)
		Activate(p, got, x, rows, n, &a)
		equal(t, fmt.Sprintf("Activate %+v", a), got, want)
		Elements(p, want, half, rows, n, step)
		Activate(p, got, half, rows, n, &a)
		equal(t, fmt.Sprintf("Activate %+v of Numbers", a), got, want)
	}
}

// testELUGrad holds ELUGrad against what ELUGrad and then Dropout of float32 make, of values that
// were scaled.
func testELUGrad(t *testing.T, p *kernel.Pool, mem *memory, dy []float32, y []Number) {
	const first, rate, key = 1<<20 - 77, 0.25, 99
	want, before := copyOf(mem, dy), widened(y)
	kernel.Scale(nil, before, 1-rate)
	kernel.ELUGrad(p, want, before)
	kernel.Dropout(p, want, first, rate, key)
	rounded, got := of[Number](mem, len(dy)), of[Number](mem, len(dy))
	refNarrow(rounded, want)
	ELUGrad(p, got, dy, y, kernel.Drop{First: first, Rate: rate, Key: key})
	equal(t, "ELUGrad", got, rounded)
	in := copyOf(mem, dy)
	ELUGrad(p, in, in, y, kernel.Drop{First: first, Rate: rate, Key: key})
	equal(t, "ELUGrad in place", in, want)
}

// TestSegmentMeanDropout holds means of rows that are dropped out as they are read against those of
// float32.
func TestSegmentMeanDropout(t *testing.T) {
	const nodes, lists, d = 300, 90, 33
	mem := newMemory(4)
	defer mem.free()
	x, off := mem.numbers(nodes*d, false), []uint32{0}
	var idx, at []uint32
	for i := range lists {
		for k := range i % 7 {
			idx, at = append(idx, uint32((i*13+k*71)%nodes)), append(at, uint32((i*5+k)%nodes))
		}
		off = append(off, uint32(len(idx)))
	}
	want, rounded, rows := make([]float32, lists*d), make([]Number, lists*d), slices.Clone(idx)
	dropped := make([]Number, len(idx)*d)
	for e, r := range idx {
		row := widened(x[int(r)*d:][:d])
		kernel.Dropout(nil, row, int(at[e])*d, 0.3, 9)
		refNarrow(dropped[e*d:], row)
		idx[e] = uint32(e)
	}
	kernel.SegmentMean(nil, want, widened(dropped), off, idx, d)
	refNarrow(rounded, want)
	got := make([]Number, lists*d)
	SegmentMeanDropout(kernel.NewPool(2), got, x, kernel.Lists{Off: off, Idx: rows, At: at,
		Cols: d}, kernel.Drop{Rate: 0.3, Key: 9})
	equal(t, "SegmentMeanDropout", got, rounded)
}
