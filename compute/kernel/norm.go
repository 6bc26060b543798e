package kernel

import "math"

// LayerNorm is y = gamma·(x-mean)/std + beta for each row of x(rows,n), where mean and std are
// those of the row; std is the root of the biased variance plus eps (Ba, Kiros and Hinton). gamma
// and beta are (n). stats(rows,2) gets the mean and 1/std of each row. y is not x.
func LayerNorm(p *Pool, y, x []float32, with Norm) {
	y, x, with.Gamma, with.Beta, with.Stats = y[:with.Rows*with.Cols], x[:with.Rows*with.Cols],
		with.Gamma[:with.Cols], with.Beta[:with.Cols], with.Stats[:with.Rows*2]
	if with.Cols == 0 {
		return
	}
	o := level()
	p.Span(with.Rows, rowsPart(with.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x[i*with.Cols : i*with.Cols+with.Cols]
			mean := o.sum(row) / float32(with.Cols)
			inverse := inverseRoot(o.squares(row, mean)/float32(with.Cols), with.Eps)
			with.Stats[2*i], with.Stats[2*i+1] = mean, inverse
			o.normRow(y[i*with.Cols:i*with.Cols+with.Cols], row, with.Gamma, with.Beta, mean,
				inverse)
		}
	})
}

// inverseRoot is 1/√(variance+eps).
func inverseRoot(variance, eps float32) float32 {
	return 1 / float32(math.Sqrt(float64(variance+eps)))
}

// LayerNormGrad writes the gradients of LayerNorm in x, gamma and beta, dx(rows,n), dgamma(n) and
// dbeta(n), given the gradient dy(rows,n) of its output and the stats that it wrote. dx may be dy.
func LayerNormGrad(p *Pool, dx, dy, x []float32, with Norm) {
	dx, dy, x, with.Stats = dx[:with.Rows*with.Cols], dy[:with.Rows*with.Cols],
		x[:with.Rows*with.Cols], with.Stats[:with.Rows*2]
	with.DGamma, with.DBeta, with.Gamma = with.DGamma[:with.Cols], with.DBeta[:with.Cols],
		with.Gamma[:with.Cols]
	o := level()
	columnParts(p, [][]float32{with.DGamma, with.DBeta}, with.Rows, with.Cols, func(lo, hi int,
		sums [][]float32) {
		for i := lo; i < hi; i++ {
			g, row, mean, inverse := dy[i*with.Cols:i*with.Cols+with.Cols],
				x[i*with.Cols:i*with.Cols+with.Cols], with.Stats[2*i], with.Stats[2*i+1]
			plain, scaled := o.layerSums(sums[0], sums[1], g, row, with.Gamma, mean, inverse)
			o.layerGrad(dx[i*with.Cols:i*with.Cols+with.Cols], g, row, with.Gamma, mean, inverse,
				plain/float32(with.Cols),
				scaled/float32(with.Cols))
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
func BatchNorm(p *Pool, y, x []float32, with Norm) {
	y, x, with.Stats = y[:with.Rows*with.Cols], x[:with.Rows*with.Cols], with.Stats[:2*with.Cols]
	mean, inverse := with.Stats[:with.Cols], with.Stats[with.Cols:]
	if with.Rows == 0 {
		clear(with.Stats)
		return
	}
	ColumnSum(p, mean, x, with.Rows, with.Cols, false)
	o := level()
	o.scale(mean, 1/float32(with.Rows))
	columnParts(p, [][]float32{inverse}, with.Rows, with.Cols, func(lo, hi int, sums [][]float32) {
		for i := lo; i < hi; i++ {
			o.addSquares(sums[0], x[i*with.Cols:i*with.Cols+with.Cols], mean)
		}
	})
	for j, v := range inverse {
		inverse[j] = inverseRoot(v/float32(with.Rows), with.Eps)
	}
	normColumns(p, y, x, mean, inverse, Norm{Gamma: with.Gamma[:with.Cols],
		Beta: with.Beta[:with.Cols], Rows: with.Rows, Cols: with.Cols})
}

// NormApply is BatchNorm with a mean(n) and a variance(n) that are given.
func NormApply(p *Pool, y, x, mean, variance []float32, with Norm) {
	y, x, mean = y[:with.Rows*with.Cols], x[:with.Rows*with.Cols], mean[:with.Cols]
	inverse := p.TakeFloats(with.Cols)
	for j, v := range variance[:with.Cols] {
		inverse[j] = inverseRoot(v, with.Eps)
	}
	normColumns(p, y, x, mean, inverse, Norm{Gamma: with.Gamma[:with.Cols],
		Beta: with.Beta[:with.Cols], Rows: with.Rows, Cols: with.Cols})
	p.GiveFloats(inverse)
}

func normColumns(p *Pool, y, x, mean, inverse []float32, with Norm) {
	factor := p.TakeFloats(with.Cols)
	for j, g := range with.Gamma {
		factor[j] = g * inverse[j]
	}
	fn := level().normColumns
	p.Span(with.Rows, rowsPart(with.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			fn(y[i*with.Cols:i*with.Cols+with.Cols], x[i*with.Cols:i*with.Cols+with.Cols], mean,
				factor, with.Beta)
		}
	})
	p.GiveFloats(factor)
}

// BatchNormGrad writes the gradients of BatchNorm in x, gamma and beta, dx(rows,n), dgamma(n) and
// dbeta(n), given the gradient dy(rows,n) of its output and the stats that it wrote. dx may be dy.
func BatchNormGrad(p *Pool, dx, dy, x []float32, with Norm) {
	dx, dy, x, with.Stats = dx[:with.Rows*with.Cols], dy[:with.Rows*with.Cols],
		x[:with.Rows*with.Cols], with.Stats[:2*with.Cols]
	with.DGamma, with.DBeta, with.Gamma = with.DGamma[:with.Cols], with.DBeta[:with.Cols],
		with.Gamma[:with.Cols]
	mean, inverse, o := with.Stats[:with.Cols], with.Stats[with.Cols:], level()
	columnParts(p, [][]float32{with.DGamma, with.DBeta}, with.Rows, with.Cols, func(lo, hi int,
		sums [][]float32) {
		for i := lo; i < hi; i++ {
			o.batchSums(sums[0], sums[1], dy[i*with.Cols:i*with.Cols+with.Cols],
				x[i*with.Cols:i*with.Cols+with.Cols], mean, inverse)
		}
	})
	// dx = a·dy - b·(x-mean) - c, column by column.
	plan := p.TakeFloats(3 * with.Cols)
	a, b, c := plan[:with.Cols], plan[with.Cols:2*with.Cols], plan[2*with.Cols:]
	for j, g := range with.Gamma {
		a[j] = g * inverse[j]
		b[j] = a[j] * inverse[j] * with.DGamma[j] / float32(max(1, with.Rows))
		c[j] = a[j] * with.DBeta[j] / float32(max(1, with.Rows))
	}
	p.Span(with.Rows, rowsPart(with.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			o.batchGrad(dx[i*with.Cols:i*with.Cols+with.Cols],
				dy[i*with.Cols:i*with.Cols+with.Cols], x[i*with.Cols:i*with.Cols+with.Cols], mean,
				a, b, c)
		}
	})
	p.GiveFloats(plan)
}
