package program

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/compute/backend"
	"gdb/internal/dense"
)

// eluLayers have an ELU and a ReLU, each between a bias and a dropout, before sums over lists.
func eluLayers(b *Builder, x Value) Value {
	h := b.Bias(testDense(b, x, "in", 24), b.Param("bias", 1, 24, Zero))
	h = b.Pull(b.Dropout(b.ELU(h), 0.4), b.Lists(), Mean)
	b.Next()
	h = b.Bias(testDense(b, h, "mid", 24), b.Param("bias2", 1, 24, Zero))
	h = b.Dropout(b.ReLU(h), 0.3)
	h = b.Add(testDense(b, b.Pull(h, b.Lists(), Sum), "n", 12), testDense(b, b.Own(h), "own", 12))
	return b.Scale(h, 2)
}

// lines returns what the operations of a program are, without the numbers of their values.
func lines(p *Program) (all []string) {
	for i := range p.Len() {
		_, line, _ := strings.Cut(p.Op(i), "= ")
		for {
			at := strings.Index(line, "%")
			if at < 0 {
				break
			}
			end := at + 1
			for end < len(line) && line[end] >= '0' && line[end] <= '9' {
				end++
			}
			line = line[:at] + "·" + line[end:]
		}
		all = append(all, line)
	}
	return all
}

// TestHalfPrecision shows a program of half precision: what products and sums over lists read is
// made as bfloat16, once, and a dropout is done with the activation before it, in both passes.
func TestHalfPrecision(t *testing.T) {
	o := Options{Layers: 2, Features: 32, Train: true, Half: true}
	want := []string{
		"narrow(features)", "narrow(in)", "matmul(·, ·)", "elu(·, bias) dropout",
		"pull-mean(·) hop0", "narrow(mid)", "matmul(·, ·)", "bias-relu(·, bias2) dropout",
		"pull-sum(·) hop1", "narrow(n)", "matmul(·, ·)", "narrow(own)", "· + matmul(·[N2], ·)",
		"scale(·)",
		"scale(·)", "narrow(·)", "matmul-ta(·[N2], ·)", "matmul-ta(·, ·)", "matmul-tb(·, ·)",
		"push-sum(·) hop1", "· + matmul-tb(·, ·)", "relu-grad(·, ·)", "column-sum(·)",
		"matmul-ta(·, ·)", "matmul-tb(·, ·)", "push-mean(·) hop0", "elu-grad(·, ·) dropout",
		"column-sum(·)", "matmul-ta(·, ·)",
	}
	p := Make(&Params{}, eluLayers, o)
	if got := lines(p); !slices.Equal(got, want) {
		t.Errorf("operations\n%q, want\n%q", got, want)
	}
	for i := range p.Len() {
		if p.Backward(i) != (i >= 14) {
			t.Errorf("operation %d, %s, is of the backward pass: %v", i, p.Op(i), p.Backward(i))
		}
	}
	biased := func(b *Builder, x Value) Value {
		return b.Bias(eluLayers(b, x), b.Param("bias3", 1, 12, Zero))
	}
	p = Make(&Params{}, func(b *Builder, x Value) Value {
		return b.Bias(testDense(b, biased(b, x), "last", 12), b.Param("bias4", 1, 12, Zero))
	}, o)
	if all := lines(p); !slices.Equal(all[p.forward:][:2], []string{"narrow(·)", "column-sum(·)"}) {
		t.Errorf("the backward pass begins with %q, want the gradient of the loss as bfloat16",
			all[p.forward:][:2])
	}
	o.HalfFeatures, want = true, want[1:]
	want[1], want[len(want)-1] = "matmul(features, ·)", "matmul-ta(features, ·)"
	if got := lines(Make(&Params{}, eluLayers, o)); !slices.Equal(got, want) {
		t.Errorf("operations with features of bfloat16\n%q, want\n%q", got, want)
	}
	o.Features = 31 // each row has a value more
	p = Make(&Params{}, eluLayers, o)
	if got := lines(p)[0]; got != "columns(features) from 0" || p.FeatureFloats(10) != 160 {
		t.Errorf("features of an odd width are read by %s, 10 rows take %d floats", got,
			p.FeatureFloats(10))
	}
}

