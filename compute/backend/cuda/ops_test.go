//go:build cuda && cgo && linux

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/cuda/cudatest"
	"gdb/internal/mem"
)

// mustOpen opens the device, and the CPU beside it.
func mustOpen(t *testing.T) (cpu, gpu backend.Backend) {
	t.Helper()
	cudatest.Start(t, "kernels/kernels.cu")
	opt := backend.Options{Workers: 2, Budget: mem.NewBudget(0)}
	cpu, err := backend.OpenCPU(opt)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err = Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, be := range []backend.Backend{cpu, gpu} {
			if err := be.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return cpu, gpu
}

// trial is operations on one backend, with inputs drawn by a seed, and what they give.
type trial struct {
	t  *testing.T
	be calls
	r  *rand.Rand
	x  [][]float32 // results
	// prepares has lists be prepared in a block; nil for none.
	prepares backend.Preparer
}

// newTrial returns one of a name, which says what is drawn.
func newTrial(t *testing.T, be backend.Backend, name string) *trial {
	return &trial{t: t, be: calls{be}, r: rand.New(rand.NewPCG(1, uint64(len(name))))}
}

// draw returns a matrix of values around 0.
func (o *trial) draw(rows, cols int) backend.Tensor {
	x := o.be.Scratch(rows, cols)
	o.be.Write(x, o.values(rows*cols))
	return x
}

func (o *trial) values(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(o.r.NormFloat64())
	}
	return x
}

// words returns a column of numbers below most, as a backend reads them.
func (o *trial) words(n, most int) backend.Tensor {
	x := make([]uint32, n)
	for i := range x {
		x[i] = uint32(o.r.IntN(most))
	}
	return o.be.Host(mem.View[float32](mem.BytesOf(x)), n, 1)
}

// gives notes results.
func (o *trial) gives(all ...backend.Tensor) {
	for _, x := range all {
		values := make([]float32, x.Len())
		o.be.Read(values, x)
		o.x = append(o.x, values)
	}
}

// lists makes lists over this number of rows.
func (o *trial) lists(kind string, rows int, entries bool) backend.Segments {
	var lengths []int
	switch kind {
	case "none":
	case "empty":
		lengths = []int{0, 0, 0}
	case "one":
		lengths = []int{1}
	case "huge":
		lengths = []int{2, 0, 3000, 5, 700, 0}
	case "hub":
		lengths = []int{2, 9000, partEntries, 0, partEntries + 1, longList, longList + 1}
	case "popular": // each row is in many
		lengths = slices.Repeat([]int{3}, 2300)
	default:
		for range 50 {
			lengths = append(lengths, o.r.IntN(8))
		}
	}
	l := backend.Lists{Off: []uint32{0}, Rows: rows, Entries: entries}
	for _, n := range lengths {
		for range n {
			l.Idx, l.At = append(l.Idx, uint32(o.r.IntN(rows))), append(l.At, uint32(o.r.IntN(90)))
		}
		l.Off = append(l.Off, uint32(len(l.Idx)))
	}
	if o.prepares != nil {
		l = prepared(o.prepares, l)
	}
	return o.be.Segments(l)
}

// compare runs operations on both backends and compares what they give.
func compare(t *testing.T, cpu, gpu backend.Backend, name string, f func(o *trial)) {
	t.Helper()
	compareWithin(t, cpu, gpu, 1e-5, name, f)
}

// compareWithin is compare of results that may be so far apart, beside the size of their values.
func compareWithin(t *testing.T, cpu, gpu backend.Backend, tolerance float64, name string,
	f func(o *trial)) {
	t.Helper()
	var all [2][][]float32
	var losses [2][]backend.Loss
	for i, be := range []backend.Backend{cpu, gpu} {
		if err := be.Begin(); err != nil {
			t.Fatal(err)
		}
		o := newTrial(t, be, name)
		f(o)
		if err := be.Err(); err != nil {
			t.Fatalf("%s on %s: %v", name, be.About().Name, err)
		}
		all[i], losses[i] = o.x, be.Losses(nil)
	}
	for i, want := range all[0] {
		if at, worst := difference(all[1][i], want); worst > tolerance {
			t.Errorf("%s: result %d is %g at %d of %d, on the CPU %g", name, i, all[1][i][at], at,
				len(want), want[at])
		}
	}
	for i, want := range losses[0] {
		if got := losses[1][i]; !sameLoss(got, want) {
			t.Errorf("%s: loss %d is %+v, on the CPU %+v", name, i, got, want)
		}
	}
}

