package kernel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// edgeCase is lists over rows, and a width of heads*d.
type edgeCase struct {
	mem                   *memory
	p                     *Pool
	off, idx              []uint32
	rows, count, heads, d int
	entries               int
	tr                    Transposed
}

// drawEdges draws lists; the first entry may be further on than where idx begins.
func drawEdges(t *rapid.T, p *Pool, widest int) *edgeCase {
	c := &edgeCase{mem: newMemory(t), p: p}
	c.rows, c.count = size(60).Draw(t, "rows"), size(60).Draw(t, "lists")
	c.heads = rapid.SampledFrom([]int{1, 2, 3, 4, 5, 8}).Draw(t, "heads")
	c.d = rapid.OneOf(size(70), size(widest)).Draw(t, "d")
	c.off, c.idx = c.mem.segments(c.count, size(33).Draw(t, "longest"), c.rows)
	c.entries = len(c.idx)
	if before := rapid.IntRange(0, 3).Draw(t, "before"); before > 0 {
		c.idx = append(slices.Repeat([]uint32{1 << 30}, before), c.idx...)
		for i := range c.off {
			c.off[i] += uint32(before)
		}
	}
	c.tr.BuildEntries(c.off, c.idx, c.rows)
	return c
}

// each calls fn for each entry: list i, entry number e and row r.
func (c *edgeCase) each(fn func(i, e, r int)) {
	for i := range c.count {
		for at := c.off[i]; at < c.off[i+1]; at++ {
			fn(i, int(at-c.off[0]), int(c.idx[at]))
		}
	}
}

// sums holds the exact values of a result, and the sums of the absolute values of their terms.
type exact struct{ value, bound []float64 }

func newExact(n int) *exact { return &exact{make([]float64, n), make([]float64, n)} }

// add adds a product to value i.
func (x *exact) add(i int, factors ...float32) {
	v := 1.0
	for _, f := range factors {
		v *= float64(f)
	}
	x.value[i] += v
	x.bound[i] += math.Abs(v)
}

// check compares values with the exact ones: n operations are rounded.
func (x *exact) check(t *rapid.T, what string, got []float32, n int) {
	t.Helper()
	for i, v := range x.value {
		if d := math.Abs(float64(got[i]) - v); !(d <= float64(n)*roundOff*x.bound[i]+1e-37) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], v)
		}
	}
}

// started returns exact values of an array that is added to, but for its first fresh values.
func started(x []float32, fresh int) *exact {
	e := newExact(len(x))
	for i := fresh; i < len(x); i++ {
		e.add(i, x[i])
	}
	return e
}

// edgeTest runs a check at every level.
func edgeTest(t *testing.T, widest int, check func(t *rapid.T, c *edgeCase)) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			c := drawEdges(t, p, widest)
			defer c.mem.free()
			check(t, c)
		})
	})
}

func TestEdgeSum(t *testing.T) {
	edgeTest(t, 300, func(t *rapid.T, c *edgeCase) {
		shared, accumulate := rapid.Bool().Draw(t, "shared"), rapid.Bool().Draw(t, "accumulate")
		n, width := c.heads*c.d, c.heads*c.d
		if shared {
			width = c.d
		}
		column := func(h, j int) int { return (h*c.d + j) % width }
		x, w := c.mem.values(c.rows*width), c.mem.values(c.entries*c.heads)
		out, g := c.mem.values(c.count*n), c.mem.values(c.count*n)
		want, dw := started(out, 0), newExact(len(w))
		if !accumulate {
			want = newExact(len(out))
			specials(c.mem, out)
		}
		dx, fresh := c.mem.values(len(x)), rapid.IntRange(0, c.rows).Draw(t, "fresh")
		gradient := started(dx, fresh*width)
		specials(c.mem, dx[:fresh*width])
		c.each(func(i, e, r int) {
			for h := range c.heads {
				for j := range c.d {
					at, from := i*n+h*c.d+j, r*width+column(h, j)
					want.add(at, w[e*c.heads+h], x[from])
					dw.add(e*c.heads+h, g[at], x[from])
					gradient.add(from, w[e*c.heads+h], g[at])
				}
			}
		})
		EdgeSum(c.p, out, x, w, Lists{Off: c.off, Idx: c.idx, Heads: c.heads, Cols: c.d,
			Shared: shared}, accumulate)
		want.check(t, "EdgeSum", out, 40)
		got := c.mem.values(len(w))
		EdgeDot(c.p, got, g, x, Lists{Off: c.off, Idx: c.idx, Heads: c.heads, Cols: c.d,
			Shared: shared})
		dw.check(t, "EdgeDot", got, c.d+2)
		if shared {
			c.tr.EdgeSumSharedGrad(c.p, dx, g, w, RowGrad{Heads: c.heads, Cols: c.d, Fresh: fresh})
		} else {
			c.tr.EdgeSumGrad(c.p, dx, g, w, RowGrad{Heads: c.heads, Cols: c.d, Fresh: fresh})
		}
		gradient.check(t, "EdgeSumGrad", dx, c.entries*c.heads+4)
	})
}

