package kernel

// The functions of this file work on single rows and on the caller's goroutine, for kernels that
// are made elsewhere. Slices are of one length, that of the last one.

// RowMax returns the largest value of x, which is not empty.
func RowMax(x []float32) float32 { return level().rowMax(x) }

// ExpSum writes exp(x-shift), for x at most shift, to out, which may be x, and returns the sum.
// What is below exp(-64) becomes zero.
func ExpSum(out, x []float32, shift float32) float32 {
	return level().expSum(out[:len(x)], x, shift)
}

// ScaleRow is x *= s.
func ScaleRow(x []float32, s float32) { level().scale(x, s) }

// AddRow is dst += src.
func AddRow(dst, src []float32) { level().add(dst[:len(src)], src) }

// AddScaledRow is dst += a·src.
func AddScaledRow(dst, src []float32, a float32) { level().addScaled(dst[:len(src)], src, a) }

// SquareSum returns the sum of the squares of x.
func SquareSum(x []float32) float32 { return level().squares(x, 0) }

// TimesRow is y = a·x.
func TimesRow(y, x []float32, a float32) { level().times(y[:len(x)], x, a) }

// ProductRow is y = a·b, value by value.
func ProductRow(y, a, b []float32) { level().product(y[:len(b)], a[:len(b)], b) }

// refProduct is y = a·b.
func refProduct(y, a, b []float32) {
	for i, v := range b {
		y[i] = a[i] * v
	}
}

// AddCubeGradRow is g += f·|x|·x: the gradient of f/3·Σ|x|³.
func AddCubeGradRow(g, x []float32, f float32) { level().addCube(g[:len(x)], x, f) }

// refAddCube is g += f·|x|·x.
func refAddCube(g, x []float32, f float32) {
	for i, v := range x {
		g[i] += f * max(v, -v) * v
	}
}

// DotRow returns the product of two rows.
func DotRow(a, b []float32) float32 { return level().dot(a[:len(b)], b) }

// refDot returns the product of two rows, summed in four parts that are added at the end.
func refDot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(b); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(b); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}
