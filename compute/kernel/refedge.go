package kernel

// The functions of this file are the specification of the kernels over lists of edges, as ref.go
// is of the others.

// refMaxRow writes the largest values of some rows of x, and the numbers of the rows that have
// them.
func refMaxRow(out, x []float32, arg, list []uint32) {
	if len(list) == 0 {
		clear(out)
		for c := range arg {
			arg[c] = NoRow
		}
		return
	}
	d := len(out)
	copy(out, x[int(list[0])*d:])
	for c := range arg {
		arg[c] = list[0]
	}
	for _, r := range list[1:] {
		for c, v := range rowOf(x, int(r), d) {
			if best := out[c]; !(v <= best) && best == best {
				out[c], arg[c] = v, r
			}
		}
	}
}

// refSegmentMaxGrad adds to row i of out, or writes there, the rows of x that segment i names in
// the columns in which the same row of arg is first+i. A segment may name a row twice.
func refSegmentMaxGrad(out, x []float32, arg []uint32, of Lists, first int, accumulate bool) {
	for i := range len(of.Off) - 1 {
		row, last := rowOf(out, i, of.Cols), uint32(NoRow)
		if !accumulate {
			clear(row)
		}
		for _, r := range of.Idx[of.Off[i]:of.Off[i+1]] {
			if r == last {
				continue
			}
			last = r
			for c, a := range rowOf(arg, int(r), of.Cols) {
				if a == uint32(first+i) {
					row[c] += x[int(r)*of.Cols+c]
				}
			}
		}
	}
}

// refEdgeSum computes EdgeSum of some lists, of which w has the first entry's values first.
func refEdgeSum(out, x, w []float32, l *Lists, accumulate bool) {
	heads, d := l.Heads, l.Cols
	for i := range l.count() {
		for h := range heads {
			sum := out[(i*heads+h)*d:][:d]
			if !accumulate {
				clear(sum)
			}
			for e := l.Off[i]; e < l.Off[i+1]; e++ {
				weight := w[int(e-l.Off[0])*heads+h]
				for c, v := range x[l.at(e, h):][:d] {
					sum[c] += weight * v
				}
			}
		}
	}
}

// refEdgeDot computes EdgeDot of some lists, of which dw and g have the first values first.
func refEdgeDot(dw, g, x []float32, l *Lists) {
	heads, d := l.Heads, l.Cols
	for i := range l.count() {
		for e := l.Off[i]; e < l.Off[i+1]; e++ {
			for h := range heads {
				sum := float32(0)
				own := g[(i*heads+h)*d:][:d]
				for c, v := range x[l.at(e, h):][:d] {
					sum += own[c] * v
				}
				dw[int(e-l.Off[0])*heads+h] = sum
			}
		}
	}
}

// leaky is v if v > 0 and else slope·v.
func leaky(v, slope float32) float32 {
	if v > 0 {
		return v
	}
	return slope * v
}

// refEdgeScores computes EdgeScores of some lists, of which s and dst have the first values first.
func refEdgeScores(s, src, dst []float32, l *Lists, slope float32) {
	heads := l.Heads
	for i := range l.count() {
		own := rowOf(dst, i, heads)
		for _, r := range l.Idx[l.Off[i]:l.Off[i+1]] {
			row := src[int(r)*heads:][:len(own)]
			to := s[:len(own)]
			for h, v := range own {
				to[h] = leaky(row[h]+v, slope)
			}
			s = s[heads:]
		}
	}
}

// eachList calls fn with the edge values of each list, of which a has the first.
func eachList(off []uint32, heads int, fn func(i, begin, end int)) {
	for i := range len(off) - 1 {
		fn(i, int(off[i]-off[0])*heads, int(off[i+1]-off[0])*heads)
	}
}

// refSubtractMax subtracts from edge values the largest of their list and head.
func refSubtractMax(a []float32, off []uint32, heads int) {
	eachList(off, heads, func(_, begin, end int) {
		for h := 0; h < heads && begin < end; h++ {
			largest := a[begin+h]
			for e := begin + h; e < end; e += heads {
				if a[e] > largest {
					largest = a[e]
				}
			}
			for e := begin + h; e < end; e += heads {
				a[e] -= largest
			}
		}
	})
}

// refDivideSum divides edge values by the sum of their list and head.
func refDivideSum(a []float32, off []uint32, heads int) {
	eachList(off, heads, func(_, begin, end int) {
		for h := range heads {
			sum := float32(0)
			for e := begin + h; e < end; e += heads {
				sum += a[e]
			}
			factor := 1 / sum
			for e := begin + h; e < end; e += heads {
				a[e] *= factor
			}
		}
	})
}

