package kernel

import "math"

// The functions of this file are the specification: readable first, fast never. They are also the
// level Plain. Each computes some rows or all of its output on one goroutine.

// view is a matrix whose rows lie stride values apart: whole, or some columns of a wider one.
type view struct {
	x      []float32
	stride int
}

// row returns the first n values of row i.
func (v view) row(i, n int) []float32 { return v.x[i*v.stride : i*v.stride+n] }

// from returns the view from row i and column j on.
func (v view) from(i, j int) view { return view{v.x[i*v.stride+j:], v.stride} }

// refGEMM is C(m,n) (+)= A(m,k)·B(k,n).
func refGEMM(c, a, b view, s Shape) {
	for i := range s.M {
		row := c.row(i, s.N)
		if !s.Add {
			clear(row)
		}
		for t, v := range a.row(i, s.K) {
			for j, w := range b.row(t, s.N)[:len(row)] {
				row[j] += v * w
			}
		}
	}
}

// refGEMMTA computes the rows lo to hi-1 of C(k,n) (+)= Aᵀ·B for A(m,k) and B(m,n).
func refGEMMTA(c, a, b view, s Shape, lo, hi int) {
	for t := lo; t < hi && !s.Add; t++ {
		clear(c.row(t, s.N))
	}
	for i := range s.M {
		for t := lo; t < hi; t++ {
			v, row := a.x[i*a.stride+t], c.row(t, s.N)
			for j, w := range b.row(i, s.N) {
				row[j] += v * w
			}
		}
	}
}

// refGEMMTB is C(m,k) (+)= A(m,n)·Bᵀ for B(k,n).
func refGEMMTB(c, a, b view, s Shape) {
	for i := range s.M {
		row, own := c.row(i, s.K), a.row(i, s.N)
		for t := range s.K {
			var sum float32
			for j, w := range b.row(t, s.N) {
				sum += own[j] * w
			}
			if s.Add {
				sum += row[t]
			}
			row[t] = sum
		}
	}
}

// refSegmentSum writes to row i of out(M,d) the sum, or the mean, of the rows of x(·,d) whose
// numbers are idx[off[i]:off[i+1]]; zero if there are none. off has M+1 entries.
func refSegmentSum(out, x []float32, off, idx []uint32, d int, mean bool) {
	for i := range len(off) - 1 {
		row, list := rowOf(out, i, d), idx[off[i]:off[i+1]]
		clear(row)
		for _, r := range list {
			refAdd(row, rowOf(x, int(r), d))
		}
		if mean && len(list) > 0 {
			refScale(row, 1/float32(len(list)))
		}
	}
}

// refWeightedSum adds to row i of out, or writes there, the sum of weight[r] times row r of x, over
// the same r.
func refWeightedSum(out, x, weight []float32, of Lists, accumulate bool) {
	for i := range len(of.Off) - 1 {
		row := rowOf(out, i, of.Cols)
		if !accumulate {
			clear(row)
		}
		for _, r := range of.Idx[of.Off[i]:of.Off[i+1]] {
			w := weight[r]
			for j, v := range rowOf(x, int(r), of.Cols) {
				row[j] += w * v
			}
		}
	}
}

// refColumnSum writes the sum of the rows of x(rows,n) to out(n).
func refColumnSum(out, x []float32, rows, n int) {
	clear(out[:n])
	for i := range rows {
		refAdd(out[:n], rowOf(x, i, n))
	}
}

// refBias adds bias(n) to each row of y(rows,n).
func refBias(y, bias []float32, rows, n int) {
	for i := range rows {
		refAdd(rowOf(y, i, n), bias[:n])
	}
}

// refBiasReLU is max(0, y+bias) for each row of y(rows,n). A NaN stays, as in all levels.
func refBiasReLU(y, bias []float32, rows, n int) {
	for i := range rows {
		row := rowOf(y, i, n)
		for j, b := range bias[:n] {
			v := row[j] + b
			if v < 0 {
				v = 0
			}
			row[j] = v
		}
	}
}

// refReLUGrad scales dy, and zeroes it where y is not positive.
func refReLUGrad(dy, y []float32, scale float32) {
	for i, v := range y {
		if v > 0 {
			dy[i] *= scale
		} else {
			dy[i] = 0
		}
	}
}

// refDropout drops or scales y, whose first value has the position first in its block.
func refDropout(y []float32, d *DropoutPlan, first uint32) {
	for i := range y {
		if d.draw(first+uint32(i)) < d.threshold {
			y[i] = 0
		} else {
			y[i] *= d.scale
		}
	}
}

// refAdd is dst += src.
func refAdd(dst, src []float32) {
	for i, v := range src {
		dst[i] += v
	}
}

// refScale is x *= s.
func refScale(x []float32, s float32) {
	for i := range x {
		x[i] *= s
	}
}

// refRowMax returns the largest value of x, which is not empty.
func refRowMax(x []float32) float32 {
	best := x[0]
	for _, v := range x {
		best = max(best, v)
	}
	return best
}

// refExpSum writes exp(x-shift) to out, which may be x, and returns the sum. x is at most shift.
// Below exp(-64) zero is written: smaller values count for nothing in the sum, and as gradients
// they would become denormal numbers, with which a product takes a hundred times longer.
func refExpSum(out, x []float32, shift float32) float32 {
	sum := 0.0
	for i, v := range x {
		e := math.Exp(float64(v - shift))
		if v-shift <= -64 {
			e = 0
		}
		out[i] = float32(e)
		sum += e
	}
	return float32(sum)
}

// refAdam is one step of Adam (Kingma and Ba) or AdamW (Loshchilov and Hutter).
func refAdam(w, g, m, v []float32, c *adamPlan) {
	for i, gr := range g {
		gr += c.l2 * w[i]
		m[i] = c.beta1*m[i] + c.rest1*gr
		v[i] = c.beta2*v[i] + c.rest2*(gr*gr)
		root := float32(math.Sqrt(float64(v[i])))*c.rootScale + c.eps
		w[i] = c.shrink*w[i] - c.rate*m[i]/root
	}
}

// refSGD is one step of gradient descent.
func refSGD(w, g []float32, lr, weightDecay float32) {
	for i, gr := range g {
		w[i] -= lr * (gr + weightDecay*w[i])
	}
}

// refAdagrad is one step of Adagrad (Duchi, Hazan and Singer).
func refAdagrad(w, g, s []float32, lr, eps, weightDecay float32) {
	for i, gr := range g {
		gr += weightDecay * w[i]
		s[i] += gr * gr
		w[i] -= lr * gr / (float32(math.Sqrt(float64(s[i]))) + eps)
	}
}
