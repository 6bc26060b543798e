package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestActivations(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) { checkActivations(t, p) })
	})
}

func checkActivations(t *rapid.T, p *Pool) {
	mem := newMemory(t)
	defer mem.free()
	n := rapid.OneOf(size(100), rapid.IntRange(0, 3*flatPart)).Draw(t, "n")
	x, g := mem.values(n), mem.values(n)
	for i := range x {
		x[i] *= 3
	}
	for i, v := range []float32{0, -100, 100, -60, 7, -7, 1e-30, float32(math.NaN())} {
		if n > 8 {
			x[i*n/8] = v
		}
	}
	gelu, elu, slope := mem.values(n), mem.copyOf(x), mem.copyOf(x)
	dgelu, delu, dslope := mem.copyOf(g), mem.copyOf(g), mem.copyOf(g)
	GELU(p, gelu, x)
	GELUGrad(p, dgelu, x)
	ELU(p, elu)
	ELUGrad(p, delu, elu)
	LeakyReLU(p, slope, 0.3)
	LeakyReLUGrad(p, dslope, slope, 0.3)
	near := func(what string, i int, got float32, want, scale float64) {
		if d := math.Abs(float64(got) - want); !(d <= 8*roundOff*(scale+math.Abs(want))) &&
			!(want != want && got != got) {
			t.Fatalf("%s of %v is %v, want %v", what, x[i], got, want)
		}
	}
	for i, v := range x {
		v, grad := float64(v), float64(g[i])
		cdf, density := math.Erfc(-v/math.Sqrt2)/2, math.Exp(-v*v/2)/math.Sqrt(2*math.Pi)
		near("GELU", i, gelu[i], v*cdf, math.Abs(v)/8)
		near("gradient of GELU", i, dgelu[i], grad*(cdf+v*density), math.Abs(grad))
		wantELU, gradELU, factor := v, grad, 1.0
		if v <= 0 {
			wantELU, gradELU, factor = math.Expm1(v), grad*math.Exp(v), float64(float32(0.3))
		}
		if v != v {
			continue
		}
		near("ELU", i, elu[i], wantELU, 1)
		near("gradient of ELU", i, delu[i], gradELU, math.Abs(grad))
		near("LeakyReLU", i, slope[i], v*factor, 0)
		near("gradient of LeakyReLU", i, dslope[i], grad*factor, 0)
	}
}

func TestRowScale(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows, n := size(70).Draw(t, "rows"), size(300).Draw(t, "columns")
			x, f, y := mem.values(rows*n), mem.values(rows), mem.values(rows*n)
			sum := mem.copyOf(y)
			want := started(y, 0)
			AddScaledRow(sum, x, 0.7)
			RowScale(p, y, x, f, rows, n)
			for i, v := range x {
				want.add(i, v, 0.7)
				if y[i] != v*f[i/n] {
					t.Fatalf("value %d is %v, want %v", i, y[i], v*f[i/n])
				}
			}
			want.check(t, "AddScaledRow", sum, 4)
			RowScale(p, x, x, f, rows, n)
			equal(t, "RowScale in place", x, y)
		})
	})
}

// TestNorms compares the normalizations with their definition in float64. Values are around an
// offset, of which little may be left in what is rounded.
func TestNorms(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows := rapid.OneOf(size(70), rapid.Just(2*columnSlab+3)).Draw(t, "rows")
			n := size(300).Draw(t, "columns")
			x, gamma, beta := mem.values(rows*n), mem.values(n), mem.values(n)
			for i := range x {
				x[i] += 10
			}
			checkNorm(t, p, mem, x, gamma, beta, rows, n, true)
			checkNorm(t, p, mem, x, gamma, beta, rows, n, false)
		})
	})
}

