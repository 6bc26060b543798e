package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
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
	// Precision is one of Precisions. Default f32.
	Precision string
}

// Precisions lists the number formats of products: float32, and bfloat16 with float32 sums.
var Precisions = []string{"f32", "bf16"}

func (o *GEMMOptions) setDefaults() error {
	if len(o.Shapes) == 0 {
		o.Shapes = [][3]int{{50000, 128, 256}, {5000, 256, 256}}
	}
	if len(o.Threads) == 0 {
		o.Threads = []int{1, 2}[:min(2, runtime.NumCPU())]
	}
	o.Rounds = cmp.Or(o.Rounds, 7)
	o.Precision = cmp.Or(o.Precision, Precisions[0])
	if !slices.Contains(Precisions, o.Precision) {
		return optionErrorf("bench: gemm: unknown precision %q: possible are %s", o.Precision,
			strings.Join(Precisions, ", "))
	}
	return nil
}

// blasLibrary is another implementation to compare with.
type blasLibrary struct {
	name    string
	threads func(n int)
	run     func(p product)
	// rest is how long its workers spin after a product: they would halve what is measured next.
	rest time.Duration
}

// GEMM measures C=A·B, C=AᵀB and C=A·Bᵀ of package kernel in GFLOP/s, beside OpenBLAS if this
// binary was built with the tag openblas, or those of package bf16 beside those of package kernel:
// the two take turns in one run, in windows of their own. One thread is timed by its CPU time,
// which others on the machine disturb less, more threads by the clock.
func GEMM(ctx context.Context, opt GEMMOptions) (*Report, error) {
	if err := opt.setDefaults(); err != nil {
		return nil, err
	}
	level, err := kernel.Chosen()
	if err != nil {
		return nil, err
	}
	used, other := level.String(), "openblas"
	if opt.Precision == "bf16" {
		used, other = bf16.Level(), "f32"
	}
	r := newReport("gemm", "op", "m", "k", "n", "threads", "gflops", other+"_gflops",
		other+"_ratio", "level")
	if opt.Precision == "bf16" {
		r.Notes = append(r.Notes, bf16.ChoiceText(bf16.Chosen()))
	}
	for _, threads := range opt.Threads {
		for _, s := range opt.Shapes {
			for _, op := range []string{"AB", "ATB", "ABT"} {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				row, err := gemmRow(op, s, threads, opt)
				if err != nil {
					return nil, err
				}
				row["level"], row["precision"] = used, opt.Precision
				r.Rows = append(r.Rows, row)
			}
		}
	}
	return r, nil
}

// gemmRow measures one product with both sides.
func gemmRow(op string, s [3]int, threads int, opt GEMMOptions) (Row, error) {
	p := product{op: op, m: s[0], k: s[1], n: s[2]}
	free, err := p.allocate(opt.Precision == "bf16")
	if err != nil {
		return nil, err
	}
	defer free()
	pool := kernel.NewPool(threads)
	defer pool.Close()
	ours, theirs := func() { p.run(pool) }, (func())(nil)
	rest := time.Duration(0)
	switch {
	case opt.Precision == "bf16":
		ours, theirs = func() { p.runHalf(pool) }, ours
	case openBLAS != nil:
		theirs, rest = func() { openBLAS.run(p) }, openBLAS.rest
		openBLAS.threads(threads)
	}
	if theirs != nil {
		if err := p.agree(ours, theirs, opt.Precision); err != nil {
			return nil, err
		}
		time.Sleep(rest)
	}
	mine, other := math.Inf(1), math.Inf(1)
	for range opt.Rounds {
		if rest > 0 {
			p.seconds(threads, ours) // not counted: threads that rested are slow to wake
		}
		mine = min(mine, p.seconds(threads, ours))
		if theirs != nil {
			other = min(other, p.seconds(threads, theirs))
			time.Sleep(rest)
		}
	}
	flops := 2e-9 * float64(p.m) * float64(p.k) * float64(p.n)
	row := Row{"op": op, "m": p.m, "k": p.k, "n": p.n, "threads": threads, "gflops": flops / mine,
		"openblas_gflops": nil, "openblas_ratio": nil, "why": nil}
	switch {
	case opt.Precision == "bf16":
		row["f32_gflops"], row["f32_ratio"] = flops/other, other/mine
		row["why"] = "OpenBLAS is compared with in f32"
	case openBLAS == nil:
		row["why"] = "built without -tags openblas"
	default:
		row["openblas_gflops"], row["openblas_ratio"] = flops/other, other/mine
		row["openblas"] = openBLAS.name
	}
	return row, nil
}