func TestScaledGrad(t *testing.T) {
	edgeTest(t, 300, func(t *rapid.T, c *edgeCase) {
		dout, scale := c.mem.values(c.count*c.d), c.mem.values(c.count)
		dx, fresh := c.mem.values(c.rows*c.d), rapid.IntRange(0, c.rows).Draw(t, "fresh")
		plain := c.mem.copyOf(dx)
		want, sums := started(dx, fresh*c.d), started(dx, fresh*c.d)
		c.each(func(i, _, r int) {
			for j := range c.d {
				want.add(r*c.d+j, scale[i], dout[i*c.d+j])
				sums.add(r*c.d+j, dout[i*c.d+j])
			}
		})
		c.tr.ScaledGrad(c.p, dx, dout, scale, c.d, fresh)
		want.check(t, "ScaledGrad", dx, c.entries+4)
		c.tr.ScaledGrad(c.p, plain, dout, nil, c.d, fresh)
		sums.check(t, "gradient of the sum", plain, c.entries+4)
	})
}

func TestSegmentMax(t *testing.T) {
	edgeTest(t, 300, func(t *rapid.T, c *edgeCase) {
		x := c.mem.values(c.rows * c.d)
		for i := range x {
			x[i] = float32(int(2*x[i])) / 2 // some are equal
		}
		want, arg := c.mem.zeros(c.count*c.d), make([]uint32, c.count*c.d)
		for i := range arg {
			arg[i] = NoRow
		}
		c.each(func(i, _, r int) {
			for j := range c.d {
				at := i*c.d + j
				if v := x[r*c.d+j]; arg[at] == NoRow || v > want[at] {
					want[at], arg[at] = v, uint32(r)
				}
			}
		})
		got, gotArg := c.mem.values(len(want)), make([]uint32, len(arg))
		SegmentMax(c.p, got, x, gotArg, Lists{Off: c.off, Idx: c.idx, Cols: c.d})
		equal(t, "SegmentMax", got, want)
		if !slices.Equal(gotArg, arg) {
			t.Fatalf("rows %v, want %v", gotArg, arg)
		}
		got = c.mem.values(len(want))
		SegmentMax(c.p, got, x, nil, Lists{Off: c.off, Idx: c.idx, Cols: c.d})
		equal(t, "SegmentMax without rows", got, want)
		dout, dx := c.mem.values(len(want)), c.mem.values(len(x))
		fresh := rapid.IntRange(0, c.rows).Draw(t, "fresh")
		gradient := started(dx, fresh*c.d)
		for at, r := range arg {
			if r != NoRow {
				gradient.add(int(r)*c.d+at%c.d, dout[at])
			}
		}
		SegmentMaxGrad(c.p, dx, dout, arg, &c.tr, RowGrad{Cols: c.d, Fresh: fresh})
		gradient.check(t, "SegmentMaxGrad", dx, c.count+4)
	})
}

// TestSegmentMaxNaN: a NaN is the largest value, wherever it stands.
func TestSegmentMaxNaN(t *testing.T) {
	nan := float32(math.NaN())
	eachLevel(t, func(t *testing.T) {
		for _, d := range []int{1, 40} {
			for at := range 3 {
				x, arg := make([]float32, 3*d), make([]uint32, d)
				for j := range d {
					x[at*d+j] = nan
				}
				out := make([]float32, d)
				SegmentMax(nil, out, x, arg, Lists{Off: []uint32{0, 3}, Idx: []uint32{0, 1, 2},
					Cols: d})
				if out[d-1] == out[d-1] || arg[d-1] != uint32(at) {
					t.Errorf("NaN in row %d: %v of row %d", at, out[d-1], arg[d-1])
				}
			}
		}
	})
}

func TestTransposedEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawEdges(t, nil, 1)
		memory := make([]float32, TransposedEntryWords(c.rows, c.entries, c.count))
		in := TransposedEntriesIn(memory, c.rows, c.entries, c.count)
		allocs := testing.AllocsPerRun(1, func() { in.BuildEntries(c.off, c.idx, c.rows) })
		if allocs > 0 {
			t.Fatal("the memory given is not enough")
		}
		for _, tr := range []*Transposed{&c.tr, &in} {
			for r := range c.rows {
				for k := tr.off[r]; k < tr.off[r+1]; k++ {
					e := c.off[0] + tr.entry[k]
					i := tr.idx[k]
					if int(c.idx[e]) != r || e < c.off[i] || e >= c.off[i+1] {
						t.Fatalf("row %d has entry %d of list %d", r, tr.entry[k], i)
					}
				}
			}
			if len(tr.entry) != c.entries || int(tr.off[c.rows]) != c.entries {
				t.Fatalf("%d entries of %d", len(tr.entry), c.entries)
			}
		}
		c.tr.Build(c.off, c.idx, c.rows)
		if c.entries > 0 && !panics(func() {
			c.tr.EdgeToSrc(nil, make([]float32, c.rows),
				make([]float32, c.entries), 1, 0)
		}) {
			t.Fatal("entries of a list that was built without")
		}
	})
}

// TestLongLists has rows of more entries than are gathered at once.
func TestLongLists(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			c := &edgeCase{mem: newMemory(t), p: p, rows: 3, count: 2000, heads: 3, d: 2}
			defer c.mem.free()
			c.off, c.idx = c.mem.segments(c.count, 9, c.rows)
			for e := range c.idx {
				if e%16 > 0 {
					c.idx[e] = 1
				}
			}
			c.entries = len(c.idx)
			c.tr.BuildEntries(c.off, c.idx, c.rows)
			n := c.heads * c.d
			w, dout := c.mem.values(c.entries*c.heads), c.mem.values(c.count*n)
			dx, shared, dxl := c.mem.values(3*n), c.mem.values(3*c.d), c.mem.values(3*n)
			xl, att := c.mem.values(3*n), c.mem.values(n)
			want, wantShared, left := started(dx, n), started(shared, c.d), started(dxl, n)
			c.each(func(i, e, r int) {
				for j := range n {
					v, at := w[e*c.heads+j/c.d], i*n+j
					want.add(r*n+j, v, dout[at])
					wantShared.add(r*c.d+j%c.d, v, dout[at])
					left.add(r*n+j, v, factor(xl[r*n+j]+dout[at], 0.2), att[j])
				}
			})
			c.tr.EdgeSumGrad(p, dx, dout, w, RowGrad{Heads: c.heads, Cols: c.d, Fresh: 1})
			want.check(t, "EdgeSumGrad", dx, c.entries)
			c.tr.EdgeSumSharedGrad(p, shared, dout, w, RowGrad{Heads: c.heads, Cols: c.d, Fresh: 1})
			wantShared.check(t, "EdgeSumSharedGrad", shared, c.entries*c.heads)
			c.tr.EdgeScores2SrcGrad(p, dxl, w, Scores2{Src: xl, Dst: dout, Att: att, Slope: 0.2},
				RowGrad{Heads: c.heads, Cols: c.d, Fresh: 1})
			left.check(t, "EdgeScores2SrcGrad", dxl, c.entries)
			// Each worker keeps a buffer of each kind, and the others none.
			if most := int64(p.Workers() * 4 * EdgeGradWords(c.heads, c.d)); p.Bytes() > most {
				t.Fatalf("%d bytes of scratch memory, want at most %d", p.Bytes(), most)
			}
		})
	})
}

