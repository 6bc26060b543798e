package bf16

import (
	"unsafe"

	"gdb/compute/kernel"
)

// Value is what results are: the sums, or the nearest Number of each.
type Value interface{ float32 | Number }

// GEMM is C(m,n) (+)= A(m,k)·B(k,n), and for the columns of each head: see kernel.GEMM.
func GEMM[T Value](p *kernel.Pool, c []T, a, b []Number, s kernel.Shape) {
	gemm(p, level(), c, a, b, s)
}

func gemm[T Value](p *kernel.Pool, o *ops, c []T, a, b []Number, s kernel.Shape) {
	heads := max(1, s.Heads)
	r := product{ops: o, c: resultOf(c[:s.M*heads*s.N]), a: a[:s.M*heads*s.K], k: s.K, n: s.N,
		heads: heads}
	b = b[:s.K*heads*s.N]
	r.multiply(p, s.M, s.Add, func(panel []uint32, h, lo, width int) {
		r.tiles.packRows(panel, b[h*s.N+lo:], s.K, width, heads*s.N, 0)
	})
}

// GEMMTB is C(m,k) (+)= A(m,n)·Bᵀ for B(k,n), and for the columns of each head: the gradient of an
// input.
func GEMMTB[T Value](p *kernel.Pool, c []T, a, b []Number, s kernel.Shape) {
	heads := max(1, s.Heads)
	r := product{ops: level(), c: resultOf(c[:s.M*heads*s.K]), a: a[:s.M*heads*s.N], k: s.N,
		n: s.K, heads: heads}
	b = b[:s.K*heads*s.N]
	r.multiply(p, s.M, s.Add, func(panel []uint32, h, lo, width int) {
		r.tiles.packTransposed(panel, b[lo*heads*s.N+h*s.N:], s.N, width, heads*s.N)
	})
}

// result is a matrix of floats or of Numbers: the other is nil.
type result struct {
	floats  []float32
	numbers []Number
}

func resultOf[T Value](c []T) result {
	switch c := any(c).(type) {
	case []float32:
		return result{floats: c}
	case []Number:
		return result{numbers: c}
	}
	panic("BUG: a result is of float32 or Number")
}

const (
	// stepsMax is the longest reduction in one go, in pairs: a panel of B of this length stays in
	// the first-level cache while the rows of A pass by. It is the same at all levels, as the
	// results are.
	stepsMax = 192
	// chunkRows is the rows of A that stay in the second-level cache while the panels pass by.
	chunkRows = 96
	// partProducts is about how many multiplications make a part.
	partProducts = 8 << 20
	// streamLeast is the size of a C in bytes that no cache keeps until it is read again: what is
	// not read before it is written saves a third of the traffic.
	streamLeast = 16 << 20
	// lineBytes is what memory gives at once.
	lineBytes = 64
)

// product is A·B for a B that is packed, for each of some heads, whose columns lie beside each
// other in a row: see kernel.GEMM. It is computed by chunks of rows, and by steps.
type product struct {
	*ops
	c           result
	a           []Number
	panels      []uint32 // of B, head after head
	k, n, heads int      // k steps and n columns of each head
	stream      bool
}

// lda and ldc are how far apart rows of A and of C are, in values.
func (r *product) lda() int { return r.heads * r.k }
func (r *product) ldc() int { return r.heads * r.n }

// words returns the words of a panel of B, and parts the panels of a head.
func (r *product) words() int { return r.tiles.pairs(r.k) * r.tiles.step() }
func (r *product) parts() int { return partsOf(r.n, r.tiles.width()) }

