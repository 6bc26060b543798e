package kernel

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSegments(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) { checkSegmentKernels(t, p) })
	})
}

func checkSegmentKernels(t *rapid.T, p *Pool) {
	mem := newMemory(t)
	defer mem.free()
	d, rows := rapid.OneOf(size(100), size(600)).Draw(t, "d"), size(60).Draw(t, "rows")
	count, longest := size(60).Draw(t, "segments"), size(33).Draw(t, "longest")
	off, idx := mem.segments(count, longest, rows)
	x, dout := mem.values(rows*d), mem.values(count*d)
	for _, mean := range []bool{false, true} {
		out, want, bound := mem.values(count*d), mem.zeros(count*d), mem.zeros(count*d)
		refSegmentSum(want, x, off, idx, d, mean)
		refSegmentSum(bound, absolute(x), off, idx, d, mean)
		if mean {
			SegmentMean(p, out, x, off, idx, d)
		} else {
			SegmentSum(p, out, x, off, idx, d)
		}
		within(t, "segments", out, want, bound, 2*float64(longest+3))
	}
	dx := mem.values(rows * d)
	want, bound := mem.copyOf(dx), absolute(dx)
	refSegmentMeanGrad(want, dout, off, idx, d)
	refSegmentMeanGrad(bound, absolute(dout), off, idx, d)
	SegmentMeanGrad(p, dx, dout, off, idx, d)
	within(t, "gradient of the mean", dx, want, bound, 2*float64(len(idx)+4))
	fresh := rapid.IntRange(0, rows).Draw(t, "fresh")
	specials(mem, dx[:fresh*d]) // what is overwritten must not count
	kept := mem.copyOf(dx)
	var tr Transposed
	tr.Build(off, idx, rows)
	tr.MeanGrad(p, dx, dout, d, fresh)
	clear(kept[:fresh*d])
	bound = absolute(kept)
	refSegmentMeanGrad(kept, dout, off, idx, d)
	refSegmentMeanGrad(bound, absolute(dout), off, idx, d)
	within(t, "gradient over fresh rows", dx, kept, bound, 2*float64(len(idx)+4))
}

// TestSegmentsOfMany has more segments than one part.
func TestSegmentsOfMany(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			const count, rows, d = 3000, 500, 33
			off, idx := mem.segments(count, 10, rows)
			x, out, want := mem.values(rows*d), mem.values(count*d), mem.zeros(count*d)
			bound := mem.zeros(count * d)
			refSegmentSum(want, x, off, idx, d, true)
			refSegmentSum(bound, absolute(x), off, idx, d, true)
			SegmentMean(p, out, x, off, idx, d)
			within(t, "means", out, want, bound, 26)
		})
	})
}

func TestTransposed(t *testing.T) {
	var tr Transposed
	rapid.Check(t, func(t *rapid.T) {
		mem := newMemory(t)
		rows, count := size(40).Draw(t, "rows"), size(40).Draw(t, "segments")
		off, idx := mem.segments(count, 5, rows)
		tr.Build(off, idx, rows)
		want := make([][]uint32, rows)
		for i := range count {
			for _, r := range idx[off[i]:off[i+1]] {
				want[r] = append(want[r], uint32(i))
			}
		}
		for r, list := range want {
			if got := tr.idx[tr.off[r]:tr.off[r+1]]; !slices.Equal(got, list) {
				t.Fatalf("row %d is in segments %v, want %v", r, got, list)
			}
		}
	})
}

// TestBadSegments has what would let assembly read or write outside of its arrays.
func TestBadSegments(t *testing.T) {
	x, out := make([]float32, 4), make([]float32, 4)
	for name, c := range map[string]struct{ off, idx []uint32 }{
		"row out of range":  {[]uint32{0, 1, 2}, []uint32{0, 2}},
		"descending":        {[]uint32{0, 2, 1}, []uint32{0, 1}},
		"beyond the list":   {[]uint32{0, 1, 3}, []uint32{0, 1}},
		"begins at the end": {[]uint32{5, 1, 1}, []uint32{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, run := range []func(){
				func() { SegmentMean(nil, out, x, c.off, c.idx, 2) },
				func() { SegmentMeanGrad(nil, x, out, c.off, c.idx, 2) },
			} {
				if !panics(run) {
					t.Error("no panic")
				}
			}
		})
	}
	if !panics(func() { Gather(nil, out, x, []uint32{0, 2}, 2) }) {
		t.Error("Gather: no panic")
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