// TestBadEdges has rows that are not there, which assembly would read.
func TestBadEdges(t *testing.T) {
	off, idx := []uint32{0, 1, 2}, []uint32{0, 2}
	x, w := make([]float32, 4), make([]float32, 4)
	for name, run := range map[string]func(){
		"EdgeSum": func() {
			EdgeSum(nil, x, x, w, Lists{Off: off, Idx: idx,
				Heads: 1, Cols: 2}, false)
		},
		"EdgeSum of shared rows": func() {
			EdgeSum(nil, x, x, w, Lists{Off: off, Idx: idx,
				Heads: 1, Cols: 2, Shared: true}, false)
		},
		"EdgeDot": func() {
			EdgeDot(nil, w, x, x, Lists{Off: off, Idx: idx,
				Heads: 1, Cols: 2})
		},
		"SegmentMax": func() {
			SegmentMax(nil, x, x, nil, Lists{Off: off, Idx: idx,
				Cols: 2})
		},
		"EdgeScores": func() {
			EdgeScores(nil, w, x, x, Lists{Off: off, Idx: idx,
				Heads: 2}, 0)
		},
		"EdgeScores2": func() {
			EdgeScores2(nil, w, Lists{Off: off, Idx: idx, Heads: 1, Cols: 2}, Scores2{Src: x,
				Dst: x, Att: w})
		},
	} {
		if !panics(run) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// edgeGradients are objectives of chains of kernels over edges: an attention layer of GAT and one
// of GATv2, in what the scores are of.
func edgeGradients(values func(n int) []float32, off, idx []uint32) map[string]gradient {
	const heads, d, rows = 3, 5, 6
	lists, entries := len(off)-1, len(idx)
	n := heads * d
	x, r := values(rows*n), values(lists*n)
	attention := func(scores []float32) float64 {
		out := make([]float32, lists*n)
		EdgeSoftmax(nil, scores, off, heads)
		EdgeSum(nil, out, x, scores, Lists{Off: off, Idx: idx, Heads: heads, Cols: d}, false)
		sum := 0.0
		for i, v := range out {
			sum += float64(v) * float64(r[i])
		}
		return sum
	}
	var tr Transposed
	tr.BuildEntries(off, idx, rows)
	scoreGrad := func(scores []float32) []float32 {
		a, da := slices.Clone(scores), make([]float32, entries*heads)
		EdgeSoftmax(nil, a, off, heads)
		EdgeDot(nil, da, r, x, Lists{Off: off, Idx: idx, Heads: heads, Cols: d})
		EdgeSoftmaxGrad(nil, da, a, off, heads)
		return da
	}
	const slope = 0.2
	grid := func(n int, by float64) []float32 { // sums of two are away from the corner
		x := values(n)
		for i, v := range x {
			x[i] = float32(math.Floor(4*float64(v))/4 + by)
		}
		return x
	}
	src, dst := grid(rows*heads, 0), grid(lists*heads, 0.125)
	scores := func(src []float32) []float32 {
		s := make([]float32, entries*heads)
		EdgeScores(nil, s, src, dst, Lists{Off: off, Idx: idx, Heads: heads}, slope)
		return s
	}
	xl, xr, att := grid(rows*n, 0), grid(lists*n, 0.125), values(n)
	scores2 := func(xl, xr, att []float32) []float32 {
		s := make([]float32, entries*heads)
		EdgeScores2(nil, s, Lists{Off: off, Idx: idx, Heads: heads, Cols: d}, Scores2{Src: xl,
			Dst: xr, Att: att, Slope: slope})
		return s
	}
	return map[string]gradient{
		"sources of GAT": {src, func(src []float32) float64 { return attention(scores(src)) },
			func(src []float32) []float32 {
				s, g := scores(src), make([]float32, len(src))
				ds := scoreGrad(s)
				EdgeScoresGrad(nil, ds, s, slope)
				tr.EdgeToSrc(nil, g, ds, heads, rows)
				return g
			}},
		"sources of GATv2": {xl,
			func(xl []float32) float64 { return attention(scores2(xl, xr, att)) },
			func(xl []float32) []float32 {
				g := make([]float32, len(xl))
				ds := scoreGrad(scores2(xl, xr, att))
				tr.EdgeScores2SrcGrad(nil, g, ds, Scores2{Src: xl, Dst: xr, Att: att,
					Slope: slope}, RowGrad{Heads: heads, Cols: d, Fresh: rows})
				return g
			}},
		"vector of GATv2": {att,
			func(att []float32) float64 { return attention(scores2(xl, xr, att)) },
			func(att []float32) []float32 {
				g, dxr := make([]float32, n), make([]float32, len(xr))
				EdgeScores2Grad(nil, dxr, g, scoreGrad(scores2(xl, xr, att)), Lists{Off: off,
					Idx: idx, Heads: heads, Cols: d}, Scores2{Src: xl, Dst: xr, Att: att,
					Slope: slope})
				return g
			}},
	}
}

// edgeResults returns the results of the kernels over edges, of many lists.
func edgeResults(p *Pool, values func(n int) []float32, off, idx []uint32) map[string][]float32 {
	const heads, d = 3, 11
	m, e := len(off)-1, len(idx)
	n := heads * d
	x, g, w, att := values(m*n), values(m*n), values(e*heads), values(n)
	var tr Transposed
	tr.BuildEntries(off, idx, m)
	out := map[string][]float32{}
	result := func(name string, n int) []float32 {
		out[name] = make([]float32, n)
		return out[name]
	}
	EdgeSum(p, result("EdgeSum", m*n), x, w, Lists{Off: off, Idx: idx, Heads: heads, Cols: d},
		false)
	EdgeDot(p, result("EdgeDot", e*heads), g, x, Lists{Off: off, Idx: idx, Heads: heads, Cols: d})
	tr.EdgeSumGrad(p, result("EdgeSumGrad", m*n), g, w, RowGrad{Heads: heads, Cols: d})
	tr.EdgeSumSharedGrad(p, result("EdgeSumSharedGrad", m*d), g, w, RowGrad{Heads: heads, Cols: d})
	arg := make([]uint32, m*n)
	SegmentMax(p, result("SegmentMax", m*n), x, arg, Lists{Off: off, Idx: idx, Cols: n})
	SegmentMaxGrad(p, result("SegmentMaxGrad", m*n), g, arg, &tr, RowGrad{Cols: n})
	EdgeScores(p, result("EdgeScores", e*heads), x, g, Lists{Off: off, Idx: idx, Heads: heads}, 0.2)
	copy(result("EdgeSoftmax", e*heads), w)
	EdgeSoftmax(p, out["EdgeSoftmax"], off, heads)
	copy(result("EdgeSoftmaxGrad", e*heads), w)
	EdgeSoftmaxGrad(p, out["EdgeSoftmaxGrad"], out["EdgeSoftmax"], off, heads)
	EdgeToDst(p, result("EdgeToDst", m*heads), w, off, heads)
	tr.EdgeToSrc(p, result("EdgeToSrc", m*heads), w, heads, 0)
	EdgeScores2(p, result("EdgeScores2", e*heads), Lists{Off: off, Idx: idx, Heads: heads,
		Cols: d}, Scores2{Src: x, Dst: g, Att: att, Slope: 0.2})
	EdgeScores2Grad(p, result("EdgeScores2Grad", m*n), result("of att", n), w, Lists{Off: off,
		Idx: idx, Heads: heads, Cols: d}, Scores2{Src: x, Dst: g, Att: att, Slope: 0.2})
	tr.EdgeScores2SrcGrad(p, result("EdgeScores2SrcGrad", m*n), w, Scores2{Src: x, Dst: g,
		Att: att, Slope: 0.2}, RowGrad{Heads: heads, Cols: d})
	GEMM(p, result("GEMM of heads", m*n), x, att, Shape{M: m, K: d, N: 1, Heads: heads})
	GEMMTA(p, result("GEMMTA of heads", d*n), x, g, Shape{M: m, K: d, N: d, Heads: heads})
	stats := make([]float32, 2*m)
	LayerNorm(p, result("LayerNorm", m*n), x, Norm{Gamma: att, Beta: att, Stats: stats, Rows: m,
		Cols: n, Eps: 1e-5})
	LayerNormGrad(p, result("LayerNormGrad", m*n), g, x, Norm{DGamma: result("LayerNorm gamma", n),
		DBeta: result("LayerNorm beta", n), Gamma: att, Stats: stats, Rows: m, Cols: n})
	BatchNorm(p, result("BatchNorm", m*n), x, Norm{Gamma: att, Beta: att, Stats: stats, Rows: m,
		Cols: n, Eps: 1e-5})
	BatchNormGrad(p, result("BatchNormGrad", m*n), g, x, Norm{DGamma: result("BatchNorm gamma", n),
		DBeta: result("BatchNorm beta", n), Gamma: att, Stats: stats, Rows: m, Cols: n})
	return out
}