// checkNorm checks the normalization of rows or of columns.
func checkNorm(t *rapid.T, p *Pool, mem *memory, x, gamma, beta []float32, rows, n int,
	byRow bool) {
	const eps = 1e-3
	groups, length := n, rows
	if byRow {
		groups, length = rows, n
	}
	if length == 0 {
		return
	}
	group := func(i int) int {
		if byRow {
			return i / n
		}
		return i % n
	}
	mean, variance := make([]float64, groups), make([]float64, groups)
	for i, v := range x {
		mean[group(i)] += float64(v) / float64(length)
	}
	for i, v := range x {
		d := float64(v) - mean[group(i)]
		variance[group(i)] += d * d / float64(length)
	}
	y, stats, again := mem.values(len(x)), mem.values(2*groups), mem.values(len(x))
	if byRow {
		LayerNorm(p, y, x, Norm{Gamma: gamma, Beta: beta, Stats: stats, Rows: rows, Cols: n,
			Eps: eps})
	} else {
		BatchNorm(p, y, x, Norm{Gamma: gamma, Beta: beta, Stats: stats, Rows: rows, Cols: n,
			Eps: eps})
		means, variances := make([]float32, n), make([]float32, n)
		for j := range means {
			means[j], variances[j] = float32(mean[j]), float32(variance[j])
		}
		NormApply(p, again, x, means, variances, Norm{Gamma: gamma, Beta: beta, Rows: rows,
			Cols: n, Eps: eps})
	}
	for i, v := range x {
		std, j := math.Sqrt(variance[group(i)]+eps), i%n
		want := (float64(v)-mean[group(i)])/std*float64(gamma[j]) + float64(beta[j])
		scale := (10/std+10)*math.Abs(float64(gamma[j])) + math.Abs(float64(beta[j]))
		limit := roundOff * (float64(length)/4 + 60) * scale
		if d := math.Abs(float64(y[i]) - want); !(d <= limit) {
			t.Fatalf("value %d is %v, want %v", i, y[i], want)
		}
		if d := math.Abs(float64(again[i]) - want); !byRow && !(d <= limit) {
			t.Fatalf("value %d of NormApply is %v, want %v", i, again[i], want)
		}
	}
	for g := range groups {
		m, inverse := stats[g], float32(0)
		if byRow {
			m, inverse = stats[2*g], stats[2*g+1]
		} else {
			inverse = stats[n+g]
		}
		want := 1 / math.Sqrt(variance[g]+eps)
		if math.Abs(float64(m)-mean[g]) > 1e-3 || math.Abs(float64(inverse)/want-1) > 1e-2 {
			t.Fatalf("statistics %v, %v, want %v, %v", m, inverse, mean[g], want)
		}
	}
}

// normGradients are objectives of the normalizations in each of their inputs.
func normGradients(values func(n int) []float32) map[string]gradient {
	const rows, n, eps = 9, 13, 1e-3
	x, gamma, beta, r := values(rows*n), values(n), values(n), values(rows*n)
	all := map[string]gradient{}
	for name, f := range map[string]struct {
		stats   int
		forward func(p *Pool, y, x []float32, with Norm)
		grad    func(p *Pool, dx, dy, x []float32, with Norm)
	}{"LayerNorm": {2 * rows, LayerNorm, LayerNormGrad},
		"BatchNorm": {2 * n, BatchNorm, BatchNormGrad}} {
		objective := func(x, gamma, beta []float32) (sum float64) {
			y, stats := make([]float32, rows*n), make([]float32, f.stats)
			f.forward(nil, y, x, Norm{Gamma: gamma, Beta: beta, Stats: stats, Rows: rows, Cols: n,
				Eps: eps})
			for i, v := range y {
				sum += float64(v) * float64(r[i])
			}
			return sum
		}
		grads := func(x, gamma, beta []float32) (dx, dgamma, dbeta []float32) {
			y, stats := make([]float32, rows*n), make([]float32, f.stats)
			f.forward(nil, y, x, Norm{Gamma: gamma, Beta: beta, Stats: stats, Rows: rows, Cols: n,
				Eps: eps})
			dx, dgamma, dbeta = append(y[:0], r...), values(n), values(n)
			f.grad(nil, dx, dx, x, Norm{DGamma: dgamma, DBeta: dbeta, Gamma: gamma, Stats: stats,
				Rows: rows, Cols: n})
			return dx, dgamma, dbeta
		}
		all["input of "+name] = gradient{x,
			func(x []float32) float64 { return objective(x, gamma, beta) },
			func(x []float32) []float32 { g, _, _ := grads(x, gamma, beta); return g }}
		all["gamma of "+name] = gradient{gamma,
			func(gamma []float32) float64 { return objective(x, gamma, beta) },
			func(gamma []float32) []float32 { _, g, _ := grads(x, gamma, beta); return g }}
		all["beta of "+name] = gradient{beta,
			func(beta []float32) float64 { return objective(x, gamma, beta) },
			func(beta []float32) []float32 { _, _, g := grads(x, gamma, beta); return g }}
	}
	return all
}
