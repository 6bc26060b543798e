package kernel

// ByType says which rows of a product have which matrix. Row i has the type Types[i], whose matrix
// is Parts[Types[i]] rows of a stack of them, one below the other in the order of types. A row of
// the other factor has Width values, of which its type reads as many as its matrix has rows.
type ByType struct {
	Types []uint32
	Parts []int
	Width int
	// Heads are parts of equal width that columns of all are in, 0 for one, each with a product of
	// its own, as in GEMM. With several all matrices have Width/Heads rows.
	Heads int
	// N is the width of the matrices, and Add adds to the result.
	N   int
	Add bool
	// Off says, if it is not nil, that products are summed up: those of rows Off[i] to Off[i+1] of
	// A, whose types ascend, are row i of the result. So gradients of the result have a row for
	// each of these lists too.
	Off []uint32
}

// typedRows is how many rows of a type that do not follow each other are brought together at once:
// with 128 columns on each side they take 2 MiB, which the second-level cache holds.
const typedRows = 2048

// GEMMByType is C(m,n) (+)= A(m,width)·B, B being the matrix of each row's type. It takes time
// O(m·width·n), and moves rows of types that are mixed once more, through a cache.
func GEMMByType(p *Pool, c, a, b []float32, t ByType) {
	if t.Off != nil && !t.Add {
		clear(c)
		t.Add = true
	}
	t.each(p, func(g typeRows) {
		s, w := t.shape(g), view{b[g.first*t.N:], t.N}
		in, gathered := g.rows.gather(p, view{a, t.Width}, s.heads()*s.K)
		if at, ok := g.sums.together(); ok {
			s.Add = t.Add
			s.each(p, product, view{c[at*t.N:], t.N}, in, w)
		} else {
			out := p.TakeFloats(s.M * t.N)
			s.each(p, product, view{out, t.N}, in, w)
			g.sums.scatter(p, view{c, t.N}, out, t.N, t.Add)
			p.GiveFloats(out)
		}
		p.GiveFloats(gathered)
	})
}

// GEMMTBByType is C(m,width) (+)= A(m,n)·Bᵀ: the gradient of the rows. What a type does not read
// of them has none.
func GEMMTBByType(p *Pool, c, a, b []float32, t ByType) {
	t.each(p, func(g typeRows) {
		s, w := t.shape(g), view{b[g.first*t.N:], t.N}
		k := s.heads() * s.K
		in, gathered := g.sums.gather(p, view{a, t.N}, t.N)
		if at, ok := g.rows.together(); ok && k == t.Width {
			s.Add = t.Add
			s.eachTB(p, view{c[at*t.Width:], t.Width}, in, w)
		} else {
			out := p.TakeFloats(s.M * k)
			s.eachTB(p, view{out, k}, in, w)
			g.rows.scatter(p, view{c, t.Width}, out, k, t.Add)
			p.GiveFloats(out)
		}
		p.GiveFloats(gathered)
	})
}

// GEMMTAByType is C (+)= Aᵀ·B for A(m,width) and B(m,n), by type: the gradient of the matrices.
// Those of types without rows have none.
func GEMMTAByType(p *Pool, c, a, b []float32, t ByType) {
	if !t.Add {
		clear(c)
	}
	t.each(p, func(g typeRows) {
		s, w := t.shape(g), view{c[g.first*t.N:], t.N}
		s.Add = true
		x, ofX := g.rows.gather(p, view{a, t.Width}, s.heads()*s.K)
		dy, ofY := g.sums.gather(p, view{b, t.N}, t.N)
		s.each(p, productTA, w, x, dy)
		p.GiveFloats(ofY)
		p.GiveFloats(ofX)
	})
}

// ByTypeWords returns the scratch memory of any of the three for m rows, in words of 4 bytes: what
// is taken once, and by each worker. Of t it reads what does not depend on rows.
func ByTypeWords(m int, t ByType) (once, each int) {
	heads := max(1, t.Heads)
	n := t.N / heads
	for _, k := range t.Parts {
		reduced, worker := ReductionWords(m, k, n, max(t.Width, t.N))
		part, also := ReductionWords(min(m, typedRows), k, n, max(t.Width, t.N))
		products := max(PanelWords(k, n), PanelWords(n, k), part)
		once = max(once, min(m, typedRows)*heads*(k+n)+products, reduced)
		each = max(each, worker, also)
	}
	return once + 2*m + len(t.Parts) + 1, each
}

