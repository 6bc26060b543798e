package decoder_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/decoder"
)

// plain is the specification: the losses as their papers write them.
func plain(l *decoder.Loss, pos float64, negatives []float64, shares []float64) (sum float64) {
	softplus := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
	n := float64(len(negatives))
	switch l.Name {
	case decoder.Softmax:
		sum = math.Exp(pos)
		for _, v := range negatives {
			sum += math.Exp(v)
		}
		return math.Log(sum) - pos
	case decoder.Logistic:
		for _, v := range negatives {
			sum += softplus(v) / n
		}
		return sum + softplus(-pos)
	case decoder.Margin:
		for _, v := range negatives {
			sum += max(0, float64(l.Margin)-pos+v) / n
		}
		return sum
	}
	for j, v := range negatives {
		sum += shares[j] * softplus(float64(l.Margin)+v)
	}
	return sum + softplus(-float64(l.Margin)-pos)
}

// shares are the weights of negatives in the adversarial loss.
func shares(l *decoder.Loss, negatives []float64) []float64 {
	out, sum := make([]float64, len(negatives)), 0.0
	for j, v := range negatives {
		out[j] = math.Exp(float64(l.Temperature) * v)
		sum += out[j]
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

func TestRow(t *testing.T) {
	const n, weight, step = 70, 0.5, 1e-5
	for _, name := range decoder.LossNames() {
		t.Run(name, func(t *testing.T) {
			l := &decoder.Loss{Name: name, Margin: 1.5, Temperature: 0.7}
			rnd := rand.New(rand.NewPCG(5, 6))
			pos, negatives := rnd.NormFloat64(), make([]float64, n)
			row, g := make([]float32, n), make([]float32, n)
			for j := range negatives {
				negatives[j] = rnd.NormFloat64()
				row[j] = float32(negatives[j])
			}
			value, gPos := l.Row(g, row, float32(pos), weight)
			fixed := shares(l, negatives)
			near(t, "loss", value, weight*plain(l, pos, negatives, fixed))
			near(t, "gradient of the edge", float64(gPos), weight*(plain(l, pos+step, negatives,
				fixed)-plain(l, pos-step, negatives, fixed))/(2*step))
			for j, old := range negatives {
				negatives[j] = old + step
				up := plain(l, pos, negatives, fixed)
				negatives[j] = old - step
				near(t, "gradient of a negative", float64(g[j]),
					weight*(up-plain(l, pos, negatives, fixed))/(2*step))
				negatives[j] = old
			}
		})
	}
}

// TestExcluded: a negative that is left out changes nothing but the number of negatives.
func TestExcluded(t *testing.T) {
	for _, name := range decoder.LossNames() {
		l := &decoder.Loss{Name: name, Margin: 1, Temperature: 1}
		g := make([]float32, 3)
		value, _ := l.Row(g, []float32{1, decoder.Excluded, -2}, 0.5, 1)
		if g[1] != 0 || math.IsNaN(value) || math.IsInf(value, 0) || value > 100 {
			t.Errorf("%s: gradients %v, loss %v", name, g, value)
		}
	}
}

// TestAll: several true ends of one query are the sum of the losses of each.
func TestAll(t *testing.T) {
	const n, weight, step = 90, 0.25, 1e-3
	for _, name := range []string{decoder.Softmax, decoder.Logistic} {
		l := &decoder.Loss{Name: name}
		rnd := rand.New(rand.NewPCG(7, 8))
		truth, scores, g := []uint32{3, 40, 89}, make([]float32, n), make([]float32, n)
		for j := range scores {
			scores[j] = float32(rnd.NormFloat64())
		}
		want := func() (sum float64) {
			for _, t := range truth {
				own := 0.0
				for j, v := range scores {
					switch {
					case name == decoder.Softmax:
						own += math.Exp(float64(v))
					default:
						own += math.Log1p(math.Exp(float64(v)))
					}
					if name == decoder.Logistic && (j == 3 || j == 40 || j == 89) {
						own -= float64(v)
					}
				}
				if name == decoder.Softmax {
					own = math.Log(own) - float64(scores[t])
				} else {
					own /= n
				}
				sum += own * weight
			}
			return sum
		}
		near(t, name, l.All(g, scores, truth, weight), want())
		for j, old := range scores {
			scores[j] = old + step
			up := want()
			scores[j] = old - step
			if got, want := float64(g[j]), (up-want())/(2*step); math.Abs(got-want) > 1e-3 {
				t.Fatalf("%s: gradient %d is %v, want %v", name, j, got, want)
			}
			scores[j] = old
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// TestRows: rows at once are rows one by one, but for rounding.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range decoder.LossNames() {
		l := decoder.Loss{Name: name, Margin: 2, Temperature: 0.5}
		for _, width := range []int{1, 2, 9, 70} {
			if width == 1 && name != decoder.Softmax { // these take a mean of the negatives
				continue
			}
			const rows = 200
			scores := make([]float32, rows*width)
			for i := range scores {
				if scores[i] = float32(5 * r.NormFloat64()); i%width > 0 && r.IntN(9) == 0 {
					scores[i] = decoder.Excluded
				}
			}
			want, total := slices.Clone(scores), 0.0
			for i := 0; i < len(want); i += width {
				row := want[i : i+width]
				value, grad := l.Row(row[1:], row[1:], row[0], 0.3)
				total += value
				row[0] = grad
			}
			got := l.Rows(scores, width, 0.3)
			if math.Abs(got-total) > 1e-5*(1+math.Abs(total)) {
				t.Errorf("%s, rows of %d: loss %v, want %v", name, width, got, total)
			}
			for i, v := range want {
				if math.Abs(float64(scores[i]-v)) > 1e-6 {
					t.Fatalf("%s, rows of %d: gradient %d is %v, want %v", name, width, i,
						scores[i], v)
				}
			}
		}
	}
}

// TestRowsOfEqualScores: of equal scores, softmax is the logarithm of their number and logistic
// twice that of two, over more rows than one product of sums has room for.
func TestRowsOfEqualScores(t *testing.T) {
	const rows, width, weight = 500, 70, 0.5
	for name, want := range map[string]float64{decoder.Softmax: math.Log(width),
		decoder.Logistic: 2 * math.Ln2} {
		l := decoder.Loss{Name: name}
		scores := make([]float32, rows*width)
		near(t, name, l.Rows(scores, width, weight), rows*weight*want)
		near(t, name+": gradient of the last edge", float64(scores[(rows-1)*width]),
			map[string]float64{decoder.Softmax: weight * (1.0/width - 1),
				decoder.Logistic: -weight / 2}[name])
	}
}
