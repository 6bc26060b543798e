package bf16

import "gdb/compute/kernel"

// EdgeDot is dw[e,h] = g[i,h]·x[idx[e],h] for every entry e of every list i: see kernel.EdgeDot.
// Where it computes is of no matter but for speed: results have the same bits.
func EdgeDot(p *kernel.Pool, dw []float32, g, x []Number, off, idx []uint32, heads, d int,
	shared bool) {
	count, wide, read := max(0, len(off)-1), heads*d, heads*d
	if shared {
		read = d
	}
	if count == 0 || wide == 0 {
		clear(dw)
		return
	}
	o, rows := level(), len(x)/read
	g = g[:count*wide]
	p.Span(count, kernel.SegmentsPart(off, wide), func(lo, hi int) {
		kernel.CheckSegments(off[lo:hi+1], idx, rows)
		first, end := int(off[lo]-off[0])*heads, int(off[hi]-off[0])*heads
		o.sums.entryDots(dw[first:end], g[lo*wide:hi*wide], x, off[lo:hi+1], idx, heads, d, shared)
	})
}

// dotFunc writes for the entries of lists, one head after the other, the products of the list's own
// row with that which the entry names. Rows of x are xRow bytes apart, and own ones follow one
// another; a head has d columns of both, or all d of a row of x if xHead is 0. There is at least
// one list, one head and one column.
type dotFunc func(dw *float32, own, x *uint16, off, idx *uint32, lists, heads, d int,
	xRow, xHead uintptr)

func (s *sumSet) entryDots(dw []float32, g, x []Number, off, idx []uint32, heads, d int,
	shared bool) {
	switch {
	case len(dw) == 0:
		return
	case s.dots == nil, s.whole && d%2 != 0:
		refEntryDots(dw, g, x, off, idx, heads, d, shared)
		return
	}
	xRow, xHead := uintptr(heads*d)*2, uintptr(d)*2
	if shared {
		xRow, xHead = uintptr(d)*2, 0
	}
	s.dots(&dw[0], rowsFrom(g, 0), rowsFrom(x, 0), &off[0], &idx[0], len(off)-1, heads, d, xRow,
		xHead)
}

// dotLanes is how many sums of pairs of columns run beside each other.
const dotLanes = 16

// refEntryDots is the specification. Columns 2l and 2l+1 of 32 are added to two sums of their own,
// which are added up in the end, and then the halves of all lanes.
func refEntryDots(dw []float32, g, x []Number, off, idx []uint32, heads, d int, shared bool) {
	n := 0
	for i := range len(off) - 1 {
		for _, r := range idx[off[i]:off[i+1]] {
			for h := range heads {
				at := (int(r)*heads + h) * d
				if shared {
					at = int(r) * d
				}
				dw[n] = refDot(g[(i*heads+h)*d:][:d], x[at:at+d])
				n++
			}
		}
	}
}

func refDot(a, b []Number) float32 {
	var sums [2][dotLanes]float32
	for j, v := range a {
		sum := &sums[j%2][j/2%dotLanes]
		*sum = float32(float64(*sum) + float64(v.Float32())*float64(b[j].Float32()))
	}
	all := &sums[1]
	for l := range all {
		all[l] += sums[0][l]
	}
	for half := dotLanes / 2; half > 0; half /= 2 {
		for l := range half {
			all[l] += all[l+half]
		}
	}
	return all[0]
}