// shape returns the shape of the product of rows of a type, of each head.
func (t *ByType) shape(g typeRows) Shape {
	heads := max(1, t.Heads)
	return Shape{M: len(g.rows), K: t.Parts[g.kind], N: t.N / heads, Heads: heads}
}

// each does a product of views for each head: of columns of A and B, and of C.
func (s Shape) each(p *Pool, do func(p *Pool, c, a, b view, s Shape), c, a, b view) {
	for h := range s.heads() {
		do(p, c.from(0, h*s.N), a.from(0, h*s.K), b.from(0, h*s.N), s)
	}
}

// eachTB is each of productTB, whose C has K columns for a head, and A N.
func (s Shape) eachTB(p *Pool, c, a, b view) {
	for h := range s.heads() {
		productTB(p, c.from(0, h*s.K), a.from(0, h*s.N), b.from(0, h*s.N), s)
	}
}

// typeRows are rows of one type, in ascending order, and the rows of the result that each goes to;
// the type's matrix begins at row first of the stack.
type typeRows struct {
	kind, first int
	rows, sums  rowNumbers
}

// rowNumbers are rows of a matrix, in ascending order.
type rowNumbers []uint32

// each calls fn with the rows of each type: all at once if they follow each other, else typedRows
// at a time.
func (t *ByType) each(p *Pool, fn func(g typeRows)) {
	m := len(t.Types)
	words := p.TakeWords(2*m + len(t.Parts) + 1)
	defer p.GiveWords(words)
	rows, sums, ends := words[:m], words[m:2*m], words[2*m:]
	t.order(rows, sums, ends)
	begin, first := uint32(0), 0
	for k, part := range t.Parts {
		of := typeRows{kind: k, first: first, rows: rows[begin:ends[k]], sums: sums[begin:ends[k]]}
		begin, first = ends[k], first+part
		_, read := of.rows.together()
		if _, written := of.sums.together(); read && written {
			fn(of)
			continue
		}
		for at := 0; at < len(of.rows); at += typedRows {
			end := min(at+typedRows, len(of.rows))
			few := of
			few.rows, few.sums = of.rows[at:end], of.sums[at:end]
			fn(few)
		}
	}
}

// order writes the rows of all types, one type behind the other, the rows of the result that each
// goes to, and where the rows of each type end.
func (t *ByType) order(rows, sums, ends []uint32) {
	clear(ends)
	for _, k := range t.Types {
		ends[k+1]++
	}
	for k := range t.Parts {
		ends[k+1] += ends[k]
	}
	sum := uint32(0)
	for i, k := range t.Types { // the begin of a type becomes its end
		for t.Off != nil && uint32(i) >= t.Off[sum+1] {
			sum++
		}
		rows[ends[k]], sums[ends[k]] = uint32(i), uint32(i)
		if t.Off != nil {
			sums[ends[k]] = sum
		}
		ends[k]++
	}
}

// together returns the first row, and whether all follow it.
func (r rowNumbers) together() (first int, ok bool) {
	n := len(r)
	if n == 0 {
		return 0, false
	}
	return int(r[0]), int(r[n-1]-r[0]) == n-1
}

// gather returns the first n values of the rows as a matrix: in x if they follow each other there,
// else in memory that the caller gives back.
func (r rowNumbers) gather(p *Pool, x view, n int) (m view, taken []float32) {
	if at, ok := r.together(); ok {
		return view{x.x[at*x.stride:], x.stride}, nil
	}
	taken = p.TakeFloats(len(r) * n)
	p.Span(len(r), rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(rowOf(taken, i, n), x.row(int(r[i]), n))
		}
	})
	return view{taken, n}, taken
}

// scatter writes what gather brings together back, or adds it. What rows have behind n values
// becomes zero where they are written.
func (r rowNumbers) scatter(p *Pool, to view, x []float32, n int, add bool) {
	p.Span(len(r), rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := to.row(int(r[i]), to.stride)
			if add {
				level().add(row[:n], rowOf(x, i, n))
				continue
			}
			clear(row[copy(row, rowOf(x, i, n)):])
		}
	})
}
