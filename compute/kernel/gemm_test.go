package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// productForm is one of the three forms; its matrices are A(ra,ca), B(rb,cb) and C(rc,cc), the
// reduction is over steps.
type productForm struct {
	name                   string
	ra, ca, rb, cb, rc, cc int
	steps                  int
	run                    func(p *Pool, c, a, b []float32, accumulate bool)
	ref                    func(c, a, b []float32, accumulate bool)
}

func products(m, k, n int) []productForm {
	return []productForm{
		{"GEMM", m, k, k, n, m, n, k,
			func(p *Pool, c, a, b []float32, add bool) {
				GEMM(p, c, a, b, Shape{M: m, K: k, N: n,
					Add: add})
			},
			func(c, a, b []float32, add bool) {
				refGEMM(view{c, n}, view{a, k}, view{b, n}, Shape{M: m, K: k, N: n, Add: add})
			}},
		{"GEMMTA", m, k, m, n, k, n, m,
			func(p *Pool, c, a, b []float32, add bool) {
				GEMMTA(p, c, a, b, Shape{M: m, K: k, N: n,
					Add: add})
			},
			func(c, a, b []float32, add bool) {
				refGEMMTA(view{c, n}, view{a, k}, view{b, n}, Shape{M: m, N: n, Add: add}, 0, k)
			}},
		{"GEMMTB", m, n, k, n, m, k, n,
			func(p *Pool, c, a, b []float32, add bool) {
				GEMMTB(p, c, a, b, Shape{M: m, N: n, K: k,
					Add: add})
			},
			func(c, a, b []float32, add bool) {
				refGEMMTB(view{c, k}, view{a, n}, view{b, n}, Shape{M: m, N: n, K: k, Add: add})
			}},
	}
}

// check compares a product with the specification. The bound counts a product and a sum for each
// step, the sums of blocks and slabs, and adding to C.
func (f productForm) check(t *rapid.T, p *Pool, add bool) {
	mem := newMemory(t)
	defer mem.free()
	a, b, c := mem.values(f.ra*f.ca), mem.values(f.rb*f.cb), mem.values(f.rc*f.cc)
	want, bound := mem.copyOf(c), absolute(c)
	f.ref(want, a, b, add)
	f.ref(bound, absolute(a), absolute(b), add)
	f.run(p, c, a, b, add)
	within(t, f.name, c, want, bound, 2*float64(f.steps+8))
}

func TestProducts(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			m, k, n := size(130).Draw(t, "m"), size(130).Draw(t, "k"), size(130).Draw(t, "n")
			add := rapid.Bool().Draw(t, "accumulate")
			for _, f := range products(m, k, n) {
				f.check(t, p, add)
			}
		})
	})
}

// TestLargeProducts has shapes that are cut: into blocks of steps, slabs, groups and parts.
func TestLargeProducts(t *testing.T) {
	shapes := [][3]int{{5000, 13, 7}, {2100, 70, 33}, {40, 20, 1433}, {3000, 1, 1},
		{1100, 530, 31}, {220, 1433, 65}}
	if testing.Short() {
		shapes = shapes[:4]
	}
	eachLevel(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		if active.Load() == &plainOps && testing.Short() {
			t.Skip("plain products are slow")
		}
		rapid.Check(t, func(t *rapid.T) {
			s := rapid.SampledFrom(shapes).Draw(t, "shape")
			f := rapid.SampledFrom(products(s[0], s[1], s[2])).Draw(t, "product")
			f.check(t, p, rapid.Bool().Draw(t, "accumulate"))
		})
	})
}

// TestStreamedProducts has products that are written past the caches, whole and as columns of heads
// with rows left over after the largest tiles, beside the same in rows that are few enough to be
// written through them.
func TestStreamedProducts(t *testing.T) {
	const k, n = 3, 128
	r := rand.New(rand.NewPCG(1, 2))
	eachLevel(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, heads := range []int{1, 2} {
			m := streamLeast/(4*heads*n) + 7
			a, b := make([]float32, m*heads*k), make([]float32, k*heads*n)
			for _, x := range [][]float32{a, b} {
				for i := range x {
					x[i] = r.Float32()
				}
			}
			as, cs := heads*k, heads*n
			c, want := make([]float32, m*cs), make([]float32, m*cs)
			if tiles := level().tiles; tiles != nil && !tiles.streams(view{c, cs}, m, n) {
				t.Fatal("the product is not streamed")
			}
			GEMM(p, c, a, b, Shape{M: m, K: k, N: n, Heads: heads})
			const rows = 1000
			for lo := 0; lo < m; lo += rows {
				hi := min(lo+rows, m)
				GEMM(p, want[lo*cs:hi*cs], a[lo*as:hi*as], b, Shape{M: hi - lo, K: k, N: n,
					Heads: heads})
			}
			if !slices.Equal(c, want) {
				t.Errorf("%d heads: a streamed product differs from the same in pieces", heads)
			}
		}
	})
}

// TestPack has panels of both kinds hold the columns of some rows, and zeros behind the last.
func TestPack(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		tiles := level().tiles
		if tiles == nil {
			t.Skip("plain products pack nothing")
		}
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			rows, n := rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "n")
			x := mem.values(rows * n)
			for kind, width := range []int{tiles.width(), tiles.rows[0]} {
				panels := partsOf(n, width)
				got, want := mem.values(panels*rows*width), mem.zeros(panels*rows*width)
				for i := range rows {
					for j := range n {
						want[(j/width*rows+i)*width+j%width] = x[i*n+j]
					}
				}
				tiles.pack[kind](&got[0], &x[0], rows, n, uintptr(n)*4, uintptr(rows*width)*4)
				equal(t, "panels", got, want)
			}
		})
	})
}