// difference returns the largest of two vectors beside the size of their values, and where it is.
func difference(got, want []float32) (at int, worst float64) {
	size := 1.0
	for _, v := range want {
		if x := math.Abs(float64(v)); !math.IsNaN(x) && !math.IsInf(x, 0) {
			size = max(size, x)
		}
	}
	for i, v := range want {
		if math.IsNaN(float64(v)) && math.IsNaN(float64(got[i])) || v == got[i] {
			continue
		}
		if d := math.Abs(float64(v)-float64(got[i])) / size; !(d <= worst) {
			at, worst = i, d
		}
	}
	return at, worst
}

func sameLoss(got, want backend.Loss) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*(1+math.Abs(b)) }
	ok := near(got.Mean, want.Mean) && near(got.Squared, want.Squared) &&
		near(got.Absolute, want.Absolute)
	got.Mean, got.Squared, got.Absolute = want.Mean, want.Squared, want.Absolute
	return ok && got == want
}

// shapes are sizes of matrices.
var shapes = [][2]int{{0, 5}, {1, 1}, {1, 33}, {3, 4}, {50, 33}, {300, 1}, {65, 64}, {1030, 7}}

// TestElements compares operations on values and on rows.
func TestElements(t *testing.T) {
	cpu, gpu := mustOpen(t)
	for _, s := range shapes {
		rows, cols := s[0], s[1]
		check := func(name string, f func(o *trial)) {
			t.Helper()
			compare(t, cpu, gpu, fmt.Sprintf("%s %dx%d", name, rows, cols), f)
		}
		check("Bias", func(o *trial) {
			x, b := o.draw(rows, cols), o.draw(1, cols)
			o.be.Bias(x, b)
			o.gives(x)
			o.be.BiasReLU(x, b)
			o.gives(x)
		})
		check("ReLUGrad", func(o *trial) {
			x, y := o.draw(rows, cols), o.draw(rows, cols)
			o.be.ReLUGrad(x, y, 0.3)
			o.gives(x)
		})
		check("Dropout", func(o *trial) {
			x := o.draw(rows, cols)
			o.be.Dropout(x, backend.Dropout{Rate: 0.4, First: 1<<20 - 60,
				Key: 12345678901234567})
			o.gives(x)
		})
		check("activations", func(o *trial) {
			x, d := o.draw(rows, cols), o.draw(rows, cols)
			o.be.Scale(x, 3)
			o.be.GELUGrad(d, x)
			o.gives(d)
			y := o.be.Scratch(rows, cols)
			o.be.GELU(y, x)
			o.gives(y)
			o.be.ELU(x)
			o.be.ELUGrad(d, x)
			o.gives(x, d)
			o.be.LeakyReLU(y, 0.2)
			o.be.LeakyReLUGrad(d, y, 0.2)
			o.be.Shift(y, -7)
			o.be.Add(y, d)
			o.gives(y, d)
			o.be.RowScale(y, o.draw(rows, 1))
			o.be.Copy(d, y)
			o.gives(y, d)
			o.be.Zero(y)
			o.gives(y)
		})
		check("views", func(o *trial) { // not at multiples of 16 bytes
			all := o.draw(1, rows*cols*2+3)
			x, y := all.View(1, rows, cols), all.View(rows*cols+2, rows, cols)
			o.be.Add(x, y)
			o.be.BiasReLU(x, o.draw(1, cols))
			o.gives(all)
		})
		check("columns", func(o *trial) {
			x, first := o.draw(rows, cols), cols/3
			out := o.be.Scratch(rows, cols-first)
			o.be.Columns(out, x, first)
			o.gives(out)
			o.be.ColumnsGrad(x, out, first)
			o.gives(x)
		})
		check("heads", func(o *trial) {
			x, out := o.draw(rows, 3*cols), o.be.Scratch(rows, cols)
			o.be.HeadMean(out, x, 3)
			o.be.HeadMeanGrad(x, out, 3)
			o.gives(out, x)
		})
		check("norms", func(o *trial) { normed(o, rows, cols) })
		check("products", func(o *trial) { multiplied(o, rows, cols) })
		check("optimizers", func(o *trial) { optimized(o, rows*cols) })
		check("losses", func(o *trial) { lossesOf(o, rows, cols) })
		check("types", func(o *trial) {
			table, types := o.draw(7, cols), o.words(rows, 7)
			out := o.be.Scratch(rows, cols)
			o.be.TypeRows(out, table, types)
			o.be.TypeRowsGrad(table, out, types)
			o.gives(out, table)
		})
	}
}

