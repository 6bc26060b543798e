package kernel

// CopyColumns copies columns of x, from column from on, to columns of y, from column to on: n of
// each row. xs and ys are the widths of their rows.
func CopyColumns(p *Pool, y, x []float32, c Columns) {
	y, x = y[:c.Rows*c.ToWidth], x[:c.Rows*c.FromWidth]
	p.Span(c.Rows, rowsPart(c.Count), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(y[i*c.ToWidth+c.To:i*c.ToWidth+c.To+c.Count],
				x[i*c.FromWidth+c.From:i*c.FromWidth+c.From+c.Count])
		}
	})
}