// refSoftmaxGrad computes EdgeSoftmaxGrad of some lists.
func refSoftmaxGrad(da, a []float32, off []uint32, heads int) {
	eachList(off, heads, func(_, begin, end int) {
		for h := range heads {
			sum := float32(0)
			for e := begin + h; e < end; e += heads {
				sum += a[e] * da[e]
			}
			for e := begin + h; e < end; e += heads {
				da[e] = a[e] * (da[e] - sum)
			}
		}
	})
}

// refEdgeToDst computes EdgeToDst of some lists, of which s has the first values.
func refEdgeToDst(out, s []float32, off []uint32, heads int) {
	eachList(off, heads, func(i, begin, end int) {
		sum := rowOf(out, i, heads)
		clear(sum)
		for e := begin; e < end; e += heads {
			for h, v := range s[e : e+heads] {
				sum[h] += v
			}
		}
	})
}

// refEdgeToSrc adds to the values of a row, one for each head, the edge values of some entries.
func refEdgeToSrc(sum, s []float32, entry []uint32) {
	for _, e := range entry {
		for h, v := range s[int(e)*len(sum) : int(e+1)*len(sum)] {
			sum[h] += v
		}
	}
}

// refEdgeScores2 computes EdgeScores2 of some lists, of which s and xr have the first values first.
func refEdgeScores2(s, xl, xr, att []float32, l *Lists, slope float32) {
	heads, d := l.Heads, l.Cols
	for i := range l.count() {
		for e := l.Off[i]; e < l.Off[i+1]; e++ {
			for h := range heads {
				own, weight, sum := xr[(i*heads+h)*d:][:d], att[h*d:][:d], float32(0)
				for c, v := range xl[l.at(e, h):][:d] {
					sum += weight[c] * leaky(v+own[c], slope)
				}
				s[int(e-l.Off[0])*heads+h] = sum
			}
		}
	}
}

// refEdgeScores2Grad computes EdgeScores2Grad of some lists, of which dxr, ds and xr have the first
// values first, and adds to datt.
func refEdgeScores2Grad(dxr, datt, ds []float32, l *Lists, a Scores2) {
	heads, d := l.Heads, l.Cols
	for i := range l.count() {
		clear(dxr[i*heads*d : (i+1)*heads*d])
		for e := l.Off[i]; e < l.Off[i+1]; e++ {
			for h := range heads {
				at, grad := (i*heads+h)*d, ds[int(e-l.Off[0])*heads+h]
				own, to := a.Dst[at:][:d], dxr[at:][:d]
				weight, sum := a.Att[h*d:][:d], datt[h*d:][:d]
				for c, v := range a.Src[l.at(e, h):][:d] {
					v += own[c]
					factor := a.Slope
					if v > 0 {
						factor = 1
					}
					to[c] += grad * factor * weight[c]
					sum[c] += grad * factor * v
				}
			}
		}
	}
}

// refEdgeScores2Src adds to out, or writes there, the gradient of EdgeScores2 in some rows of xl.
// Each row has a list of the segments that name it, and ds has the first entry's values first.
func refEdgeScores2Src(out, ds []float32, l *Lists, a Scores2, accumulate bool) {
	heads, d := l.Heads, l.Cols
	if !accumulate {
		clear(out[:l.count()*heads*d])
	}
	for i := range l.count() {
		for e := l.Off[i]; e < l.Off[i+1]; e++ {
			for h := range heads {
				at, grad := (i*heads+h)*d, ds[int(e-l.Off[0])*heads+h]
				left, to, weight := a.Src[at:][:d], out[at:][:d], a.Att[h*d:][:d]
				for c, v := range a.Dst[l.at(e, h):][:d] {
					factor := a.Slope
					if v+left[c] > 0 {
						factor = 1
					}
					to[c] += grad * factor * weight[c]
				}
			}
		}
	}
}

// refTypeRows computes TypeRows.
func refTypeRows(out, table []float32, types []uint32, d int) {
	for e, t := range types {
		copy(rowOf(out, e, d), table[int(t)*d:][:d])
	}
}

// refTypeRowsGrad adds to dtable what TypeRowsGrad computes.
func refTypeRowsGrad(dtable, dout []float32, types []uint32, d int) {
	for e, t := range types {
		sum := dtable[int(t)*d:][:d]
		for c, v := range rowOf(dout, e, d) {
			sum[c] += v
		}
	}
}
