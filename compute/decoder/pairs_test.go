package decoder_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/compute/decoder"
)

// TestPairGradients holds the gradients of the score of one pair against differences: they are
// added to that of the query, and written to that of the candidate.
func TestPairGradients(t *testing.T) {
	const dim, g, h = 18, -1.5, 1.0 / 512
	rnd := rand.New(rand.NewPCG(4, 2))
	for _, m := range []decoder.Measure{decoder.Dot, decoder.Euclid, decoder.Manhattan,
		decoder.Modulus} {
		if far := m != decoder.Dot; m.IsDistance() != far {
			t.Errorf("measure %v is a distance: %v", m, !far)
		}
		q, c := normal(rnd, dim), normal(rnd, dim)
		dq, dc := slices.Repeat([]float32{7}, dim), slices.Repeat([]float32{7}, dim)
		m.PairGrad(dq, dc, g, m.Pair(q, c), q, c)
		slope := func(x []float32, i int) float64 {
			was := x[i]
			x[i] = was + h
			up := m.Pair(q, c)
			x[i] = was - h
			down := m.Pair(q, c)
			x[i] = was
			return g * float64(up-down) / (2 * h)
		}
		for i := range dim {
			if got, want := float64(dq[i]-7), slope(q, i); math.Abs(got-want) > 2e-2 {
				t.Errorf("measure %v: gradient %d of the query is %g, want %g", m, i, got, want)
			}
			if got, want := float64(dc[i]), slope(c, i); math.Abs(got-want) > 2e-2 {
				t.Errorf("measure %v: gradient %d of the candidate is %g, want %g", m, i, got, want)
			}
		}
	}
}

// TestEqualVectors: the Euclidean distance of a vector to itself is the least that is used, one
// thousandth, whether it is computed of pairs or of matrices.
func TestEqualVectors(t *testing.T) {
	const dim, n = 8, 20
	q := grid(rand.New(rand.NewPCG(1, 1)), n*dim, 1)
	x, s := &decoder.Matrices{Measure: decoder.Euclid, D: dim}, make([]float32, n*n)
	x.Scores(s, q, q, n, n)
	for i := range n {
		row := q[i*dim:][:dim]
		for what, got := range map[string]float32{"pair": decoder.Euclid.Pair(row, row),
			"matrix": s[i*n+i]} {
			if math.Abs(float64(got)+1e-3) > 1e-6 {
				t.Errorf("%s: vector %d and itself score %g, want -0.001", what, i, got)
			}
		}
	}
}

// TestSettingsOfDecoders: settings that make no sense are refused with what to give.
func TestSettingsOfDecoders(t *testing.T) {
	for name, c := range map[string]struct {
		decoder   string
		dim, norm int
		says      string
	}{
		"norm":        {"transe", 8, 3, "norm 3: give 1 or 2"},
		"no columns":  {"dot", 0, 1, "--dim 0: give at least 1"},
		"odd columns": {"complex", 7, 1, "give an even number"},
		"odd angles":  {"rotate", 7, 2, "give an even number"},
		"name":        {"none", 8, 1, "unknown decoder none"},
		"odd product": {"distmult", 7, 1, ""},
		"one column":  {"transe", 1, 2, ""},
		"even":        {"rotate", 2, 1, ""},
	} {
		d, err := decoder.New(c.decoder, c.dim, decoder.Options{Norm: c.norm})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) ||
			(d == nil) == (err == nil) {
			t.Errorf("%s: %v, %v, want %q", name, d, err, c.says)
		}
	}
	for _, c := range []struct {
		loss string
		all  bool
		says string
	}{{"softmax", true, ""}, {"logistic", true, ""}, {"margin", false, ""}, {"adversarial", false,
		""}, {"margin", true, "compares edges with drawn negatives"}, {"adversarial", true,
		"compares edges with drawn negatives"}, {"other", false, "unknown loss \"other\""}} {
		err := (&decoder.Loss{Name: c.loss}).Validate(c.all)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("loss %s, all %v: %v, want %q", c.loss, c.all, err, c.says)
		}
	}
}
