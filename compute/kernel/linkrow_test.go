package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// randomRows returns rows of n values, with a value behind each that must not change.
func randomRows(r *rand.Rand, count, n int) [][]float32 {
	rows := make([][]float32, count)
	for i := range rows {
		row := make([]float32, n+1)
		for j := range row {
			row[j] = float32(r.NormFloat64())
		}
		rows[i] = row[:n]
	}
	return rows
}

func clones(rows [][]float32) [][]float32 {
	all := make([][]float32, len(rows))
	for i, row := range rows {
		all[i] = append([]float32(nil), row[:cap(row)]...)[:len(row)]
	}
	return all
}

// sameRows fails unless rows, and what lies behind them, are the same but for rounding.
func sameRows(t *testing.T, got, want [][]float32) {
	t.Helper()
	nearRows(t, got, want, 2e-6)
}

// nearRows is sameRows with another share that may be rounding.
func nearRows(t *testing.T, got, want [][]float32, share float64) {
	t.Helper()
	for i := range want {
		for j, v := range want[i][:len(want[i])+1] {
			own := got[i][:len(want[i])+1][j]
			if d := math.Abs(float64(own - v)); !(d <= share*(1+math.Abs(float64(v)))) {
				t.Fatalf("row %d, value %d: %v, want %v", i, j, own, v)
			}
		}
	}
}

func TestProductGrad(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		for _, add := range []bool{false, true} {
			t.Run(fmt.Sprint(n, add), func(t *testing.T) {
				a := randomRows(r, 7, n)
				b := clones(a)
				ProductGrad(a[0], a[1], a[2], a[3], a[4], a[5], a[6], 0.3, add)
				refProductGrad(b[0], b[1], b[2], b[3], b[4], b[5], b[6], 0.3, add)
				sameRows(t, a, b)
			})
		}
	}
}

// TestPrefetch asks for rows, which changes nothing.
func TestPrefetch(t *testing.T) {
	table := []float32{1, 2, 3, 4, 5, 6}
	Prefetch(table, 3, []uint32{1, 0, 1})
	Prefetch(table, 3, nil)
	Prefetch(nil, 0, []uint32{0})
}
