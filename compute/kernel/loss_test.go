package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSoftmax(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows, n := size(40).Draw(t, "rows"), size(130).Draw(t, "classes")
			x, out := mem.values(rows*n), mem.zeros(rows*n)
			spread := rapid.SampledFrom([]float32{0, 1, 30, 1e4}).Draw(t, "spread")
			refScale(x, spread)
			for i := range rows * min(n, 1) {
				softmaxRow(level(), out[i*n:i*n+n], x[i*n:i*n+n], 1)
			}
			want := softmax64(x, rows, n)
			for i, g := range out {
				// exp errs by less than 3 units of its last place, x-largest by one of its own.
				limit := want[i]*(float64(n)+16+float64(spread)*32)*roundOff + 2e-28
				if math.Abs(float64(g)-want[i]) > limit {
					t.Fatalf("value %d is %v, want %v", i, g, want[i])
				}
			}
			for i := range rows * min(n, 1) {
				row := x[i*n : i*n+n]
				b := argmax(row)
				for j, v := range row {
					if v > row[b] || v == row[b] && j < b {
						t.Fatalf("row %d: largest at %d, but also at %d", i, b, j)
					}
				}
			}
		})
	})
}

// softmax64 is softmax in double precision.
func softmax64(x []float32, rows, n int) []float64 {
	out := make([]float64, rows*n)
	for i := range rows {
		row, sum, largest := x[i*n:i*n+n], 0.0, math.Inf(-1)
		for _, v := range row {
			largest = max(largest, float64(v))
		}
		for j, v := range row {
			out[i*n+j] = math.Exp(float64(v) - largest)
			sum += out[i*n+j]
		}
		for j := range row {
			out[i*n+j] /= sum
		}
	}
	return out
}

func TestSoftmaxNaN(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, at := range []int{0, 7, 17, 18} {
			x := make([]float32, 19)
			x[at] = float32(math.NaN())
			softmaxRow(level(), x, x, 1)
			if !math.IsNaN(float64(x[at])) {
				t.Errorf("a NaN is hidden: %v", x)
			}
		}
	})
}

func TestSoftmaxCrossEntropy(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows, n := size(600).Draw(t, "rows"), 1+size(60).Draw(t, "more classes")
			x, labels := mem.values(rows*n), make([]int32, rows)
			for i := range labels {
				labels[i] = int32(mem.rng.IntN(n+1)) - 1
			}
			soft, loss, correct, counted := softmax64(x, rows, n), 0.0, 0, 0
			for i, l := range labels {
				if l < 0 {
					continue
				}
				counted++
				loss -= math.Log(soft[i*n+int(l)])
				if argmax(x[i*n:i*n+n]) == int(l) {
					correct++
				}
			}
			loss /= float64(max(1, counted))
			grad := mem.copyOf(x)
			got, right, count := SoftmaxCrossEntropy(p, grad, grad, labels, rows, n)
			if math.Abs(got-loss) > 1e-6*(1+loss) || right != correct || count != counted {
				t.Fatalf("loss %v, %d of %d right; want %v, %d of %d", got, right, count, loss,
					correct, counted)
			}
			checkLossGrad(t, grad, soft, labels, n, counted)
		})
	})
}

// checkLossGrad compares with (softmax - one hot)/counted.
func checkLossGrad(t *rapid.T, grad []float32, soft []float64, labels []int32, n, counted int) {
	for i, g := range grad {
		want, l := 0.0, labels[i/n]
		if l >= 0 {
			want = soft[i] / float64(counted)
		}
		if int(l) == i%n {
			want -= 1 / float64(counted)
		}
		if math.Abs(float64(g)-want) > 2e-6/float64(max(1, counted)) {
			t.Fatalf("gradient %d is %v, want %v", i, g, want)
		}
	}
}

// TestWeightedCrossEntropy compares with the formula: sum(w·loss)/sum(w), and its gradient.
func TestWeightedCrossEntropy(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows, n := size(600).Draw(t, "rows"), 1+size(60).Draw(t, "more classes")
			x, labels, weights := mem.values(rows*n), make([]int32, rows), mem.zeros(n)
			for k := range weights {
				weights[k] = float32(mem.rng.ExpFloat64()) + 0.01
			}
			soft, loss, total := softmax64(x, rows, n), 0.0, 0.0
			for i := range labels {
				if labels[i] = int32(mem.rng.IntN(n+1)) - 1; labels[i] >= 0 {
					w := float64(weights[labels[i]])
					total += w
					loss -= w * math.Log(soft[i*n+int(labels[i])])
				}
			}
			grad := mem.copyOf(x)
			got, _, counted := WeightedCrossEntropy(p, grad, grad, weights, labels[:rows], n)
			if counted > 0 && math.Abs(got-loss/total) > 1e-6*(1+loss/total) {
				t.Fatalf("loss %v, want %v", got, loss/total)
			}
			for i, g := range grad {
				want, l := 0.0, labels[i/n]
				if l >= 0 {
					want = soft[i] * float64(weights[l]) / total
				}
				if int(l) == i%n {
					want -= float64(weights[l]) / total
				}
				if math.Abs(float64(g)-want) > 2e-6/max(0.01, total/10) {
					t.Fatalf("gradient %d is %v, want %v", i, g, want)
				}
			}
		})
	})
}

