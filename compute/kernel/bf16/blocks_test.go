//go:build amd64

package bf16

import (
	"testing"

	"pgregory.net/rapid"

	"gdb/compute/kernel"
	"gdb/compute/kernel/amx"
)

// plainBlocks multiplies by the plain twin of the tiles of AMX, and packs in plain Go too.
var plainBlocks = func() ops {
	o := plainOps
	o.name, o.blocks = "plain blocks", amx.Reference
	o.tiles = &tileSet{lanes: 16, steps: true}
	return o
}()

// blockLevels are those that compute in blocks on this processor. All give the same bits.
func blockLevels() []*ops {
	all := []*ops{&plainBlocks}
	if hasDot() {
		packed := withBlocks("packed blocks", amx.Reference)
		all = append(all, &packed)
		if o := tileLevel(); o != nil {
			all = append(all, o)
		}
	}
	return all
}

// tileLevel returns the level of AMX, or nil.
func tileLevel() *ops {
	if amx.Available() != nil || !hasDot() {
		return nil
	}
	return &amxOps
}

// checkBlocks compares a product in blocks with exact sums, at every level that has them with the
// same bits.
func (f productForm) checkBlocks(t failer, p *kernel.Pool, seed uint64, add, tiny bool) {
	m := newMemory(seed)
	defer m.free()
	a, b := m.numbers(f.ra*f.ca, tiny), m.numbers(f.rb*f.cb, tiny)
	c := m.floats(f.rc * f.cc)
	start := m.numbers(len(c), tiny)
	var want []float32
	var rounded []Number
	for _, o := range blockLevels() {
		active.Store(o)
		got := copyOf(m, c)
		f.floats(p, got, a, b, add)
		if want == nil {
			want = got
			f.exact(t, want, c, a, b, add)
		}
		equal(t, f.name+" "+o.name, got, want)
		if f.numbers == nil {
			continue
		}
		half := copyOf(m, start)
		f.numbers(p, half, a, b, add)
		if rounded == nil {
			sums := of[float32](m, len(c))
			refWiden(sums, start)
			f.floats(p, sums, a, b, add)
			rounded = of[Number](m, len(c))
			refNarrow(rounded, sums)
		}
		equal(t, f.name+" to Number "+o.name, half, rounded)
	}
}

func TestBlocks(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		m, k, n := size(130).Draw(t, "m"), size(130).Draw(t, "k"), size(130).Draw(t, "n")
		add, tiny := rapid.Bool().Draw(t, "accumulate"), rapid.Bool().Draw(t, "tiny")
		for _, f := range products(m, k, n) {
			f.checkBlocks(t, p, seed(t), add, tiny)
		}
	})
}

// TestLargeBlocks has shapes that are cut into blocks of rows and slabs.
func TestLargeBlocks(t *testing.T) {
	defer active.Store(active.Load())
	p := kernel.NewPool(2)
	defer p.Close()
	for i, s := range [][3]int{{4500, 32, 64}, {4131, 13, 7}, {20, 1433, 33}, {7, 385, 40}} {
		if i == 0 && testing.Short() {
			continue
		}
		for _, f := range products(s[0], s[1], s[2]) {
			f.checkBlocks(t, p, uint64(i), i%2 == 0, false)
		}
	}
}

// TestBlocksOfHeads compares products of heads with those of each head alone.
func TestBlocksOfHeads(t *testing.T) {
	const m, k, n, heads = 70, 33, 40, 3
	defer active.Store(active.Load())
	mem := newMemory(1)
	defer mem.free()
	x, y := mem.numbers(m*heads*k, false), mem.numbers(m*heads*n, false)
	w := mem.numbers(k*heads*n, false)
	part := func(x []Number, rows, n, h int) []Number {
		var out []Number
		for i := range rows {
			out = append(out, x[(i*heads+h)*n:][:n]...)
		}
		return out
	}
	for _, o := range blockLevels() {
		active.Store(o)
		ab, abt := make([]float32, m*heads*n), make([]float32, m*heads*k)
		atb := make([]float32, k*heads*n)
		GEMM(nil, ab, x, w, kernel.Shape{M: m, K: k, N: n, Heads: heads})
		GEMMTB(nil, abt, y, w, kernel.Shape{M: m, N: n, K: k, Heads: heads})
		GEMMTA(nil, atb, x, y, kernel.Shape{M: m, K: k, N: n, Heads: heads})
		for h := range heads {
			xh, yh, wh := part(x, m, k, h), part(y, m, n, h), part(w, k, n, h)
			one := make([]float32, m*n)
			GEMM(nil, one, xh, wh, kernel.Shape{M: m, K: k, N: n})
			equalHead(t, "GEMM of heads", ab, one, m, n, h, heads)
			one = make([]float32, m*k)
			GEMMTB(nil, one, yh, wh, kernel.Shape{M: m, N: n, K: k})
			equalHead(t, "GEMMTB of heads", abt, one, m, k, h, heads)
			one = make([]float32, k*n)
			GEMMTA(nil, one, xh, yh, kernel.Shape{M: m, K: k, N: n})
			equalHead(t, "GEMMTA of heads", atb, one, k, n, h, heads)
		}
	}
}

func equalHead(t *testing.T, what string, all, one []float32, rows, n, h, heads int) {
	t.Helper()
	for i := range rows {
		equal(t, what, all[(i*heads+h)*n:][:n], one[i*n:][:n])
	}
}

// TestBlockScratch: what products in blocks take of a pool is no more than what callers count.
func TestBlockScratch(t *testing.T) {
	defer active.Store(active.Load())
	active.Store(&plainBlocks)
	const m, k, n = 2500, 45, 70
	a, b, w := make([]Number, m*k), make([]Number, m*n), make([]Number, k*n)
	check := func(name string, once, worker int, run func(p *kernel.Pool)) {
		p := kernel.NewPool(1)
		run(p)
		if got := p.Bytes(); got > 4*int64(once+worker) {
			t.Errorf("%s takes %d bytes, counted are %d and %d words", name, got, once, worker)
		}
	}
	once, worker := GEMMWords(k, n, 1, true)
	check("GEMM", once, worker, func(p *kernel.Pool) {
		GEMM(p, make([]Number, m*n), a, w, kernel.Shape{M: m, K: k, N: n, Add: true})
	})
	once, worker = GEMMWords(n, k, 1, false)
	check("GEMMTB", once, worker, func(p *kernel.Pool) {
		GEMMTB(p, make([]float32, m*k), b, w, kernel.Shape{M: m, N: n, K: k})
	})
	once, worker = GEMMTAWords(m, k, n)
	check("GEMMTA", once, worker, func(p *kernel.Pool) {
		GEMMTA(p, make([]float32, k*n), a, b, kernel.Shape{M: m, K: k, N: n, Add: true})
	})
}
