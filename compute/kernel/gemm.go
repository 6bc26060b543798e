package kernel

import "unsafe"

// GEMM is C(m,n) (+)= A(m,k)·B(k,n): C is added to if Add is set, and else overwritten. Each of
// several heads has columns of its own in all matrices, those of a head side by side: it is
// C(m,heads*n) (+)= A(m,heads*k)·B(k,heads*n), head by head.
func GEMM(p *Pool, c, a, b []float32, s Shape) {
	heads := s.heads()
	n, k := heads*s.N, heads*s.K
	c, a, b = c[:s.M*n], a[:s.M*k], b[:s.K*n]
	for h := range heads {
		product(p, columns(c, n, h*s.N), columns(a, k, h*s.K), columns(b, n, h*s.N), s)
	}
}

// columns returns the view of a matrix from a column on; empty matrices have no columns.
func columns(x []float32, stride, column int) view {
	return view{x[min(column, len(x)):], stride}
}

// product is GEMM of views.
func product(p *Pool, c, a, b view, s Shape) {
	tiles := level().tiles
	if tiles == nil || s.K == 0 {
		plainRows(p, s.M, s.K*s.N, func(lo, hi int) {
			refGEMM(c.from(lo, 0), a.from(lo, 0), b, Shape{M: hi - lo, K: s.K, N: s.N, Add: s.Add})
		})
		return
	}
	if isFew(s.K, s.N) {
		tiles.multiplyFew(p, c, a, b.x, strides{1, b.stride}, s)
		return
	}
	w := uintptr(tiles.width())
	tiles.multiply(p, c, a, s, func(panel []float32, lo, width int) {
		tiles.pack[0](&panel[0], &b.x[lo], s.K, width, uintptr(b.stride)*4, w*uintptr(s.K)*4)
	})
}

// PanelWords returns the scratch memory of GEMM for B(k,n), in words of 4 bytes: B in whole panels.
// That of GEMMTB is PanelWords(n, k).
func PanelWords(k, n int) int {
	if t := level().tiles; t != nil {
		if isFew(k, n) {
			return partsOf(n, fewOnce) * t.fewWords(k)
		}
		return partsOf(n, t.width()) * t.width() * k
	}
	return 0
}

// GEMMTB is C(m,k) (+)= A(m,n)·Bᵀ for B(k,n), and for the columns of each head: the gradient of an
// input.
func GEMMTB(p *Pool, c, a, b []float32, s Shape) {
	heads := s.heads()
	n, k := heads*s.N, heads*s.K
	c, a, b = c[:s.M*k], a[:s.M*n], b[:s.K*n]
	for h := range heads {
		productTB(p, columns(c, k, h*s.K), columns(a, n, h*s.N), columns(b, n, h*s.N), s)
	}
}

// productTB is GEMMTB of views.
func productTB(p *Pool, c, a, b view, s Shape) {
	tiles := level().tiles
	if tiles == nil || s.N == 0 {
		plainRows(p, s.M, s.K*s.N, func(lo, hi int) {
			refGEMMTB(c.from(lo, 0), a.from(lo, 0), b, Shape{M: hi - lo, N: s.N, K: s.K,
				Add: s.Add})
		})
		return
	}
	if isFew(s.N, s.K) {
		tiles.multiplyFew(p, c, a, b.x, strides{b.stride, 1}, Shape{M: s.M, K: s.N, N: s.K,
			Add: s.Add})
		return
	}
	tiles.multiply(p, c, a, Shape{M: s.M, K: s.N, N: s.K, Add: s.Add}, func(panel []float32, lo,
		width int) {
		packColumns(panel, b.from(lo, 0), s.N, width, tiles.width())
	})
}

// plainRows cuts the rows of a product without vectors into parts of about a million
// multiplications.
func plainRows(p *Pool, rows, perRow int, fn func(lo, hi int)) {
	p.Span(rows, max(1, 1<<20/max(1, perRow)), fn)
}

const (
	// modeAccumulate adds to C.
	modeAccumulate = 1 << iota
	// modeStream overwrites C past the caches. Its rows are whole and aligned vectors, two of them.
	modeStream

	// streamLeast is the size of a C in bytes that no cache keeps until it is read again: what is
	// not read before it is written saves a third of the traffic.
	streamLeast = 16 << 20
)

// width returns the columns of a panel of B: two vectors.
func (t *tileSet) width() int { return 2 * t.lanes }

// ahead is where rows are that are read next: an address, and how far apart rows are. What is
// not in a cache then comes while tiles are computed.
type ahead struct{ at, row uintptr }

// lineBytes is what memory gives at once.
const lineBytes = 64

// linesOf returns how many lines n values are in.
func linesOf(n int) int { return partsOf(4*n, lineBytes) }

// ahead returns the rows from row i and column j on, or nothing if there are none.
func (v view) ahead(i, j int) ahead {
	at := i*v.stride + j
	if at >= len(v.x) {
		return ahead{}
	}
	return ahead{uintptr(unsafe.Pointer(&v.x[at])), uintptr(v.stride) * 4}
}

// from returns the rows from a line on, or nothing if they have fewer lines.
func (a ahead) from(line, lines int) ahead {
	if a.at == 0 || line >= lines {
		return ahead{}
	}
	return ahead{a.at + uintptr(line*lineBytes), a.row}
}

