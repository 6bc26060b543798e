package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// plainDistances writes distances and the gradients of Σ g·s by their formulas, in float64.
func plainDistances(kind Distance, g, q, c []float32, m, n, d int) (s, dq, dc []float64) {
	s, dq, dc = make([]float64, m*n), make([]float64, m*d), make([]float64, n*d)
	for i := range m {
		for j := range n {
			w := float64(g[i*n+j])
			add := func(k int, slope float64) {
				dq[i*d+k] -= w * slope
				dc[j*d+k] += w * slope
			}
			diff := func(k int) float64 { return float64(q[i*d+k]) - float64(c[j*d+k]) }
			if kind == Manhattan {
				for k := range d {
					s[i*n+j] -= math.Abs(diff(k))
					switch {
					case diff(k) > 0:
						add(k, 1)
					case diff(k) < 0:
						add(k, -1)
					}
				}
				continue
			}
			for k := range d / 2 {
				x, y := diff(k), diff(d/2+k)
				size := math.Hypot(x, y)
				s[i*n+j] -= size
				if size > 0 {
					add(k, x/size)
					add(d/2+k, y/size)
				}
			}
		}
	}
	return s, dq, dc
}

// TestDistances compares distances and their gradients with the formulas, at every level, whatever
// the number of workers.
func TestDistances(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			mem := newMemory(rt)
			defer mem.free()
			kind := Distance(rapid.IntRange(0, 1).Draw(rt, "kind"))
			m, n := size(40).Draw(rt, "m"), size(150).Draw(rt, "n")
			d := 2 * size(50).Draw(rt, "d")
			q, c, g := mem.values(m*d), mem.values(n*d), mem.values(m*n)
			if m*d > 0 && n > 0 {
				copy(q[:d], c[:d]) // at no distance
			}
			s, dq, dc := mem.zeros(m*n), mem.zeros(m*d), mem.zeros(n*d)
			p := NewPool(rapid.IntRange(1, 3).Draw(rt, "workers"))
			Distances(p, s, Pairs{Kind: kind, Q: q, C: c, M: m, N: n, Cols: d})
			DistancesGrad(p, dq, dc, g, Pairs{Kind: kind, Q: q, C: c, M: m, N: n, Cols: d})
			wantS, wantDQ, wantDC := plainDistances(kind, g, q, c, m, n, d)
			for what, of := range map[string]struct {
				got  []float32
				want []float64
			}{"scores": {s, wantS}, "gradient of queries": {dq, wantDQ},
				"gradient of candidates": {dc, wantDC}} {
				for i, want := range of.want {
					if math.Abs(float64(of.got[i])-want) > 1e-3*(1+math.Abs(want)) {
						rt.Fatalf("%s: value %d is %v, want %v", what, i, of.got[i], want)
					}
				}
			}
		})
	})
}

// TestLines compares the functions of single rows with sums in float64.
func TestLines(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			mem := newMemory(rt)
			defer mem.free()
			n := 1 + size(100).Draw(rt, "n")
			a, b := mem.values(n), mem.values(n)
			dot, squares, largest := 0.0, 0.0, math.Inf(-1)
			for i, v := range a {
				dot += float64(v) * float64(b[i])
				squares += float64(v) * float64(v)
				largest = max(largest, float64(v))
			}
			to := mem.copyOf(b)
			AddScaledRow(to, a, 2)
			AddRow(to, a)
			ScaleRow(to, 0.5)
			exps, sum := mem.zeros(n), 0.0
			total := ExpSum(exps, a, float32(largest))
			times, product, cubes := mem.zeros(n), mem.zeros(n), mem.copyOf(b)
			TimesRow(times, a, 3)
			ProductRow(product, a, b)
			AddCubeGradRow(cubes, a, 2)
			for i, v := range a {
				near(rt, "times", times[i], 3*float64(v))
				near(rt, "product of values", product[i], float64(v)*float64(b[i]))
				near(rt, "cube", cubes[i], float64(b[i])+2*math.Abs(float64(v))*float64(v))
				sum += math.Exp(float64(v) - largest)
				near(rt, "exp", exps[i], math.Exp(float64(v)-largest))
				near(rt, "row", to[i], (float64(b[i])+3*float64(v))/2)
			}
			near(rt, "sum of exps", total, sum)
			near(rt, "product", DotRow(a, b), dot)
			near(rt, "squares", SquareSum(a), squares)
			near(rt, "largest", RowMax(a), largest)
		})
	})
}

func near(t *rapid.T, what string, got float32, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 1e-4*(1+math.Abs(want)) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// TestModulusOfEqualRows: the distance of a row from itself is what is added to each square, and
// nothing of lanes that have no value.
func TestModulusOfEqualRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for n := 1; n < 40; n++ {
			x := make([]float32, n)
			want := float64(n) * math.Sqrt(modulusLeast)
			if got := float64(level().modulus(x, x, x, x)); math.Abs(got-want) > 1e-3*want {
				t.Errorf("%d values: %g, want %g", n, got, want)
			}
		}
	})
}
