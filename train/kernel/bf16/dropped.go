package bf16

import (
	"gdb/internal/mem"
	"gdb/train/kernel"
)

// SegmentMeanDropout is SegmentMean of rows that went through Dropout, and were rounded then, where
// x stays as it is: the row of list entry e is x's row idx[e], and counts as row at[e] of the matrix
// that was dropped out.
func SegmentMeanDropout[T Value](p *kernel.Pool, out []T, x []Number, off, idx, at []uint32,
	d int, rate float32, key uint64) {
	o := level()
	at = at[:len(idx)]
	segments(p, o, out, x, off, idx, d, func(sums []float32, lo, hi int) {
		first, n := off[lo], int(off[hi]-off[lo])
		words := p.TakeWords((n*d+1)/2 + n + hi - lo + 1)
		rows := mem.View[Number](mem.BytesOf(words[:(n*d+1)/2]))[:n*d]
		count, ends := words[(n*d+1)/2:][:n], words[(n*d+1)/2+n:]
		values := p.TakeFloats(d)
		for k := range n {
			count[k] = uint32(k)
			o.widen(values, x[int(idx[int(first)+k])*d:][:d])
			kernel.Dropout(nil, values, int(at[int(first)+k])*d, rate, key)
			o.narrow(rows[k*d:(k+1)*d], values)
		}
		p.GiveFloats(values)
		for i := range ends {
			ends[i] = off[lo+i] - first
		}
		o.sums.sum(sums, rows, ends, count, d, true)
		p.GiveWords(words)
	})
}
