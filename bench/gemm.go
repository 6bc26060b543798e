package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"gdb/internal/mem"
	"gdb/train/kernel"
)

// GEMMOptions configure the benchmark of matrix products.
type GEMMOptions struct {
	// Shapes lists the m, k and n of A(m,k), B(k,n) and, for AᵀB, of A(m,k) and B(m,n). Default:
	// 50000x128·128x256 and 5000x256·256x256, which are a large and a middle layer.
	Shapes [][3]int
	// Threads lists the numbers of workers to measure with. Default 1, and 2 if there are two
	// cores.
	Threads []int
	// Rounds is how many times each side is measured, in turn; the best counts. Default 7.
	Rounds int
}

func (o *GEMMOptions) setDefaults() {
	if len(o.Shapes) == 0 {
		o.Shapes = [][3]int{{50000, 128, 256}, {5000, 256, 256}}
	}
	if len(o.Threads) == 0 {
		o.Threads = []int{1, 2}[:min(2, runtime.NumCPU())]
	}
	if o.Rounds == 0 {
		o.Rounds = 7
	}
}

// product is a matrix product of one shape in two implementations.
type product struct {
	op      string // AB or ATB
	m, k, n int
	c, a, b []float32
}

// blasLibrary is another implementation to compare with.
type blasLibrary struct {
	name    string
	threads func(n int)
	run     func(p product)
	// rest is how long its workers spin after a product: they would halve what is measured next.
	rest time.Duration
}

// GEMM measures C=A·B and C=AᵀB of package kernel in GFLOP/s, beside OpenBLAS if this binary was
// built with the tag openblas: the two take turns in one run, in windows of their own. One thread
// is timed by its CPU time, which others on the machine disturb less, more threads by the clock.
func GEMM(ctx context.Context, opt GEMMOptions) (*Report, error) {
	opt.setDefaults()
	level, err := kernel.Chosen()
	if err != nil {
		return nil, err
	}
	r := NewReport("gemm", "op", "m", "k", "n", "threads", "gflops", "openblas_gflops",
		"openblas_ratio", "level")
	for _, threads := range opt.Threads {
		for _, s := range opt.Shapes {
			for _, op := range []string{"AB", "ATB"} {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				row, err := gemmRow(op, s, threads, opt.Rounds)
				if err != nil {
					return nil, err
				}
				row["level"] = level.String()
				r.Rows = append(r.Rows, row)
			}
		}
	}
	return r, nil
}

// gemmRow measures one product with both sides.
func gemmRow(op string, s [3]int, threads, rounds int) (Row, error) {
	p := product{op: op, m: s[0], k: s[1], n: s[2]}
	free, err := p.allocate()
	if err != nil {
		return nil, err
	}
	defer free()
	pool := kernel.NewPool(threads)
	defer pool.Close()
	ours, theirs := math.Inf(1), math.Inf(1)
	if openBLAS != nil {
		openBLAS.threads(threads)
		if err := p.agree(pool); err != nil {
			return nil, err
		}
		time.Sleep(openBLAS.rest)
	}
	for range rounds {
		ours = min(ours, p.seconds(threads, func() { p.run(pool) }))
		if openBLAS != nil {
			theirs = min(theirs, p.seconds(threads, func() { openBLAS.run(p) }))
			time.Sleep(openBLAS.rest)
		}
	}
	flops := 2e-9 * float64(p.m) * float64(p.k) * float64(p.n)
	row := Row{"op": op, "m": p.m, "k": p.k, "n": p.n, "threads": threads, "gflops": flops / ours,
		"openblas_gflops": nil, "openblas_ratio": nil, "why": nil}
	if openBLAS == nil {
		row["why"] = "built without -tags openblas"
	} else {
		row["openblas_gflops"], row["openblas_ratio"] = flops/theirs, theirs/ours
		row["openblas"] = openBLAS.name
	}
	return row, nil
}

// allocate makes the matrices in huge pages, as those of training are.
func (p *product) allocate() (free func(), err error) {
	bRows, cRows := p.k, p.m
	if p.op == "ATB" {
		bRows, cRows = p.m, p.k
	}
	a, b, c := p.m*p.k, bRows*p.n, cRows*p.n
	arena, err := mem.NewArena(nil, "matrices", int64(a+b+c)*4)
	if err != nil {
		return nil, err
	}
	x, rng := mem.View[float32](arena.Bytes()), rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	p.a, p.b, p.c = x[:a], x[a:a+b], x[a+b:]
	return func() { _ = arena.Free() }, nil
}

func (p *product) run(pool *kernel.Pool) {
	if p.op == "AB" {
		kernel.GEMM(pool, p.c, p.a, p.b, p.m, p.k, p.n, false)
	} else {
		kernel.GEMMTA(pool, p.c, p.a, p.b, p.m, p.k, p.n, false)
	}
}

// agree compares the two results: a fast wrong product is no figure.
func (p *product) agree(pool *kernel.Pool) error {
	p.run(pool)
	want := append([]float32(nil), p.c...)
	openBLAS.run(*p)
	steps := p.k
	if p.op == "ATB" {
		steps = p.m
	}
	// Values are below 1/2: each sum is of steps terms below 1/4.
	limit := float64(steps) * 0.25 * math.Sqrt(float64(steps)) / (1 << 24)
	for i, v := range p.c {
		if d := math.Abs(float64(v - want[i])); d > limit {
			return fmt.Errorf("bench: gemm %s %dx%dx%d: value %d is %g, of %s %g", p.op, p.m, p.k,
				p.n, i, want[i], openBLAS.name, v)
		}
	}
	return nil
}

// seconds is the time of one call, the mean of as many as take some 30 ms.
func (p *product) seconds(threads int, call func()) float64 {
	clock := wallClock
	if threads == 1 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		clock = threadClock
	}
	calls := 1 + int(4e9/(2*float64(p.m)*float64(p.k)*float64(p.n)))
	begin := clock()
	for range calls {
		call()
	}
	return (clock() - begin).Seconds() / float64(calls)
}

var processStart = time.Now()

func wallClock() time.Duration { return time.Since(processStart) }
