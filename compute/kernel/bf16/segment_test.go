package bf16

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gdb/compute/kernel"
)

// segmentCase is rows, lists of them, and what the kernels need besides.
type segmentCase struct {
	m            *memory
	rows, d      int
	x, dout      []Number
	off, idx     []uint32
	weight       []float32 // of the entries
	scale        []float32 // of the segments
	fresh        int
	dx           []float32
	lists, entry int
	back         kernel.Transposed
}

func drawSegments(t *rapid.T, longest int) *segmentCase {
	m := newMemory(seed(t))
	s := &segmentCase{m: m, rows: size(60).Draw(t, "rows"), d: size(300).Draw(t, "d"),
		off: []uint32{0}}
	for range size(40).Draw(t, "segments") {
		for range m.rng.IntN(longest + 1) {
			if s.rows > 0 {
				s.idx = append(s.idx, uint32(m.rng.IntN(s.rows)))
			}
		}
		s.off = append(s.off, uint32(len(s.idx)))
	}
	s.lists, s.entry = len(s.off)-1, len(s.idx)
	s.x, s.dout = m.numbers(s.rows*s.d, false), m.numbers(s.lists*s.d, false)
	s.weight, s.scale, s.dx = m.floats(s.entry), m.floats(s.lists), m.floats(s.rows*s.d)
	s.fresh = m.rng.IntN(s.rows + 1)
	s.idx = copyOf(m, s.idx)
	s.back.BuildEntries(s.off, s.idx, s.rows)
	return s
}

// segmentKernel runs one kernel, and has what each entry adds to which row of the result: the
// number of the row, that of the row that is read, and a factor.
type segmentKernel struct {
	name    string
	grad    bool // the result is dx
	floats  func(p *kernel.Pool, out []float32)
	numbers func(p *kernel.Pool, out []Number)
	factor  func(segment, entry int) float64
}

func (s *segmentCase) kernels() []segmentKernel {
	lists := kernel.Lists{Off: s.off, Idx: s.idx, Cols: s.d}
	length := func(i int) float64 { return float64(s.off[i+1] - s.off[i]) }
	one := func(int, int) float64 { return 1 }
	mean := func(i, _ int) float64 { return 1 / length(i) }
	scaled := func(i, _ int) float64 { return float64(s.scale[i]) }
	weighted := func(_, e int) float64 { return float64(s.weight[e]) }
	return []segmentKernel{
		{"SegmentSum", false,
			func(p *kernel.Pool, out []float32) { SegmentReduce(p, out, s.x, lists, false) },
			func(p *kernel.Pool, out []Number) { SegmentReduce(p, out, s.x, lists, false) }, one},
		{"SegmentMean", false,
			func(p *kernel.Pool, out []float32) { SegmentReduce(p, out, s.x, lists, true) },
			func(p *kernel.Pool, out []Number) { SegmentReduce(p, out, s.x, lists, true) },
			mean},
		{"WeightedHeads", false,
			func(p *kernel.Pool, out []float32) {
				WeightedHeads(p, out, s.x, s.weight,
					kernel.Lists{Off: s.off, Idx: s.idx, Heads: 1, Cols: s.d}, false)
			}, func(p *kernel.Pool, out []Number) {
				WeightedHeads(p, out, s.x, s.weight,
					kernel.Lists{Off: s.off, Idx: s.idx, Heads: 1, Cols: s.d}, false)
			}, weighted},
		{"SegmentMeanGrad", true,
			func(p *kernel.Pool, out []float32) {
				SegmentMeanGrad(p, out, s.dout, &s.back, s.d, s.fresh)
			}, func(p *kernel.Pool, out []Number) {
				SegmentMeanGrad(p, out, s.dout, &s.back, s.d, s.fresh)
			}, mean},
		{"SegmentScaledGrad", true,
			func(p *kernel.Pool, out []float32) {
				SegmentScaledGrad(p, out, s.dout, s.scale, &s.back, kernel.RowGrad{Cols: s.d,
					Fresh: s.fresh})
			}, func(p *kernel.Pool, out []Number) {
				SegmentScaledGrad(p, out, s.dout, s.scale, &s.back, kernel.RowGrad{Cols: s.d,
					Fresh: s.fresh})
			}, scaled},
		{"WeightedHeadsGrad", true,
			func(p *kernel.Pool, out []float32) {
				WeightedHeadsGrad(p, out, s.dout, s.weight, &s.back,
					kernel.RowGrad{Heads: 1, Cols: s.d, Fresh: s.fresh})
			}, func(p *kernel.Pool, out []Number) {
				WeightedHeadsGrad(p, out, s.dout, s.weight, &s.back,
					kernel.RowGrad{Heads: 1, Cols: s.d, Fresh: s.fresh})
			}, weighted},
	}
}