func normed(o *trial, rows, cols int) {
	x, gamma, beta, dy := o.draw(rows, cols), o.draw(1, cols), o.draw(1, cols), o.draw(rows, cols)
	y, stats := o.be.Scratch(rows, cols), o.be.Scratch(rows, 2)
	dgamma, dbeta, dx := o.be.Scratch(1, cols), o.be.Scratch(1, cols), o.be.Scratch(rows, cols)
	o.be.norm("layer-norm", y, tensors{x, gamma, beta, tensor{}}, stats)
	o.be.normGrad("layer-norm-grad", dx, dgamma, dbeta, dy, x, gamma, stats)
	if cols > 1 { // the variance of one value is 0, and its gradients are of rounding
		o.gives(y, stats, dx, dgamma, dbeta)
	}
	o.be.ColumnSum(dbeta, x)
	o.gives(dbeta)
	stats = o.be.Scratch(2, cols)
	running := o.draw(2, cols)
	o.be.norm("batch-norm", y, tensors{x, gamma, beta, running}, stats)
	o.be.normGrad("batch-norm-grad", dx, dgamma, dbeta, dy, x, gamma, stats)
	if rows > 2 {
		o.gives(y, stats, running, dx, dgamma, dbeta)
	}
	// In place.
	o.be.normGrad("layer-norm-grad", dy, dgamma, dbeta, dy, x, gamma, o.draw(rows, 2))
	o.gives(dy)
	o.be.Zero(running)
	o.be.Shift(running, 0.5)
	o.be.norm("norm-apply", y, tensors{x, gamma, beta, running}, tensor{})
	o.gives(y)
}

func multiplied(o *trial, m, k int) {
	const n, heads = 5, 3
	a, b, c := o.draw(m, k), o.draw(k, n), o.draw(m, n)
	o.be.MatMul(c, a, b, true)
	o.gives(c)
	o.be.MatMul(c, a, b, false)
	o.be.MatMulTA(b, a, c, false)
	o.be.MatMulTB(a, c, b, true)
	o.gives(c, b, a)
	a, b, c = o.draw(m, heads*k), o.draw(k, heads*n), o.draw(m, heads*n)
	o.be.HeadMul(c, a, b, heads, true)
	o.be.HeadMulTA(b, a, c, heads, true)
	o.be.HeadMulTB(a, c, b, heads, false)
	o.gives(c, b, a)
	none := o.be.Scratch(0, n)
	o.be.MatMul(c.Slice(0, 0), o.be.Scratch(0, 0), o.be.Scratch(0, heads*n), false)
	d := o.draw(m, n)
	o.be.MatMul(d, o.be.Scratch(m, 0), none, false)
	o.gives(d)
}

// TestLongReductions: a product that sums up over many rows does so in parts, and rows of zeros
// before the first change no bit.
func TestLongReductions(t *testing.T) {
	cpu, gpu := mustOpen(t)
	const rows, more, m, n, heads = 2*partRowsLeast + 77, partRowsLeast + 5, 6, 7, 3
	reduced := func(o *trial, zeros int) {
		a, b := o.values(rows*heads*m), o.values(rows*heads*n)
		padded := func(x []float32, cols int) tensor {
			return o.be.Host(append(make([]float32, zeros*cols), x...), zeros+rows, cols)
		}
		one, of := o.be.Scratch(heads*m, heads*n), o.be.Scratch(m, heads*n)
		o.be.MatMulTA(one, padded(a, heads*m), padded(b, heads*n), false)
		o.be.HeadMulTA(of, padded(a, heads*m), padded(b, heads*n), heads, false)
		o.gives(one, of)
	}
	compare(t, cpu, gpu, "long reductions", func(o *trial) { reduced(o, 0) })
	if !cudatest.Start(t, "kernels/kernels.cu").Emulated() {
		return // cuBLAS may choose another kernel for the rows that are left
	}
	zeros := 0
	sameBits(t, gpu, "zeros before", func(o *trial) {
		reduced(o, zeros)
		zeros = more
	})
}

