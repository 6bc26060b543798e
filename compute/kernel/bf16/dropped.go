package bf16

import (
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// SegmentMeanDropout is SegmentMean of rows that went through Dropout, and were rounded then, where
// x stays as it is: the row of list entry e is row idx[e] of x, and counts as row at[e] of the
// matrix that was dropped out.
func SegmentMeanDropout[T Value](p *kernel.Pool, out []T, x []Number, off, idx, at []uint32,
	d int, rate float32, key uint64) {
	o := level()
	at = at[:len(idx)]
	segments(p, o, out, x, off, idx, d, func(sums []float32, lo, hi int) {
		for next := lo; lo < hi; lo = next {
			first := off[lo]
			for next = lo + 1; next < hi && int(off[next+1]-first)*d <= elementsPart; {
				next++
			}
			n, part := int(off[next]-first), off[lo:next+1]
			words := p.TakeWords((n*d+1)/2 + n + len(part))
			rows := mem.View[Number](mem.BytesOf(words[:(n*d+1)/2]))[:n*d]
			count, ends := words[(n*d+1)/2:][:n], words[(n*d+1)/2+n:]
			o.drop(p, rows, x, idx[first:], at[first:], d, rate, key)
			for k := range count {
				count[k] = uint32(k)
			}
			for i, end := range part {
				ends[i] = end - first
			}
			o.sums.sum(sums, rows, ends, count, d, true)
			sums = sums[(next-lo)*d:]
			p.GiveWords(words)
		}
	})
}

// drop writes rows of x, dropped out, to rows.
func (o *ops) drop(p *kernel.Pool, rows, x []Number, idx, at []uint32, d int, rate float32,
	key uint64) {
	values := p.TakeFloats(d)
	for k := 0; len(rows) > 0; k, rows = k+1, rows[d:] {
		o.widen(values, x[int(idx[k])*d:][:d])
		kernel.Dropout(nil, values, int(at[k])*d, rate, key)
		o.narrow(rows[:d], values)
	}
	p.GiveFloats(values)
}
