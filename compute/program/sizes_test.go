package program

import (
	"testing"

	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
)

// TestStepIsPlanned: a step takes the scratch, the lists and no more of kernels than its program
// says before, in all orders and precisions, with rows in place and padded.
func TestStepIsPlanned(t *testing.T) {
	for name, m := range testModels {
		for _, order := range orders(newBench(t, m, Options{}).program.Places()) {
			for _, o := range []Options{{}, {Half: true}, {InPlace: true}} {
				o.Order = order
				b := newBench(t, m, o)
				budget := mem.NewBudget(0)
				counting := &countingBackend{Backend: b.be}
				b.be, b.machine = counting, NewMachine(counting, &b.params, budget)
				b.loss(t, true)
				s := SizesOf(b.input.Dense)
				features := b.program.FeatureFloats(s.Nodes[0])
				if b.program.InPlace() {
					features = b.program.FeatureFloats(s.Nodes[1])
				}
				want := b.program.StepFloats(&s, features)
				lists := b.program.ListFloats(&s)
				if got := counting.floats; got != want {
					t.Errorf("%s, %+v: a step takes %d floats, want %d", name, o, got, want)
				}
				if got := counting.lists; got != lists {
					t.Errorf("%s, %+v: lists take %d floats, want %d", name, o, got, lists)
				}
				words := int64(b.program.HeldWords(&s) + b.program.ComputedWords(&s))
				if got := budget.Used(); got < 4*words || got > 4*words*9/8+16 {
					t.Errorf("%s, %+v: %d bytes are held, want %d", name, o, got, 4*words)
				}
			}
		}
	}
}

// sizesByHand has the sizes of a batch of two hops, in numbers that nothing else has.
var sizesByHand = Sizes{Nodes: []int{5000, 600, 70}, Entries: []int{9000, 800},
	Segments: []int{700, 90}}

// TestKernelBytes: of each operation that takes scratch memory, a program says what the kernels say
// of its shapes; of several, that of the largest.
func TestKernelBytes(t *testing.T) {
	const threads, longest = 3, 900
	n0, n1, e0 := Nodes(0), Nodes(1), Entries(List{})
	float := func(r Rows, cols int) value { return value{rows: r, cols: cols} }
	half := func(r Rows, cols int) value { return value{rows: r, cols: cols, half: true} }
	each := func(words int) int64 { return 4 * threads * int64(words) }
	once := func(words int) int64 { return 4 * int64(words) }
	both := func(words, worker int) int64 { return once(words) + each(worker) }
	for _, c := range []struct {
		kind  *Kind
		heads int
		in    []value
		out   value
		want  int64
	}{
		{opReLU, 0, []value{float(n0, 40)}, float(n0, 40), 0},
		{opColumnSum, 0, []value{float(n0, 40)}, float(Fixed(1), 40),
			once(kernel.ColumnWords(5000, 40))},
		{opLayerNormGrad, 0, []value{float(n0, 40)}, float(n0, 40),
			once(2 * kernel.ColumnWords(5000, 40))},
		{opPullMeanDropped, 0, []value{float(n0, 40)}, float(n1, 40),
			each(kernel.DroppedWords(longest, 40))},
		{opPullMeanDropped, 0, []value{half(n0, 40)}, half(n1, 40),
			each(bf16.DroppedWords(longest, 40) + bf16.SegmentWords(600, 9000, 40, true))},
		{opPullSumGrad, 0, []value{float(n1, 40)}, float(n0, 40), once(600)},
		{opPullMean, 0, []value{half(n0, 40)}, half(n1, 40),
			both(600, bf16.SegmentWords(600, 9000, 40, true))},
		{opNarrow, 0, []value{float(n0, 40)}, half(n0, 40),
			both(bf16.ColumnWords(5000, 40), bf16.ElementWords(40))},
		{opPullWeightedGradX, 4, []value{float(n1, 40)}, float(n0, 40),
			each(kernel.EdgeGradWords(4, 10))},
		{opScores2GradRow, 4, []value{float(e0, 4)}, float(n0, 40),
			each(kernel.EdgeGradWords(4, 10))},
		{opScores2GradList, 4, []value{float(e0, 4)}, float(n1, 40),
			once(kernel.AttentionWords(40))},
		{opSoftmax, 4, []value{float(e0, 4)}, float(e0, 4), each(4)},
		{opTypeRowsGrad, 0, []value{float(e0, 4)}, float(Fixed(7), 4),
			once(kernel.TypeParts(28) * 28)},
		{opMatMul, 0, []value{float(n0, 40), float(Fixed(40), 72)}, float(n0, 72),
			once(kernel.PanelWords(40, 72))},
		{opHeadMul, 4, []value{float(n0, 160), float(Fixed(40), 288)}, float(n0, 288),
			once(kernel.PanelWords(40, 72))},
		{opMatMulTB, 0, []value{float(n0, 72), float(Fixed(40), 72)}, float(n0, 40),
			once(kernel.PanelWords(72, 40))},
		{opHeadMulTA, 2, []value{float(n0, 80), float(n0, 144)}, float(Fixed(40), 144),
			both(kernel.ReductionWords(5000, 40, 72, 80))},
		{opMatMul, 0, []value{half(n0, 40), half(Fixed(40), 72)}, half(n0, 72),
			both(bf16.GEMMWords(40, 72, 1, true))},
		{opHeadMul, 2, []value{half(n0, 80), half(Fixed(40), 144)}, float(n0, 144),
			both(bf16.GEMMWords(40, 72, 2, false))},
		{opHeadMul, 2, []value{half(n0, 80), float(Fixed(40), 6)}, float(n0, 6),
			both(bf16.WidenedWords(5000, 40, 3, 2))},
	} {
		p := &Program{values: make([]value, 1)}
		o := simple(c.kind)
		for _, v := range c.in {
			o.in = append(o.in, p.new(v))
		}
		o.heads, o.out = c.heads, p.new(c.out)
		p.ops = []op{o}
		if got := p.KernelBytes(&sizesByHand, threads, longest); got != c.want {
			t.Errorf("%s, half %v: %d bytes, want %d", c.kind, c.in[0].half, got, c.want)
		}
		p.ops = append(p.ops, simple(opReLU, p.new(float(n1, 2))))
		if got := p.KernelBytes(&sizesByHand, threads, longest); got != c.want {
			t.Errorf("%s, and one of none: %d bytes, want %d", c.kind, got, c.want)
		}
	}
	ta := func(heads int) int64 {
		p := &Program{values: make([]value, 1)}
		o := simple(opHeadMulTA, p.new(half(n0, 40*heads)), p.new(half(n0, 72*heads)))
		o.heads, o.out = heads, p.new(float(Fixed(40), 72*heads))
		p.ops = []op{o}
		return p.KernelBytes(&sizesByHand, threads, longest)
	}
	if got, want := ta(1), both(bf16.GEMMTAWords(5000, 40, 72)); got != want {
		t.Errorf("a transposed product of bfloat16: %d bytes, want %d", got, want)
	}
	if got, want := ta(2), ta(1)+once(40*72); got != want {
		t.Errorf("that of two heads: %d bytes, want a result more, %d", got, want)
	}
}