// multiply computes m rows, where pack writes width columns of B of head h, from lo on, to a panel.
func (r *product) multiply(p *kernel.Pool, m int, accumulate bool,
	pack func(panel []uint32, h, lo, width int)) {
	if m == 0 || r.n == 0 {
		return
	}
	w, words, parts := r.tiles.width(), r.words(), r.parts()
	r.panels = p.TakeWords(max(1, r.heads*parts*words))
	if r.k > 0 {
		p.Run(r.heads*parts, func(i int) {
			panel, lo := r.panels[i*words:][:words], i%parts*w
			pack(panel, i/parts, lo, min(w, r.n-lo))
			r.tiles.pad(panel, r.k)
		})
	}
	r.stream = !accumulate && r.streams(m)
	p.Span(m, partRows(r.k*r.ldc()), func(lo, hi int) {
		for i := lo; i < hi; i += chunkRows {
			end := min(i+chunkRows, hi)
			r.c.part(i*r.ldc(), end*r.ldc()).compute(p, r.ops, accumulate, func(sums []float32) {
				for h := range r.heads {
					of := *r
					of.a, of.panels = r.a[min(h*r.k, len(r.a)):], r.panels[h*parts*words:]
					of.rows(p, sums[h*r.n:], i, end-i, accumulate)
				}
			})
		}
	})
	p.GiveWords(r.panels)
}

// partRows returns how many rows make a part, given the multiplications of a row.
func partRows(products int) int {
	return max(1, min(partProducts/max(1, products), 8*chunkRows)/chunkRows) * chunkRows
}

// streams reports whether a C of m rows may be written past the caches, and should.
func (r *product) streams(m int) bool {
	w := r.tiles.width()
	return r.c.floats != nil && 4*m*r.n >= streamLeast && r.n%w == 0 &&
		r.heads == 1 && r.k <= 2*stepsMax &&
		uintptr(unsafe.Pointer(&r.c.floats[0]))%uintptr(4*r.tiles.lanes) == 0
}

// rows computes rows of the product, from row i on, to c.
func (r *product) rows(p *kernel.Pool, c []float32, i, rows int, accumulate bool) {
	if r.k == 0 {
		for i := 0; i < rows && !accumulate; i++ {
			clear(c[i*r.ldc():][:r.n])
		}
		return
	}
	if r.blocks != nil {
		r.blockRows(p, c, i, rows, accumulate)
		return
	}
	w, step, words := r.tiles.width(), r.tiles.step(), r.words()
	mode := uint64(0)
	switch {
	case accumulate:
		mode = modeAccumulate
	case r.stream:
		mode = modeStream
	}
	pairs, next := r.k/2, r.next(i+chunkRows, rows)
	for s := 0; s == 0 || s < partsOf(r.k, 2); s += stepsMax {
		now := min(stepsMax, pairs-s)
		if r.k%2 != 0 && s+now == pairs && now < stepsMax {
			mode |= modeHalf
		}
		for j := 0; j < r.n; j += w {
			r.tiles.column(rows, now, r.a[i*r.lda()+2*s:], strides{r.lda(), 2},
				r.panels[j/w*words+s*step:], c[j:], r.ldc(), min(w, r.n-j), mode, next)
			if next.at != 0 {
				next.at += uintptr(rows/r.tiles.rows[0]*now) * next.step
			}
		}
		mode = modeAccumulate
	}
}

// next returns how the rows of A from row i on are asked for while as many are computed: all their
// lines once, spread over all steps of tiles.
func (r *product) next(i, rows int) ahead {
	at, end := i*r.lda(), min(len(r.a), (i+rows)*r.lda())
	steps := rows / r.tiles.rows[0] * (r.k / 2) * r.parts()
	if at >= end || steps == 0 {
		return ahead{}
	}
	bytes := 2 * (end - at)
	return ahead{uintptr(unsafe.Pointer(&r.a[at])), uintptr(min(lineBytes, bytes/steps+1))}
}

// packTransposed packs width rows of b, of k values each and stride apart, to the columns of a
// panel.
func (t *tileSet) packTransposed(panel []uint32, b []Number, k, width, stride int) {
	as := packing{width: t.width(), step: t.step(), widened: t.widened}
	if width < as.width {
		clear(panel)
	}
	for j := range width {
		row := b[j*stride:][:k]
		for i := 0; i+1 < k; i += 2 {
			as.put(panel[i/2*as.step:], j, row[i], row[i+1])
		}
		if k%2 != 0 {
			as.put(panel[k/2*as.step:], j, row[k-1], 0)
		}
	}
}