func optimized(o *trial, n int) {
	w, g, m, v := o.draw(1, n), o.draw(1, n), o.draw(1, n), o.draw(1, n)
	o.be.LeakyReLU(v, -1) // not negative
	s := backend.AdamStep{Step: 3, Rate: 0.1, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8,
		WeightDecay: 0.01}
	backend.Adam(o.be, w, g, backend.Moments{M: m, V: v}, s)
	o.gives(w, m, v)
	s.Decoupled = true
	backend.Adam(o.be, w, g, backend.Moments{M: m, V: v}, s)
	backend.SGD(o.be, w, g, 0.1, 0.01)
	backend.Adagrad(o.be, w, g, v, backend.AdamStep{Rate: 0.1, Eps: 1e-10, WeightDecay: 0.01})
	o.gives(w, v)
	factor := [2]float32{o.be.ClipNorm(g, 1, 2), o.be.ClipNorm(g, 1e6, 0)}
	o.gives(g)
	o.x = append(o.x, factor[:])
}

func lossesOf(o *trial, rows, cols int) {
	logits, grad, targets := o.draw(rows, cols), o.be.Scratch(rows, cols), o.values(rows*cols)
	o.be.Scale(logits, 4)
	labels := make([]int32, rows)
	for i := range labels {
		labels[i] = int32(o.r.IntN(cols+1)) - 1
	}
	if rows*cols > 2 {
		targets[1] = float32(math.NaN())
	}
	weights := o.draw(1, cols)
	o.be.LeakyReLU(weights, -1)
	backend.SoftmaxCrossEntropy(o.be, grad, logits, tensor{}, labels)
	o.gives(grad)
	backend.SoftmaxCrossEntropy(o.be, grad, logits, weights, labels)
	o.gives(grad)
	for _, kind := range []backend.ErrorLoss{backend.SquaredError, backend.AbsoluteError,
		backend.HuberError} {
		backend.Regression(o.be, kind, grad, logits, o.be.Host(targets, rows, cols))
		o.gives(grad)
	}
	for i := range targets {
		targets[i] = float32(o.r.IntN(2))
	}
	set := o.be.Host(append([]float32(nil), targets...), rows, cols)
	backend.SigmoidBCE(o.be, grad, logits, set, tensor{})
	o.gives(grad)
	backend.SigmoidBCE(o.be, grad, logits, set, weights)
	o.gives(grad)
	for i := range labels {
		labels[i] = -1
	}
	backend.SoftmaxCrossEntropy(o.be, logits, logits, tensor{}, labels) // in place
	o.gives(logits)
}

// TestLists compares operations over lists.
func TestLists(t *testing.T) {
	cpu, gpu := mustOpen(t)
	for _, kind := range []string{"none", "empty", "one", "huge", "random"} {
		for _, cols := range []int{1, 4, 33, 64} {
			for _, rows := range []int{1, 70} {
				if kind == "huge" && rows == 1 {
					continue // sums of equal values are those whose rounding adds up most
				}
				name := fmt.Sprintf("%s lists of %d rows of %d", kind, rows, cols)
				compare(t, cpu, gpu, name+": sums", func(o *trial) { sums(o, kind, rows, cols) })
				compare(t, cpu, gpu, name+": weights",
					func(o *trial) { weighted(o, kind, rows, cols) })
				compare(t, cpu, gpu, name+": attention",
					func(o *trial) { attention(o, kind, rows, cols) })
			}
		}
	}
}

// TestHubs: the sums of lists, and of transposed ones, whose entries several blocks add up equal
// those of the CPU, and have the same bits in whatever order blocks are run.
func TestHubs(t *testing.T) {
	cpu, gpu := mustOpen(t)
	for _, kind := range []string{"hub", "popular"} {
		for _, cols := range []int{4, 33} {
			const rows = 3
			name := fmt.Sprintf("%s of %d columns", kind, cols)
			compare(t, cpu, gpu, name+": weights", func(o *trial) { weighted(o, kind, rows, cols) })
			compare(t, cpu, gpu, name+": sums", func(o *trial) { sums(o, kind, 1000, cols) })
			compare(t, cpu, gpu, name+": attention",
				func(o *trial) { attention(o, kind, rows, cols) })
			compareWithin(t, cpu, gpu, halfUlp, name+": halves",
				func(o *trial) { halfSums(o, kind, cols/2*2) })
			sameBits(t, gpu, name, func(o *trial) { sums(o, kind, rows, cols) })
		}
	}
}

