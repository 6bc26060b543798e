package kernel

// ByType says which rows of a product have which matrix. Row i has the type Types[i], whose matrix
// is Parts[Types[i]] rows of a stack of them, one below the other in the order of types. A row of
// the other factor has Width values, of which its type reads as many as its matrix has rows.
type ByType struct {
	Types []uint32
	Parts []int
	Width int
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
		s := Shape{M: len(g.rows), K: t.Parts[g.kind], N: t.N}
		w := view{b[g.first*t.N:], t.N}
		if at, ok := g.together(); ok {
			s.Add = t.Add
			product(p, view{c[at*t.N:], t.N}, view{a[at*t.Width:], t.Width}, w, s)
			return
		}
		in, out := p.TakeFloats(s.M*s.K), p.TakeFloats(s.M*s.N)
		g.gather(p, in, view{a, t.Width}, s.K)
		product(p, view{out, s.N}, view{in, s.K}, w, s)
		g.scatter(p, view{c, t.N}, out, s.N, t.Add)
		p.GiveFloats(out)
		p.GiveFloats(in)
	})
}

// GEMMTBByType is C(m,width) (+)= A(m,n)·Bᵀ: the gradient of the rows. What a type does not read of
// them has none.
func GEMMTBByType(p *Pool, c, a, b []float32, t ByType) {
	t.each(p, func(g typeRows) {
		s := Shape{M: len(g.rows), K: t.Parts[g.kind], N: t.N}
		w := view{b[g.first*t.N:], t.N}
		if at, ok := g.together(); ok && s.K == t.Width {
			s.Add = t.Add
			productTB(p, view{c[at*t.Width:], t.Width}, view{a[at*t.N:], t.N}, w, s)
			return
		}
		in, out := p.TakeFloats(s.M*s.N), p.TakeFloats(s.M*s.K)
		g.gather(p, in, view{a, t.N}, s.N)
		productTB(p, view{out, s.K}, view{in, s.N}, w, s)
		g.scatter(p, view{c, t.Width}, out, s.K, t.Add)
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
		s := Shape{M: len(g.rows), K: t.Parts[g.kind], N: t.N, Add: true}
		w := view{c[g.first*t.N:], t.N}
		if at, ok := g.together(); ok {
			productTA(p, w, view{a[at*t.Width:], t.Width}, view{b[at*t.N:], t.N}, s)
			return
		}
		x, dy := p.TakeFloats(s.M*s.K), p.TakeFloats(s.M*s.N)
		g.gather(p, x, view{a, t.Width}, s.K)
		g.gather(p, dy, view{b, t.N}, s.N)
		productTA(p, w, view{x, s.K}, view{dy, s.N}, s)
		p.GiveFloats(dy)
		p.GiveFloats(x)
	})
}

// ByTypeWords returns the scratch memory of any of the three for m rows, in words of 4 bytes: what
// is taken once, and by each worker. Parts, width and n are as in ByType.
func ByTypeWords(m int, parts []int, width, n int) (once, each int) {
	for _, k := range parts {
		reduced, worker := ReductionWords(m, k, n, width)
		part, _ := ReductionWords(min(m, typedRows), k, n, k)
		once = max(once, min(m, typedRows)*(k+n)+max(PanelWords(k, n), PanelWords(n, k), part),
			reduced, PanelWords(k, n), PanelWords(n, k))
		each = max(each, worker)
	}
	return once + m + len(parts) + 1, each
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
