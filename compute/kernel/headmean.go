package kernel

// HeadMean writes to out(rows,n) the means of the heads of x(rows, heads·n).
func HeadMean(p *Pool, out, x []float32, rows, heads, n int) {
	out, x = out[:rows*n], x[:rows*heads*n]
	p.Span(rows, rowsPart(heads*n), func(lo, hi int) {
		share := 1 / float32(heads)
		for i := lo; i < hi; i++ {
			row, to := x[i*heads*n:(i+1)*heads*n], out[i*n:(i+1)*n]
			copy(to, row)
			for h := 1; h < heads; h++ {
				level().add(to, row[h*n:(h+1)*n])
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
			from := dout[i*n : (i+1)*n]
			for h := range heads {
				to := dx[(i*heads+h)*n : (i*heads+h+1)*n]
				for c, v := range from {
					to[c] = v * share
				}
			}
		}
	})
}

// Shift adds a number to the values of x.
func Shift(p *Pool, x []float32, number float32) {
	p.Span(len(x), flatPart, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x[i] += number
		}
	})
}

// Scale multiplies the values of x.
func Scale(p *Pool, x []float32, factor float32) {
	p.Span(len(x), flatPart, func(lo, hi int) { level().scale(x[lo:hi], factor) })
}