// TestLargeHub sums and takes the largest of 100,000 rows, which are compared with sums in double
// precision: those of the CPU, which adds them up one by one, are further away.
func TestLargeHub(t *testing.T) {
	_, gpu := mustOpen(t)
	const entries, cols = 100_000, 4
	if err := gpu.Begin(); err != nil {
		t.Fatal(err)
	}
	o := newTrial(t, gpu, "large hub")
	x, l := o.values(entries*cols), backend.Lists{Off: []uint32{0, entries}, Rows: entries}
	for i := range entries {
		l.Idx = append(l.Idx, uint32(i))
	}
	x[77_777*cols+1] = 100
	var sum [cols]float64
	for i, v := range x {
		sum[i%cols] += float64(v)
	}
	s, in := gpu.Segments(l), gpu.Host(x, entries, cols)
	out, arg := gpu.Scratch(1, cols), gpu.Scratch(1, cols)
	o.be.lists("pull-sum", out, s, in)
	o.gives(out)
	o.be.PullMax(out, in, arg, s)
	o.gives(out, arg)
	if err := gpu.Err(); err != nil {
		t.Fatal(err)
	}
	for c, want := range sum {
		if d := math.Abs(float64(o.x[0][c]) - want); d > 1e-5*math.Sqrt(entries) {
			t.Errorf("the sum of column %d is %g, not %g", c, o.x[0][c], want)
		}
	}
	if at := mem.View[uint32](mem.BytesOf(o.x[2]))[1]; o.x[1][1] != 100 || at != 77_777 {
		t.Errorf("the largest value is %g of row %d", o.x[1][1], at)
	}
}

// sameBits runs operations twice, whose blocks the emulated device runs in other orders.
func sameBits(t *testing.T, gpu backend.Backend, name string, f func(o *trial)) {
	t.Helper()
	var first [][]float32
	for i := range 2 {
		if err := gpu.Begin(); err != nil {
			t.Fatal(err)
		}
		o := newTrial(t, gpu, name)
		f(o)
		if i == 0 {
			first = o.x
			continue
		}
		for k := range first {
			if !bytes.Equal(mem.BytesOf(first[k]), mem.BytesOf(o.x[k])) {
				t.Errorf("%s: result %d has other bits the second time", name, k)
			}
		}
	}
}

func sums(o *trial, kind string, rows, cols int) {
	s := o.lists(kind, rows, false)
	x, out, arg := o.draw(rows, cols), o.draw(s.Lists, cols), o.be.Scratch(s.Lists, cols)
	o.be.lists("pull-mean", out, s, x)
	o.gives(out)
	o.be.PullDropped(out, x, s, 0.3, 99)
	o.gives(out)
	o.be.lists("pull-sum", out, s, x)
	o.gives(out)
	o.be.PullMax(out, x, arg, s)
	o.gives(out)
	o.be.push("push-max", x, s, rows/2, out, arg)
	o.gives(x)
	o.be.push("push-mean", x, s, rows/3, out)
	o.gives(x)
	o.be.push("push-sum", x, s, 0, out)
	o.gives(x)
	o.be.push("push-sum", x, s, rows, out)
	o.gives(x)
}

func weighted(o *trial, kind string, rows, cols int) {
	const heads = 3
	s := o.lists(kind, rows, true)
	w := o.draw(s.Entries, heads)
	for _, shared := range []bool{false, true} {
		width := heads * cols
		if shared {
			width = cols
		}
		x, out := o.draw(rows, width), o.draw(s.Lists, heads*cols)
		o.be.heads("pull-weighted", out, s, operands{Heads: heads, Shared: shared,
			Acc: true}, x, w)
		o.gives(out)
		o.be.heads("pull-weighted", out, s, operands{Heads: heads, Shared: shared}, x, w)
		o.gives(out)
		dw := o.be.Scratch(s.Entries, heads)
		o.be.heads("entry-dot", dw, s, operands{Heads: heads, Shared: shared},
			o.draw(s.Lists, heads*cols), x)
		o.gives(dw)
		o.be.heads("push-weighted", x, s, operands{Heads: heads, Shared: shared, Fresh: rows / 2},
			o.draw(s.Lists, heads*cols), w)
		o.gives(x)
	}
}

