package bf16

import (
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gdb/compute/kernel"
)

// TestStress runs the kernels while signals of preemption, a profiler, collections of garbage and
// forks interrupt them: results have the same bits, and float32 arithmetic of Go, on the same
// threads, still has denormal numbers.
func TestStress(t *testing.T) {
	lasts := 10 * time.Second
	if testing.Short() {
		lasts = time.Second
	}
	if err := pprof.StartCPUProfile(io.Discard); err == nil {
		defer pprof.StopCPUProfile()
	}
	counts := disturb(t)
	p := kernel.NewPool(2)
	defer p.Close()
	w := newWorkload(64, 47)
	all, tiles := levels()[1:], tileLevel()
	if len(all) == 0 {
		t.Skip("no level but plain: nothing is assembly")
	}
	defer active.Store(active.Load())
	active.Store(all[0])
	want, rounds := map[bool][][]float32{false: w.run(p)}, 0
	if tiles != nil {
		active.Store(tiles)
		want[true] = w.run(p)
		all = append(all, tiles)
	}
	for begin := time.Now(); time.Since(begin) < lasts; rounds++ {
		o := all[rounds%len(all)]
		active.Store(o)
		got := w.run(p)
		for i, x := range got {
			equal(t, "a result of "+o.name, x, want[o == tiles][i])
		}
		if half := w.least * 0.5; half == 0 {
			t.Fatal("denormal numbers of Go became zero")
		}
	}
	t.Logf("%d rounds, %d signals, %d collections, %d forks", rounds, counts[0].Load(),
		counts[1].Load(), counts[2].Load())
}

// disturb sends signals, collects and forks until the test ends, and returns how often.
func disturb(t *testing.T) *[3]atomic.Int64 {
	done, counts := make(chan struct{}), new([3]atomic.Int64)
	var all sync.WaitGroup
	for i, fn := range []func(){
		func() { _ = syscall.Kill(os.Getpid(), syscall.SIGURG) }, // what Go preempts with
		func() { runtime.GC(); time.Sleep(time.Millisecond) },
		func() {
			if err := exec.Command("true").Run(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		},
	} {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					fn()
					counts[i].Add(1)
				}
			}
		})
	}
	t.Cleanup(func() { close(done); all.Wait() })
	return counts
}

// workload is inputs of the kernels.
type workload struct {
	m, k, n  int
	a, b     []Number
	off, idx []uint32
	back     kernel.Transposed
	weight   []float32
	heads    []float32 // weights of four heads
	least    float32   // the least normal number
}

func newWorkload(k, n int) *workload {
	w := &workload{m: 4200, k: k, n: n, off: []uint32{0}, least: math.Float32frombits(1 << 23)}
	rng := rand.New(rand.NewPCG(5, 6))
	for range w.m {
		for range rng.IntN(9) {
			w.idx = append(w.idx, uint32(rng.IntN(w.m)))
			w.weight = append(w.weight, rng.Float32())
			w.heads = append(w.heads, rng.Float32(), rng.Float32(), rng.Float32(), rng.Float32())
		}
		w.off = append(w.off, uint32(len(w.idx)))
	}
	w.back.BuildEntries(w.off, w.idx, w.m)
	w.a, w.b = make([]Number, w.m*w.k), make([]Number, w.m*w.n)
	for _, x := range [][]Number{w.a, w.b} {
		for i := range x {
			x[i] = Of(float32(rng.NormFloat64()))
		}
	}
	return w
}

// run returns the results of all kernels.
func (w *workload) run(p *kernel.Pool) (out [][]float32) {
	m, k, n := w.m, w.k, w.n
	floats := func(n int) []float32 {
		x := make([]float32, n)
		out = append(out, x)
		return x
	}
	half := make([]Number, m*n)
	GEMM(p, floats(m*n), w.a, w.b, kernel.Shape{M: m, K: k, N: n})
	GEMM(p, half, w.a, w.b, kernel.Shape{M: m, K: k, N: n})
	Widen(p, floats(m*n), half)
	GEMMTA(p, floats(k*n), w.a, w.b, kernel.Shape{M: m, K: k, N: n})
	GEMMTB(p, floats(m*k), half, w.b, kernel.Shape{M: m, N: n, K: k})
	SegmentReduce(p, floats(m*k), w.a, kernel.Lists{Off: w.off, Idx: w.idx, Cols: k}, true)
	WeightedHeads(p, floats(m*k), w.a, w.weight, kernel.Lists{Off: w.off, Idx: w.idx, Heads: 1,
		Cols: k}, false)
	WeightedHeadsGrad(p, floats(m*k), w.a, w.weight, &w.back, kernel.RowGrad{Heads: 1, Cols: k,
		Fresh: m})
	SegmentMax(p, floats(m*n), w.b, nil, kernel.Lists{Off: w.off, Idx: w.idx, Cols: n})
	if k%4 == 0 {
		WeightedHeads(p, floats(m*k), w.a, w.heads, kernel.Lists{Off: w.off, Idx: w.idx, Heads: 4,
			Cols: k / 4}, false)
		WeightedHeadsGrad(p, floats(m*k), w.a, w.heads, &w.back, kernel.RowGrad{Heads: 4,
			Cols: k / 4, Fresh: m})
		GEMMTA(p, floats(k/4*k), w.a, w.a, kernel.Shape{M: m, K: k / 4, N: k / 4, Heads: 4})
	}
	EdgeDot(p, floats(len(w.idx)), w.a, w.a, kernel.Lists{Off: w.off, Idx: w.idx, Heads: 1,
		Cols: k})
	Activate(p, half, out[0], m, n, &Activation{Bias: w.weight[:n], ELU: true, Rate: 0.5, Key: 3})
	Widen(p, floats(m*n), half)
	ELUGrad(p, half, out[0], half, kernel.Drop{Rate: 0.5, Key: 3})
	Widen(p, floats(m*n), half)
	ReLUGrad(p, out[0][:m*n], out[0][:m*n], w.b, 0.5)
	ColumnSum(p, floats(n), w.b, m, n)
	return out
}

// TestSameBits runs every kernel with each of several numbers of workers: results do not depend on
// who computed what, nor on how many did.
func TestSameBits(t *testing.T) {
	w := newWorkload(20, 33)
	eachLevel(t, func(t *testing.T) {
		var want [][]float32
		for _, workers := range []int{1, 2, 3, 5} {
			p := kernel.NewPool(workers)
			got := w.run(p)
			p.Close()
			if want == nil {
				want = got
			}
			for i, x := range got {
				equal(t, "a result", x, want[i])
			}
		}
	})
}
