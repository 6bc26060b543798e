package kernel

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSameBits runs every kernel twice with each of several numbers of workers: results do not
// depend on who computed what, nor on how many did.
func TestSameBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		want := map[string][]float32{}
		all := []int{1, 1, 2, 2, 3, 5, 5}
		if testing.Short() {
			all = []int{1, 3, 5}
		}
		for _, workers := range all {
			p := NewPool(workers)
			for name, got := range everyKernel(p) {
				if want[name] == nil {
					want[name] = got
				}
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(want[name][i]) {
						t.Fatalf("%s: %d workers: value %d is %v, was %v", name, workers, i, v,
							want[name][i])
					}
				}
			}
			p.Close()
		}
	})
}

// everyKernel returns the results of all kernels whose order of operations could vary.
func everyKernel(p *Pool) map[string][]float32 {
	const m, k, n = 4500, 40, 33
	rng := rand.New(rand.NewPCG(3, 4))
	values := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	a, b, g, c := values(m*k), values(k*n), values(m*n), make([]float32, m*n)
	out := map[string][]float32{}
	GEMM(p, c, a, b, Shape{M: m, K: k, N: n})
	out["GEMM"] = c
	out["GEMMTB"], out["GEMMTA"] = make([]float32, m*k), make([]float32, k*n)
	GEMMTB(p, out["GEMMTB"], g, b, Shape{M: m, N: n, K: k})
	GEMMTA(p, out["GEMMTA"], a, g, Shape{M: m, K: k, N: n})
	out["few"], out["fewTA"] = make([]float32, m*5), make([]float32, k*5)
	GEMM(p, out["few"], a, b, Shape{M: m, K: k, N: 5})
	GEMMTA(p, out["fewTA"], a, g, Shape{M: m, K: k, N: 5})
	off, idx := []uint32{0}, []uint32(nil)
	for i := range m {
		for range i % 7 {
			idx = append(idx, uint32(rng.IntN(m)))
		}
		off = append(off, uint32(len(idx)))
	}
	out["SegmentMean"], out["SegmentMeanGrad"] = make([]float32, m*k), make([]float32, m*k)
	SegmentMean(p, out["SegmentMean"], a, off, idx, k)
	segmentMeanGrad(p, out["SegmentMeanGrad"], a, off, idx, k)
	out["SegmentMeanDropout"] = make([]float32, m*k)
	SegmentMeanDropout(p, out["SegmentMeanDropout"], a, Lists{Off: off, Idx: idx, At: idx,
		Cols: k}, Drop{Rate: 0.3, Key: 5})
	out["ColumnSum"] = make([]float32, k)
	ColumnSum(p, out["ColumnSum"], a, m, k, false)
	labels := make([]int32, m)
	for i := range labels {
		labels[i] = int32(i%(n+1)) - 1
	}
	grad := make([]float32, m*n)
	loss, _, _ := SoftmaxCrossEntropy(p, grad, g, labels, m, n)
	out["SoftmaxCrossEntropy"] = append(grad, float32(loss), float32(loss-float64(float32(loss))))
	grad = make([]float32, m*n)
	loss = SigmoidBCE(p, grad, g, c, m, n)
	out["SigmoidBCE"] = append(grad, float32(loss), float32(loss-float64(float32(loss))))
	out["Dropout"] = append([]float32(nil), a...)
	Dropout(p, out["Dropout"], 0, 0.4, 9)
	w, moment, second := values(m*k), make([]float32, m*k), make([]float32, m*k)
	Adam(p, w, a, moment, second, AdamStep{Step: 1, Rate: 0.1, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8,
		WeightDecay: 0.01, Decoupled: true})
	out["Adam"] = w
	maps.Copy(out, edgeResults(p, values, off, idx))
	return out
}

func TestPool(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		p := NewPool(workers)
		for _, parts := range []int{0, 1, 2, 100} {
			done := make([]int, parts)
			p.Run(parts, func(part int) { done[part]++ })
			for i, n := range done {
				if n != 1 {
					t.Errorf("part %d of %d ran %d times", i, parts, n)
				}
			}
		}
		p.Close()
	}
	if NewPool(0).Workers() < 1 || (*Pool)(nil).Workers() != 1 {
		t.Error("a pool without workers")
	}
}

func TestChoose(t *testing.T) {
	old, wide := []Level{Plain, AVX2}, []Level{Plain, AVX2, AVX512}
	arm, none := []Level{Plain, NEON}, []Level{Plain}
	for _, c := range []struct {
		name string
		own  []Level
		want Level
		ok   bool
	}{
		{"", wide, AVX512, true}, {"", none, Plain, true}, {"plain", wide, Plain, true},
		{"avx2", wide, AVX2, true}, {"avx512", old, AVX2, false}, {"sse", old, AVX2, false},
		{"", arm, NEON, true}, {"neon", arm, NEON, true}, {"plain", arm, Plain, true},
		{"avx2", arm, NEON, false}, {"neon", wide, AVX512, false},
	} {
		if got, err := choose(c.name, c.own); got != c.want || (err == nil) != c.ok {
			t.Errorf("GDB_KERNEL=%q on %v: %v, %v", c.name, c.own, got, err)
		}
	}
	if opsOf(Plain) != &plainOps {
		t.Error("Plain is not plain")
	}
}