func attention(o *trial, kind string, rows, cols int) {
	const heads, slope = 3, 0.2
	s := o.lists(kind, rows, true)
	src, dst, a := o.draw(rows, heads), o.draw(s.Lists, heads), o.be.Scratch(s.Entries, heads)
	o.be.heads("scores", a, s, operands{Scalar: slope}, src, dst)
	o.gives(a)
	da := o.draw(s.Entries, heads)
	o.be.ScoresGrad(da, a, slope)
	o.gives(da)
	o.be.lists("softmax", a, s, a)
	o.be.lists("softmax-grad", da, s, da, a)
	o.gives(a, da)
	o.be.lists("entries-to-lists", dst, s, da)
	o.be.push("entries-to-rows", src, s, rows/2, da)
	o.gives(dst, src)
	xl, xr, att := o.draw(rows, heads*cols), o.draw(s.Lists, heads*cols), o.draw(1, heads*cols)
	o.be.heads("scores2", a, s, operands{Heads: heads, Scalar: slope}, xl, xr, att)
	o.gives(a)
	dxr, datt := o.be.Scratch(s.Lists, heads*cols), o.be.Scratch(1, heads*cols)
	o.be.heads("scores2-to-lists", dxr, s, operands{Heads: heads, Scalar: slope,
		Extra: results{datt}}, da, xl, xr, att)
	o.gives(dxr, datt)
	dxl := o.draw(rows, heads*cols)
	o.be.heads("scores2-to-rows", dxl, s, operands{Heads: heads, Scalar: slope, Fresh: rows / 2},
		da, xl, xr, att)
	o.gives(dxl)
	attended(o, s, rows, cols)
	p := o.be.Scratch(s.Entries, 1)
	o.be.lists("product", p, s, o.draw(rows, 1), o.draw(s.Lists, 1))
	o.gives(p)
}

// attended is attention in one operation, and its gradients, with dropout and without.
func attended(o *trial, s backend.Segments, rows, cols int) {
	for i, shared := range []bool{false, true} {
		const heads = 3
		width := heads * cols
		if shared {
			width = cols
		}
		set := operands{Heads: heads, Shared: shared, Scalar: 0.2}
		if set.Drop.Rate = 0.3 * float32(i); i > 0 {
			set.Drop.Key, set.Drop.First = 77, 5
		}
		x, src, dst := o.draw(rows, width), o.draw(rows, heads), o.draw(s.Lists, heads)
		kept, out := o.be.Scratch(s.Lists, 4*heads), o.be.Scratch(s.Lists, heads*cols)
		set.Extra = results{kept}
		o.be.heads("attend", out, s, set, x, src, dst)
		o.gives(out, kept)
		dots := o.be.Scratch(s.Entries, heads)
		set.Extra, set.Fresh = results{dots}, (rows+1)/2
		o.be.heads("attend-to-rows", x, s, set, o.draw(s.Lists, heads*cols), o.draw(rows, width),
			src, kept)
		o.gives(x, dots)
		set.Extra = results{dst}
		o.be.heads("attend-to-scores", dots, s, set, dots, src, kept)
		o.gives(dots, dst)
	}
}

// TestNumbers compares the functions that the kernels have of their own with those of math.
func TestNumbers(t *testing.T) {
	g, _ := mustOpenGPU(t, mem.NewBudget(0))
	mustBegin(t, g)
	x := make([]float32, 40001)
	for i := range x {
		x[i] = float32(i-20000) / 1000 // -20 to 20
	}
	x = append(x, -1e-30, -1e-6, -64, -87, -88, -1e4, float32(math.Inf(-1)))
	in, out := g.Host(x, 1, len(x)), g.Scratch(1, len(x))
	check := func(name string, within float64, want func(v float64) float64) {
		t.Helper()
		got := make([]float32, len(x))
		g.Read(got, out)
		for i, v := range x {
			w := want(float64(v))
			if d := math.Abs(float64(got[i]) - w); !(d <= within*max(math.Abs(w), 1e-3)) {
				t.Fatalf("%s of %g is %g, not %g", name, v, got[i], w)
			}
		}
	}
	calls{g}.Copy(out, in)
	calls{g}.ELU(out)
	check("ELU", 1e-6, func(v float64) float64 {
		if v > 0 {
			return v
		}
		return math.Expm1(v)
	})
	x[len(x)-1] = -1e5 // infinity times zero is none
	in = g.Host(x, 1, len(x))
	calls{g}.GELU(out, in)
	check("GELU", 4e-6, func(v float64) float64 { return v * math.Erfc(-v/math.Sqrt2) / 2 })
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
}
