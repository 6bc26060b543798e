package main

// fewOnce equals the constant of package kernel, and fewRows is how many rows of A are read at
// once.
const fewOnce, fewRows = 4, 4

// fewKernel is one of the products with few columns: loops over rows of A, some at a time, and
// over their vectors.
type fewKernel struct {
	*function
	a, ars, left, k, rest gp
	ap                    []gp // to the next vector of each row
	panel, vectors        gp   // the next packed columns, and values that are left of a row
}

func newFew(f *function) *fewKernel {
	w := &fewKernel{function: f, a: f.load("a"), ars: f.load("ars"), left: f.load("rows"),
		k: f.load("k"), panel: f.gp(), vectors: f.gp(), rest: f.gp()}
	f.op("AND $%d, %s, %s", lanes-1, w.k, w.rest)
	for range fewRows {
		w.ap = append(w.ap, f.gp())
	}
	return w
}

// groups writes body for groups of rows, and then for single rows.
func (w *fewKernel) groups(body func(rows int)) {
	for _, n := range []int{fewRows, 1} {
		again, rest := w.label(), w.label()
		w.op("SUBS $%d, %s", n, w.left)
		w.op("BLT %s", rest)
		w.mark(again)
		for r := range n {
			w.op("MOVD %s, %s", w.a, w.ap[r])
			w.op("ADD %s, %s", w.ars, w.a)
		}
		w.scope(func() { body(n) })
		w.op("SUBS $%d, %s", n, w.left)
		w.op("BGE %s", again)
		w.mark(rest)
		w.op("ADDS $%d, %s", n, w.left)
	}
}

// each writes step for the vectors of rows of A: load reads that of a row.
func (w *fewKernel) each(panel string, step func(load func(r int, v vec))) {
	whole, part, done := w.label(), w.label(), w.label()
	w.reload(panel, w.panel)
	w.op("SUBS $%d, %s, %s", lanes, w.k, w.vectors)
	w.op("BLT %s", part)
	w.mark(whole)
	w.scope(func() {
		step(func(r int, v vec) { w.op("FMOVQ.P %d(%s), %s", vectorBytes, w.ap[r], v.scalar()) })
	})
	w.op("ADD $%d, %s", fewOnce*vectorBytes, w.panel)
	w.op("SUBS $%d, %s", lanes, w.vectors)
	w.op("BGE %s", whole)
	w.mark(part)
	w.op("CBZ %s, %s", w.rest, done)
	w.scope(func() { step(func(r int, v vec) { w.loadLanes(v, w.ap[r], 0, w.rest) }) })
	w.mark(done)
}

// few writes C (+)= A·B.
func few() *function {
	f := newFunction("fewNEON", "func(rows, k int, a *float32, ars uintptr, b *float32, "+
		"c *float32, ldc uintptr, columns int, accumulate uint64)", "multiplies rows: see fewFunc.")
	w := newFew(f)
	c, ldc, columns, add := f.load("c"), f.load("ldc"), f.load("columns"), f.load("accumulate")
	acc := f.vector(fewOnce * fewRows)
	w.groups(func(rows int) {
		for _, v := range acc[:fewOnce*rows] {
			f.clear(v)
		}
		w.each("b", func(load func(r int, v vec)) {
			b, row := f.vector(fewOnce), f.vec()
			for i, v := range b {
				f.loadVector(v, w.panel, i*vectorBytes)
			}
			for r := range rows {
				load(r, row)
				for i, v := range b {
					f.addTimes(acc[fewOnce*r+i], row, v)
				}
			}
		})
		for r := range rows {
			v, stored := acc[fewOnce*r:], f.label()
			f.binary("faddp", v[0], v[0], v[1])
			f.binary("faddp", v[2], v[2], v[3])
			f.binary("faddp", v[0], v[0], v[2])
			f.op("CBZ %s, %s", add, stored)
			f.loadLanes(v[1], c, 0, columns)
			f.add(v[0], v[0], v[1])
			f.mark(stored)
			f.storeLanes(v[0], c, 0, columns)
			f.op("ADD %s, %s", ldc, c)
		}
	})
	return f
}

// fewTA writes sums += Aᵀ·B.
func fewTA() *function {
	f := newFunction("fewTANEON", "func(rows, k int, a *float32, ars uintptr, b *float32, "+
		"brs uintptr, col1, col2, col3 uintptr, sums *float32)",
		"adds products of rows: see fewTAFunc.")
	w := newFew(f)
	b, brs := f.load("b"), f.load("brs")
	columns := []gp{f.load("col1"), f.load("col2"), f.load("col3")}
	factors, acc := f.vector(fewRows), f.vector(fewOnce)
	w.groups(func(rows int) {
		for r := range rows {
			f.op("FMOVS (%s), %s", b, factors[r].scalar())
			for i, column := range columns {
				f.op("ADD %s, %s, %s", column, b, scratch)
				f.op("VLD1 (%s), %s.S[%d]", scratch, factors[r], i+1)
			}
			f.op("ADD %s, %s", brs, b)
		}
		w.each("sums", func(load func(r int, v vec)) {
			row := f.vec()
			for i, v := range acc {
				f.loadVector(v, w.panel, i*vectorBytes)
			}
			for r := range rows {
				load(r, row)
				for i, v := range acc {
					f.addTimesLane(v, row, factors[r], i)
				}
			}
			for i, v := range acc {
				f.storeVector(v, w.panel, i*vectorBytes)
			}
		})
	})
	return f
}
