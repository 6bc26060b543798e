package program

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/internal/rng"
)

// testBatch returns a batch of two hops with lists of 0 to 4 entries, one of which names a node
// twice.
func testBatch() *dense.Lists {
	d := &dense.Lists{NodeIDOffsets: []uint32{0, 9, 14, 17}, NbrOffsets: []uint32{0}}
	draw := rng.NewStream(7)
	for node := 9; node < 17; node++ {
		first := 0 // nodes that a list of this hop may name
		if node >= 14 {
			first = 9
		}
		for range (node * 3) % 5 {
			r := uint32(first) + uint32(draw.Below(uint64(17-first)))
			d.ReprMap = append(d.ReprMap, r)
		}
		d.NbrOffsets = append(d.NbrOffsets, uint32(len(d.ReprMap)))
	}
	return d
}

const testCols = 6

func testFeatures() []float32 {
	x := make([]float32, 17*testCols)
	draw := rng.NewStream(3)
	for i := range x {
		x[i] = float32(2*draw.Float64() - 1)
	}
	return x
}

// bench runs one model on a backend with the test batch.
type bench struct {
	be      backend.Backend
	params  Params
	program *Program
	machine *Machine
	input   Input
	x       []float32 // features; nil for those of testFeatures
}

func newBench(t testing.TB, m Model, o Options) *bench {
	t.Helper()
	b := &bench{}
	var err error
	b.be, err = backend.OpenCPU(backend.Options{Workers: 2, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.be.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Layers, o.Features, o.Train = 2, testCols, true
	b.program = Make(&b.params, m, o)
	if err := b.params.Allocate(b.be, true); err != nil {
		t.Fatal(err)
	}
	b.params.Init(b.be, 11)
	b.machine = NewMachine(b.be, &b.params, nil)
	d := testBatch()
	draw := rng.NewStream(5)
	for range d.ReprMap {
		d.Weights = append(d.Weights, float32(0.2+draw.Float64()))
		d.Types = append(d.Types, uint32(draw.Below(3)))
	}
	columns := rng.NewStream(6)
	for range d.ReprMap {
		d.Columns = append(d.Columns, float32(columns.Float64()), float32(columns.Float64())-1)
	}
	d.Ends = []uint32{0, 1, 2, 0, 1, 1, 2, 1} // of the 3 seeds
	for range d.Nodes() {
		d.WeightSums = append(d.WeightSums, float32(3*draw.Float64()))
	}
	b.input = Input{Dense: d, Seed: 1, Epoch: 2, Batch: 3, Degrees: make([]uint32, d.Nodes())}
	for i := range b.input.Degrees {
		b.input.Degrees[i] = uint32(i % 4)
		b.input.Nodes = append(b.input.Nodes, uint32(100*i%700))
	}
	b.input.Types = []int{0, 300}
	return b
}

// loss returns the sum of the squares of logits, halved, so that their gradient is what they are.
func (b *bench) loss(t testing.TB, backward bool) (loss float64) {
	t.Helper()
	if err := b.be.Begin(); err != nil {
		t.Fatal(err)
	}
	if b.input.X = testFeatures(); b.x != nil {
		b.input.X = slices.Clone(b.x)
	}
	if b.program.Sparse() {
		b.input.X = sparseRows(b.input.X)
	}
	if b.program.InPlace() {
		b.input.Table = b.be.Table(testFeatures(), 17, testCols)
		b.input.Rows = b.input.Dense.ReprMap
		b.input.X = b.input.X[9*testCols:]
	}
	logits := mustForward(t, b.machine, b.program, b.input)
	for _, v := range b.read(logits) {
		loss += float64(v) * float64(v) / 2
	}
	if backward {
		backend.Copy(b.be, b.machine.GradLogits(), logits)
		b.machine.Backward()
	}
	return loss
}

// mustForward prepares a batch and computes its logits.
func mustForward(t testing.TB, m *Machine, p *Program, in Input) backend.Tensor {
	t.Helper()
	batch, err := m.Prepare(p, &in)
	if err != nil {
		t.Fatal(err)
	}
	logits, err := m.Forward(batch, in)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

func (b *bench) read(x backend.Tensor) []float32 {
	out := make([]float32, x.Len())
	b.be.Read(out, x)
	return out
}

// testModels has one model for each operation that has a gradient, and some for what they come in.
var testModels = map[string]Model{
	"matmul": func(b *Builder, x Value) Value {
		return b.Own(testDense(b, b.Own(x), "a", 3)).with(b)
	},
	"mean": testPulled(func(b *Builder, h Value) Value { return b.Pull(h, b.Lists(), Mean) }),
	"sum":  testPulled(func(b *Builder, h Value) Value { return b.Pull(h, b.Lists(), Sum) }),
	"max":  testPulled(func(b *Builder, h Value) Value { return b.Pull(h, b.Lists(), Max) }),
	"own": testPulled(func(b *Builder, h Value) Value {
		return b.Add(b.Own(h), b.Scale(b.Pull(h, b.Lists(), Sum), 0.3))
	}),
	"pull before product": testPulled(func(b *Builder, h Value) Value {
		return testDense(b, b.Pull(h, b.Lists(), Mean), fmt.Sprint("p", b.hop), 4)
	}),
	"product before pull": testPulled(func(b *Builder, h Value) Value {
		return b.Pull(testDense(b, h, fmt.Sprint("p", b.hop), 4), b.Lists(), Sum)
	}),
	"relu":  testElement(func(b *Builder, h Value) Value { return b.ReLU(h) }),
	"elu":   testElement(func(b *Builder, h Value) Value { return b.ELU(h) }),
	"gelu":  testElement(func(b *Builder, h Value) Value { return b.GELU(h) }),
	"leaky": testElement(func(b *Builder, h Value) Value { return b.LeakyReLU(h, 0.2) }),
	"dropout": testElement(func(b *Builder, h Value) Value {
		return b.Dropout(h, 0.3)
	}),
	"relu and dropout": testElement(func(b *Builder, h Value) Value {
		return b.Dropout(b.ReLU(h), 0.3)
	}),
	"elu and dropout": testElement(func(b *Builder, h Value) Value {
		return b.Dropout(b.ELU(h), 0.3)
	}),
	"residual": testElement(func(b *Builder, h Value) Value { return b.Add(b.ReLU(h), h) }),
	"residual product": testElement(func(b *Builder, h Value) Value {
		return b.Add(h, testDense(b, h, fmt.Sprint("r", b.hop), 6))
	}),
	"norm": testElement(func(b *Builder, h Value) Value {
		return b.LayerNorm(h, b.Param(fmt.Sprint("gamma", b.hop), 1, b.Cols(h), Glorot),
			b.Param(fmt.Sprint("beta", b.hop), 1, b.Cols(h), Glorot))
	}),
	"batch norm": testElement(func(b *Builder, h Value) Value {
		return b.BatchNorm(h, b.Param(fmt.Sprint("gamma", b.hop), 1, b.Cols(h), Glorot),
			b.Param(fmt.Sprint("beta", b.hop), 1, b.Cols(h), Glorot),
			b.Param(fmt.Sprint("statistics", b.hop), 2, b.Cols(h), Statistics))
	}),
	"columns": testElement(func(b *Builder, h Value) Value {
		return b.Add(b.Columns(h, 1, 3), b.Columns(h, 3, 3)) // of 6
	}),
	"head mean": testElement(func(b *Builder, h Value) Value { return b.HeadMean(h, 2) }),
	"row scale": testElement(func(b *Builder, h Value) Value {
		b.hop++
		y := b.RowScale(h, b.Degrees())
		b.hop--
		return y
	}),
	"symmetric": testPulled(func(b *Builder, h Value) Value {
		l := List{Hop: b.hop, Loops: true}
		w := b.Product(b.Degrees(), b.Own(b.Degrees()), l)
		return testDense(b, b.PullWeighted(h, w, l, 1, false), fmt.Sprint("p", b.hop), 4)
	}),
	"scaled sum": testPulled(func(b *Builder, h Value) Value {
		return b.RowScale(b.Pull(h, b.Lists(), Sum), b.Shift(b.ListScale(), 0.1))
	}),
	"weighted mean": testPulled(func(b *Builder, h Value) Value {
		y := b.PullWeighted(h, b.EdgeWeights(), b.Lists(), 1, false)
		return testDense(b, b.RowScale(y, b.InvListWeights()), fmt.Sprint("p", b.hop), 4)
	}),
	"weighted and symmetric": testPulled(func(b *Builder, h Value) Value {
		w := b.Product(b.WeightDegrees(), b.Own(b.WeightDegrees()), b.Lists())
		return b.PullWeighted(h, b.RowScale(w, b.EdgeWeights()), b.Lists(), 1, false)
	}),
	"relations": testPulled(func(b *Builder, h Value) Value {
		table := b.Param(fmt.Sprint("relations", b.hop), 3, 2, Glorot)
		w := b.RowScale(b.TypeRows(table), b.TypeShares())
		z := testDense(b, h, fmt.Sprint("z", b.hop), 6)
		return b.HeadMean(b.PullWeighted(z, w, b.Lists(), 2, false), 2)
	}),
	"segments": testPulled(func(b *Builder, h Value) Value {
		at, l := fmt.Sprint("t", b.hop), b.Lists()
		mean := b.TypeMatMul(b.Pull(h, l.ToSegments(), Mean), b.Stack(at+"r", []int{4, 6, 5}, 6),
			b.SegmentTypes(), []int{4, 6, 5})
		own := b.TypeMatMul(b.Own(h), b.Stack(at+"n", []int{6, 2}, 6), b.Own(b.NodeTypes()),
			[]int{6, 2})
		y := b.Add(own, b.Pull(mean, l.ToNodes(), Sum))
		means := testDense(b, b.PullWeighted(h, b.SharesByType(3), l, 3, true), at+"all", 6)
		w := b.RowScale(b.EdgeWeights(), b.TypeShares())
		y = b.Add(b.Add(y, means), b.PullWeighted(h, w, l, 1, false))
		y = b.Add(y, b.SegmentMatMul(b.Pull(h, l.ToSegments(), Mean),
			b.Stack(at+"s", []int{6, 0, 3}, 6), []int{6, 0, 3}))
		y = b.BiasByType(y, b.Param(at+"b", 2, 6, Glorot), b.Own(b.NodeTypes()))
		z := b.ReLU(b.BiasByType(b.Scale(h, 2), b.Param(at+"c", 2, 6, Glorot), b.NodeTypes()))
		return b.Add(y, b.Pull(z, l, Mean))
	}),
	"attention by type": testPulled(func(b *Builder, h Value) Value {
		at, l, parts := fmt.Sprint("a", b.hop), b.Lists(), []int{3, 3, 3}
		keys, rows := testDense(b, h, at+"k", 6), testDense(b, h, at+"v", 6)
		asked := b.Spread(testDense(b, b.Own(h), at+"q", 6), l.ToNodes())
		asked = b.TypeHeadMul(asked, b.Stack(at+"att", parts, 6), b.SegmentTypes(), parts, 2)
		w := b.Softmax(b.Dots(asked, keys, l.ToSegments(), 2, false), l)
		y := b.PullWeighted(rows, w, l.ToSegments(), 2, false)
		y = b.TypeHeadMul(y, b.Stack(at+"msg", parts, 6), b.SegmentTypes(), parts, 2)
		return b.Pull(y, l.ToNodes(), Sum)
	}),
	"additive attention by type": testPulled(func(b *Builder, h Value) Value {
		at, l, parts := fmt.Sprint("a", b.hop), b.Lists(), []int{6, 6, 6}
		w := b.Stack(at+"w", parts, 4)
		src := b.Fold(b.Param(at+"src", 3, 4, Glorot), w, parts, 2)
		dst := b.FoldRows(b.Param(at+"dst", 3, 4, Glorot), w, parts, 2)
		asked := b.TypeMatMulT(b.Spread(b.Own(h), l.ToNodes()), dst, b.SegmentTypes(), 2)
		scores := b.Add(b.Dots(b.SegmentRows(src), h, l.ToSegments(), 2, true),
			b.Spread(asked, l.ToSegments().OfEntries()))
		a := b.Softmax(b.LeakyReLU(scores, 0.2), l)
		y := b.PullWeighted(h, a, l.ToSegments(), 2, true)
		y = b.TypeHeadMul(y, w, b.SegmentTypes(), parts, 2)
		return testDense(b, b.Pull(y, l.ToNodes(), Sum), at+"out", 6)
	}),
	"columns of edges": testPulled(func(b *Builder, h Value) Value {
		at, l := fmt.Sprint("c", b.hop), b.Lists()
		means := b.Pull(b.EdgeColumns(2, l), l.OfEntries(), Mean)
		return b.Add(b.Pull(h, l, Sum), testDense(b, means, at, 6))
	}),
	"columns of edges with loops": testPulled(func(b *Builder, h Value) Value {
		at, l := fmt.Sprint("c", b.hop), List{Hop: b.hop, Loops: true}
		columns := b.EdgeColumns(2, l)
		scores := b.Scores(testDense(b, h, at+"src", 3), testDense(b, b.Own(h), at+"dst", 3), l, 1)
		scores = b.LeakyReLU(b.Add(scores, testDense(b, columns, at+"e", 3)), 0.2)
		w := b.Softmax(scores, l)
		edges := b.PullWeighted(columns, w, l.OfEntries(), 3, true)
		return b.Add(b.PullWeighted(h, w, l, 3, false),
			b.HeadMul(edges, b.Param(at+"w", 2, 6, Glorot), 3))
	}),
	"columns of edges by type": testPulled(func(b *Builder, h Value) Value {
		at, l, parts := fmt.Sprint("c", b.hop), b.Lists(), []int{2, 2, 2}
		means := b.Pull(b.EdgeColumns(2, l), l.ToSegments().OfEntries(), Mean)
		return b.Add(b.Pull(h, l, Sum), b.SegmentMatMul(means, b.Stack(at, parts, 6), parts))
	}),
	"ends": func(b *Builder, x Value) Value {
		h := testPulled(func(b *Builder, h Value) Value { return b.Pull(h, b.Lists(), Mean) })(b, x)
		b.Next()
		own := b.Pull(h, b.Lists().ToEnd(false), Sum)
		both := b.PullWeighted(h, own, b.Lists().ToEnd(true), 3, false)
		return testDense(b, b.Add(own, both), "edge", 2)
	},
	"attention":             testPulled(testAttention(false)),
	"attention with loops":  testPulled(testAttention(true)),
	"attention of features": attentionLayers,
	"attention 2": testPulled(func(b *Builder, h Value) Value {
		at := fmt.Sprint("g", b.hop)
		src, dst := testDense(b, h, at+"src", 6), testDense(b, b.Own(h), at+"dst", 6)
		att := b.Param(at+"att", 1, 6, Glorot)
		a := b.Softmax(b.Scores2(src, dst, att, b.Lists(), 2, 0.2), b.Lists())
		return b.PullWeighted(src, a, b.Lists(), 2, false)
	}),
}

// with returns the identity, for models that end with a view.
func (v Value) with(b *Builder) Value { return b.Scale(v, 1) }

func testDense(b *Builder, x Value, name string, cols int) Value {
	return b.MatMul(x, b.Param(name, b.Cols(x), cols, Glorot))
}

// testPulled has one operation in each of two layers.
func testPulled(pull func(b *Builder, h Value) Value) Model {
	return func(b *Builder, x Value) Value {
		h := pull(b, testDense(b, x, "first", 6))
		b.Next()
		h = pull(b, h)
		return testDense(b, h, "last", 3)
	}
}

// testElement has one operation for each node between layers.
func testElement(fn func(b *Builder, h Value) Value) Model {
	return func(b *Builder, x Value) Value {
		h := b.Pull(testDense(b, x, "first", 6), b.Lists(), Mean)
		h = fn(b, b.Bias(h, b.Param("bias", 1, 6, Glorot)))
		b.Next()
		mean := b.Pull(h, b.Lists(), Mean)
		return b.Add(testDense(b, b.Own(h), "own", 3), testDense(b, mean, "n", 3))
	}
}

func testAttention(loops bool) func(b *Builder, h Value) Value {
	return func(b *Builder, h Value) Value {
		l, at := List{Hop: b.hop, Loops: loops}, fmt.Sprint("g", b.hop)
		z := testDense(b, h, at+"z", 6)
		src := b.HeadMul(z, b.Param(at+"src", 3, 2, Glorot), 2)
		dst := b.HeadMul(b.Own(z), b.Param(at+"dst", 3, 2, Glorot), 2)
		a := b.Dropout(b.Softmax(b.Scores(src, dst, l, 0.2), l), 0.3)
		return b.PullWeighted(z, a, l, 2, false)
	}
}

// orders returns all orders of a program with a number of places.
func orders(places int) (all [][]bool) {
	for bits := range 1 << places {
		var order []bool
		for i := range places {
			order = append(order, bits>>i&1 == 1)
		}
		all = append(all, order)
	}
	return all
}

// TestGradients holds the gradient of every operation against finite differences, in every order of
// aggregation and product, and with every pass left out.
func TestGradients(t *testing.T) {
	for name, m := range testModels {
		t.Run(name, func(t *testing.T) {
			places := newBench(t, m, Options{}).program.Places()
			for _, order := range orders(places) {
				for _, o := range []Options{{}, {FuseAttention: true},
					{Without: Passes{Elements: true, Sums: true, Dead: true}}} {
					o.Order = order
					checkGradients(t, newBench(t, m, o), fmt.Sprintf("%+v", o))
				}
			}
		})
	}
}

func checkGradients(t *testing.T, b *bench, what string) {
	t.Helper()
	b.loss(t, true)
	got, w := b.read(b.params.G), b.read(b.params.W)
	if slices.Max(got) == 0 && slices.Min(got) == 0 {
		t.Fatalf("%s: all gradients are zero", what)
	}
	worst := 0
	for i := range w {
		const h = 1.0 / 512
		old := w[i]
		at := func(x float32) float64 {
			w[i] = x
			b.be.Write(b.params.W, w)
			return b.loss(t, false)
		}
		want := (at(old+h) - at(old-h)) / (2 * h)
		at(old)
		// The loss is piecewise smooth: a kink between the two points spoils a few.
		if d := math.Abs(float64(got[i]) - want); d > 2e-3+0.01*math.Abs(want) {
			worst++
		}
	}
	if worst > len(w)/50 {
		t.Errorf("%s: %d of %d gradients are not what differences give\n%s", what, worst, len(w),
			b.program)
	}
}

// TestSameResults: every order and every pass gives the same logits and gradients, but for
// rounding; and passes alone do not change a bit.
func TestSameResults(t *testing.T) {
	for name, m := range testModels {
		first := newBench(t, m, Options{})
		want := first.results(t)
		for _, order := range orders(first.program.Places()) {
			for _, without := range []Passes{{}, {Elements: true}, {Sums: true}, {Dead: true}} {
				got := newBench(t, m, Options{Order: order, Without: without}).results(t)
				for i := range want {
					if d := math.Abs(float64(got[i] - want[i])); !(d < 2e-5) {
						t.Fatalf("%s, order %v, without %+v: value %d is %g, want %g", name, order,
							without, i, got[i], want[i])
					}
				}
			}
		}
	}
}

// results returns the loss and all gradients.
func (b *bench) results(t testing.TB) []float32 {
	loss := b.loss(t, true)
	return append(b.read(b.params.G), float32(loss))
}

// TestStatistics holds what a batch norm keeps of two batches against means and variances of what
// it read, that an evaluation reads it, and that it is no part of what is learned.
func TestStatistics(t *testing.T) {
	norm := func(b *Builder, x Value) Value {
		x = b.Own(x)
		b.Next()
		y := b.BatchNorm(b.Own(x), b.Param("scale", 1, testCols, One),
			b.Param("shift", 1, testCols, Zero),
			b.Param("statistics", 2, testCols, Statistics))
		b.Next()
		return y
	}
	b := newBench(t, norm, Options{})
	b.loss(t, true)
	b.loss(t, true)
	got := b.read(b.params.Weight(2))
	x := testFeatures()[14*testCols:]
	for j := range testCols {
		mean, squares := 0.0, 0.0
		for i := range 3 {
			mean += float64(x[i*testCols+j]) / 3
		}
		for i := range 3 {
			d := float64(x[i*testCols+j]) - mean
			squares += d * d / 2
		}
		wantMean, wantVariance := 0.19*mean, 0.81+0.19*squares
		if math.Abs(float64(got[j])-wantMean) > 1e-5 ||
			math.Abs(float64(got[testCols+j])-wantVariance) > 1e-4 {
			t.Errorf("column %d: statistics %g and %g, want %g and %g", j, got[j],
				got[testCols+j], wantMean, wantVariance)
		}
	}
	if n := b.params.Learned(b.params.W).Len(); n != 2*paramAlign || b.params.Total <= n {
		t.Errorf("%d of %d values are learned", n, b.params.Total)
	}
	b.program = Make(&b.params, norm, Options{Layers: 2, Features: testCols})
	b.loss(t, false)
	y := b.read(b.machine.tensor(b.program.logits))
	for i, v := range y {
		j := i % testCols
		want := (x[i] - got[j]) / float32(math.Sqrt(float64(got[testCols+j])+1e-5))
		if math.Abs(float64(v-want)) > 1e-5 {
			t.Errorf("value %d of an evaluation is %g, want %g", i, v, want)
		}
	}
	if again := b.read(b.params.Weight(2)); !slices.Equal(again, got) {
		t.Error("an evaluation changes the statistics")
	}
}
