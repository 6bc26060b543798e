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
}

// typedRows is how many rows of a type that do not follow each other are brought together at once:
// with 128 columns on each side they take 2 MiB, which the second-level cache holds.
const typedRows = 2048

// GEMMByType is C(m,n) (+)= A(m,width)·B, B being the matrix of each row's type. It takes time
// O(m·width·n), and moves rows of types that are mixed once more, through a cache.
func GEMMByType(p *Pool, c, a, b []float32, t ByType) {
	t.each(p, func(g typeRows) {
		s, w := t.shape(g), view{b[g.first*t.N:], t.N}
		if at, ok := g.together(); ok {
			s.Add = t.Add
			s.each(p, product, view{c[at*t.N:], t.N}, view{a[at*t.Width:], t.Width}, w)
			return
		}
		k := s.heads() * s.K
		in, out := p.TakeFloats(s.M*k), p.TakeFloats(s.M*t.N)
		g.gather(p, in, view{a, t.Width}, k)
		s.each(p, product, view{out, t.N}, view{in, k}, w)
		g.scatter(p, view{c, t.N}, out, t.N, t.Add)
		p.GiveFloats(out)
		p.GiveFloats(in)
	})
}

// GEMMTBByType is C(m,width) (+)= A(m,n)·Bᵀ: the gradient of the rows. What a type does not read of
// them has none.
func GEMMTBByType(p *Pool, c, a, b []float32, t ByType) {
	t.each(p, func(g typeRows) {
		s, w := t.shape(g), view{b[g.first*t.N:], t.N}
		k := s.heads() * s.K
		if at, ok := g.together(); ok && k == t.Width {
			s.Add = t.Add
			s.eachTB(p, view{c[at*t.Width:], t.Width}, view{a[at*t.N:], t.N}, w)
			return
		}
		in, out := p.TakeFloats(s.M*t.N), p.TakeFloats(s.M*k)
		g.gather(p, in, view{a, t.N}, t.N)
		s.eachTB(p, view{out, k}, view{in, t.N}, w)
		g.scatter(p, view{c, t.Width}, out, k, t.Add)
		p.GiveFloats(out)
		p.GiveFloats(in)
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
		if at, ok := g.together(); ok {
			s.each(p, productTA, w, view{a[at*t.Width:], t.Width}, view{b[at*t.N:], t.N})
			return
		}
		k := s.heads() * s.K
		x, dy := p.TakeFloats(s.M*k), p.TakeFloats(s.M*t.N)
		g.gather(p, x, view{a, t.Width}, k)
		g.gather(p, dy, view{b, t.N}, t.N)
		s.each(p, productTA, w, view{x, k}, view{dy, t.N})
		p.GiveFloats(dy)
		p.GiveFloats(x)
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
	return once + m + len(t.Parts) + 1, each
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

// typeRows are rows of one type, in ascending order; the type's matrix begins at row first of the
// stack.
type typeRows struct {
	kind, first int
	rows        []uint32
}

// each calls fn with the rows of each type: all at once if they follow each other, else typedRows
// at a time.
func (t *ByType) each(p *Pool, fn func(g typeRows)) {
	words := p.TakeWords(len(t.Types) + len(t.Parts) + 1)
	defer p.GiveWords(words)
	ends, rows := words[:len(t.Parts)+1], words[len(t.Parts)+1:]
	clear(ends)
	for _, k := range t.Types {
		ends[k+1]++
	}
	for k := range t.Parts {
		ends[k+1] += ends[k]
	}
	for i, k := range t.Types { // the begin of a type becomes its end
		rows[ends[k]] = uint32(i)
		ends[k]++
	}
	begin, first := uint32(0), 0
	for k, part := range t.Parts {
		of := typeRows{kind: k, first: first, rows: rows[begin:ends[k]]}
		begin, first = ends[k], first+part
		if _, ok := of.together(); ok {
			fn(of)
			continue
		}
		for all := of.rows; len(all) > 0; all = all[len(of.rows):] {
			of.rows = all[:min(len(all), typedRows)]
			fn(of)
		}
	}
}

// together returns the first row, and whether all follow it.
func (g typeRows) together() (first int, ok bool) {
	n := len(g.rows)
	if n == 0 {
		return 0, false
	}
	return int(g.rows[0]), int(g.rows[n-1]-g.rows[0]) == n-1
}

// gather copies the first n values of the rows to a matrix of their own.
func (g typeRows) gather(p *Pool, to []float32, x view, n int) {
	p.Span(len(g.rows), rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(rowOf(to, i, n), x.row(int(g.rows[i]), n))
		}
	})
}

// scatter writes what gather brings together back, or adds it. What rows have behind n values
// becomes zero where they are written.
func (g typeRows) scatter(p *Pool, to view, x []float32, n int, add bool) {
	p.Span(len(g.rows), rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := to.row(int(g.rows[i]), to.stride)
			if add {
				level().add(row[:n], rowOf(x, i, n))
				continue
			}
			clear(row[copy(row, rowOf(x, i, n)):])
		}
	})
}