// TestWeightedBCE compares with the formula, and with SigmoidBCE where all weights are 1. Some
// targets are NaN: they count for nothing.
func TestWeightedBCE(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		mem := newMemory(t)
		defer mem.free()
		rows, n := size(600).Draw(t, "rows"), 1+size(60).Draw(t, "more labels")
		x, target, positive, ones := mem.values(rows*n), mem.zeros(rows*n), mem.zeros(n),
			mem.zeros(n)
		refScale(x, rapid.SampledFrom([]float32{1, 20, 200}).Draw(t, "spread"))
		for k := range positive {
			positive[k], ones[k] = float32(mem.rng.ExpFloat64())*3, 1
		}
		loss, slopes, total := 0.0, make([]float64, rows*n), 0.0
		unknown := rapid.SampledFrom([]float64{0, 0.01, 0.5, 1}).Draw(t, "share unknown")
		for i := range target {
			if mem.rng.Float64() < unknown {
				target[i] = nan32
				continue
			}
			total++
			v, w := float64(x[i]), 1.0
			if target[i] = float32(mem.rng.IntN(2)); target[i] > 0 {
				w = float64(positive[i%n])
			}
			cost := math.Log1p(math.Exp(-math.Abs(v))) + max(v, 0) - v*float64(target[i])
			loss += w * cost
			slopes[i] = w * (1/(1+math.Exp(-v)) - float64(target[i]))
		}
		total = max(1, total)
		grad := mem.zeros(rows * n)
		got := WeightedBCE(p, grad, x, target, positive[:n], rows)
		if math.Abs(got-loss/total) > 1e-6*(1+loss/total) {
			t.Fatalf("loss %v, want %v", got, loss/total)
		}
		for i, g := range grad {
			if math.Abs(float64(g)-slopes[i]/total) > 1e-6*(1+math.Abs(slopes[i]))/total {
				t.Fatalf("gradient %d is %v, want %v", i, g, slopes[i]/total)
			}
		}
		plain := SigmoidBCE(p, grad, x, target, rows, n)
		same := WeightedBCE(p, grad, x, target, ones[:n], rows)
		if math.Abs(plain-same) > 1e-6*(1+plain) {
			t.Fatalf("loss %v with weights of 1, %v without", same, plain)
		}
	})
}

var nan32 = float32(math.NaN())

// TestSigmoidBCE compares with the formula. Some targets are NaN: they count for nothing.
func TestSigmoidBCE(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows, n := size(600).Draw(t, "rows"), size(60).Draw(t, "labels")
			x, target := mem.values(rows*n), mem.zeros(rows*n)
			refScale(x, rapid.SampledFrom([]float32{1, 20, 200}).Draw(t, "spread"))
			loss, total := 0.0, 0.0
			unknown := rapid.SampledFrom([]float64{0, 0.01, 0.5, 1}).Draw(t, "share unknown")
			for i := range target {
				if mem.rng.Float64() < unknown {
					target[i] = nan32
					continue
				}
				total++
				target[i] = float32(mem.rng.IntN(2))
				v := float64(x[i])
				loss += max(v, 0) - v*float64(target[i]) + math.Log1p(math.Exp(-math.Abs(v)))
			}
			total = max(1, total)
			grad := mem.zeros(rows * n)
			got := SigmoidBCE(p, grad, x, target, rows, n)
			if math.Abs(got-loss/total) > 1e-6*(1+loss/total) {
				t.Fatalf("loss %v, want %v", got, loss/total)
			}
			for i, g := range grad {
				want := (1/(1+math.Exp(-float64(x[i]))) - float64(target[i])) / total
				if target[i] != target[i] {
					want = 0
				}
				if math.Abs(float64(g)-want) > 1e-6/total {
					t.Fatalf("gradient %d is %v, want %v", i, g, want)
				}
			}
		})
	})
}
