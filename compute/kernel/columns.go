package kernel

// CopyColumns copies columns of x, from column from on, to columns of y, from column to on: n of
// each row. xs and ys are the widths of their rows.
func CopyColumns(p *Pool, y, x []float32, rows, n, ys, to, xs, from int) {
	y, x = y[:rows*ys], x[:rows*xs]
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(y[i*ys+to:i*ys+to+n], x[i*xs+from:i*xs+from+n])
		}
	})
}