// TestHalfELU: an ELU that no dropout follows, or whose dropped values are read as they are too,
// stays by itself in half precision.
func TestHalfELU(t *testing.T) {
	o := Options{Layers: 2, Features: 32, Half: true}
	p := Make(&Params{}, eluLayers, o)
	if got := lines(p); !slices.Contains(got, "elu(·)") || !slices.Contains(got, "bias(·, bias)") {
		t.Errorf("operations of an evaluation: %q", got)
	}
	o.Train = true
	for name, between := range map[string]func(b *Builder, h Value) Value{
		"added": func(b *Builder, h Value) Value {
			h = b.Dropout(b.ELU(h), 0.4)
			return b.Add(b.Scale(h, 2), testDense(b, h, "w", 24))
		},
		"added to": func(b *Builder, h Value) Value {
			h = b.Dropout(b.ELU(h), 0.4)
			return b.Add(h, testDense(b, h, "w", 24))
		},
		"read before the dropout": func(b *Builder, h Value) Value {
			h = b.ELU(h)
			return b.Add(testDense(b, b.Dropout(h, 0.4), "w", 24), testDense(b, h, "v", 24))
		},
		"dropped twice": func(b *Builder, h Value) Value {
			h = b.ELU(h)
			return b.Add(testDense(b, b.Dropout(h, 0.4), "w", 24),
				testDense(b, b.Dropout(h, 0.3), "v", 24))
		},
	} {
		p := Make(&Params{}, func(b *Builder, x Value) Value {
			h := b.Pull(between(b, testDense(b, x, "in", 24)), b.Lists(), Mean)
			b.Next()
			return testDense(b, b.Pull(h, b.Lists(), Sum), "out", 12)
		}, o)
		all := strings.Join(lines(p), "\n")
		if strings.Contains(all, "elu(·) dropout") || !strings.Contains(all, "dropout(·)") {
			t.Errorf("%s:\n%s", name, all)
		}
	}
	p = Make(&Params{}, func(b *Builder, x Value) Value {
		return b.Dropout(b.ELU(testDense(b, x, "in", 24)), 0.4)
	}, Options{Features: 32, Half: true, Train: true})
	if got := lines(p); !slices.Contains(got, "elu(·)") || !slices.Contains(got, "dropout(·)") {
		t.Errorf("an ELU whose dropped values are the logits, which the loss reads: %q", got)
	}
}

// TestSizes: a batch has the nodes of each hop with all behind them, and the entries of the lists
// of these.
func TestSizes(t *testing.T) {
	d := testBatch() // 17 nodes, of which the lists of 8 and 3 have 15 and 5 entries
	s := SizesOf(d)
	if want := []int{17, 8, 3}; !slices.Equal(s.Nodes, want) {
		t.Errorf("nodes %d, want %d", s.Nodes, want)
	}
	if want := []int{15, 5}; !slices.Equal(s.Entries, want) {
		t.Errorf("entries %d, want %d", s.Entries, want)
	}
	if len(s.Segments) != 0 {
		t.Errorf("%d segments of entries without types", s.Segments)
	}
	d.Types = make([]uint32, 15) // all of a type: a segment for each list with entries
	if got, want := SizesOf(d).Segments, []int{6, 2}; !slices.Equal(got, want) {
		t.Errorf("segments %d, want %d", got, want)
	}
	for e := range d.Types { // lists have up to 4 entries: all of another type
		d.Types[e] = uint32(e) % 5
	}
	if got, want := SizesOf(d).Segments, []int{15, 5}; !slices.Equal(got, want) {
		t.Errorf("segments %d, want %d", got, want)
	}
	none := SizesOf(&dense.Lists{NodeIDOffsets: []uint32{0, 0, 2, 3},
		NbrOffsets: make([]uint32, 4)})
	if want := []int{0, 0}; !slices.Equal(none.Segments, want) {
		t.Errorf("segments %d of lists without entries, want %d", none.Segments, want)
	}
	for rows, want := range map[Rows]int{Fixed(9): 9, Nodes(1): 8, Entries(List{Hop: 1}): 5,
		Entries(List{Hop: 1}.WithLoops()): 5 + 3, Entries(List{}.WithLoops()): 15 + 8} {
		if got := s.Of(rows); got != want {
			t.Errorf("%s are %d, want %d", rows, got, want)
		}
	}
}

