package kernel

import "gdb/internal/mem"

// Transposed lists, for each row, the segments that it is in: with it the gradient of a mean is a
// sum over segments too, and rows are independent of each other. The zero value is ready for
// Build, which uses the memory again; it takes 4 B for each row, entry and segment, and
// BuildEntries 4 B more for each entry. It is read-only between calls of these.
type Transposed struct {
	off    []uint32  // rows+1
	idx    []uint32  // the segments of row r are idx[off[r]:off[r+1]], ascending
	weight []float32 // 1/length of each segment
	entry  []uint32  // of BuildEntries: the list entry that each value of idx comes from
}

// TransposedWords returns how many values of 4 bytes Build needs.
func TransposedWords(rows, entries, segments int) int { return rows + 1 + entries + segments }

// TransposedIn returns a Transposed that uses memory of TransposedWords values.
func TransposedIn(memory []float32, rows, entries, segments int) Transposed {
	words := mem.View[uint32](mem.BytesOf(memory))
	return Transposed{off: words[: 0 : rows+1], idx: words[rows+1:][:0:entries],
		weight: memory[rows+1+entries:][:0:segments]}
}

// TransposedEntryWords returns how many values of 4 bytes BuildEntries needs.
func TransposedEntryWords(rows, entries, segments int) int {
	return TransposedWords(rows, entries, segments) + entries
}

// TransposedEntriesIn returns a Transposed that uses memory of TransposedEntryWords values.
func TransposedEntriesIn(memory []float32, rows, entries, segments int) Transposed {
	t := TransposedIn(memory, rows, entries, segments)
	words := mem.View[uint32](mem.BytesOf(memory))
	t.entry = words[TransposedWords(rows, entries, segments):][:0:entries]
	return t
}

// Build transposes segments over rows rows, by counting: about 3 ns for each entry of idx.
func (t *Transposed) Build(off, idx []uint32, rows int) {
	t.entry = t.entry[:0]
	ends := t.count(off, idx, rows)
	for i := range t.weight {
		list := idx[off[i]:off[i+1]]
		t.weight[i] = 1 / float32(max(1, len(list)))
		for _, r := range list {
			t.idx[ends[r]] = uint32(i)
			ends[r]++
		}
	}
}

// BuildEntries is Build for the gradients of kernels that have values for each list entry: it also
// keeps the number of the entry, e-off[0] for idx[e], that each transposed entry comes from.
func (t *Transposed) BuildEntries(off, idx []uint32, rows int) {
	ends := t.count(off, idx, rows)
	t.entry = mem.Sized(t.entry, len(t.idx))
	e := uint32(0)
	for i := range t.weight {
		list := idx[off[i]:off[i+1]]
		t.weight[i] = 1 / float32(max(1, len(list)))
		for _, r := range list {
			at := ends[r]
			t.idx[at], t.entry[at] = uint32(i), e
			ends[r] = at + 1
			e++
		}
	}
}

// count sizes the lists and returns where each begins: off from its second value on, one place
// further than it belongs, so that filling the lists moves each to where it belongs.
func (t *Transposed) count(off, idx []uint32, rows int) (ends []uint32) {
	segments := max(0, len(off)-1)
	t.off, t.weight = mem.Sized(t.off, rows+1), mem.Sized(t.weight, segments)
	clear(t.off)
	if segments == 0 {
		t.idx = t.idx[:0]
		return nil
	}
	CheckSegments(off, idx, rows)
	entries := idx[off[0]:off[segments]]
	t.idx = mem.Sized(t.idx, len(entries))
	ends = t.off[1:]
	for _, r := range entries {
		ends[r]++
	}
	sum := uint32(0)
	for r, count := range ends {
		ends[r] = sum
		sum += count
	}
	return ends
}

// MeanGrad adds to dx(·,d) the gradient of SegmentMean in its input, given the gradient dout(M,d)
// of its output: dx[r] += dout[i]/length(i) for each r of each segment i that Build was given. The
// first fresh rows of dx are overwritten instead, so that they need not be zeroed before.
func (t *Transposed) MeanGrad(p *Pool, dx, dout []float32, d, fresh int) {
	t.weightedGrad(p, dx, dout, t.weight, d, fresh)
}

// ScaledGrad is MeanGrad with scale[i] in the place of 1/length(i), or 1 if scale is nil: then it
// is the gradient of SegmentSum.
func (t *Transposed) ScaledGrad(p *Pool, dx, dout, scale []float32, d, fresh int) {
	if scale != nil {
		t.weightedGrad(p, dx, dout, scale[:len(t.weight)], d, fresh)
		return
	}
	ones := p.TakeFloats(len(t.weight))
	for i := range ones {
		ones[i] = 1
	}
	t.weightedGrad(p, dx, dout, ones, d, fresh)
	p.GiveFloats(ones)
}

func (t *Transposed) weightedGrad(p *Pool, dx, dout, weight []float32, d, fresh int) {
	dx, dout = dx[:t.rows()*d], dout[:len(weight)*d]
	o := level()
	t.each(p, dx, d, fresh, func(lo, hi int, accumulate bool) {
		if o.sums != nil {
			o.sums.weightedSum(dx[lo*d:hi*d], dout, weight, Lists{Off: t.off[lo : hi+1],
				Idx: t.idx, Cols: d}, accumulate)
		} else {
			refWeightedSum(dx[lo*d:hi*d], dout, weight, Lists{Off: t.off[lo : hi+1], Idx: t.idx,
				Cols: d}, accumulate)
		}
	})
}

// Lists returns, for kernels of other packages, the lists of the rows: those of row r are the
// segments idx[off[r]:off[r+1]], ascending, and entry has which list entry each comes from, if they
// are of BuildEntries. weight has 1/length of each segment.
func (t *Transposed) Lists() (off, idx, entry []uint32, weight []float32) {
	return t.off, t.idx, t.entry, t.weight
}

// mustHaveEntries panics unless the lists are of BuildEntries.
func (t *Transposed) mustHaveEntries() {
	if len(t.entry) != len(t.idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
}

// rows returns the number of rows that the segments were over.
func (t *Transposed) rows() int { return len(t.off) - 1 }

// each calls sum for parts of the rows of dx(rows,d), in no order and at once: the first fresh rows
// are overwritten, the others accumulate. No part is empty.
func (t *Transposed) each(p *Pool, dx []float32, d, fresh int,
	sum func(lo, hi int, accumulate bool)) {
	if len(t.weight) == 0 {
		clear(dx[:fresh*d])
		return
	}
	if len(dx) == 0 {
		return
	}
	p.Span(t.rows(), SegmentsPart(t.off, d), func(lo, hi int) {
		at := min(max(fresh, lo), hi)
		if lo < at {
			sum(lo, at, false)
		}
		if at < hi {
			sum(at, hi, true)
		}
	})
}
