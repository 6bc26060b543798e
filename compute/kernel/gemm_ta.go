package kernel

// GEMMTA is C(k,n) (+)= Aᵀ·B for A(m,k) and B(m,n), and for the columns of each head: the gradient
// of a weight.
func GEMMTA(p *Pool, c, a, b []float32, s Shape) {
	heads := s.heads()
	n, k := heads*s.N, heads*s.K
	c, a, b = c[:s.K*n], a[:s.M*k], b[:s.M*n]
	for h := range heads {
		productTA(p, columns(c, n, h*s.N), columns(a, k, h*s.K), columns(b, n, h*s.N), s)
	}
}

// ReductionWords returns the scratch memory of GEMMTA, in words of 4 bytes: that of partial sums,
// and of blocks that each worker packs. Rows of A are stride values apart.
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
func productTA(p *Pool, c, a, b view, s Shape) {
	tiles := level().tiles
	if tiles == nil || s.M == 0 {
		plainRows(p, s.K, s.M*s.N, func(lo, hi int) { refGEMMTA(c, a, b, s, lo, hi) })
		return
	}
	if s.K == 0 || s.N == 0 {
		return
	}
	if isFew(s.K, s.N) {
		tiles.reduceFew(p, c, a, b, s)
		return
	}
	tiles.reduce(p, c, a, b, s)
}

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

func (t *tileSet) reduce(p *Pool, c, a, b view, s Shape) {
	r := &reduction{t: t, c: c, a: a, b: b, m: s.M, k: s.K, n: s.N, accumulate: s.Add}
	r.plan()
	r.partial = p.TakeFloats((r.slabs - 1) * s.K * s.N)
	p.Run(r.slabs*r.groups, func(part int) { r.part(p, part/r.groups, part%r.groups) })
	if r.slabs > 1 {
		p.Span(s.K*s.N, flatPart/4, r.sum)
	}
	p.GiveFloats(r.partial)
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

// group is some rows and columns of C, and memory for packed rows of A, if they are, and of B.
type group struct {
	q0, q1, j0, j1 int
	as, bs         []float32
}

// part computes a group of the partial C of a slab. The first slab's is C itself.
func (r *reduction) part(p *Pool, slab, number int) {
	w, tile := r.t.width(), r.t.rows[0]
	c, add := r.c, r.accumulate
	if slab > 0 {
		c, add = view{r.partial[(slab-1)*r.k*r.n:], r.n}, false
	}
	g := group{q0: number * r.groupRows}
	if r.narrow {
		g.q0, g.j0 = 0, number*r.groupCols
	}
	g.q1, g.j1 = min(g.q0+r.groupRows, r.k), min(g.j0+r.groupCols, r.n)
	wide := 0
	if !r.narrow {
		wide = partsOf(g.q1-g.q0, tile) * tile
	}
	packed := p.TakeFloats(blockRows * (wide + partsOf(g.j1-g.j0, w)*w))
	g.as, g.bs = packed[:blockRows*wide], packed[blockRows*wide:]
	end := min((slab+1)*r.slabRows, r.m)
	for i := slab * r.slabRows; i < end; i += blockRows {
		r.block(&g, c, i, end, add)
		add = true
	}
	p.GiveFloats(packed)
}

// block adds the products of some rows of A and B, from row i on, to a group of C, or writes them
// there.
func (r *reduction) block(g *group, c view, i, end int, add bool) {
	w, tile, rows := r.t.width(), r.t.rows[0], min(blockRows, end-i)
	if !r.narrow {
		r.t.pack[1](&g.as[0], &r.a.x[i*r.a.stride+g.q0], rows, g.q1-g.q0, uintptr(r.a.stride)*4,
			uintptr(rows*tile)*4)
	}
	r.t.pack[0](&g.bs[0], &r.b.x[i*r.b.stride+g.j0], rows, g.j1-g.j0, uintptr(r.b.stride)*4,
		uintptr(rows*w)*4)
	tiles := 0
	for j := g.j0; j < g.j1; j += w {
		for q := g.q0; q < g.q1; tiles++ {
			next, wide := r.after(g, i+blockRows, end, tiles), min(tile, g.q1-q)
			a, as := r.a.from(i, q).x, strides{1, r.a.stride}
			if !r.narrow {
				a, as = g.as[(q-g.q0)*rows:], strides{1, tile}
			} else if next.at == 0 {
				wide = g.q1 - q // all tiles that are left at once
			}
			r.t.column(wide, rows, a, as, g.bs[(j-g.j0)*rows:], w, c.x[q*c.stride+j:], c.stride,
				min(w, r.n-j), word(add), next)
			q += wide
		}
	}
}

// after returns what the tile of such a number fetches of the block from row i on: a line of each
// row of A, or after these a line of each row of B. Where it takes several tiles to fetch a line of
// each row, they take some of the rows each.
func (r *reduction) after(g *group, i, end, tile int) ahead {
	if i >= end {
		return ahead{}
	}
	i += tile % r.t.fetches * (blockRows / r.t.fetches)
	line, lines := tile/r.t.fetches, linesOf(g.q1-g.q0)
	if line < lines {
		return r.a.ahead(i, g.q0).from(line, lines)
	}
	return r.b.ahead(i, g.j0).from(line-lines, linesOf(g.j1-g.j0))
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
