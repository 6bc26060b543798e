package program

import (
	"math"
	"slices"
	"testing"

	"gdb/compute/backend"
)

// TestEndsOfEdges: the rows of both ends of each edge that is a seed, by the edge.
func TestEndsOfEdges(t *testing.T) {
	for k, second := range []bool{false, true} {
		b := newBench(t, func(b *Builder, x Value) Value {
			for range 2 {
				x = b.Own(x)
				b.Next()
			}
			return b.Scale(b.Pull(x, b.Lists().ToEnd(second), Sum), 2)
		}, Options{})
		b.input.X = testFeatures()
		got, x := b.read(mustForward(t, b.machine, b.program, b.input)), testFeatures()
		for i := range len(b.input.Dense.Ends) / 2 {
			row := 14 + int(b.input.Dense.Ends[2*i+k]) // the seeds are the last nodes
			for j, v := range x[row*testCols:][:testCols] {
				if got[i*testCols+j] != 2*v {
					t.Errorf("end %d of edge %d, column %d: %g, want %g", k, i, j,
						got[i*testCols+j], 2*v)
				}
			}
		}
		if want := 4 * testCols; len(got) != want {
			t.Errorf("%d values of 4 edges, want %d", len(got), want)
		}
	}
}

// TestColumnsOfEdges: the means of the columns of the entries of each list, of which a loop has
// zeros.
func TestColumnsOfEdges(t *testing.T) {
	for _, loops := range []bool{false, true} {
		b := newBench(t, func(b *Builder, x Value) Value {
			b.Next()
			l := List{Hop: b.hop, Loops: loops}
			return b.Pull(b.EdgeColumns(2, l), l.OfEntries(), Mean)
		}, Options{})
		d := b.input.Dense
		b.input.X = testFeatures()
		got := b.read(mustForward(t, b.machine, b.program, b.input))
		if len(got) != 3*2 {
			t.Fatalf("loops %v: %d values of 3 nodes", loops, len(got))
		}
		for i := range 3 {
			for j := range 2 {
				sum, n := float32(0), float32(0)
				for e := d.NbrOffsets[5+i]; e < d.NbrOffsets[6+i]; e++ {
					sum, n = sum+d.Columns[2*int(e)+j], n+1
				}
				if loops {
					n++
				}
				if want := sum / max(1, n); math.Abs(float64(got[2*i+j]-want)) > 1e-6 {
					t.Errorf("loops %v: column %d of node %d is %g, want %g", loops, j, i,
						got[2*i+j], want)
				}
			}
		}
	}
}

// TestKnown: nodes outside memory have the states that are known of them instead of what a layer
// computes, lists leave out those of which nothing is known, and what a layer has is told.
func TestKnown(t *testing.T) {
	const outside, missing = 7, 2 // of the 8 nodes that the second layer reads
	b := newBench(t, func(b *Builder, x Value) Value {
		h := b.Pull(x, b.Lists(), Sum)
		b.Next()
		return b.Pull(b.Known(h, 0), b.Lists(), Sum)
	}, Options{})
	halo := &Halo{Inside: make([]float32, 8), States: [][]float32{make([]float32, 8*testCols)},
		Missing: [][]bool{nil, make([]bool, 8)}}
	d, x, states := b.input.Dense, testFeatures(), make([]float32, 8*testCols)
	for i := range 8 {
		row := states[i*testCols:][:testCols]
		switch i {
		case outside:
			for j := range row {
				row[j] = float32(j) - 2.5
			}
			copy(halo.States[0][i*testCols:], row)
		case missing:
			halo.Missing[1][i] = true
		default:
			halo.Inside[i] = 1
			for _, r := range d.ReprMap[d.NbrOffsets[i]:d.NbrOffsets[i+1]] {
				for j := range row {
					row[j] += x[int(r)*testCols+j]
				}
			}
		}
	}
	told := 0
	halo.Computed = func(layer int, y backend.Tensor) {
		told++
		if got := b.read(y); layer != 0 || !near(got, states) {
			t.Errorf("layer %d has %v, want %v", layer, got, states)
		}
	}
	want, out := make([]float32, 3*testCols), 0
	for i := range 3 {
		for _, r := range d.ReprMap[d.NbrOffsets[5+i]:d.NbrOffsets[6+i]] {
			if r-9 == missing {
				out++
				continue
			}
			for j, v := range states[(r-9)*testCols:][:testCols] {
				want[i*testCols+j] += v
			}
		}
	}
	b.input.X, b.input.Halo = x, halo
	got := b.read(mustForward(t, b.machine, b.program, b.input))
	if !near(got, want) || told != 1 {
		t.Errorf("%v, want %v; told %d times", got, want, told)
	}
	if out == 0 || !slices.Contains(d.ReprMap[d.NbrOffsets[5]:], 9+outside) {
		t.Errorf("%d entries of lists are of a node of which nothing is known: %d", out, d.ReprMap)
	}
}

// near reports whether values are equal but for rounding.
func near(got, want []float32) bool {
	return slices.EqualFunc(got, want, func(a, b float32) bool {
		return math.Abs(float64(a-b)) < 1e-5
	})
}
