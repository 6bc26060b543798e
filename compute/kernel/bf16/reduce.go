package bf16

import (
	"unsafe"

	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// GEMMTA is C(k,n) (+)= Aᵀ·B for A(m,k) and B(m,n): the gradient of a weight.
func GEMMTA(p *kernel.Pool, c []float32, a, b []Number, s kernel.Shape) {
	if s.Heads > 1 {
		gemmHeadsTA(p, c, a, b, s)
		return
	}
	c, a, b = c[:s.K*s.N], a[:s.M*s.K], b[:s.M*s.N]
	switch {
	case s.K == 0 || s.N == 0:
		return
	case s.M == 0:
		if !s.Add {
			clear(c)
		}
		return
	}
	r := reduction{ops: level(), c: c, a: a, b: b, m: s.M, k: s.K, n: s.N, lda: s.K, ldb: s.N,
		accumulate: s.Add}
	r.compute(p)
}

// compute is the product for m, k and n above 0.
func (r *reduction) compute(p *kernel.Pool) {
	k, n := r.k, r.n
	r.plan(p.Workers())
	r.partial = p.TakeFloats((r.slabs - 1) * k * n)
	p.Run(r.slabs*r.groups, func(part int) { r.part(p, part/r.groups, part%r.groups) })
	if r.slabs > 1 {
		p.Span(k*n, sumPart, r.sum)
	}
	p.GiveFloats(r.partial)
}

// gemmHeadsTA is C(k,heads·n) (+)= Aᵀ·B for A(m,heads·k) and B(m,heads·n), for the columns of each
// head.
func gemmHeadsTA(p *kernel.Pool, c []float32, a, b []Number, s kernel.Shape) {
	if c = c[:s.K*s.Heads*s.N]; s.M == 0 && !s.Add {
		clear(c)
	}
	if s.M*len(c) == 0 {
		return
	}
	own := p.TakeFloats(s.K * s.N)
	for h := range s.Heads {
		r := reduction{ops: level(), c: own, a: a[h*s.K:], b: b[h*s.N:], m: s.M, k: s.K, n: s.N,
			lda: s.Heads * s.K, ldb: s.Heads * s.N}
		r.compute(p)
		for i := range s.K {
			row := c[(i*s.Heads+h)*s.N:][:s.N]
			if !s.Add {
				clear(row)
			}
			kernel.Add(nil, row, own[i*s.N:(i+1)*s.N])
		}
	}
	p.GiveFloats(own)
}

const (
	// slabRowsMin is how many rows of A and B are reduced to one partial C at least: at fewer,
	// writing and adding the partial sums costs more than 4 % of the products.
	slabRowsMin = 2048
	// slabsMax and slabFloatsMax bound the partial sums.
	slabsMax      = 32
	slabFloatsMax = 4 << 20
	// partsMin is how many parts a product is cut into at least, so that workers end together.
	partsMin = 8
	// groupPanels is the fewest panels of columns of a part: each packs all of A.
	groupPanels = 2
	// blockRows is how many rows of A and B are packed to stay in the second-level cache, and a
	// panel of B in the first-level cache, while the tiles of C pass by.
	blockRows = 256
	// groupColumns is the unit in which columns are cut at all levels.
	groupColumns = 32
	// sumPart is how many values of C a part of adding partial sums has.
	sumPart = 16 << 10
)

// reduction is one product Aᵀ·B. The rows of A and B are cut into slabs, each of which gives a
// partial C; if those are few, the columns of C are cut too.
type reduction struct {
	*ops
	c          []float32
	a, b       []Number
	m, k, n    int
	lda, ldb   int // how far apart rows of A and of B are, in values
	accumulate bool

	slabs, slabRows   int
	groups, groupCols int
	partial           []float32
}

// plan cuts the product: into slabs by its shape alone, since they decide about sums.
func (r *reduction) plan(workers int) {
	most, parts := slabsMax, partsMin
	if r.blocks != nil { // what is not a product costs more beside one
		most, parts = blockSlabsMax, workers
	}
	slabs := min(r.m/slabRowsMin, most, slabFloatsMax/(r.k*r.n))
	r.slabRows = partsOf(partsOf(r.m, max(1, slabs)), 2) * 2
	r.slabs = partsOf(r.m, r.slabRows)
	groups := min(partsOf(parts, r.slabs), partsOf(r.n, groupPanels*groupColumns))
	r.groupCols = partsOf(partsOf(r.n, groupColumns), groups) * groupColumns
	r.groups = partsOf(r.n, r.groupCols)
}

// group is some columns of C, and memory for packed rows of A and B.
type group struct {
	j0, j1 int
	as, bs []uint32
}

// part computes a group of the partial C of a slab. The first slab's is C itself.
func (r *reduction) part(p *kernel.Pool, slab, number int) {
	c, add := r.c, r.accumulate
	if slab > 0 {
		c, add = r.partial[(slab-1)*r.k*r.n:], false
	}
	g := group{j0: number * r.groupCols}
	g.j1 = min(g.j0+r.groupCols, r.n)
	if r.blocks != nil {
		r.blockPart(p, c, slab*r.slabRows, g.j0, g.j1, add)
		return
	}
	wide := partsOf(r.k, r.tiles.wide()) * r.tiles.wide()
	cols := partsOf(g.j1-g.j0, r.tiles.width()) * r.tiles.step()
	packed := p.TakeWords(blockRows / 2 * (wide + cols))
	g.as, g.bs = packed[:blockRows/2*wide], packed[blockRows/2*wide:]
	end := min((slab+1)*r.slabRows, r.m)
	for i := slab * r.slabRows; i < end; i += blockRows {
		r.block(&g, c, i, end, add)
		add = true
	}
	p.GiveWords(packed)
}

// block adds the products of some rows of A and B, from row i on, to a group of C, or writes them
// there.
func (r *reduction) block(g *group, c []float32, i, end int, add bool) {
	t, rows := r.tiles, min(blockRows, end-i)
	pairs, w, tall := partsOf(rows, 2), r.tiles.width(), r.tiles.wide()
	t.packColumns(g.as, r.a[i*r.lda:], rows, r.k, r.lda, pairs*tall)
	t.packRows(g.bs, r.b[i*r.ldb+g.j0:], rows, g.j1-g.j0, r.ldb, pairs*t.step())
	mode := uint64(0)
	if add {
		mode = modeAccumulate
	}
	a := mem.View[Number](mem.BytesOf(g.as))
	next := r.next(g, i+blockRows, end)
	for j := g.j0; j < g.j1; j += w {
		bs := g.bs[(j-g.j0)/w*pairs*t.step():]
		for q := 0; q < r.k; q += tall {
			count := min(tall, r.k-q)
			t.column(count, pairs, a[2*q*pairs:], strides{2, 2 * tall}, bs, c[q*r.n+j:], r.n,
				min(w, g.j1-j), mode, next.of(count/t.rows[0]*pairs))
		}
	}
}

// fetch is what the tiles of a block ask for: the rows of the next one, of A and then of B.
type fetch struct{ from, end, more, moreEnd uintptr }

// next returns the rows from row i on.
func (r *reduction) next(g *group, i, end int) *fetch {
	rows := min(blockRows, end-i)
	if rows <= 0 {
		return &fetch{}
	}
	f := &fetch{from: address(r.a[i*r.lda:]), more: address(r.b[i*r.ldb:])}
	f.end, f.moreEnd = f.from+uintptr(2*rows*r.k), f.more+uintptr(2*rows*r.n)
	return f
}

// of returns what the next steps ask for, a line each.
func (f *fetch) of(steps int) ahead {
	if f.from >= f.end {
		f.from, f.end, f.more, f.moreEnd = f.more, f.moreEnd, 0, 0
	}
	if f.from >= f.end {
		return ahead{}
	}
	a := ahead{f.from, lineBytes}
	f.from += uintptr(steps * lineBytes)
	return a
}

// address returns where x begins.
func address(x []Number) uintptr { return uintptr(unsafe.Pointer(&x[0])) }

// sum adds the partial sums to values lo to hi-1 of C, slab by slab.
func (r *reduction) sum(lo, hi int) {
	for s := range r.slabs - 1 {
		kernel.Add(nil, r.c[lo:hi], r.partial[s*r.k*r.n:][lo:hi])
	}
}
