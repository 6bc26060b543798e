package kernel

import "math"

// The functions of this file are the specification of the activations and normalizations, as ref.go
// is of the others.

// refLeaky is x = leaky(x).
func refLeaky(x []float32, slope float32) {
	for i, v := range x {
		x[i] = leaky(v, slope)
	}
}

// refLeakyGrad multiplies dx by slope where y is not positive.
func refLeakyGrad(dx, y []float32, slope float32) {
	for i, v := range y {
		if !(v > 0) {
			dx[i] *= slope
		}
	}
}

// refELU is exp(x)-1 where x is not positive.
func refELU(x []float32) {
	for i, v := range x {
		if !(v > 0) {
			x[i] = float32(math.Expm1(float64(v)))
		}
	}
}

// refELUGrad multiplies dx by y+1 where y is not positive.
func refELUGrad(dx, y []float32) {
	for i, v := range y {
		if !(v > 0) {
			dx[i] *= v + 1
		}
	}
}

// normal returns the normal distribution up to v.
func normal(v float64) float64 { return math.Erfc(-v/math.Sqrt2) / 2 }

// refGELU is y = x·Φ(x).
func refGELU(y, x []float32) {
	for i, v := range x {
		y[i] = float32(float64(v) * normal(float64(v)))
	}
}

// refGELUGrad multiplies dx by the derivative Φ(x) + x·φ(x).
func refGELUGrad(dx, x []float32) {
	for i, v := range x {
		v := float64(v)
		density := math.Exp(-v*v/2) / math.Sqrt(2*math.Pi)
		dx[i] *= float32(normal(v) + v*density)
	}
}

// refTimes is y = x·f.
func refTimes(y, x []float32, f float32) {
	for i, v := range x {
		y[i] = v * f
	}
}

// refAddScaled is dst += a·src.
func refAddScaled(dst, src []float32, a float32) {
	for i, v := range src {
		dst[i] += a * v
	}
}

// refSum returns the sum of x.
func refSum(x []float32) float32 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	return float32(sum)
}

// refSquares returns the sum of (x-mean)².
func refSquares(x []float32, mean float32) float32 {
	sum := 0.0
	for _, v := range x {
		v -= mean
		sum += float64(v * v)
	}
	return float32(sum)
}

// refNormRow is y = (x-mean)·inverse·gamma + beta.
func refNormRow(y, x, gamma, beta []float32, mean, inverse float32) {
	for j, v := range x {
		y[j] = (v-mean)*inverse*gamma[j] + beta[j]
	}
}

// refLayerSums adds one row to the gradients of gamma and beta in refNormRow, and returns the sums
// of the gradients in its values: plainly, and times the values.
//
//lint:parameters as many as the assembly takes that it specifies
func refLayerSums(dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) (
	plain, scaled float32) {
	sum, product := 0.0, 0.0
	for j, g := range dy {
		v := (x[j] - mean) * inverse
		dgamma[j] += g * v
		dbeta[j] += g
		g *= gamma[j]
		sum += float64(g)
		product += float64(g * v)
	}
	return float32(sum), float32(product)
}

// refLayerGrad is the gradient of refNormRow in x, mean and inverse being of x too, given the means
// of refLayerSums.
//
//lint:parameters as many as the assembly takes that it specifies
func refLayerGrad(dx, dy, x, gamma []float32, mean, inverse, plain, scaled float32) {
	for j, g := range dy {
		dx[j] = inverse * (g*gamma[j] - plain - (x[j]-mean)*inverse*scaled)
	}
}

// refAddSquares is sum += (x-mean)², column by column.
func refAddSquares(sum, x, mean []float32) {
	for j, v := range x {
		v -= mean[j]
		sum[j] += v * v
	}
}

// refNormColumns is y = (x-mean)·factor + beta, column by column.
func refNormColumns(y, x, mean, factor, beta []float32) {
	for j, v := range x {
		y[j] = (v-mean[j])*factor[j] + beta[j]
	}
}

// refBatchSums adds a row to the gradients of gamma and beta.
func refBatchSums(dgamma, dbeta, dy, x, mean, inverse []float32) {
	for j, g := range dy {
		dgamma[j] += g * ((x[j] - mean[j]) * inverse[j])
		dbeta[j] += g
	}
}

// refBatchGrad is dx = a·dy - b·(x-mean) - c, column by column.
//
//lint:parameters as many as the assembly takes that it specifies
func refBatchGrad(dx, dy, x, mean, a, b, c []float32) {
	for j, g := range dy {
		dx[j] = a[j]*g - b[j]*(x[j]-mean[j]) - c[j]
	}
}
