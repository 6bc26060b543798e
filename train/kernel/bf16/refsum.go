package bf16

// The functions of this file are the specification of sums of rows, over the columns from one on.

// refSum writes to row i of out the sum, or the mean, of the rows of x whose numbers are
// idx[off[i]:off[i+1]]; zero if there are none.
func refSum(out []float32, x []Number, off, idx []uint32, d, from int, mean bool) {
	if from == d {
		return
	}
	for i := range len(off) - 1 {
		row, list := out[i*d+from:i*d+d], idx[off[i]:off[i+1]]
		clear(row)
		for _, r := range list {
			for j, v := range x[int(r)*d+from : int(r)*d+d] {
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

// refWeighted adds to row i of out, or writes there, the sum of the same rows, each times the
// weight of its row or its entry. Products are rounded before they are added.
func refWeighted(out []float32, x []Number, weight []float32, off, idx []uint32, d, from int,
	byEntry, accumulate bool) {
	if from == d {
		return
	}
	for i := range len(off) - 1 {
		row := out[i*d+from : i*d+d]
		if !accumulate {
			clear(row)
		}
		for e := off[i]; e < off[i+1]; e++ {
			r := idx[e]
			w := r
			if byEntry {
				w = e - off[0]
			}
			for j, v := range x[int(r)*d+from : int(r)*d+d] {
				row[j] += float32(weight[w] * v.Float32())
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
			arg[from+j] = noRow
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

// refWeightedPart is refWeighted by entry for the columns of a head, from one on: the first weight
// is that of entry off[0].
func refWeightedPart(out []float32, x []Number, weight []float32, off, idx []uint32, at columns,
	from int, accumulate bool) {
	if from == at.d {
		return
	}
	for i := range len(off) - 1 {
		row := out[i*at.wide+at.write+from : i*at.wide+at.write+at.d]
		if !accumulate {
			clear(row)
		}
		for e := off[i]; e < off[i+1]; e++ {
			w := weight[e-off[0]]
			for j, v := range x[int(idx[e])*at.row+at.read+from:][:at.d-from] {
				row[j] += float32(w * v.Float32())
			}
		}
	}
}
