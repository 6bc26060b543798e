package bf16

import "gdb/compute/kernel"

// The functions of this file are the specification of sums of rows, over the columns from one on.

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
