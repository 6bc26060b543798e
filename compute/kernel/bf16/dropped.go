package bf16

import (
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// SegmentMeanDropout writes the means of rows that went through Dropout, and were rounded then,
// where x stays as it is: the row of list entry e is row idx[e] of x, and counts as row at[e] of
// the matrix that was dropped out.
func SegmentMeanDropout[T Value](p *kernel.Pool, out []T, x []Number, of kernel.Lists,
	drop kernel.Drop) {
	o := level()
	of.At = of.At[:len(of.Idx)]
	segments(p, o, out, x, of, func(sums []float32, lo, hi int) {
		for next := lo; lo < hi; lo = next {
			first := of.Off[lo]
			for next = lo + 1; next < hi && int(of.Off[next+1]-first)*of.Cols <= elementsPart; {
				next++
			}
			n, part := int(of.Off[next]-first), of.Off[lo:next+1]
			words := p.TakeWords((n*of.Cols+1)/2 + n + len(part))
			rows := mem.View[Number](mem.BytesOf(words[:(n*of.Cols+1)/2]))[:n*of.Cols]
			count, ends := words[(n*of.Cols+1)/2:][:n], words[(n*of.Cols+1)/2+n:]
			o.drop(p, rows, x, kernel.Lists{Idx: of.Idx[first:], At: of.At[first:], Cols: of.Cols},
				drop)
			for k := range count {
				count[k] = uint32(k)
			}
			for i, end := range part {
				ends[i] = end - first
			}
			o.sums.sum(sums, rows, ends, count, of.Cols, true)
			sums = sums[(next-lo)*of.Cols:]
			p.GiveWords(words)
		}
	})
}

// drop writes rows of x, dropped out, to rows.
func (o *ops) drop(p *kernel.Pool, rows, x []Number, of kernel.Lists, drop kernel.Drop) {
	values := p.TakeFloats(of.Cols)
	for k := 0; len(rows) > 0; k, rows = k+1, rows[of.Cols:] {
		o.widen(values, x[int(of.Idx[k])*of.Cols:][:of.Cols])
		kernel.Dropout(nil, values, int(of.At[k])*of.Cols, drop.Rate, drop.Key)
		o.narrow(rows[:of.Cols], values)
	}
	p.GiveFloats(values)
}
