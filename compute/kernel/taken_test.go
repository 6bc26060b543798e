package kernel

import (
	"math/rand/v2"
	"testing"
)

// TestScratchIsAsCounted: what kernels take of a pool's scratch memory is what callers count.
func TestScratchIsAsCounted(t *testing.T) {
	const m, k, n, heads = 5000, 36, 52, 2
	floats := func(n int) []float32 { return make([]float32, n) }
	draw := rand.New(rand.NewPCG(1, 1))
	off, idx := []uint32{0}, []uint32(nil)
	for range 900 {
		for range draw.IntN(60) {
			idx = append(idx, uint32(draw.IntN(m)))
		}
		off = append(off, uint32(len(idx)))
	}
	lists, entries := len(off)-1, len(idx)
	back := TransposedEntriesIn(floats(TransposedEntryWords(m, entries, lists)), m, entries, lists)
	back.BuildEntries(off, idx, m)
	for name, c := range map[string]struct {
		run        func(p *Pool)
		once, each int
	}{
		"GEMM": {func(p *Pool) {
			GEMM(p, floats(m*n), floats(m*k), floats(k*n), Shape{M: m, K: k, N: n})
		}, PanelWords(k, n), 0},
		"GEMMTB": {func(p *Pool) {
			GEMMTB(p, floats(m*k), floats(m*n), floats(k*n), Shape{M: m, N: n, K: k})
		}, PanelWords(n, k), 0},
		"GEMM of heads": {func(p *Pool) {
			GEMM(p, floats(m*n), floats(m*k), floats(k/heads*n), Shape{M: m, K: k / heads,
				N: n / heads, Heads: heads})
		}, PanelWords(k/heads, n/heads), 0},
		"ColumnSum": {func(p *Pool) { ColumnSum(p, floats(n), floats(m*n), m, n, false) },
			ColumnWords(m, n), 0},
		"LayerNormGrad": {func(p *Pool) {
			LayerNormGrad(p, floats(m*n), floats(m*n), floats(m*n), Norm{DGamma: floats(n),
				DBeta: floats(n), Gamma: floats(n), Stats: floats(2 * m), Rows: m, Cols: n})
		}, 2 * ColumnWords(m, n), 0},
		"EdgeScores2Grad": {func(p *Pool) {
			EdgeScores2Grad(p, floats(lists*n), floats(n), floats(entries*heads), Lists{Off: off,
				Idx: idx, Heads: heads, Cols: n / heads}, Scores2{Src: floats(m * n),
				Dst: floats(lists * n), Att: floats(n), Slope: 0.2})
		}, AttentionWords(n), 0},
		"few columns": {func(p *Pool) {
			GEMM(p, floats(m*5), floats(m*k), floats(k*5), Shape{M: m, K: k, N: 5})
		}, PanelWords(k, 5), 0},
		"few columns TA": takenByReduction(m, k, 5),

		"GEMMTA": takenByReduction(m, k, n),
		"wide":   takenByReduction(m, 2*narrowColumns, n),
		"EdgeSumGrad": {func(p *Pool) {
			back.EdgeSumGrad(p, floats(m*n), floats(lists*n), floats(entries*heads),
				RowGrad{Heads: heads, Cols: n / heads, Fresh: m})
		}, 0, EdgeGradWords(heads, n/heads)},
		"EdgeSumSharedGrad": {func(p *Pool) {
			back.EdgeSumSharedGrad(p, floats(m*n), floats(lists*heads*n), floats(entries*heads),
				RowGrad{Heads: heads, Cols: n, Fresh: m})
		}, 0, EdgeGradWords(heads, n)},
	} {
		for _, workers := range []int{1, 3} {
			p := NewPool(workers)
			c.run(p)
			if got, most := p.Bytes(), 4*int64(c.once+workers*c.each); got > most || got == 0 ||
				c.each == 0 && got < most/5 {
				t.Errorf("%s with %d workers takes %d bytes, %d are counted", name, workers, got,
					most)
			}
			p.Close()
		}
	}
}

// takenByReduction is GEMMTA.
func takenByReduction(m, k, n int) (c struct {
	run        func(p *Pool)
	once, each int
}) {
	c.once, c.each = ReductionWords(m, k, n, k)
	c.run = func(p *Pool) {
		GEMMTA(p, make([]float32, k*n), make([]float32, m*k), make([]float32, m*n), Shape{M: m,
			K: k, N: n})
	}
	return c
}

// TestLargeScratchIsOne: a kernel's own buffer is large, those of workers are not, whatever the
// order in which they were given back.
func TestLargeScratchIsOne(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for i := range 6 {
		own := p.TakeFloats(1000 * (1 + i%2))
		a, b := p.TakeFloats(10), p.TakeFloats(10)
		p.GiveFloats(own)
		p.GiveFloats(a)
		p.GiveFloats(b)
		a, b = p.TakeFloats(12), p.TakeFloats(12)
		p.GiveFloats(b)
		p.GiveFloats(a)
	}
	if got := p.Bytes(); got > 4*(2000+12+12) {
		t.Errorf("%d bytes are held", got)
	}
}
