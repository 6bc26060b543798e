package kernel

// flatPart is how many values one part of an elementwise kernel has: 64 KiB of each array, some
// 10 µs, long beside handing out a part and short beside a kernel over a batch.
const flatPart = 16 << 10

// rowsPart returns how many rows of n values make a part of about flatPart values.
func rowsPart(n int) int { return max(1, flatPart/max(1, n)) }

// Add is dst += src.
func Add(p *Pool, dst, src []float32) {
	dst = dst[:len(src)]
	add := level().add
	p.Span(len(src), flatPart, func(lo, hi int) { add(dst[lo:hi], src[lo:hi]) })
}

// Bias adds bias(n) to each row of y(rows,n).
func Bias(p *Pool, y, bias []float32, rows, n int) {
	biasRows(p, y, bias, rows, n, level().bias)
}

// BiasReLU is y = max(0, y+bias) for each row of y(rows,n). A NaN stays: what was computed from a
// feature that is none must not look like a number.
func BiasReLU(p *Pool, y, bias []float32, rows, n int) {
	biasRows(p, y, bias, rows, n, level().biasReLU)
}

func biasRows(p *Pool, y, bias []float32, rows, n int,
	fn func(y, bias []float32, rows, n int)) {
	y, bias = y[:rows*n], bias[:n]
	if n == 0 {
		return
	}
	p.Span(rows, rowsPart(n), func(lo, hi int) { fn(y[lo*n:hi*n], bias, hi-lo, n) })
}

// TypeBias is Bias, or BiasReLU, by types: of row i with row types[i] of a table.
func TypeBias(p *Pool, y, table []float32, types []uint32, n int, relu bool) {
	fn := level().bias
	if relu {
		fn = level().biasReLU
	}
	p.Span(len(types), rowsPart(n), func(lo, hi int) {
		for end := lo; lo < hi; lo = end {
			for end++; end < hi && types[end] == types[lo]; end++ {
			}
			fn(y[lo*n:end*n], table[int(types[lo])*n:][:n], end-lo, n)
		}
	})
}

// DropoutReLUGrad is the gradient of Dropout after ReLU in the input of both, in place; y is the
// output. It draws nothing: what was dropped is zero in y as what ReLU cut is, and the rest was
// scaled by 1/(1-rate). With a rate of 0 it is the gradient of ReLU.
func DropoutReLUGrad(p *Pool, dy, y []float32, rate float32) {
	dy = dy[:len(y)]
	grad, scale := level().reluGrad, 1/(1-rate)
	p.Span(len(y), flatPart, func(lo, hi int) { grad(dy[lo:hi], y[lo:hi], scale) })
}

// columnSlab is how many rows are summed one after the other before sums are added.
const columnSlab = 512

// ColumnWords returns the scratch memory of ColumnSum, in words of 4 bytes. LayerNormGrad takes
// twice as much.
func ColumnWords(rows, n int) int { return partsOf(rows, columnSlab) * n }

// ColumnSum is out(n) (+)= the sum of the rows of x(rows,n): the gradient of a bias. Rows are
// summed in slabs of fixed size, and the slabs in order.
func ColumnSum(p *Pool, out, x []float32, rows, n int, accumulate bool) {
	out, x = out[:n], x[:rows*n]
	if !accumulate {
		clear(out)
	}
	o := level()
	p.SumParts(rows, columnSlab, func(sum []float32, lo, hi int) {
		if o.sums == nil {
			refColumnSum(sum, x[lo*n:hi*n], hi-lo, n)
			return
		}
		o.sums.columnSum(sum, x[lo*n:hi*n], hi-lo, n)
	}, out)
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