// exact returns the result in float64, with the sum of the absolute values of all terms.
func (s *segmentCase) exact(k segmentKernel) (sum, bound []float64) {
	rows, x := s.lists, s.x
	if k.grad {
		rows, x = s.rows, s.dout
	}
	sum, bound = make([]float64, rows*s.d), make([]float64, rows*s.d)
	for i := s.fresh * s.d; k.grad && i < len(sum); i++ {
		sum[i] = float64(s.dx[i])
		bound[i] = math.Abs(sum[i])
	}
	for i := range s.lists {
		for e := s.off[i]; e < s.off[i+1]; e++ {
			to, from := i, int(s.idx[e])
			if k.grad {
				to, from = from, to
			}
			for j := range s.d {
				v := k.factor(i, int(e)) * float64(x[from*s.d+j].Float32())
				sum[to*s.d+j] += v
				bound[to*s.d+j] += math.Abs(v)
			}
		}
	}
	return sum, bound
}

// check compares a kernel at every level with the level plain, to the bit, and that with exact
// sums.
func (s *segmentCase) check(t failer, p *kernel.Pool, k segmentKernel) {
	n := s.lists * s.d
	if k.grad {
		n = s.rows * s.d
	}
	start := of[float32](s.m, n)
	if k.grad {
		copy(start, s.dx)
	}
	half := of[Number](s.m, n)
	Narrow(nil, half, start)
	active.Store(&plainOps)
	want, rounded := copyOf(s.m, start), of[Number](s.m, n)
	k.floats(p, want)
	sum, bound := s.exact(k)
	for i, v := range want {
		limit := (2*float64(s.entry) + 4) * bound[i] / (1 << 24)
		if d := math.Abs(float64(v) - sum[i]); !(d <= limit) {
			t.Fatalf("%s: value %d is %v, want %v", k.name, i, v, sum[i])
		}
	}
	wide := of[float32](s.m, n)
	refWiden(wide, half)
	k.floats(p, wide)
	refNarrow(rounded, wide)
	for _, o := range levels() {
		active.Store(o)
		got, gotHalf := copyOf(s.m, start), copyOf(s.m, half)
		k.floats(p, got)
		equal(t, k.name+" "+o.name, got, want)
		k.numbers(p, gotHalf)
		equal(t, k.name+" to Number "+o.name, gotHalf, rounded)
	}
}

func TestSegments(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSegments(t, 12)
		defer s.m.free()
		for _, k := range s.kernels() {
			s.check(t, p, k)
		}
	})
}

func TestSegmentMax(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSegments(t, 12)
		defer s.m.free()
		for i := range s.x {
			if s.m.rng.IntN(50) == 0 {
				s.x[i] = Of(float32(math.Inf(s.m.rng.IntN(2)*2 - 1)))
			}
			if s.m.rng.IntN(50) == 0 {
				s.x[i] = Of(float32(math.NaN()))
			}
		}
		want, arg := s.largest()
		for _, o := range levels() {
			active.Store(o)
			got, numbers := of[Number](s.m, len(want)), of[uint32](s.m, len(want))
			SegmentMax(p, got, s.x, numbers, kernel.Lists{Off: s.off, Idx: s.idx, Cols: s.d})
			equal(t, "SegmentMax "+o.name, got, want)
			if fmt.Sprint(numbers) != fmt.Sprint(arg) {
				t.Fatalf("SegmentMax %s: rows %v, want %v", o.name, numbers, arg)
			}
			clear(got)
			SegmentMax(p, got, s.x, nil, kernel.Lists{Off: s.off, Idx: s.idx, Cols: s.d})
			equal(t, "SegmentMax without rows "+o.name, got, want)
		}
	})
}

// largest is SegmentMax as it is said.
func (s *segmentCase) largest() (best []Number, arg []uint32) {
	best, arg = make([]Number, s.lists*s.d), make([]uint32, s.lists*s.d)
	for i := range s.lists {
		for j := range s.d {
			at := i*s.d + j
			arg[at] = kernel.NoRow
			for _, r := range s.idx[s.off[i]:s.off[i+1]] {
				v, so := s.x[int(r)*s.d+j], best[at].Float32()
				if arg[at] == kernel.NoRow || so == so && !(v.Float32() <= so) {
					best[at], arg[at] = v, r
				}
			}
		}
	}
	return best, arg
}