// TestCost works out by hand what operations cost whose order is chosen: 2 for each product of two
// values; 80 for each value of a row that an entry reads, and 16 where another head has read it.
func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		model Model
		want  float64
	}{
		"products and a mean": {func(b *Builder, x Value) Value {
			h := testDense(b, b.Own(testDense(b, x, "a", 30)), "b", 4) // 600 rows
			b.Next()
			return b.ReLU(b.Pull(h, b.Lists(), Mean))
		}, 2*5000*testCols*30 + 2*600*30*4 + 80*800*4},
		"the sum of a hop": {func(b *Builder, x Value) Value {
			b.hop++
			return b.Pull(b.Own(x), b.Lists(), Sum)
		}, 80 * 800 * testCols},
		"the largest, which has one order": {func(b *Builder, x Value) Value {
			b.hop++
			return b.Pull(b.Own(x), b.Lists(), Max)
		}, 0},
		"weights of two heads": {func(b *Builder, x Value) Value {
			h := b.Own(x)
			b.hop++
			w := b.Scores(testDense(b, h, "s", 2), testDense(b, b.Own(h), "d", 2), b.Lists(), 0.1)
			return b.PullWeighted(h, w, b.Lists(), 2, false)
		}, 2*600*testCols*2 + 2*70*testCols*2 + 80*800*testCols},
		"whole rows for each of two heads, with loops": {func(b *Builder, x Value) Value {
			h := b.Own(x)
			b.hop++
			l := b.Lists().WithLoops()
			w := b.Scores(testDense(b, h, "s", 2), testDense(b, b.Own(h), "d", 2), l, 0.1)
			return b.PullWeighted(h, w, l, 2, true)
		}, 2*600*testCols*2 + 2*70*testCols*2 + (80+16)*(800+70)*testCols},
		"a product of heads": {func(b *Builder, x Value) Value {
			b.hop += 2
			return b.HeadMul(b.p.tail(x, Nodes(2)), b.Param("w", 3, 8, Glorot), 2)
		}, 2 * 70 * 6 * 4},
	} {
		p := Make(&Params{}, c.model, Options{Layers: 2, Features: testCols})
		sum := 0.0
		for i := range p.Len() {
			sum += p.OpCost(i, &sizesByHand)
		}
		if got := p.Cost(&sizesByHand); got != c.want || sum != c.want {
			t.Errorf("%s: %g, by operation %g, want %g\n%s", name, got, sum, c.want, p)
		}
	}
}

