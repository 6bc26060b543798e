package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkAdagradRows takes steps of rows of a table, each along one gradient.
func BenchmarkAdagradRows(b *testing.B) {
	for _, rows := range []int{64, 16384} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			s := randomAdagradRows(r, rows, 100, false, true)
			s.At, s.Off, s.Cubes = s.At[:64], s.Off[:65], s.Cubes[:64]
			s.Places = make([]uint32, 64)
			for i := range s.Off {
				s.Off[i] = uint32(i)
			}
			for i := range s.Places {
				s.Places[i] = r.Uint32N(9)
			}
			at := r.Perm(rows)
			k := 0
			for b.Loop() {
				for i := range s.At {
					s.At[i] = uint32(at[k%rows])
					k++
				}
				s.Step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*64), "ns/row")
		})
	}
}

// BenchmarkEdgePairs compares edges of one relation whose rows are near.
func BenchmarkEdgePairs(b *testing.B) {
	p := randomPairs(rand.New(rand.NewPCG(1, 2)), 6, 100, false, true)
	for name, do := range map[string]func(){"Scores": p.Scores, "Grads": p.Grads} {
		b.Run("do="+name, func(b *testing.B) {
			for b.Loop() {
				do()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*6), "ns/edge")
		})
	}
}
