package bf16

import "gdb/train/kernel"

// The kernels of this file are of lists whose entries have a weight for each of some heads, as
// those of kernel.EdgeSum: a row has the columns of a head side by side, or if it is shared, is
// read whole by each head.

// WeightedHeads is out[i,h] (+)= the sum over the entries e of list i of w[e,h]·x[idx[e],h]: see
// kernel.EdgeSum.
func WeightedHeads[T Value](p *kernel.Pool, out []T, x []Number, w []float32, off, idx []uint32,
	heads, d int, shared, accumulate bool) {
	count, wide, read := max(0, len(off)-1), heads*d, heads*d
	if shared {
		read = d
	}
	if count*wide == 0 {
		return
	}
	c, o, rows := resultOf(out[:count*wide]), level(), len(x)/read
	p.Span(count, kernel.SegmentsPart(off, wide), func(lo, hi int) {
		kernel.CheckSegments(off[lo:hi+1], idx, rows)
		own := p.TakeFloats(pieceEntries(heads) * heads)
		c.rows(p, o, lo, hi, wide, accumulate, func(sums []float32) {
			pieces(off[lo:hi+1], pieceEntries(heads), hi-lo, func(i int, off2 []uint32, more bool) {
				n := int(off2[len(off2)-1] - off2[0])
				byHead(own, w[int(off2[0]-off[0])*heads:][:n*heads], n, heads)
				for h := range heads {
					at := columns{d: d, read: h * d, row: read, write: h * d, wide: wide}
					if shared {
						at.read = 0
					}
					o.sums.weightedPart(sums[i*wide:], x, own[h*n:(h+1)*n], off2, idx, at,
						accumulate || more)
				}
			})
		})
		p.GiveFloats(own)
	})
}

// weightsPart is about how many weights are sorted by head at a time: they stay in the first-level
// cache.
const weightsPart = 4 << 10

// pieceEntries is of how many entries.
func pieceEntries(heads int) int { return max(1, weightsPart/heads) }

// pieces calls fn for lists of at most so many entries, and so many lists, at a time: with the
// number of the first and their offsets. A list of more entries comes in pieces by itself, and more
// says that it is not the first of these.
func pieces(off []uint32, entries, lists int, fn func(i int, off []uint32, more bool)) {
	var piece [2]uint32
	for i := 0; i < len(off)-1; {
		j := i + 1
		for j < len(off)-1 && j-i < lists && int(off[j+1]-off[i]) <= entries {
			j++
		}
		if int(off[j]-off[i]) <= entries {
			fn(i, off[i:j+1], false)
			i = j
			continue
		}
		for at := off[i]; at < off[i+1]; at = piece[1] {
			piece = [2]uint32{at, min(off[i+1], at+uint32(entries))}
			fn(i, piece[:], at > off[i])
		}
		i++
	}
}

// byHead writes values of n entries and some heads head by head.
func byHead(own, w []float32, n, heads int) {
	for e := range n {
		for h := range heads {
			own[h*n+e] = w[e*heads+h]
		}
	}
}

// WeightedHeadsGrad adds to dx the gradient of WeightedHeads in x, given that of its output, and
// its lists transposed: see kernel.Transposed.EdgeSumGrad and EdgeSumSharedGrad. The first fresh
// rows of dx are overwritten instead.
func WeightedHeadsGrad[T Value](p *kernel.Pool, dx []T, dout []Number, w []float32,
	t *kernel.Transposed, heads, d int, shared bool, fresh int) {
	off, idx, entry, lengths := t.Lists()
	if len(entry) != len(idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
	read, wide := heads*d, heads*d
	if shared {
		wide = d
	}
	w, dout = w[:len(idx)*heads], dout[:len(lengths)*read]
	o := level()
	scatter(p, o, dx, off, wide, fresh, func(sums []float32, lo, hi int, add bool) {
		own := p.TakeFloats(pieceEntries(heads) * heads)
		pieces(off[lo:hi+1], pieceEntries(heads), hi-lo, func(i int, off []uint32, more bool) {
			n := int(off[len(off)-1] - off[0])
			for k, e := range entry[off[0]:off[len(off)-1]] {
				for h := range heads {
					own[h*n+k] = w[int(e)*heads+h]
				}
			}
			for h := range heads {
				at := columns{d: d, read: h * d, row: read, write: h * d, wide: wide}
				if shared {
					at.write = 0
				}
				o.sums.weightedPart(sums[i*wide:], dout, own[h*n:(h+1)*n], off, idx, at,
					add || more || shared && h > 0)
			}
		})
		p.GiveFloats(own)
	})
}

// columns are the d columns of a head: those from read on of rows of row values, and from write on
// of rows of wide values.
type columns struct{ d, read, row, write, wide int }

// weightedPart adds sums of weighted rows to the columns of a head, or writes them there. The first
// weight is that of entry off[0].
func (s *sumSet) weightedPart(out []float32, x []Number, weight []float32, off, idx []uint32,
	at columns, accumulate bool) {
	left := s.chunks(at.d, len(s.weighteds), func(col, vectors, lanes int) {
		s.weighteds[vectors](&out[at.write+col], rowsFrom(x, at.read+col), from(weight, 0),
			&off[0], from(idx, 0), len(off)-1, uintptr(at.row)*2, uintptr(at.wide)*4, lanes,
			from(idx, int(off[0])), flag(accumulate))
	})
	refWeightedPart(out, x, weight, off, idx, at, left, accumulate)
}

// EdgeDot is dw[e,h] = g[i,h]·x[idx[e],h] for every entry e of every list i: see kernel.EdgeDot.
// Rows are widened some at a time.
func EdgeDot[T Value](p *kernel.Pool, dw []float32, g []T, x []Number, off, idx []uint32,
	heads, d int, shared bool) {
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
		dots(p, o, dw[int(off[lo]-off[0])*heads:], g[lo*wide:hi*wide], x, off[lo:hi+1], idx,
			heads, d, shared)
	})
}

// dotsPart is how many values of rows are widened at a time: they stay in the second-level cache.
const dotsPart = 16 << 10

// dots computes some lists, a few at a time.
func dots[T Value](p *kernel.Pool, o *ops, dw []float32, g []T, x []Number, off, idx []uint32,
	heads, d int, shared bool) {
	wide, read := heads*d, heads*d
	if shared {
		read = d
	}
	entries, lists := max(1, dotsPart/read), max(1, dotsPart/wide)
	values, own := p.TakeFloats(entries*read), p.TakeFloats(lists*wide)
	words := p.TakeWords(entries + lists + 1)
	count, ends := words[:entries], words[entries:]
	for i := range count {
		count[i] = uint32(i)
	}
	pieces(off, entries, lists, func(i int, some []uint32, _ bool) {
		n := len(some) - 1
		for k, r := range idx[some[0]:some[n]] {
			o.widen(values[k*read:(k+1)*read], x[int(r)*read:int(r+1)*read])
		}
		for k, at := range some {
			ends[k] = at - some[0]
		}
		load(o, own[:n*wide], g[i*wide:(i+n)*wide])
		kernel.EdgeDot(nil, dw[int(some[0]-off[0])*heads:], own, values, ends[:n+1], count, heads,
			d, shared)
	})
	p.GiveFloats(values)
	p.GiveFloats(own)
	p.GiveWords(words)
}
