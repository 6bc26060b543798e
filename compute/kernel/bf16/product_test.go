package bf16

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"gdb/compute/kernel"
)

// productForm is one of the three forms; its matrices are A(ra,ca), B(rb,cb) and C(rc,cc), the
// reduction is over steps. term has the values of A and B of a step of a value of C.
type productForm struct {
	name                   string
	ra, ca, rb, cb, rc, cc int
	steps                  int
	floats                 func(p *kernel.Pool, c []float32, a, b []Number, accumulate bool)
	numbers                func(p *kernel.Pool, c, a, b []Number, accumulate bool)
	term                   func(i, j, step int) (a, b int)
}

func products(m, k, n int) []productForm {
	return []productForm{
		{"GEMM", m, k, k, n, m, n, k,
			func(p *kernel.Pool, c []float32, a, b []Number, add bool) {
				GEMM(p, c, a, b, kernel.Shape{M: m, K: k, N: n, Add: add})
			},
			func(p *kernel.Pool, c, a, b []Number, add bool) {
				GEMM(p, c, a, b, kernel.Shape{M: m, K: k, N: n, Add: add})
			},
			func(i, j, s int) (int, int) { return i*k + s, s*n + j }},
		{"GEMMTA", m, k, m, n, k, n, m,
			func(p *kernel.Pool, c []float32, a, b []Number, add bool) {
				GEMMTA(p, c, a, b, kernel.Shape{M: m, K: k, N: n, Add: add})
			}, nil,
			func(i, j, s int) (int, int) { return s*k + i, s*n + j }},
		{"GEMMTB", m, n, k, n, m, k, n,
			func(p *kernel.Pool, c []float32, a, b []Number, add bool) {
				GEMMTB(p, c, a, b, kernel.Shape{M: m, N: n, K: k, Add: add})
			},
			func(p *kernel.Pool, c, a, b []Number, add bool) {
				GEMMTB(p, c, a, b, kernel.Shape{M: m, N: n, K: k, Add: add})
			},
			func(i, j, s int) (int, int) { return i*n + s, j*n + s }},
	}
}

// check compares a product at every level with that of the level plain, to the bit, and that with
// exact sums.
func (f productForm) check(t failer, p *kernel.Pool, seed uint64, add, tiny bool) {
	m := newMemory(seed)
	defer m.free()
	a, b := m.numbers(f.ra*f.ca, tiny), m.numbers(f.rb*f.cb, tiny)
	c := m.floats(f.rc * f.cc)
	active.Store(&plainOps)
	want := copyOf(m, c)
	f.floats(p, want, a, b, add)
	f.exact(t, want, c, a, b, add)
	for _, o := range levels()[1:] {
		active.Store(o)
		got := copyOf(m, c)
		f.floats(p, got, a, b, add)
		equal(t, f.name+" "+o.name, got, want)
	}
	if f.numbers == nil {
		return
	}
	start := m.numbers(len(c), tiny)
	sums, rounded := of[float32](m, len(c)), of[Number](m, len(c))
	refWiden(sums, start)
	f.floats(p, sums, a, b, add)
	refNarrow(rounded, sums)
	for _, o := range levels() {
		active.Store(o)
		got := copyOf(m, start)
		f.numbers(p, got, a, b, add)
		equal(t, f.name+" to Number "+o.name, got, rounded)
	}
}

// exact compares a product with sums in float64. Each of the steps and of the sums of blocks and
// slabs rounds once, or makes a denormal zero.
func (f productForm) exact(t failer, got, c []float32, a, b []Number, add bool) {
	const roundOff = 1.0 / (1 << 24)
	for i := range f.rc {
		for j := range f.cc {
			sum, bound := 0.0, 0.0
			if add {
				sum = float64(c[i*f.cc+j])
				bound = math.Abs(sum)
			}
			for s := range f.steps {
				x, y := f.term(i, j, s)
				v := float64(a[x].Float32()) * float64(b[y].Float32())
				sum, bound = sum+v, bound+math.Abs(v)
			}
			limit := float64(f.steps+8) * (roundOff*bound + 0x1p-125)
			if g := float64(got[i*f.cc+j]); !(math.Abs(g-sum) <= limit) {
				t.Fatalf("%s: value %d,%d is %v, want %v: bound %g", f.name, i, j, g, sum, limit)
			}
		}
	}
}

func TestProducts(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		m, k, n := size(130).Draw(t, "m"), size(130).Draw(t, "k"), size(130).Draw(t, "n")
		add, tiny := rapid.Bool().Draw(t, "accumulate"), rapid.Bool().Draw(t, "tiny")
		for _, f := range products(m, k, n) {
			f.check(t, p, seed(t), add, tiny)
		}
	})
}

// TestLargeProducts has shapes that are cut: into steps, blocks, slabs, groups and parts.
func TestLargeProducts(t *testing.T) {
	shapes := [][3]int{{4500, 13, 7}, {4100, 5, 70}, {1100, 386, 3}, {20, 1433, 33}, {300, 65, 131},
		{7, 385, 40}, {3000, 1, 1}}
	if testing.Short() {
		shapes = shapes[3:]
	}
	defer active.Store(active.Load())
	p := kernel.NewPool(2)
	defer p.Close()
	for i, s := range shapes {
		for _, f := range products(s[0], s[1], s[2]) {
			f.check(t, p, uint64(i), i%2 == 0, false)
		}
	}
}

// TestStreamedProducts has a product that is written past the caches, beside the same in rows that
// are few enough to be written through them.
func TestStreamedProducts(t *testing.T) {
	const k, n, rows = 3, 128, 1000
	m := streamLeast/(4*n) + 7
	a, b := make([]Number, m*k), make([]Number, k*n)
	for i := range a {
		a[i] = Of(float32(i%251) - 100)
	}
	for i := range b {
		b[i] = Of(float32(i%17) / 7)
	}
	eachLevel(t, func(t *testing.T) {
		p := kernel.NewPool(2)
		defer p.Close()
		c, want := make([]float32, m*n), make([]float32, m*n)
		if r := (product{ops: level(), c: resultOf(c), k: k, n: n, heads: 1}); !r.streams(m) {
			t.Fatal("the product is not streamed")
		}
		GEMM(p, c, a, b, kernel.Shape{M: m, K: k, N: n})
		for lo := 0; lo < m; lo += rows {
			hi := min(lo+rows, m)
			GEMM(p, want[lo*n:hi*n], a[lo*k:hi*k], b, kernel.Shape{M: hi - lo, K: k, N: n})
		}
		equal(t, "a streamed product", c, want)
	})
}
