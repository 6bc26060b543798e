package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gdb/internal/mem"
)

// benchLayer is one layer of a batch: segments over in rows of width din, of which the last out
// are the rows that the layer computes, to a width of dout.
type benchLayer struct {
	in, out, edges, din, dout int

	off, idx                       []uint32
	transposed                     Transposed
	self, nbr, bias                []float32
	gradSelf, gradNbr, gradBias    []float32
	x, mean, y, dy, dmean, dx, adm []float32
}

// BenchmarkStep is a training step of a three-layer GraphSAGE of width 256: shape=rmat20 has the
// sizes of batches of 1000 seeds, fanout 10,10,10, of an R-MAT graph of 2^20 nodes and 16.8 M
// edges, shape=large those of a graph with fewer repeats.
func BenchmarkStep(b *testing.B) {
	for _, s := range []struct {
		name   string
		layers [3]benchLayer
	}{
		{"rmat20", [3]benchLayer{{in: 87_000, out: 27_500, edges: 250_000, din: 128, dout: 256},
			{in: 27_500, out: 5_100, edges: 44_500, din: 256, dout: 256},
			{in: 5_100, out: 1_000, edges: 4_900, din: 256, dout: 47}}},
		{"large", [3]benchLayer{{in: 158_000, out: 36_000, edges: 300_000, din: 128, dout: 256},
			{in: 36_000, out: 6_500, edges: 60_000, din: 256, dout: 256},
			{in: 6_500, out: 1_000, edges: 8_000, din: 256, dout: 47}}},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("shape=%s/workers=%d", s.name, workers), func(b *testing.B) {
				benchStep(b, s.layers, workers)
			})
		}
	}
}

func benchStep(b *testing.B, layers [3]benchLayer, workers int) {
	arena, err := mem.NewArena(nil, "step", 2<<30)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = arena.Free() }()
	free, rng := mem.View[float32](arena.Bytes()), rand.New(rand.NewPCG(1, 2))
	take := func(n int) []float32 {
		x := free[:n:n]
		free = free[(n+15)/16*16:]
		for i := range x {
			x[i] = (rng.Float32() - 0.5) / 8
		}
		return x
	}
	for i := range layers {
		layers[i].make(take, rng, i, layers[:])
	}
	labels := make([]int32, layers[2].out)
	p := NewPool(workers)
	defer p.Close()
	var phase [4]time.Duration
	for n := 1; b.Loop(); n++ {
		begin := time.Now()
		lap := func(i int) { phase[i] += time.Since(begin); begin = time.Now() }
		for i := range layers {
			layers[i].aggregate(p, i)
			lap(0)
			layers[i].transform(p, i)
			lap(1)
		}
		last := &layers[2]
		SoftmaxCrossEntropy(p, last.dy, last.y, labels, last.out, last.dout)
		for i := 2; i >= 0; i-- {
			layers[i].backward(p, i)
			lap(2)
		}
		for i := range layers {
			layers[i].optimize(p, n)
		}
		lap(3)
	}
	for i, name := range []string{"aggregate", "transform", "backward", "optimize"} {
		b.ReportMetric(float64(phase[i].Microseconds())/1000/float64(b.N), name+"-ms")
	}
}

func (l *benchLayer) make(take func(int) []float32, rng *rand.Rand, i int, all []benchLayer) {
	l.off = make([]uint32, l.out+1)
	for j := range l.off {
		l.off[j] = uint32(j * l.edges / l.out)
	}
	l.idx = make([]uint32, l.edges)
	for j := range l.idx {
		l.idx[j] = uint32(rng.IntN(l.in))
	}
	w := l.din * l.dout
	l.self, l.nbr, l.bias = take(w), take(w), take(l.dout)
	l.gradSelf, l.gradNbr, l.gradBias = take(w), take(w), take(l.dout)
	l.adm = take(2 * (2*w + l.dout))
	clear(l.adm)
	l.mean, l.dmean = take(l.out*l.din), take(l.out*l.din)
	l.y, l.dy = take(l.out*l.dout), take(l.out*l.dout)
	if i == 0 {
		l.x = take(l.in * l.din)
	} else {
		l.x, l.dx = all[i-1].y, all[i-1].dy
	}
}

func (l *benchLayer) aggregate(p *Pool, i int) {
	if i > 0 {
		Dropout(p, l.x, 0, 0.5, uint64(i))
	}
	SegmentMean(p, l.mean, l.x, l.off, l.idx, l.din)
}

// own returns the rows of x that the layer computes.
func (l *benchLayer) own(x []float32) []float32 { return x[(l.in-l.out)*l.din:] }

func (l *benchLayer) transform(p *Pool, i int) {
	GEMM(p, l.y, l.own(l.x), l.self, Shape{M: l.out, K: l.din, N: l.dout})
	GEMM(p, l.y, l.mean, l.nbr, Shape{M: l.out, K: l.din, N: l.dout, Add: true})
	if i < 2 {
		BiasReLU(p, l.y, l.bias, l.out, l.dout)
	} else {
		Bias(p, l.y, l.bias, l.out, l.dout)
	}
}

func (l *benchLayer) backward(p *Pool, i int) {
	ColumnSum(p, l.gradBias, l.dy, l.out, l.dout, false)
	GEMMTA(p, l.gradSelf, l.own(l.x), l.dy, Shape{M: l.out, K: l.din, N: l.dout})
	GEMMTA(p, l.gradNbr, l.mean, l.dy, Shape{M: l.out, K: l.din, N: l.dout})
	if i == 0 {
		return
	}
	GEMMTB(p, l.dmean, l.dy, l.nbr, Shape{M: l.out, N: l.dout, K: l.din})
	GEMMTB(p, l.own(l.dx), l.dy, l.self, Shape{M: l.out, N: l.dout, K: l.din})
	l.transposed.Build(l.off, l.idx, l.in)
	l.transposed.MeanGrad(p, l.dx, l.dmean, l.din, l.in-l.out)
	DropoutReLUGrad(p, l.dx, l.x, 0.5)
}

func (l *benchLayer) optimize(p *Pool, step int) {
	moments := l.adm
	for _, w := range [][2][]float32{{l.self, l.gradSelf}, {l.nbr, l.gradNbr},
		{l.bias, l.gradBias}} {
		n := len(w[0])
		Adam(p, w[0], w[1], moments[:n], moments[n:2*n], AdamStep{Step: step, Rate: 1e-3,
			Beta1: 0.9, Beta2: 0.999, Eps: 1e-8})
		moments = moments[2*n:]
	}
}
