package kernel

import (
	"fmt"
	"math/rand/v2"
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
	segmentMeanGrad(p, dx, dout, off, idx, d)
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
				func() { segmentMeanGrad(nil, x, out, c.off, c.idx, 2) },
			} {
				if !panics(run) {
					t.Error("no panic")
				}
			}
		})
	}
}

// segmentMeanGrad transposes segments for one gradient.
func segmentMeanGrad(p *Pool, dx, dout []float32, off, idx []uint32, d int) {
	if d == 0 {
		return
	}
	var t Transposed
	t.Build(off, idx, len(dx)/d)
	t.MeanGrad(p, dx, dout, d, 0)
}

// gather copies the rows idx of x to out, as a batch that is not used in place.
func gather(p *Pool, out, x []float32, idx []uint32, d int) {
	p.Span(len(idx), rowsPart(d), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(out[i*d:i*d+d], x[int(idx[i])*d:int(idx[i])*d+d])
		}
	})
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// TestSegmentMeanDropout: rows that are masked while they are averaged give the bits of those that
// are dropped out before, in a matrix of their own, at every level.
func TestSegmentMeanDropout(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			d, rows := rapid.OneOf(size(40), size(600)).Draw(t, "d"), size(60).Draw(t, "rows")
			count, longest := size(300).Draw(t, "segments"), size(70).Draw(t, "longest")
			off, at := mem.segments(count, longest, rows)
			order, idx := mem.rng.Perm(rows), make([]uint32, len(at))
			matrix := mem.values(rows * d)
			table := mem.zeros(rows * d)
			for i, r := range order {
				copy(table[r*d:(r+1)*d], matrix[i*d:])
			}
			for e, i := range at {
				idx[e] = uint32(order[i])
			}
			kept := mem.copyOf(table)
			key, rate := rapid.Uint64().Draw(t, "key"), rapid.Float32Range(0, 0.9).Draw(t, "rate")
			want, got := mem.values(count*d), mem.values(count*d)
			SegmentMeanDropout(p, got, table, Lists{Off: off, Idx: idx, At: at, Cols: d},
				Drop{Rate: rate, Key: key})
			Dropout(p, matrix, 0, rate, key)
			SegmentMean(p, want, matrix, off, at, d)
			if !slices.Equal(got, want) || !slices.Equal(table, kept) {
				t.Fatal("other means, or the table was changed")
			}
		})
	})
}

// TestDropoutFrom: a part of a matrix is dropped out as the whole is, over the end of a block too.
func TestDropoutFrom(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		const first, n = dropoutBlock - 1000, 5000
		whole := make([]float32, first+n)
		for i := range whole {
			whole[i] = float32(i%7) + 1
		}
		part := slices.Clone(whole[first:])
		Dropout(nil, whole, 0, 0.4, 11)
		Dropout(nil, part, first, 0.4, 11)
		if !slices.Equal(part, whole[first:]) {
			t.Error("other values are dropped")
		}
	})
}

// BenchmarkMeanDropout averages rows of a large table: in place, and as rows gathered to a matrix,
// which is dropped out.
func BenchmarkMeanDropout(b *testing.B) {
	const d, rows = 256, 1 << 19
	table := make([]float32, rows*d)
	for i := range table {
		table[i] = float32(i)
	}
	p := NewPool(0)
	defer p.Close()
	for _, batch := range []struct{ nodes, inner, edges int }{
		{28000, 5200, 45000}, {88000, 28000, 254000}} {
		draw := rand.New(rand.NewPCG(1, 2))
		off, at := []uint32{0}, make([]uint32, batch.edges)
		for i := range batch.inner {
			off = append(off, uint32((i+1)*batch.edges/batch.inner))
		}
		where, idx := make([]uint32, batch.nodes), make([]uint32, batch.edges)
		for i := range where {
			where[i] = uint32(draw.IntN(rows))
		}
		for e := range at {
			at[e] = uint32(draw.IntN(batch.nodes))
			idx[e] = where[at[e]]
		}
		out, x := make([]float32, batch.inner*d), make([]float32, batch.nodes*d)
		inner := make([]float32, batch.inner*d)
		name := fmt.Sprintf("nodes=%d/", batch.nodes)
		b.Run(name+"in-place", func(b *testing.B) {
			for b.Loop() {
				gather(p, inner, table, where[batch.nodes-batch.inner:], d)
				Dropout(p, inner, (batch.nodes-batch.inner)*d, 0.5, 7)
				SegmentMeanDropout(p, out, table, Lists{Off: off, Idx: idx, At: at, Cols: d},
					Drop{Rate: 0.5, Key: 7})
			}
		})
		b.Run(name+"gathered", func(b *testing.B) {
			for b.Loop() {
				gather(p, x, table, where, d)
				Dropout(p, x, 0, 0.5, 7)
				SegmentMean(p, out, x, off, at, d)
			}
		})
		b.Run(name+"no-dropout-in-place", func(b *testing.B) {
			for b.Loop() {
				gather(p, inner, table, where[batch.nodes-batch.inner:], d)
				SegmentMean(p, out, table, off, idx, d)
			}
		})
		b.Run(name+"no-dropout-gathered", func(b *testing.B) {
			for b.Loop() {
				gather(p, x, table, where, d)
				SegmentMean(p, out, x, off, at, d)
			}
		})
	}
}

// refSegmentMeanGrad is the gradient of the mean in its input: each row r of segment i gets
// dout[i] divided by the segment's length added to dx[r].
func refSegmentMeanGrad(dx, dout []float32, off, idx []uint32, d int) {
	for i := range len(off) - 1 {
		list := idx[off[i]:off[i+1]]
		w := 1 / float32(len(list))
		for _, r := range list {
			for j, v := range dout[i*d : i*d+d] {
				dx[int(r)*d+j] += w * v
			}
		}
	}
}
