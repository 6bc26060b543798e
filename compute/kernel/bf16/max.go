package bf16

import "gdb/compute/kernel"

// SegmentMax writes to row i of out(M,d) the largest value of each column in the rows of x(·,d)
// whose numbers are idx[off[i]:off[i+1]], and to arg(M,d), unless it is nil, the number of the row
// that has it: of equal ones that which is named first. If there are no rows, it writes zeros, and
// kernel.NoRow as their numbers. A NaN counts as larger than any number.
func SegmentMax[T Value](p *kernel.Pool, out []T, x []Number, arg []uint32, of kernel.Lists) {
	keep := arg != nil
	if keep {
		arg = arg[:max(0, len(of.Off)-1)*of.Cols]
	}
	o := level()
	segments(p, o, out, x, of, func(sums []float32, lo, hi int) {
		if keep {
			o.sums.max(sums, x, arg[lo*of.Cols:hi*of.Cols], of.Off[lo:hi+1], of.Idx, of.Cols)
			return
		}
		scratch := p.TakeWords(of.Cols)
		o.sums.max(sums, x, scratch, of.Off[lo:hi+1], of.Idx, of.Cols)
		p.GiveWords(scratch)
	})
}
