package kernel

// GEMMTA is C(k,n) (+)= Aᵀ·B for A(m,k) and B(m,n): the gradient of a weight.
func GEMMTA(p *Pool, c, a, b []float32, m, k, n int, accumulate bool) {
	c, a, b = c[:k*n], a[:m*k], b[:m*n]
	productTA(p, view{c, n}, view{a, k}, view{b, n}, m, k, n, accumulate)
}

// ReductionWords is the scratch memory of GEMMTA, in words of 4 bytes: that of partial sums, and of
// blocks that each worker packs. Rows of A are stride values apart.
func ReductionWords(m, k, n, stride int) (once, each int) {
	t := level().tiles
	if t == nil || m == 0 || k == 0 || n == 0 {
		return 0, 0
	}
	if isFew(k, n) {
		return partsOf(m, fewSlabs(m, k, n)) * partsOf(n, fewOnce) * t.fewWords(k), 0
	}
	slabs := max(1, min(m/slabRowsMin, slabsMax, slabFloatsMax/(k*n)))
	wide := n + t.width()
	if stride > narrowColumns {
		wide += k + t.rows[0]
	}
	return (slabs - 1) * k * n, blockRows * wide
}

// productTA is GEMMTA of views.
func productTA(p *Pool, c, a, b view, m, k, n int, accumulate bool) {
	tiles := level().tiles
	if tiles == nil || m == 0 {
		plainRows(p, k, m*n, func(lo, hi int) { refGEMMTA(c, a, b, m, n, lo, hi, accumulate) })
		return
	}
	if k == 0 || n == 0 {
		return
	}
	if isFew(k, n) {
		tiles.reduceFew(p, c, a, b, m, k, n, accumulate)
		return
	}
	tiles.reduce(p, c, a, b, m, k, n, accumulate)
}

const (
	// slabRowsMin is how many rows of A and B are reduced to one partial C at least: at fewer,
	// writing and adding the partial sums costs more than 4 % of the products.
	slabRowsMin = 1024
	// slabsMax and slabFloatsMax bound the partial sums.
	slabsMax      = 32
	slabFloatsMax = 4 << 20
	// partsMin is how many parts a product is cut into at least, so that workers end together.
	partsMin = 8
	// blockRows is how many rows of A and B are packed to stay in the second-level cache, and a
	// panel of B in the first-level cache, while the tiles of C pass by.
	blockRows = 160
	// narrowColumns is the widest A that is read where it is: a tile takes one or two lines of a
	// row, which the second-level cache has by then. Wider rows are too far apart.
	narrowColumns = 512
)

// reduction is one product Aᵀ·B. The rows of A and B are cut into slabs, each of which gives a
// partial C; if those are few, C is cut too: by columns if A is narrow, so that no two parts pack
// the same values of B, and else by rows, since most is packed from A.
type reduction struct {
	t          *tileSet
	c, a, b    view
	m, k, n    int
	accumulate bool

	slabs, slabRows int
	groups          int // of C, so large each
	groupRows       int
	groupCols       int
	narrow          bool
	partial         []float32
}

func (t *tileSet) reduce(p *Pool, c, a, b view, m, k, n int, accumulate bool) {
	r := &reduction{t: t, c: c, a: a, b: b, m: m, k: k, n: n, accumulate: accumulate}
	r.plan()
	r.partial = p.takeFloats((r.slabs - 1) * k * n)
	p.Run(r.slabs*r.groups, func(part int) { r.part(p, part/r.groups, part%r.groups) })
	if r.slabs > 1 {
		p.span(k*n, flatPart/4, r.sum)
	}
	p.giveFloats(r.partial)
}

// plan cuts the product by its shape alone.
func (r *reduction) plan() {
	slabs := min(r.m/slabRowsMin, slabsMax, slabFloatsMax/(r.k*r.n))
	r.slabRows = partsOf(r.m, max(1, slabs))
	r.slabs = partsOf(r.m, r.slabRows)
	r.narrow, r.groupRows, r.groupCols = r.a.stride <= narrowColumns, r.k, r.n
	cut, unit, least := &r.groupRows, r.t.rows[0], 4
	if r.narrow {
		cut, unit, least = &r.groupCols, r.t.width(), 2
	}
	all := *cut
	groups := min(partsOf(partsMin, r.slabs), partsOf(all, least*unit))
	*cut = partsOf(partsOf(all, unit), groups) * unit
	r.groups = partsOf(all, *cut)
}

// part computes a group of the partial C of a slab. The first slab's is C itself.
func (r *reduction) part(p *Pool, slab, group int) {
	w, tile := r.t.width(), r.t.rows[0]
	c, add := r.c, r.accumulate
	if slab > 0 {
		c, add = view{r.partial[(slab-1)*r.k*r.n:], r.n}, false
	}
	q0, j0 := group*r.groupRows, 0
	if r.narrow {
		q0, j0 = 0, group*r.groupCols
	}
	q1, j1 := min(q0+r.groupRows, r.k), min(j0+r.groupCols, r.n)
	wide := 0
	if !r.narrow {
		wide = partsOf(q1-q0, tile) * tile
	}
	packed := p.takeFloats(blockRows * (wide + partsOf(j1-j0, w)*w))
	as, bs := packed[:blockRows*wide], packed[blockRows*wide:]
	end := min((slab+1)*r.slabRows, r.m)
	for i := slab * r.slabRows; i < end; i += blockRows {
		rows := min(blockRows, end-i)
		if !r.narrow {
			r.t.pack[1](&as[0], &r.a.x[i*r.a.stride+q0], rows, q1-q0, uintptr(r.a.stride)*4,
				uintptr(rows*tile)*4)
		}
		r.t.pack[0](&bs[0], &r.b.x[i*r.b.stride+j0], rows, j1-j0, uintptr(r.b.stride)*4,
			uintptr(rows*w)*4)
		for j := j0; j < j1; j += w {
			b := bs[(j-j0)*rows:]
			if r.narrow {
				r.t.column(q1-q0, rows, r.a.x[i*r.a.stride+q0:], strides{1, r.a.stride}, b, w,
					c.x[q0*c.stride+j:], c.stride, min(w, r.n-j), word(add))
				continue
			}
			for q := q0; q < q1; q += tile {
				r.t.column(min(tile, q1-q), rows, as[(q-q0)*rows:], strides{1, tile},
					b, w, c.x[q*c.stride+j:], c.stride, min(w, r.n-j), word(add))
			}
		}
		add = true
	}
	p.giveFloats(packed)
}

// sum adds the partial sums to values lo to hi-1 of C, slab by slab.
func (r *reduction) sum(lo, hi int) {
	add := level().add
	for s := range r.slabs - 1 {
		partial := r.partial[s*r.k*r.n:][lo:hi]
		if r.c.stride == r.n {
			add(r.c.x[lo:hi], partial)
			continue
		}
		for at := lo; at < hi; {
			row, col := at/r.n, at%r.n
			n := min(r.n-col, hi-at)
			add(r.c.x[row*r.c.stride+col:][:n], partial[at-lo:][:n])
			at += n
		}
	}
}
