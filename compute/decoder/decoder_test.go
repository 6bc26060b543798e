package decoder_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
)

// variants are all decoders, in all norms.
func variants(t *testing.T, dim int) map[string]decoder.Decoder {
	all := map[string]decoder.Decoder{}
	for _, name := range []string{"distmult", "complex", "transe", "rotate", "dot"} {
		for _, norm := range []int{1, 2} {
			d, err := decoder.New(name, dim, decoder.Options{Norm: norm})
			if err != nil {
				t.Fatal(err)
			}
			all[name+[]string{"", "-l1", "-l2"}[norm]] = d
		}
	}
	return all
}

func normal(rnd *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	return x
}

// grid draws multiples of a half, and something.
func grid(rnd *rand.Rand, n int, plus float32) []float32 {
	x := normal(rnd, n)
	for i, v := range x {
		x[i] = float32(math.Round(2*float64(v)))/2 + plus
	}
	return x
}

// TestScores: the queries of both directions, compared with the other end, give the score of the
// decoder's formula.
func TestScores(t *testing.T) {
	const dim, m, n = 38, 5, 21
	for name, d := range variants(t, dim) {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			r := normal(rnd, d.RelationDim(dim))
			form := make([]float32, d.FormDim(dim))
			d.Form(form, r)
			known, candidates := normal(rnd, m*dim), normal(rnd, n*dim)
			for _, head := range []bool{false, true} {
				q := make([]float32, m*dim)
				for i := range m {
					d.Query(q[i*dim:][:dim], known[i*dim:][:dim], form, head)
				}
				s := make([]float32, m*n)
				x := &decoder.Matrices{Measure: d.Measure(), D: dim}
				x.Scores(s, q, candidates, m, n)
				few := make([]float32, m*3)
				x.Scores(few, q, candidates, m, 3)
				for i := range m {
					for j := range n {
						a, b := known[i*dim:][:dim], candidates[j*dim:][:dim]
						pair := d.Measure().Pair(q[i*dim:][:dim], b)
						if head {
							a, b = b, a
						}
						want := d.Score(a, r, b)
						for what, got := range map[string]float32{"matrix": s[i*n+j],
							"pair": pair} {
							if math.Abs(float64(got)-want) > 1e-4*(1+math.Abs(want)) {
								t.Fatalf("%s, head %v, %d with %d: %v, want %v", what, head, i, j,
									got, want)
							}
						}
						if j < 3 && few[i*3+j] != s[i*n+j] {
							t.Fatalf("%d with %d: %v among few, %v among many", i, j, few[i*3+j],
								s[i*n+j])
						}
					}
				}
			}
		})
	}
}

// TestGradients: gradients agree with finite differences of a loss that weighs all scores.
func TestGradients(t *testing.T) {
	const dim, m, n, step = 10, 3, 11, 1e-3
	for name, d := range variants(t, dim) {
		for _, head := range []bool{false, true} {
			rnd := rand.New(rand.NewPCG(3, 4))
			// Away from the kinks of TransE with norm 1.
			r, known := grid(rnd, d.RelationDim(dim), 0), grid(rnd, m*dim, 0)
			candidates, weights := grid(rnd, n*dim, 0.25), normal(rnd, m*n)
			loss := func() (sum float64) {
				for i := range m {
					for j := range n {
						a, b := known[i*dim:][:dim], candidates[j*dim:][:dim]
						if head {
							a, b = b, a
						}
						sum += float64(weights[i*n+j]) * d.Score(a, r, b)
					}
				}
				return sum
			}
			dKnown, dR, dC := gradients(d, head, known, r, candidates, weights, m, n, dim)
			for what, of := range map[string][2][]float32{"known": {known, dKnown},
				"relation": {r, dR}, "candidates": {candidates, dC}} {
				for i := range of[0] {
					old := of[0][i]
					of[0][i] = old + step
					up := loss()
					of[0][i] = old - step
					want := (up - loss()) / (2 * step)
					of[0][i] = old
					if got := float64(of[1][i]); math.Abs(got-want) > 0.02*(1+math.Abs(want)) {
						t.Fatalf("%s, head %v: gradient in value %d of %s is %v, want %v", name,
							head, i, what, got, want)
					}
				}
			}
		}
	}
}

// gradients runs queries, scores and their gradients as a step does.
func gradients(d decoder.Decoder, head bool, known, r, candidates, weights []float32, m, n,
	dim int) (dKnown, dR, dC []float32) {
	form := make([]float32, d.FormDim(dim))
	d.Form(form, r)
	q := make([]float32, m*dim)
	for i := range m {
		d.Query(q[i*dim:][:dim], known[i*dim:][:dim], form, head)
	}
	x := &decoder.Matrices{Pool: kernel.NewPool(2), Measure: d.Measure(), D: dim}
	s, g := make([]float32, m*n), append([]float32(nil), weights...)
	x.Scores(s, q, candidates, m, n)
	dq, dC := make([]float32, m*dim), make([]float32, n*dim)
	x.Grad(dq, dC, g, s, q, candidates, m, n)
	dKnown, dR = make([]float32, m*dim), make([]float32, len(r))
	sum := make([]float32, len(form))
	for i := range m {
		own := make([]float32, len(form))
		d.QueryGrad(dKnown[i*dim:][:dim], own, dq[i*dim:][:dim], known[i*dim:][:dim], form, head)
		kernel.AddRow(sum, own)
	}
	d.FormGrad(dR, sum, r)
	return dKnown, dR, dC
}
