package kernel

import "math"

// LayerNorm is y = gamma·(x-mean)/std + beta for each row of x(rows,n), where mean and std belong
// to the row; std is the root of the biased variance plus eps (Ba, Kiros and Hinton). gamma and
// beta are (n). stats(rows,2) gets the mean and 1/std of each row. y is not x.
func LayerNorm(p *Pool, y, x []float32, with Norm) {
	rows, n := with.Rows, with.Cols
	y, x, with.Gamma, with.Beta, with.Stats = y[:rows*n], x[:rows*n], with.Gamma[:n],
		with.Beta[:n], with.Stats[:rows*2]
	if n == 0 {
		return
	}
	o := level()
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := rowOf(x, i, n)
			mean := o.sum(row) / float32(n)
			inverse := inverseRoot(o.squares(row, mean)/float32(n), with.Eps)
			with.Stats[2*i], with.Stats[2*i+1] = mean, inverse
			o.normRow(rowOf(y, i, n), row, with.Gamma, with.Beta, mean, inverse)
		}
	})
}

// inverseRoot returns 1/√(variance+eps).
func inverseRoot(variance, eps float32) float32 {
	return 1 / float32(math.Sqrt(float64(variance+eps)))
}

// LayerNormGrad writes the gradients of LayerNorm in x, gamma and beta, dx(rows,n), dgamma(n) and
// dbeta(n), given the gradient dy(rows,n) of its output and the stats that it wrote. dx may be dy.
func LayerNormGrad(p *Pool, dx, dy, x []float32, with Norm) {
	rows, n := with.Rows, with.Cols
	dx, dy, x, with.Stats = dx[:rows*n], dy[:rows*n], x[:rows*n], with.Stats[:rows*2]
	dgamma, dbeta, gamma := with.clearGradients()
	o := level()
	p.SumParts(rows, columnSlab, func(sum []float32, lo, hi int) {
		for i := lo; i < hi; i++ {
			g, row, mean, inverse := rowOf(dy, i, n), rowOf(x, i, n), with.Stats[2*i],
				with.Stats[2*i+1]
			plain, scaled := o.layerSums(sum[:n], sum[n:], g, row, gamma, mean, inverse)
			o.layerGrad(rowOf(dx, i, n), g, row, gamma, mean, inverse, plain/float32(n),
				scaled/float32(n))
		}
	}, dgamma, dbeta)
}

// clearGradients clears the gradients of gamma and beta, and returns them with gamma.
func (with *Norm) clearGradients() (dgamma, dbeta, gamma []float32) {
	dgamma, dbeta = with.DGamma[:with.Cols], with.DBeta[:with.Cols]
	clear(dgamma)
	clear(dbeta)
	return dgamma, dbeta, with.Gamma[:with.Cols]
}

// BatchNorm is y = gamma·(x-mean)/std + beta for each column of x(rows,n), where mean and std
// belong to the column; std is the root of the biased variance plus eps (Ioffe and Szegedy). gamma
// and beta are (n). stats(2,n) gets the means and then 1/std of the columns. y is not x.
func BatchNorm(p *Pool, y, x []float32, with Norm) {
	rows, n := with.Rows, with.Cols
	y, x, with.Stats = y[:rows*n], x[:rows*n], with.Stats[:2*n]
	mean, inverse := with.Stats[:n], with.Stats[n:]
	if rows == 0 {
		clear(with.Stats)
		return
	}
	ColumnSum(p, mean, x, rows, n, false)
	o := level()
	o.scale(mean, 1/float32(rows))
	clear(inverse)
	p.SumParts(rows, columnSlab, func(sum []float32, lo, hi int) {
		for i := lo; i < hi; i++ {
			o.addSquares(sum, rowOf(x, i, n), mean)
		}
	}, inverse)
	for j, v := range inverse {
		inverse[j] = inverseRoot(v/float32(rows), with.Eps)
	}
	normColumns(p, y, x, mean, inverse, with)
}

// NormApply is BatchNorm with a mean(n) and a variance(n) that are given.
func NormApply(p *Pool, y, x, mean, variance []float32, with Norm) {
	rows, n := with.Rows, with.Cols
	y, x, mean = y[:rows*n], x[:rows*n], mean[:n]
	inverse := p.TakeFloats(n)
	for j, v := range variance[:n] {
		inverse[j] = inverseRoot(v, with.Eps)
	}
	normColumns(p, y, x, mean, inverse, with)
	p.GiveFloats(inverse)
}

func normColumns(p *Pool, y, x, mean, inverse []float32, with Norm) {
	rows, n := with.Rows, with.Cols
	factor := p.TakeFloats(n)
	for j, g := range with.Gamma[:n] {
		factor[j] = g * inverse[j]
	}
	beta, fn := with.Beta[:n], level().normColumns
	p.Span(rows, rowsPart(n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			fn(rowOf(y, i, n), rowOf(x, i, n), mean, factor, beta)
		}
	})
	p.GiveFloats(factor)
}

// BatchNormGrad writes the gradients of BatchNorm in x, gamma and beta, dx(rows,n), dgamma(n) and
// dbeta(n), given the gradient dy(rows,n) of its output and the stats that it wrote. dx may be dy.
func BatchNormGrad(p *Pool, dx, dy, x []float32, with Norm) {
	rows, n := with.Rows, with.Cols
	dx, dy, x, with.Stats = dx[:rows*n], dy[:rows*n], x[:rows*n], with.Stats[:2*n]
	dgamma, dbeta, gamma := with.clearGradients()
	mean, inverse, o := with.Stats[:n], with.Stats[n:], level()
	p.SumParts(rows, columnSlab, func(sum []float32, lo, hi int) {
		for i := lo; i < hi; i++ {
			o.batchSums(sum[:n], sum[n:], rowOf(dy, i, n), rowOf(x, i, n), mean, inverse)
		}
	}, dgamma, dbeta)
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
			o.batchGrad(rowOf(dx, i, n), rowOf(dy, i, n), rowOf(x, i, n), mean, a, b, c)
		}
	})
	p.GiveFloats(plan)
}
