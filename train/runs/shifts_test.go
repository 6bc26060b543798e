package runs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/layout"
)

// TestSpread compares Spread with rows that are copied one by one.
func TestSpread(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		width := 1 + r.IntN(3)
		var shifts []layout.Shift
		was, now := uint64(0), uint64(0)
		for range 1 + r.IntN(4) {
			n := r.Uint64N(5)
			shifts = append(shifts, layout.Shift{Was: was, Now: now, Nodes: n})
			was, now = was+n, now+n+r.Uint64N(4)
		}
		drawn := func(node uint64) float32 { return -1 - float32(node) }
		rows, want := make([]float32, now*uint64(width)), make([]float32, now*uint64(width))
		for i := range rows {
			want[i] = drawn(uint64(i / width))
			if rows[i] = want[i]; uint64(i/width) < was {
				rows[i] = float32(i)
			}
		}
		for _, s := range shifts {
			for k := range s.Nodes * uint64(width) {
				want[s.Now*uint64(width)+k] = float32(s.Was*uint64(width) + k)
			}
		}
		Spread(rows, width, shifts, func(row []float32, node uint64) {
			for i := range row {
				row[i] = drawn(node)
			}
		})
		if !slices.Equal(rows, want) {
			t.Fatalf("seed %d: %+v: %v, want %v", seed, shifts, rows, want)
		}
	}
}