var processStart = time.Now()

func wallClock() time.Duration { return time.Since(processStart) }

// clockOf returns the clock for work of this number of threads: the CPU time of the calling one if
// it is the only one. The caller calls done.
func clockOf(threads int) (clock func() time.Duration, done func()) {
	if threads != 1 {
		return wallClock, func() {}
	}
	runtime.LockOSThread()
	return threadClock, runtime.UnlockOSThread
}

// product is a matrix product of one shape: AB is A(m,k)·B(k,n), ATB A(m,k)ᵀ·B(m,n) and ABT
// A(m,n)·B(k,n)ᵀ.
type product struct {
	op           string
	m, k, n      int
	c, a, b      []float32
	aHalf, bHalf []bf16.Number // nil, or the values of a and b, which have no more digits then
}

// allocate makes the matrices in huge pages, as those of training are.
func (p *product) allocate(half bool) (free func(), err error) {
	a, b, c := p.m*p.k, p.k*p.n, p.m*p.n
	switch p.op {
	case "ATB":
		b, c = c, b
	case "ABT":
		a, c = c, a
	}
	arena, err := mem.NewArena(nil, "matrices", int64(a+b+c)*4+int64(a+b)*2)
	if err != nil {
		return nil, err
	}
	bytes := arena.Bytes()
	x, rng := mem.View[float32](bytes[:4*(a+b+c)]), rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	p.a, p.b, p.c = x[:a], x[a:a+b], x[a+b:]
	if half {
		h := mem.View[bf16.Number](bytes[4*(a+b+c):])
		p.aHalf, p.bHalf = h[:a], h[a:a+b]
		bf16.Narrow(nil, p.aHalf, p.a)
		bf16.Narrow(nil, p.bHalf, p.b)
		bf16.Widen(nil, p.a, p.aHalf)
		bf16.Widen(nil, p.b, p.bHalf)
	}
	return func() { _ = arena.Free() }, nil
}

func (p *product) run(pool *kernel.Pool) {
	switch p.op {
	case "AB":
		kernel.GEMM(pool, p.c, p.a, p.b, kernel.Shape{M: p.m, K: p.k, N: p.n})
	case "ATB":
		kernel.GEMMTA(pool, p.c, p.a, p.b, kernel.Shape{M: p.m, K: p.k, N: p.n})
	case "ABT":
		kernel.GEMMTB(pool, p.c, p.a, p.b, kernel.Shape{M: p.m, N: p.n, K: p.k})
	}
}

func (p *product) runHalf(pool *kernel.Pool) {
	switch p.op {
	case "AB":
		bf16.GEMM(pool, p.c, p.aHalf, p.bHalf, kernel.Shape{M: p.m, K: p.k, N: p.n})
	case "ATB":
		bf16.GEMMTA(pool, p.c, p.aHalf, p.bHalf, kernel.Shape{M: p.m, K: p.k, N: p.n})
	case "ABT":
		bf16.GEMMTB(pool, p.c, p.aHalf, p.bHalf, kernel.Shape{M: p.m, N: p.n, K: p.k})
	}
}

// agree compares the two results: a fast wrong product is no figure.
func (p *product) agree(ours, theirs func(), precision string) error {
	ours()
	got := append([]float32(nil), p.c...)
	theirs()
	steps := map[string]int{"AB": p.k, "ATB": p.m, "ABT": p.n}[p.op]
	// Values are below 1/2: each sum is of steps terms below 1/4.
	limit := float64(steps) * 0.25 * math.Sqrt(float64(steps)) / (1 << 24)
	for i, v := range got {
		if d := math.Abs(float64(v - p.c[i])); d > limit {
			return fmt.Errorf("bench: gemm %s %dx%dx%d in %s: value %d is %g, of the other side %g",
				p.op, p.m, p.k, p.n, precision, i, v, p.c[i])
		}
	}
	return nil
}

// seconds returns the time of one call, the mean of as many as take some 30 ms.
func (p *product) seconds(threads int, call func()) float64 {
	clock, done := clockOf(threads)
	defer done()
	calls := 1 + int(4e9/(2*float64(p.m)*float64(p.k)*float64(p.n)))
	begin := clock()
	for range calls {
		call()
	}
	return (clock() - begin).Seconds() / float64(calls)
}
