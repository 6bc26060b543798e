package kernel

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gdb/internal/bug"
)

// Pool runs the parts of a kernel on Workers goroutines, of which the caller is one, and keeps the
// kernels' scratch memory. A nil Pool is one worker that keeps nothing. All methods may be called
// from any goroutine.
type Pool struct {
	workers int

	mu struct {
		sync.Mutex
		floats [][]float32
		words  [][]uint32
	}
}

// NewPool returns a pool of this number of workers; 0 means one for each core.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.NumCPU()
	}
	return &Pool{workers: workers}
}

// Workers returns how many goroutines compute at once.
func (p *Pool) Workers() int {
	if p == nil {
		return 1
	}
	return p.workers
}

// Run calls fn with 0 to parts-1, in no order, and returns when all calls have. Parts are handed
// out one by one, so that a worker whose core is shared takes fewer; what a part computes must
// not depend on who runs it. A helper that starts late, when all parts are taken, is not waited
// for: waking a thread may take longer than a small kernel.
func (p *Pool) Run(parts int, fn func(part int)) {
	helpers := min(p.Workers(), parts) - 1
	if helpers <= 0 {
		for i := range parts {
			fn(i)
		}
		return
	}
	var next atomic.Int64
	var done sync.WaitGroup
	done.Add(parts)
	work := func() {
		defer bug.Catch() // before the caller frees what the others compute with
		for {
			i := int(next.Add(1)) - 1
			if i >= parts {
				return
			}
			fn(i)
			done.Done()
		}
	}
	for range helpers {
		go work()
	}
	work()
	done.Wait()
}

// Bytes returns the scratch memory that is not lent at this moment: all of it between kernels.
func (p *Pool) Bytes() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, x := range p.mu.floats {
		n += cap(x)
	}
	for _, x := range p.mu.words {
		n += cap(x)
	}
	return 4 * int64(n)
}

// Close drops the scratch memory. Nothing runs between two calls of Run, so there is nothing to
// stop.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.floats, p.mu.words = nil, nil
}

// Span cuts n items into parts of size each and calls fn with the bounds of every part.
func (p *Pool) Span(n, size int, fn func(lo, hi int)) {
	p.Run(partsOf(n, size), func(part int) {
		fn(part*size, min(part*size+size, n))
	})
}

// SumParts adds to each out the sums of n items. fn adds the items from lo to hi-1 to sum, which
// has the values of all out one after the other. Items are cut into parts of size each, and the
// sums of parts are added in their order.
func (p *Pool) SumParts(n, size int, fn func(sum []float32, lo, hi int), out ...[]float32) {
	parts, width := partsOf(n, size), 0
	for _, o := range out {
		width += len(o)
	}
	if parts*width == 0 {
		return
	}
	sums := p.TakeFloats(parts * width)
	p.Span(n, size, func(lo, hi int) {
		sum := rowOf(sums, lo/size, width)
		clear(sum)
		fn(sum, lo, hi)
	})
	add, next := level().add, sums
	for range parts {
		for _, o := range out {
			add(o, next[:len(o)])
			next = next[len(o):]
		}
	}
	p.GiveFloats(sums)
}

// total returns the sum of what fn returns for parts of n items, size each, in their order.
func (p *Pool) total(n, size int, fn func(lo, hi int) float64) (sum float64) {
	parts := make([]float64, partsOf(n, size))
	p.Span(n, size, func(lo, hi int) { parts[lo/size] = fn(lo, hi) })
	for _, part := range parts {
		sum += part
	}
	return sum
}

// partsOf returns how many parts of a size n items have.
func partsOf(n, size int) int { return (n + size - 1) / size }

// TakeFloats returns n floats of scratch memory with any values in them, for GiveFloats.
func (p *Pool) TakeFloats(n int) []float32 {
	if p == nil {
		return make([]float32, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return takeLeast(&p.mu.floats, n)
}

// GiveFloats hands back what TakeFloats returned, or nothing.
func (p *Pool) GiveFloats(x []float32) {
	if p == nil || x == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.floats = append(p.mu.floats, x)
}

// TakeWords is TakeFloats of uint32.
func (p *Pool) TakeWords(n int) []uint32 {
	if p == nil {
		return make([]uint32, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return takeLeast(&p.mu.words, n)
}

// GiveWords hands back what TakeWords returned.
func (p *Pool) GiveWords(x []uint32) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.words = append(p.mu.words, x)
}

// takeLeast takes the smallest buffer of a list that suffices, the newest of equal ones. If none
// does, a larger one replaces the largest. So the list holds as many buffers as were ever taken at
// once, and of these one at most is larger than what workers ask for: a kernel's own buffer, which
// it takes before them.
func takeLeast[T any](list *[][]T, n int) []T {
	all, best := *list, len(*list)-1
	if best < 0 {
		return make([]T, n)
	}
	for i := best - 1; i >= 0; i-- {
		have, most := cap(all[i]), cap(all[best])
		if most < n && have > most || have >= n && have < most {
			best = i
		}
	}
	buf := all[best]
	*list = slices.Delete(all, best, best+1)
	if cap(buf) < n {
		buf = make([]T, n)
	}
	return buf[:n]
}

// rowOf returns row i of x(·,n).
func rowOf[T any](x []T, i, n int) []T { return x[i*n : i*n+n] }
