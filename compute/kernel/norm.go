package kernel

import "math"

// LayerNorm is y = gamma·(x-mean)/std + beta for each row of x(rows,n), where mean and std are
// those of the row; std is the root of the biased variance plus eps (Ba, Kiros and Hinton). gamma
// and beta are (n). stats(rows,2) gets the mean and 1/std of each row. y is not x.
func LayerNorm(p *Pool, y, x, gamma, beta, stats []float32, rows, n int, eps float32) {
	y, x, gamma, beta, stats = y[:rows*n], x[:rows*n], gamma[:n], beta[:n], stats[:rows*2]
	if n == 0 {
		return
	}
	o := level()
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x[i*n : i*n+n]
			mean := o.sum(row) / float32(n)
			inverse := inverseRoot(o.squares(row, mean)/float32(n), eps)
			stats[2*i], stats[2*i+1] = mean, inverse
			o.normRow(y[i*n:i*n+n], row, gamma, beta, mean, inverse)
		}
	})
}

// inverseRoot is 1/√(variance+eps).
func inverseRoot(variance, eps float32) float32 {
	return 1 / float32(math.Sqrt(float64(variance+eps)))
}

// LayerNormGrad writes the gradients of LayerNorm in x, gamma and beta, dx(rows,n), dgamma(n) and
// dbeta(n), given the gradient dy(rows,n) of its output and the stats that it wrote. dx may be dy.
func LayerNormGrad(p *Pool, dx, dgamma, dbeta, dy, x, gamma, stats []float32, rows, n int) {
	dx, dy, x, stats = dx[:rows*n], dy[:rows*n], x[:rows*n], stats[:rows*2]
	dgamma, dbeta, gamma = dgamma[:n], dbeta[:n], gamma[:n]
	o := level()
	columnParts(p, [][]float32{dgamma, dbeta}, rows, n, func(lo, hi int, sums [][]float32) {
		for i := lo; i < hi; i++ {
			g, row, mean, inverse := dy[i*n:i*n+n], x[i*n:i*n+n], stats[2*i], stats[2*i+1]
			plain, scaled := o.layerSums(sums[0], sums[1], g, row, gamma, mean, inverse)
			o.layerGrad(dx[i*n:i*n+n], g, row, gamma, mean, inverse, plain/float32(n),
				scaled/float32(n))
		}
	})
}

// columnParts writes to each out(n) the sums over all rows that fn adds to zeros for slabs of rows,
// which are added in order.
func columnParts(p *Pool, out [][]float32, rows, n int,
	fn func(lo, hi int, sums [][]float32)) {
	for _, o := range out {
		clear(o)
	}
	if n == 0 || rows == 0 {
		return
	}
	slabs, width := partsOf(rows, columnSlab), len(out)*n
	partial := p.TakeFloats(slabs * width)
	p.Span(rows, columnSlab, func(lo, hi int) {
		own := partial[lo/columnSlab*width:][:width]
		clear(own)
		sums := make([][]float32, len(out))
		for j := range sums {
			sums[j] = own[j*n : j*n+n]
		}
		fn(lo, hi, sums)
	})
	add := level().add
	for s := range slabs {
		for j, o := range out {
			add(o, partial[s*width+j*n:][:n])
		}
	}
	p.GiveFloats(partial)
}

// BatchNorm is y = gamma·(x-mean)/std + beta for each column of x(rows,n), where mean and std are
// those of the column; std is the root of the biased variance plus eps (Ioffe and Szegedy). gamma
// and beta are (n). stats(2,n) gets the means and then 1/std of the columns. y is not x.
func BatchNorm(p *Pool, y, x, gamma, beta, stats []float32, rows, n int, eps float32) {
	y, x, stats = y[:rows*n], x[:rows*n], stats[:2*n]
	mean, inverse := stats[:n], stats[n:]
	if rows == 0 {
		clear(stats)
		return
	}
	ColumnSum(p, mean, x, rows, n, false)
	o := level()
	o.scale(mean, 1/float32(rows))
	columnParts(p, [][]float32{inverse}, rows, n, func(lo, hi int, sums [][]float32) {
		for i := lo; i < hi; i++ {
			o.addSquares(sums[0], x[i*n:i*n+n], mean)
		}
	})
	for j, v := range inverse {
		inverse[j] = inverseRoot(v/float32(rows), eps)
	}
	normColumns(p, y, x, gamma[:n], beta[:n], mean, inverse, rows, n)
}

// NormApply is BatchNorm with a mean(n) and a variance(n) that are given.
func NormApply(p *Pool, y, x, gamma, beta, mean, variance []float32, rows, n int, eps float32) {
	y, x, mean = y[:rows*n], x[:rows*n], mean[:n]
	inverse := p.TakeFloats(n)
	for j, v := range variance[:n] {
		inverse[j] = inverseRoot(v, eps)
	}
	normColumns(p, y, x, gamma[:n], beta[:n], mean, inverse, rows, n)
	p.GiveFloats(inverse)
}

func normColumns(p *Pool, y, x, gamma, beta, mean, inverse []float32, rows, n int) {
	factor := p.TakeFloats(n)
	for j, g := range gamma {
		factor[j] = g * inverse[j]
	}
	fn := level().normColumns
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			fn(y[i*n:i*n+n], x[i*n:i*n+n], mean, factor, beta)
		}
	})
	p.GiveFloats(factor)
}

// BatchNormGrad writes the gradients of BatchNorm in x, gamma and beta, dx(rows,n), dgamma(n) and
// dbeta(n), given the gradient dy(rows,n) of its output and the stats that it wrote. dx may be dy.
func BatchNormGrad(p *Pool, dx, dgamma, dbeta, dy, x, gamma, stats []float32, rows, n int) {
	dx, dy, x, stats = dx[:rows*n], dy[:rows*n], x[:rows*n], stats[:2*n]
	dgamma, dbeta, gamma = dgamma[:n], dbeta[:n], gamma[:n]
	mean, inverse, o := stats[:n], stats[n:], level()
	columnParts(p, [][]float32{dgamma, dbeta}, rows, n, func(lo, hi int, sums [][]float32) {
		for i := lo; i < hi; i++ {
			o.batchSums(sums[0], sums[1], dy[i*n:i*n+n], x[i*n:i*n+n], mean, inverse)
		}
	})
	// dx = a·dy - b·(x-mean) - c, column by column.
	plan := p.TakeFloats(3 * n)
	a, b, c := plan[:n], plan[n:2*n], plan[2*n:]
	for j, g := range gamma {
		a[j] = g * inverse[j]
		b[j] = a[j] * inverse[j] * dgamma[j] / float32(max(1, rows))
		c[j] = a[j] * dbeta[j] / float32(max(1, rows))
	}
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			o.batchGrad(dx[i*n:i*n+n], dy[i*n:i*n+n], x[i*n:i*n+n], mean, a, b, c)
		}
	})
	p.GiveFloats(plan)
}
