package sparse_test

import (
	"slices"
	"testing"

	"gdb/internal/sparse"

	"pgregory.net/rapid"
)

// TestRows compares rows with the same values kept densely, through all that changes them.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.SampledFrom([]int{1, 7, 300, 1 << 16, 1<<16 + 1}).Draw(t, "dim")
		set := rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(dim-1)), 0, min(dim, 9),
			rapid.ID[uint32]).Draw(t, "columns")
		slices.Sort(set)
		var values []float32
		dense := make([]float32, dim)
		if rapid.Bool().Draw(t, "valued") {
			values = make([]float32, 0, 9)
			for range set {
				values = append(values, float32(rapid.IntRange(-5, 5).Draw(t, "value")))
			}
		}
		for i, c := range set {
			if dense[c] = 1; values != nil {
				dense[c] = values[i]
			}
		}
		row := make(sparse.Row, sparse.Words(len(set), dim, values != nil)+
			rapid.IntRange(0, 3).Draw(t, "spare"))
		row.Set(dim, set, values)
		same := func(what string) {
			t.Helper()
			if err := row.Check(dim); err != nil {
				t.Fatal(what, err)
			}
			got := make([]float32, dim)
			if row.Dense(got); !slices.Equal(got, dense) {
				t.Fatalf("%s: %v, want %v", what, got, dense)
			}
		}
		same("set")
		odd := func(c uint32) bool { return c%2 == 1 }
		for c := range dense {
			if dense[c] *= 2; !odd(uint32(c)) {
				dense[c] = 0
			}
		}
		row.Keep(odd)
		row.Scale(2)
		same("kept")
	})
}

func FuzzCheck(f *testing.F) {
	f.Add(uint32(2), uint32(0), uint32(1), uint32(1<<16), 9)
	f.Add(uint32(1<<30+3), uint32(0), uint32(1), uint32(7), 70000)
	f.Fuzz(func(t *testing.T, a, b, c, d uint32, dim int) {
		row := sparse.Row{a, b, c, d}
		if dim < 1 || dim > 1<<20 || row.Check(dim) != nil {
			return
		}
		row.Dense(make([]float32, dim)) // whatever was checked can be read
	})
}
