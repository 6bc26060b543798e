package kernel

// The functions of this file compute what functions of refedge.go do over edge values, for four
// heads at a time: sums stay in registers, and nothing branches on a value. Heads that are left
// over are taken one at a time. Results have the bits of the specification.

// quadAt returns the values of four heads: x from at on.
func quadAt(x []float32, at int) *[4]float32 { return (*[4]float32)(x[at:]) }

// quadSum returns four values plus those of the entries from at on, step values apart. The compiler
// keeps four variables in registers, but not an array of four.
func quadSum(list []float32, at, step int) (a, b, c, d float32) {
	for ; at < len(list); at += step {
		v := quadAt(list, at)
		a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
	}
	return a, b, c, d
}

// oneSum is quadSum of one head.
func oneSum(list []float32, at, step int) (sum float32) {
	for ; at < len(list); at += step {
		sum += list[at]
	}
	return sum
}

// quadEdgeScores is refEdgeScores. The sums of a part of the lists are in the second-level cache
// when vectors of leaky pass over them.
func quadEdgeScores(s, src, dst []float32, l *Lists, slope float32) {
	heads := l.Heads
	s = s[:l.entries()*heads]
	for i := range l.count() {
		list := l.Idx[l.Off[i]:l.Off[i+1]]
		own, to := rowOf(dst, i, heads), s[int(l.Off[i]-l.Off[0])*heads:]
		h := 0
		for ; h+4 <= heads; h += 4 {
			v := quadAt(own, h)
			a, b, c, d := v[0], v[1], v[2], v[3]
			for e, r := range list {
				row, sum := quadAt(src, int(r)*heads+h), quadAt(to, e*heads+h)
				sum[0], sum[1], sum[2], sum[3] = row[0]+a, row[1]+b, row[2]+c, row[3]+d
			}
		}
		for ; h < heads; h++ {
			v := own[h]
			for e, r := range list {
				to[e*heads+h] = src[int(r)*heads+h] + v
			}
		}
	}
	level().leaky(s, slope)
}

// quadSubtractMax is refSubtractMax.
func quadSubtractMax(a []float32, off []uint32, heads int) {
	eachList(off, heads, func(_, begin, end int) {
		list, h := a[begin:end], 0
		if begin == end {
			return
		}
		for ; h+4 <= heads; h += 4 {
			v := quadAt(list, h)
			a, b, c, d := v[0], v[1], v[2], v[3]
			for e := h + heads; e < len(list); e += heads {
				v := quadAt(list, e)
				a, b, c, d = max(a, v[0]), max(b, v[1]), max(c, v[2]), max(d, v[3])
			}
			for e := h; e < len(list); e += heads {
				v := quadAt(list, e)
				v[0], v[1], v[2], v[3] = v[0]-a, v[1]-b, v[2]-c, v[3]-d
			}
		}
		for ; h < heads; h++ {
			largest := list[h]
			for e := h + heads; e < len(list); e += heads {
				largest = max(largest, list[e])
			}
			for e := h; e < len(list); e += heads {
				list[e] -= largest
			}
		}
	})
}

// quadDivideSum is refDivideSum.
func quadDivideSum(a []float32, off []uint32, heads int) {
	eachList(off, heads, func(_, begin, end int) {
		list, h := a[begin:end], 0
		for ; h+4 <= heads; h += 4 {
			a, b, c, d := quadSum(list, h, heads)
			a, b, c, d = 1/a, 1/b, 1/c, 1/d
			for e := h; e < len(list); e += heads {
				v := quadAt(list, e)
				v[0], v[1], v[2], v[3] = v[0]*a, v[1]*b, v[2]*c, v[3]*d
			}
		}
		for ; h < heads; h++ {
			factor := 1 / oneSum(list, h, heads)
			for e := h; e < len(list); e += heads {
				list[e] *= factor
			}
		}
	})
}

// quadEdgeToDst is refEdgeToDst.
func quadEdgeToDst(out, s []float32, off []uint32, heads int) {
	eachList(off, heads, func(i, begin, end int) {
		to, list, h := rowOf(out, i, heads), s[begin:end], 0
		for ; h+4 <= heads; h += 4 {
			v := quadAt(to, h)
			v[0], v[1], v[2], v[3] = quadSum(list, h, heads)
		}
		for ; h < heads; h++ {
			to[h] = oneSum(list, h, heads)
		}
	})
}

// quadEdgeToSrc is refEdgeToSrc.
func quadEdgeToSrc(sum, s []float32, entry []uint32) {
	heads, h := len(sum), 0
	for ; h+4 <= heads; h += 4 {
		to := quadAt(sum, h)
		a, b, c, d := to[0], to[1], to[2], to[3]
		for _, e := range entry {
			v := quadAt(s, int(e)*heads+h)
			a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
		}
		to[0], to[1], to[2], to[3] = a, b, c, d
	}
	for ; h < heads; h++ {
		for _, e := range entry {
			sum[h] += s[int(e)*heads+h]
		}
	}
}