// column computes rows x width of C, width being at most that of a panel, as columns of tiles,
// the largest that fit first, while lines of the next rows are fetched, one for each tile.
//
//lint:parameters called for each column of tiles, with all in registers
func (t *tileSet) column(rows, k int, a []float32, as strides, b []float32, bStep int,
	c []float32, cRow, width int, mode uint64, next ahead) {
	if next.at == 0 {
		next.at = uintptr(unsafe.Pointer(&b[0])) // which is there
	}
	vectors := partsOf(width, t.lanes)
	lanes := width - (vectors-1)*t.lanes
	for i, done := 0, 0; done < rows; i++ {
		tiles := (rows - done) / t.rows[i]
		if tiles == 0 {
			continue
		}
		t.fn[vectors-1][i](tiles, k, &a[done*as.row], uintptr(as.row)*4, uintptr(as.step)*4,
			&b[0], uintptr(bStep)*4, &c[done*cRow], uintptr(cRow)*4, lanes, mode,
			next.at, next.row)
		done += tiles * t.rows[i]
	}
}

const (
	// stepsMax is the longest reduction in one go: a panel of B of this length stays in the
	// first-level cache while the rows of A pass by.
	stepsMax = 384
	// partProducts is about how many multiplications make a part, and partRows the most rows of A
	// that stay in the second-level cache while the panels pass by: fewer if A is narrow, so that a
	// column of tiles, each of which fetches a line of the next rows, has no more than there are.
	partProducts = 4 << 20
	partRows     = 120
	// aheadLeast is the narrowest A whose next rows are fetched. A tile of a narrower one has too
	// few steps to fetch a line of each row.
	aheadLeast = 64
)

// multiply is C(m,n) (+)= A(m,k)·B(k,n), where pack writes width columns of B, from lo on, to a
// panel. All of B is packed once: n·k floats.
func (t *tileSet) multiply(p *Pool, c, a view, s Shape, pack func(panel []float32, lo, width int)) {
	if s.M == 0 || s.N == 0 {
		return
	}
	w := t.width()
	panels := p.TakeFloats(partsOf(s.N, w) * w * s.K)
	p.Span(s.N, w, func(lo, hi int) { pack(panels[lo*s.K:(lo+w)*s.K], lo, hi-lo) })
	r := rowProduct{t: t, c: c, a: a, panels: panels, k: s.K, n: s.N, mode: word(s.Add)}
	r.plan()
	if !s.Add && r.steps == s.K && t.streams(c, s.M, s.N) {
		r.mode = modeStream
	}
	rows := max(1, min(partProducts/(s.K*s.N), 8*partRows)/r.chunk) * r.chunk
	p.Span(s.M, rows, func(lo, hi int) {
		chunk := hi - lo
		if r.lines > 0 {
			chunk = r.chunk
		}
		for i := lo; i < hi; i += chunk {
			r.rows(i, min(chunk, hi-i))
		}
	})
	p.GiveFloats(panels)
}

// rowProduct is a product A·B whose B is packed. It is computed by chunks of rows, and by steps.
type rowProduct struct {
	t      *tileSet
	c, a   view
	panels []float32
	k, n   int
	mode   uint64

	chunk, steps int
	lines        int // of a row of A that are fetched in a chunk and its steps
}

// plan cuts the product by its shape alone.
func (r *rowProduct) plan() {
	r.steps = partsOf(r.k, partsOf(r.k, stepsMax))
	r.chunk = partRows
	if r.k >= aheadLeast {
		r.lines = linesOf(r.steps)
		r.chunk = min(partRows, r.lines*r.t.rows[0])
	}
}

// rows computes rows of C, from row i on.
func (r *rowProduct) rows(i, rows int) {
	w, mode := r.t.width(), r.mode
	for s := 0; s < r.k; s += r.steps {
		row, col := i, s+r.steps
		if col >= r.k {
			row, col = i+r.chunk, 0
		}
		for j := 0; j < r.n; j += w {
			tiles := j / w * (r.chunk / r.t.rows[0]) // before these
			r.t.column(rows, min(r.steps, r.k-s), r.a.x[i*r.a.stride+s:], strides{r.a.stride, 1},
				r.panels[j*r.k+s*w:], w, r.c.x[i*r.c.stride+j:], r.c.stride, min(w, r.n-j), mode,
				r.next(row, col, tiles))
		}
		mode = modeAccumulate
	}
}

// next returns what tiles fetch of the chunk at row i and column j, after some others: a line each,
// of as many rows as a tile fetches, and when all lines are under way, of the rows that follow.
func (r *rowProduct) next(i, j, tiles int) ahead {
	if r.lines == 0 {
		return ahead{}
	}
	done := tiles / r.lines * (r.steps / r.t.fetches)
	if done >= r.chunk {
		return ahead{}
	}
	return r.a.ahead(i+done, j).from(tiles%r.lines, r.lines)
}

// streams reports whether the tiles of a C with rows of n values may be written past the caches,
// and should.
func (t *tileSet) streams(c view, m, n int) bool {
	aligned := uintptr(unsafe.Pointer(&c.x[0]))%(4*uintptr(t.lanes)) == 0 && c.stride%t.lanes == 0
	return 4*m*c.stride >= streamLeast && n%t.width() == 0 && aligned
}

// packColumns copies width rows of b, of k values each, to the columns of a panel, of which the
// last are zero.
func packColumns(panel []float32, b view, k, width, w int) {
	if width < w {
		clear(panel)
	}
	for j := range width {
		for i, v := range b.row(j, k) {
			panel[i*w+j] = v
		}
	}
}
