package columnfile_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/layout/columnfile"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestFindMany finds ascending integers, alone and together, in columns of none, one and many
// blocks.
func TestFindMany(t *testing.T) {
	dev := layouttest.Device(t)
	for _, n := range []int{0, 1, 8192, 60000} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		var v columnfile.Values
		at, next := map[int64]int64{}, int64(-100)
		for i := range n {
			next += 1 + r.Int64N(50)
			v.Ints, at[next] = append(v.Ints, next), int64(i)
			v.AddRow(true)
		}
		store, c := mustStore(t, vfs.NewMem(), 0, &v)
		f, err := columnfile.Open(t.Context(), store, dev, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, some := range []int{1, 3, 500, 20000} {
			values := []int64{math.MinInt64, math.MaxInt64}
			for range some {
				value := r.Int64N(next+200) - 150
				if n > 0 && r.IntN(2) == 0 {
					value = v.Ints[r.IntN(n)]
				}
				values = append(values, value)
			}
			slices.Sort(values)
			rows := make([]int64, len(values))
			if err := f.FindMany(t.Context(), values, rows); err != nil {
				t.Fatal(err)
			}
			for i, value := range values {
				want, is := at[value]
				if !is {
					want = -1
				}
				if rows[i] != want {
					t.Fatalf("%d rows: %d is in row %d, want %d", n, value, rows[i], want)
				}
				if i%1000 > 0 {
					continue
				}
				row, found, err := f.Find(t.Context(), value)
				if err != nil || found != is || is && int64(row) != want {
					t.Fatalf("%d rows: %d alone is in row %d, %t, %v", n, value, row, found, err)
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
