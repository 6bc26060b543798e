package kernel

// LeakyReLU is x = x where it is positive and else slope·x, in place.
func LeakyReLU(p *Pool, x []float32, slope float32) {
	fn := level().leaky
	p.Span(len(x), flatPart, func(lo, hi int) { fn(x[lo:hi], slope) })
}

// LeakyReLUGrad is the gradient of LeakyReLU, in place: dx is multiplied by slope, which is not
// negative, where the output y is not positive.
func LeakyReLUGrad(p *Pool, dx, y []float32, slope float32) {
	dx = dx[:len(y)]
	fn := level().leakyGrad
	p.Span(len(y), flatPart, func(lo, hi int) { fn(dx[lo:hi], y[lo:hi], slope) })
}

// ELU is x = x where it is positive and else exp(x)-1, in place (Clevert, Unterthiner and
// Hochreiter).
func ELU(p *Pool, x []float32) {
	fn := level().elu
	p.Span(len(x), flatPart, func(lo, hi int) { fn(x[lo:hi]) })
}

// ELUGrad is the gradient of ELU, in place: dx is multiplied by y+1 where the output y is not
// positive.
func ELUGrad(p *Pool, dx, y []float32) {
	dx = dx[:len(y)]
	fn := level().eluGrad
	p.Span(len(y), flatPart, func(lo, hi int) { fn(dx[lo:hi], y[lo:hi]) })
}

// GELU is y = x·Φ(x), Φ being the normal distribution (Hendrycks and Gimpel, the exact form).
func GELU(p *Pool, y, x []float32) {
	y = y[:len(x)]
	fn := level().gelu
	p.Span(len(x), flatPart, func(lo, hi int) { fn(y[lo:hi], x[lo:hi]) })
}

// GELUGrad is the gradient of GELU, in place: dx is multiplied by the derivative at the input x.
func GELUGrad(p *Pool, dx, x []float32) {
	dx = dx[:len(x)]
	fn := level().geluGrad
	p.Span(len(x), flatPart, func(lo, hi int) { fn(dx[lo:hi], x[lo:hi]) })
}

// RowScale is y[i] = x[i]·f[i] for the rows of y(rows,n), which may be x, and f(rows).
func RowScale(p *Pool, y, x, f []float32, rows, n int) {
	y, x, f = y[:rows*n], x[:rows*n], f[:rows]
	times := level().times
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			times(rowOf(y, i, n), rowOf(x, i, n), f[i])
		}
	})
}