// TestShapes: operations have the shapes of their results, for any sizes.
func TestShapes(t *testing.T) {
	p := Make(&Params{}, sageLayers, Options{Layers: 2, Features: testCols})
	want := [][2]int{{600, testCols}, {600, 6}, {600, 6}, {600, 6}, {70, 6}, {70, 3}, {70, 3},
		{70, 3}}
	for i := range p.Len() {
		rows, cols := p.Shape(i, &sizesByHand)
		if i >= len(want) || want[i] != [2]int{rows, cols} {
			t.Errorf("operation %d, %s, has shape %dx%d, want %v\n%s", i, p.Op(i), rows, cols, want,
				p)
		}
	}
}

// TestParams: parameters have names, shapes and places of their own, each at a cache line, with
// statistics behind all that is learned; those of an equal name and shape are the same.
func TestParams(t *testing.T) {
	var p Params
	a := p.add("a", 3, 7, Glorot)
	s := p.add("s", 2, 5, Statistics)
	b := p.add("b", 1, 32, One)
	if again := p.add("s", 2, 5, Statistics); again != s {
		t.Errorf("the same parameter is number %d and %d", s, again)
	}
	if other := p.add("a", 3, 8, Zero); other == a {
		t.Error("a parameter of another shape is the same")
	}
	var got []string
	p.Each(func(name string, rows, cols, off int) {
		got = append(got, fmt.Sprint(name, " ", rows, "x", cols, " at ", off))
	})
	want := []string{"a 3x7 at 0", "s 2x5 at 96", "b 1x32 at 32", "a 3x8 at 64"}
	if !slices.Equal(got, want) || p.Total != 112 {
		t.Errorf("%q of %d values, want %q of 112", got, p.Total, want)
	}
	if got, want := p.Names(), []string{"a", "s", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	if n := p.Count(); n != 21+10+32+24 {
		t.Errorf("%d values, want %d", n, 21+10+32+24)
	}
	be, err := backend.OpenCPU(backend.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	if err := p.Allocate(be, false); err != nil {
		t.Fatal(err)
	}
	if p.Init(be, 3); p.G.Len() != 0 || p.W.Len() != 112 || p.Learned(p.W).Len() != 96 {
		t.Errorf("%d values, %d of them learned, with %d gradients", p.W.Len(),
			p.Learned(p.W).Len(), p.G.Len())
	}
	w := make([]float32, 112)
	be.Read(w, p.W)
	for i, v := range w {
		one := i >= 32 && i < 64 || i >= 96+5 && i < 96+10
		if drawn := i < 21; drawn != (v != 0 && v != 1) || one != (v == 1) {
			t.Errorf("value %d begins as %g", i, v)
		}
	}
	if x := p.Weight(b); x.Rows != 1 || x.Cols != 32 {
		t.Errorf("a parameter of 1x32 is %dx%d", x.Rows, x.Cols)
	}
}

// TestTimes: each operation of a step is measured once, in the order in which it is done.
func TestTimes(t *testing.T) {
	b, next := newBench(t, sageLayers, Options{}), 0
	b.machine.Times = func(p *Program, op int, took time.Duration) {
		if p != b.program || op != next || took < 0 || took > time.Minute {
			t.Errorf("operation %d took %v, want %d", op, took, next)
		}
		next++
	}
	if b.loss(t, true); next != b.program.Len() {
		t.Errorf("%d operations of %d were measured", next, b.program.Len())
	}
	want := fmt.Sprint(SizesOf(b.input.Dense))
	if got := fmt.Sprint(*b.machine.Sizes()); got != want {
		t.Errorf("the sizes of the batch are %s, want %s", got, want)
	}
}

// TestNormsOfNoRows: the columns of a batch without rows have mean 0, and statistics stay.
func TestNormsOfNoRows(t *testing.T) {
	kept := []float32{3, 4, 5, 6}
	h := &backend.Plain{Operands: &backend.Operands{}}
	h.From[0], h.From[3] = backend.Matrix{Cols: 2}, backend.Matrix{Rows: 2, Cols: 2, V: kept}
	h.More[0] = backend.Matrix{Rows: 2, Cols: 2, V: []float32{7, 7, 7, 7}}
	opBatchNorm.Ref(h)
	if want := []float32{0, 0, 0, 0}; !slices.Equal(h.More[0].V, want) {
		t.Errorf("statistics of no rows are %v, want %v", h.More[0].V, want)
	}
	if want := []float32{3, 4, 5, 6}; !slices.Equal(kept, want) {
		t.Errorf("statistics are %v after no rows, want %v", kept, want)
	}
}

// TestTypeCounters: shares are of all entries that were counted, until they are dropped.
func TestTypeCounters(t *testing.T) {
	var c TypeCounter
	share := func(want ...float32) {
		t.Helper()
		types := []uint32{5, 2, 5}
		got := make([]float32, 3)
		c.Add(types)
		if c.Shares(got, types); !slices.Equal(got, want) {
			t.Errorf("shares %v, want %v", got, want)
		}
	}
	share(1./2, 1, 1./2)
	share(1./4, 1./2, 1./4)
	c.Drop([]uint32{5})
	share(1./2, 1./3, 1./2)
	c.Reset()
	share(1./2, 1, 1./2)
}

// TestWrongModels: a model whose operands do not fit, and whose logits are not an operation's
// result for the seeds, is refused at once, with the shapes.
func TestWrongModels(t *testing.T) {
	for name, c := range map[string]struct {
		model Model
		says  string
	}{
		"a product of other widths": {func(b *Builder, x Value) Value {
			return b.MatMul(x, b.Param("w", testCols+1, 2, Zero))
		}, "BUG: MatMul of shapes (N0,6) (7,2)"},
		"a sum of other rows": {func(b *Builder, x Value) Value { return b.Add(x, b.Own(x)) },
			"BUG: Add of shapes (N0,6) (N1,6)"},
		"a bias of other columns": {func(b *Builder, x Value) Value {
			return b.Bias(x, b.Param("b", 1, 2, Zero))
		}, "BUG: Bias of shapes (N0,6) (1,2)"},
		"rows of another hop": {func(b *Builder, x Value) Value {
			b.Next()
			return b.Pull(x, b.Lists(), Mean)
		}, "BUG: Pull of shapes (N0,6)"},
		"heads that do not divide": {func(b *Builder, x Value) Value { return b.HeadMean(x, 4) },
			"BUG: HeadMean of shapes (N0,6)"},
		"columns behind the last": {func(b *Builder, x Value) Value { return b.Columns(x, 4, 3) },
			"BUG: Columns of shapes (N0,6)"},
		"a scale for other rows": {func(b *Builder, x Value) Value {
			return b.RowScale(x, b.Own(b.Degrees()))
		}, "BUG: RowScale of shapes (N0,6) (N1,1)"},
		"own rows of the last hop": {func(b *Builder, x Value) Value {
			return b.Own(b.Own(b.Own(x)))
		}, "BUG: Own of shapes (N2,6)"},
		"weights of entries for other lists": {func(b *Builder, x Value) Value {
			return b.PullWeighted(x, b.EdgeWeights(), b.Lists().WithLoops(), 1, false)
		}, "BUG: PullWeighted of shapes (N0,6) (E0,1)"},
		"logits of all nodes": {func(b *Builder, x Value) Value { return b.ReLU(x) }, "the logits"},
		"logits that are a view": {func(b *Builder, x Value) Value { return b.Own(b.Own(x)) },
			"the logits"},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, c.says) {
					t.Errorf("%s: %q, want %q", name, said, c.says)
				}
			}()
			Make(&Params{}, c.model, Options{Layers: 2, Features: testCols})
		}()
	}
}
