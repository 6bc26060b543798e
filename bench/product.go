package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
)

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
