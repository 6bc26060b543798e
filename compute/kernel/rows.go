package kernel

// tableRowsPart is how many rows of a table a worker changes at a time.
const tableRowsPart = 256

// Rows are the rows of a table that a step reads and changes, and no others: their values and the
// state of the optimizer stay as they are where a batch does not have them.
type Rows struct {
	// Cols is the width of the table, and At has the numbers of the rows, each once.
	Cols int
	At   []uint32
	// X is (len(At), Stride): the last Cols values of a row belong to the table, or are their
	// gradient.
	X      []float32
	Stride int
}

// of returns the part of row i of X that is the table's.
func (r *Rows) of(i int) []float32 {
	end := (i + 1) * r.Stride
	return r.X[end-r.Cols : end : end]
}

// in is row i in a table.
func (r *Rows) in(table []float32, i int) []float32 {
	first := int(r.At[i]) * r.Cols
	return table[first : first+r.Cols : first+r.Cols]
}

// each calls fn for all rows, in parts.
func (r *Rows) each(p *Pool, fn func(i int)) {
	p.Span(len(r.At), tableRowsPart, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			fn(i)
		}
	})
}

// Gather copies rows of a table to X.
func (r *Rows) Gather(p *Pool, table []float32) {
	r.each(p, func(i int) { copy(r.of(i), r.in(table, i)) })
}

// Squares returns the sum of the squares of the gradient, summed in parts of one size, and the
// parts in their order.
func (r *Rows) Squares(p *Pool) float64 {
	return p.total(len(r.At), tableRowsPart, func(lo, hi int) (sum float64) {
		for i := lo; i < hi; i++ {
			for _, v := range r.of(i) {
				sum += float64(v) * float64(v)
			}
		}
		return sum
	})
}

// Scale multiplies the gradient.
func (r *Rows) Scale(p *Pool, factor float32) {
	scale := level().scale
	r.each(p, func(i int) { scale(r.of(i), factor) })
}

// Adam takes a step of Adam for these rows of w, m and v. No weights decay, here and below.
func (r *Rows) Adam(p *Pool, w, m, v []float32, s AdamStep) {
	c, adam := planAdam(AdamStep{Step: s.Step, Rate: s.Rate, Beta1: s.Beta1, Beta2: s.Beta2,
		Eps: s.Eps}), level().adam
	r.each(p, func(i int) { adam(r.in(w, i), r.of(i), r.in(m, i), r.in(v, i), &c) })
}

// SGD takes a step of SGD for these rows of w.
func (r *Rows) SGD(p *Pool, w []float32, lr float32) {
	sgd := level().sgd
	r.each(p, func(i int) { sgd(r.in(w, i), r.of(i), lr, 0) })
}

// Adagrad takes a step of Adagrad for these rows of w and s.
func (r *Rows) Adagrad(p *Pool, w, s []float32, lr, eps float32) {
	adagrad := level().adagrad
	r.each(p, func(i int) { adagrad(r.in(w, i), r.of(i), r.in(s, i), lr, eps, 0) })
}

// NoRow stands for no row: one of zeros, or the row of a largest value where there is none.
const NoRow = 1<<32 - 1

// PickRows writes to row i of out (len(from), cols) the row from[i] of kept or, counted on behind
// its last row, the row that begins at that value of sent; zeros for NoRow.
func PickRows(p *Pool, out, kept, sent []float32, from []uint32, cols int) {
	rows := len(kept) / cols
	p.Span(len(from), tableRowsPart, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := rowOf(out, i, cols)
			switch at := int(from[i]); {
			case from[i] == NoRow:
				clear(to)
			case at < rows:
				copy(to, kept[at*cols:])
			default:
				copy(to, sent[at-rows:])
			}
		}
	})
}

// PutRows writes row i of rows (len(to), cols) to row to[i] of into, if there is that one. No two
// rows go to the same.
func PutRows(p *Pool, into, rows []float32, to []uint32, cols int) {
	p.Span(len(to), tableRowsPart, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if at := int(to[i]) * cols; at < len(into) {
				copy(into[at:at+cols], rows[i*cols:])
			}
		}
	})
}
