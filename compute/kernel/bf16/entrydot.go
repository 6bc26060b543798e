package bf16

import "gdb/compute/kernel"

// EdgeDot is dw[e,h] = g[i,h]·x[idx[e],h] for every entry e of every list i: see kernel.EdgeDot.
// Where it computes is of no matter but for speed: results have the same bits.
func EdgeDot(p *kernel.Pool, dw []float32, g, x []Number, of kernel.Lists) {
	count, wide, read := max(0, len(of.Off)-1), of.Heads*of.Cols, of.Heads*of.Cols
	if of.Shared {
		read = of.Cols
	}
	if count == 0 || wide == 0 {
		clear(dw)
		return
	}
	o, rows := level(), len(x)/read
	g = g[:count*wide]
	p.Span(count, kernel.SegmentsPart(of.Off, wide), func(lo, hi int) {
		kernel.CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		first, end := int(of.Off[lo]-of.Off[0])*of.Heads, int(of.Off[hi]-of.Off[0])*of.Heads
		o.sums.entryDots(dw[first:end], g[lo*wide:hi*wide], x, kernel.Lists{Off: of.Off[lo : hi+1],
			Idx: of.Idx, Heads: of.Heads, Cols: of.Cols, Shared: of.Shared})
	})
}

// dotFunc writes for the entries of lists, one head after the other, the products of the list's own
// row with that which the entry names. Rows of x are xRow bytes apart, and own ones follow one
// another; a head has d columns of both, or all d of a row of x if xHead is 0. There is at least
// one list, one head and one column.
type dotFunc func(dw *float32, own, x *uint16, off, idx *uint32, lists, heads, d int,
	xRow, xHead uintptr)

func (s *sumSet) entryDots(dw []float32, g, x []Number, of kernel.Lists) {
	switch {
	case len(dw) == 0:
		return
	case s.dots == nil, s.whole && of.Cols%2 != 0:
		refEntryDots(dw, g, x, of)
		return
	}
	xRow, xHead := uintptr(of.Heads*of.Cols)*2, uintptr(of.Cols)*2
	if of.Shared {
		xRow, xHead = uintptr(of.Cols)*2, 0
	}
	s.dots(&dw[0], rowsFrom(g, 0), rowsFrom(x, 0), &of.Off[0], &of.Idx[0], len(of.Off)-1, of.Heads,
		of.Cols, xRow,
		xHead)
}

// dotLanes is how many sums of pairs of columns run beside each other.
const dotLanes = 16

// refEntryDots is the specification. Columns 2l and 2l+1 of 32 are added to two sums of their own,
// which are added up in the end, and then the halves of all lanes.
func refEntryDots(dw []float32, g, x []Number, of kernel.Lists) {
	n := 0
	for i := range len(of.Off) - 1 {
		for _, r := range of.Idx[of.Off[i]:of.Off[i+1]] {
			for h := range of.Heads {
				at := (int(r)*of.Heads + h) * of.Cols
				if of.Shared {
					at = int(r) * of.Cols
				}
				dw[n] = refDot(g[(i*of.Heads+h)*of.Cols:][:of.Cols], x[at:at+of.Cols])
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