// TestCostOfGradients: the product with a transposed factor costs as much as the product itself.
func TestCostOfGradients(t *testing.T) {
	p := Make(&Params{}, func(b *Builder, x Value) Value {
		h := b.ReLU(testDense(b, x, "a", 30))
		b.hop += 2
		return testDense(b, b.p.tail(h, Nodes(2)), "b", 4)
	}, Options{Layers: 2, Features: testCols, Train: true})
	if got, want := p.Cost(&sizesByHand), 2.0*(2*5000*testCols*30+3*70*30*4); got != want {
		t.Errorf("%g, want two products of the first layer and three of the last, %g\n%s", got,
			want, p)
	}
}

// TestHeldWords works out what is held of a batch: the lists of all hops but the first, lists with
// loops, and properties that are computed.
func TestHeldWords(t *testing.T) {
	const second = 70 + 1 + 800
	read := func(of func(b *Builder) Value) Model {
		return func(b *Builder, x Value) Value {
			h := b.Pull(x, b.Lists(), Mean)
			y := b.RowScale(h, of(b))
			b.Next()
			return b.Pull(y, b.Lists(), Sum)
		}
	}
	for name, c := range map[string]struct {
		model Model
		want  int
	}{
		"lists": {read(func(b *Builder) Value { return b.ListScale() }), second + 600},
		"degrees of all nodes": {read(func(b *Builder) Value { return b.Own(b.Degrees()) }),
			second + 5000},
		"sums of weights of all nodes": {read(func(b *Builder) Value {
			return b.Own(b.WeightDegrees())
		}), second + 5000},
		"weights in lists": {read((*Builder).InvListWeights), second + 600},
		"degrees of lists": {read((*Builder).InvDegrees), second + 600},
		"weights of lists": {read((*Builder).InvWeightSums), second + 600},
		"types": {func(b *Builder, x Value) Value {
			h := b.PullWeighted(x, b.TypeShares(), b.Lists(), 1, false)
			b.Next()
			return b.Pull(h, b.Lists(), Sum)
		}, second + 9000},
		"weights of entries, which the batch has": {func(b *Builder, x Value) Value {
			h := b.PullWeighted(x, b.EdgeWeights(), b.Lists(), 1, false)
			b.Next()
			return b.Pull(h, b.Lists(), Sum)
		}, second},
		"loops": {func(b *Builder, x Value) Value {
			h := b.Pull(x, b.Lists(), Sum)
			b.Next()
			return b.Pull(h, b.Lists().WithLoops(), Sum)
		}, 70 + 1 + 800 + 70},
	} {
		p := Make(&Params{}, c.model, Options{Layers: 2, Features: testCols})
		if got := p.HeldWords(&sizesByHand) + p.ComputedWords(&sizesByHand); got != c.want {
			t.Errorf("%s: %d words, want %d", name, got, c.want)
		}
	}
}

// TestWidenedFloats: the first factor of a product of few columns is converted.
func TestWidenedFloats(t *testing.T) {
	p := Make(&Params{}, func(b *Builder, x Value) Value {
		h := b.ReLU(testDense(b, x, "a", 24))
		few := testDense(b, h, "few", 4)
		h = b.Pull(testDense(b, h, "wide", 24), b.Lists(), Mean)
		b.Next()
		mean := b.Pull(h, b.Lists(), Mean)
		last := b.Pull(b.Own(few), b.Lists(), Sum)
		return b.Add(testDense(b, mean, "last", 4), last)
	}, Options{Layers: 2, Features: 32, Half: true})
	if got, want := p.WidenedFloats(&sizesByHand), 5000*24; got != want {
		t.Errorf("%d values, want those that scores read, %d\n%s", got, want, p)
	}
	p = Make(&Params{}, sageLayers, Options{Layers: 2, Features: testCols, Train: true})
	if got := p.WidenedFloats(&sizesByHand); got != 0 {
		t.Errorf("%d values without half precision", got)
	}
}
