package kernel

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestByType holds the products by type against one product for each row, for types that are mixed
// and that follow each other, with matrices of different heights, and none; and the same bits for
// any number of workers.
func TestByType(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom([]int{0, 1, 37, typedRows + 5, 3 * typedRows}).Draw(t, "rows")
		width, n := rapid.IntRange(1, 40).Draw(t, "width"), rapid.IntRange(1, 40).Draw(t, "n")
		parts := rapid.SliceOfN(rapid.IntRange(0, width), 1, 5).Draw(t, "parts")
		heads := rapid.IntRange(0, 3).Draw(t, "heads")
		if heads > 1 {
			parts = slices.Repeat([]int{width}, len(parts))
			width, n = width*heads, n*heads
		}
		sorted := rapid.Bool().Draw(t, "sorted")
		g := ByType{Parts: parts, Width: width, Heads: heads, N: n,
			Add: rapid.Bool().Draw(t, "add")}
		for i := range m {
			g.Types = append(g.Types, uint32(i*i+i/3)%uint32(len(parts)))
		}
		if sorted {
			slices.Sort(g.Types)
		}
		mem := newMemory(t)
		defer mem.free()
		summed := m // rows of the result
		if rapid.Bool().Draw(t, "summed") {
			g.Off, summed = []uint32{0}, 0
			for i := range m { // lists of as many rows as have types that ascend, and empty ones
				if i == 0 || g.Types[i] <= g.Types[i-1] {
					for range 1 + i%5/4 {
						g.Off = append(g.Off, uint32(i))
					}
				}
				g.Off[len(g.Off)-1] = uint32(i + 1)
			}
			summed = len(g.Off) - 1
		}
		rows := 0
		for _, k := range parts {
			rows += k
		}
		a, b, dy := mem.values(m*width), mem.values(rows*n), mem.values(summed*n)
		y0, dx0, db0 := mem.values(summed*n), mem.values(m*width), mem.values(rows*n)
		y, dx, db := slices.Clone(y0), slices.Clone(dx0), slices.Clone(db0)
		refByType(y, dx, db, a, b, dy, g)
		var first [3][]float32
		for _, workers := range []int{1, 3} {
			p := NewPool(workers)
			got := [3][]float32{slices.Clone(y0), slices.Clone(dx0), slices.Clone(db0)}
			GEMMByType(p, got[0], a, b, g)
			GEMMTBByType(p, got[1], dy, b, g)
			GEMMTAByType(p, got[2], a, dy, g)
			if first[0] == nil {
				first = got
			}
			for k, want := range [3][]float32{y, dx, db} {
				if !slices.Equal(got[k], first[k]) {
					t.Fatalf("%d workers give other bits of product %d", workers, k)
				}
				for i, v := range got[k] {
					if d := float64(v - want[i]); !(d*d <= 1e-6*(1+float64(want[i]*want[i]))) {
						t.Fatalf("%d workers: product %d has %g at %d, want %g", workers, k, v, i,
							want[i])
					}
				}
			}
		}
	})
}

// refByType computes all three products row by row.
//
//lint:parameters operands of three products
func refByType(y, dx, db, a, b, dy []float32, g ByType) {
	if !g.Add {
		clear(y)
		clear(dx)
		clear(db)
	}
	first := make([]int, len(g.Parts))
	for k := range len(first) - 1 {
		first[k+1] = first[k] + g.Parts[k]
	}
	n := g.N / max(1, g.Heads)
	sum := 0
	for i, k := range g.Types {
		if sum = max(sum, i); g.Off != nil {
			for sum = 0; uint32(i) >= g.Off[sum+1]; {
				sum++
			}
		}
		for j := range g.Parts[k] {
			for c := range g.N {
				at, x := (first[k]+j)*g.N+c, i*g.Width+c/n*g.Parts[k]+j
				y[sum*g.N+c] += a[x] * b[at]
				dx[x] += dy[sum*g.N+c] * b[at]
				db[at] += a[x] * dy[sum*g.N+c]
			}
		}
	}
}
