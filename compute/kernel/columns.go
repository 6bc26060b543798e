package kernel

// CopyColumns copies columns of x to columns of y: see Columns.
func CopyColumns(p *Pool, y, x []float32, c Columns) {
	y, x = y[:c.Rows*c.ToWidth], x[:c.Rows*c.FromWidth]
	p.Span(c.Rows, rowsPart(c.Count), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(y[i*c.ToWidth+c.To:i*c.ToWidth+c.To+c.Count],
				x[i*c.FromWidth+c.From:i*c.FromWidth+c.From+c.Count])
		}
	})
}

// HeadMean writes to out(rows,n) the means of the heads of x(rows, heads·n).
func HeadMean(p *Pool, out, x []float32, rows, heads, n int) {
	out, x = out[:rows*n], x[:rows*heads*n]
	p.Span(rows, rowsPart(heads*n), func(lo, hi int) {
		share := 1 / float32(heads)
		for i := lo; i < hi; i++ {
			row, to := x[i*heads*n:(i+1)*heads*n], rowOf(out, i, n)
			copy(to, row)
			for h := 1; h < heads; h++ {
				level().add(to, rowOf(row, h, n))
			}
			level().scale(to, share)
		}
	})
}

// HeadMeanGrad writes to dx(rows, heads·n) the gradient of HeadMean's input.
func HeadMeanGrad(p *Pool, dx, dout []float32, rows, heads, n int) {
	dx, dout = dx[:rows*heads*n], dout[:rows*n]
	p.Span(rows, rowsPart(heads*n), func(lo, hi int) {
		share := 1 / float32(heads)
		for i := lo; i < hi; i++ {
			from := rowOf(dout, i, n)
			for h := range heads {
				to := dx[(i*heads+h)*n : (i*heads+h+1)*n]
				for c, v := range from {
					to[c] = v * share
				}
			}
		}
	})
}

const (
	// typesPart is how many entries are a part of TypeRows, and at least one of TypeRowsGrad.
	typesPart = 1 << 12
	// typesFloats bounds the partial sums of TypeRowsGrad, and typesParts their number.
	typesFloats, typesParts = 1 << 20, 64
)

// TypeRows is out[e] = table[types[e]] for rows of d values: what each entry has by its type.
func TypeRows(p *Pool, out, table []float32, types []uint32, d int) {
	out = out[:len(types)*d]
	p.Span(len(types), typesPart, func(lo, hi int) {
		refTypeRows(out[lo*d:hi*d], table, types[lo:hi], d)
	})
}

// TypeShares is out[e][types[e]] = x[e], and else 0, for rows of d values.
func TypeShares(p *Pool, out, x []float32, types []uint32, d int) {
	p.Span(len(types), typesPart, func(lo, hi int) {
		clear(out[lo*d : hi*d])
		for e := lo; e < hi; e++ {
			out[e*d+int(types[e])] = x[e]
		}
	})
}

// SpreadRows has for each row that lists name, each in one of them, the row of x of its list.
func SpreadRows(p *Pool, out, x []float32, l Lists) {
	lists := max(0, len(l.Off)-1)
	p.Span(lists, rowsPart(l.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for _, row := range l.Idx[l.Off[i]:l.Off[i+1]] {
				copy(rowOf(out, int(row), l.Cols), rowOf(x, i, l.Cols))
			}
		}
	})
}

// TypeRowsGrad is the gradient of TypeRows in the table: dtable[t] = the sum of the rows of dout
// whose type is t. Entries are summed up in parts of a size that follows from their number, and
// these in order.
func TypeRowsGrad(p *Pool, dtable, dout []float32, types []uint32, d int) {
	clear(dtable)
	if len(types) == 0 || len(dtable) == 0 {
		return
	}
	size := max(typesPart, partsOf(len(types), TypeParts(len(dtable))))
	p.SumParts(len(types), size, func(sum []float32, lo, hi int) {
		for e, t := range types[lo:hi] {
			level().add(sum[int(t)*d:][:d], rowOf(dout, lo+e, d))
		}
	}, dtable)
}

// TypeParts returns how many partial sums of n values TypeRowsGrad takes at most.
func TypeParts(n int) int { return min(typesParts, max(1, typesFloats/n)) }
