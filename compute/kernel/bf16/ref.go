package bf16

import (
	"math"

	"gdb/compute/kernel"
)

// The functions of this file are the specification: readable first, fast never. They are also the
// level plain.

// refColumn computes rows x width of C (+)= A·B for a panel of B that is not widened: see tileFunc.
// The last pair is half a pair if the mode says so.
//
//lint:parameters as many as the assembly takes that it specifies
func refColumn(rows, pairs int, a []Number, as strides, b []uint32, c []float32,
	cRow, width int, mode uint64) {
	panel := plainTiles.width()
	for i := range rows {
		row := c[i*cRow : i*cRow+width]
		for j := range row {
			sum := float32(0)
			for t := range pairs {
				at := i*as.row + t*as.step
				sum = addPair(sum, a[at], a[at+1], b[t*panel+j])
			}
			if mode&modeHalf != 0 {
				sum = addPair(sum, a[i*as.row+pairs*as.step], 0, b[pairs*panel+j])
			}
			if mode&modeAccumulate != 0 {
				sum = flushed(float64(flushed(float64(row[j]))) + float64(sum))
			}
			row[j] = sum
		}
	}
}

// addPair returns what VDPBF16PS does in a lane: it adds the product of the second values, then
// that of the first ones. A float64 has a product exactly. It does not have each sum, but is far
// from where float32 rounds if it does not.
func addPair(sum float32, first, second Number, pair uint32) float32 {
	sum = flushed(float64(sum) + value(second)*value(Number(pair>>16)))
	return flushed(float64(sum) + value(first)*value(Number(pair)))
}

// value returns the value of n, or zero if it is denormal.
func value(n Number) float64 {
	if n&0x7f80 == 0 {
		n &= 0x8000
	}
	return float64(n.Float32())
}

// flushed rounds to float32, and what is denormal then to zero.
func flushed(sum float64) float32 {
	const least = 0x1.ffffffp-127 // what is below rounds to a denormal
	if math.Abs(sum) < least {
		return float32(math.Copysign(0, sum))
	}
	return float32(sum)
}

// packing is how rows are packed: the columns of a panel, the words of a pair of rows in it, and
// whether these are two rows of floats.
type packing struct {
	width, step int
	widened     bool
}

// rows packs rows r0 to r1-1, from an even one on, and of these columns c0 to c1-1, from the first
// one of a panel on; a panel that is not full is padded with zeros, and so is a pair.
//
//lint:parameters a block of a matrix, for the innermost loop
func (k packing) rows(panels []uint32, x []Number, r0, r1, c0, c1, stride, panel int) {
	if c0 == c1 {
		return
	}
	for j := c0; j < partsOf(c1, k.width)*k.width; j++ {
		for i := r0; i < r1; i += 2 {
			var first, second Number
			if j < c1 {
				first = x[i*stride+j]
				if i+1 < r1 {
					second = x[(i+1)*stride+j]
				}
			}
			k.put(panels[j/k.width*panel+i/2*k.step:], j%k.width, first, second)
		}
	}
}

// put writes a pair of column j of a panel.
func (k packing) put(to []uint32, j int, first, second Number) {
	if k.widened {
		to[j], to[k.width+j] = uint32(second)<<16, uint32(first)<<16
		return
	}
	to[j] = uint32(first) | uint32(second)<<16
}

// What follows is the specification of sums of rows, over the columns from one on.

// refSum writes to row i of out the sum, or the mean, of the rows of x whose numbers are
// idx[off[i]:off[i+1]]; zero if there are none.
func refSum(out []float32, x []Number, of kernel.Lists, from int, mean bool) {
	if from == of.Cols {
		return
	}
	for i := range len(of.Off) - 1 {
		row, list := out[i*of.Cols+from:i*of.Cols+of.Cols], of.Idx[of.Off[i]:of.Off[i+1]]
		clear(row)
		for _, r := range list {
			for j, v := range x[int(r)*of.Cols+from : int(r)*of.Cols+of.Cols] {
				row[j] += v.Float32()
			}
		}
		if mean && len(list) > 0 {
			for j := range row {
				row[j] *= 1 / float32(len(list))
			}
		}
	}
}

// refMaxRow writes the largest values of the rows of a list, and which have them.
func refMaxRow(out []float32, x []Number, arg, list []uint32, from int) {
	d := len(out)
	if len(list) == 0 {
		clear(out[from:])
		for j := range arg[from:] {
			arg[from+j] = kernel.NoRow
		}
		return
	}
	for n, r := range list {
		for j := from; j < d; j++ {
			v := x[int(r)*d+j].Float32()
			if best := out[j]; n == 0 || !(v <= best) && best == best {
				out[j], arg[j] = v, r
			}
		}
	}
}

// refEntrySums is the specification, for the columns of each head from one on. Products are rounded
// before they are added.
func refEntrySums(out []float32, x []Number, w *weights, from int, add bool) {
	if from >= w.d {
		return
	}
	for i := range len(w.off) - 1 {
		for h := range w.heads {
			if !add && (h == 0 || w.outHead > 0) {
				clear(out[i*w.outRow+h*w.outHead:][from:w.d])
			}
		}
		for k := w.off[i]; k < w.off[i+1]; k++ {
			e := k - w.off[0]
			if w.entry != nil {
				e = w.entry[k]
			}
			for h := range w.heads {
				row, f := out[i*w.outRow+h*w.outHead:][from:w.d], w.w[int(e)*w.heads+h]
				for j, v := range x[int(w.idx[k])*w.xRow+h*w.xHead:][from:w.d] {
					row[j] += float32(f * v.Float32())
				}
			}
		}
	}
}
