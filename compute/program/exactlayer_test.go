package program

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/internal/rng"
)

// exactCols is the width of the features that exact layers read.
const exactCols = 12

// exactAbout says what an ExactLayer tells about a layer.
type exactAbout struct {
	loops, transforms   bool
	tableCols, outCols  int
	columnCols, ownCols []int
	entryCols           int
	property            Property // where reads
	reads               bool
	pulls               []string
	scratch             int // values of a node
}

// exactLayers are one layer of each kind with what is known of it.
var exactLayers = map[string]struct {
	layer Layer
	about exactAbout
}{
	"no lists": {func(b *Builder, x Value) Value {
		return b.ReLU(testDense(b, b.Own(x), "w", 5))
	}, exactAbout{tableCols: 12, outCols: 5, scratch: 5}},
	"mean, made narrow first": {func(b *Builder, x Value) Value {
		mean := b.Pull(x, b.Lists(), Mean)
		return b.Add(testDense(b, b.Own(x), "own", 5), testDense(b, mean, "n", 5))
	}, exactAbout{transforms: true, tableCols: 5, outCols: 5, pulls: []string{"mean 1x5"},
		scratch: 5}},
	"mean, as wide": {func(b *Builder, x Value) Value {
		return testDense(b, b.Pull(x, b.Lists(), Mean), "n", 12)
	}, exactAbout{tableCols: 12, outCols: 12, pulls: []string{"mean 1x12"}, scratch: 12 + 12}},
	"sum of a wide product": {func(b *Builder, x Value) Value {
		return b.Shift(b.Pull(testDense(b, x, "n", 20), b.Lists(), Sum), 1)
	}, exactAbout{tableCols: 12, outCols: 20, pulls: []string{"sum 1x12"}, scratch: 12 + 20}},
	"max and residual": {func(b *Builder, x Value) Value {
		y := b.Pull(b.ReLU(testDense(b, x, "pool", 12)), b.Lists(), Max)
		return b.Add(testDense(b, b.Own(x), "own", 12), b.Scale(y, 0.5))
	}, exactAbout{transforms: true, tableCols: 12, outCols: 12, pulls: []string{"max 1x12"},
		scratch: 12 + 12}},
	"two reductions": {func(b *Builder, x Value) Value {
		mean, most := b.Pull(x, b.Lists(), Mean), b.Pull(x, b.Lists(), Max)
		return b.Add(b.Add(b.Own(x), mean), b.LeakyReLU(most, 0.1))
	}, exactAbout{tableCols: 12, outCols: 12, pulls: []string{"mean 1x12", "max 1x12"},
		scratch: 12 + 12 + 12 + 12}},
	"scaled sum and norm": {func(b *Builder, x Value) Value {
		y := b.RowScale(b.Pull(x, b.Lists(), Sum), b.ListScale())
		return b.LayerNorm(y, b.Param("gamma", 1, 12, Glorot), b.Param("beta", 1, 12, Glorot))
	}, exactAbout{tableCols: 12, outCols: 12, pulls: []string{"sum 1x12"},
		scratch: 12 + 1 + 12 + 2}},
	"statistics": {func(b *Builder, x Value) Value {
		y := b.Add(b.Own(x), b.Pull(x, b.Lists(), Sum))
		return b.GELU(b.BatchNorm(y, b.Param("gamma", 1, 12, Glorot), b.Param("beta", 1, 12, One),
			b.Param("statistics", 2, 12, Statistics)))
	}, exactAbout{tableCols: 12, outCols: 12, pulls: []string{"sum 1x12"},
		scratch: 4 * 12}},
	"symmetric with loops": {func(b *Builder, x Value) Value {
		l := List{Hop: 0, Loops: true}
		w := b.Product(b.Degrees(), b.Own(b.Degrees()), l)
		return testDense(b, b.PullWeighted(x, w, l, 1, false), "n", 12)
	}, exactAbout{loops: true, transforms: true, tableCols: 12, outCols: 12, columnCols: []int{1},
		ownCols: []int{1}, entryCols: 1, property: InvSqrtDegree, reads: true,
		pulls: []string{"sum 1x12 weighted scored"}, scratch: 1 + 12}},
	"weighted mean": {func(b *Builder, x Value) Value {
		y := b.PullWeighted(x, b.EdgeWeights(), b.Lists(), 1, false)
		return testDense(b, b.RowScale(y, b.InvListWeights()), "n", 4)
	}, exactAbout{tableCols: 12, outCols: 4, entryCols: 1, property: InvListWeight, reads: true,
		pulls: []string{"sum 1x12 weighted"}, scratch: 12 + 1 + 4}},
	"weighted and symmetric": {func(b *Builder, x Value) Value {
		w := b.Product(b.WeightDegrees(), b.Own(b.WeightDegrees()), b.Lists())
		return b.PullWeighted(x, b.RowScale(w, b.EdgeWeights()), b.Lists(), 1, false)
	}, exactAbout{tableCols: 12, outCols: 12, columnCols: []int{1}, ownCols: []int{1},
		entryCols: 1, property: InvSqrtWeight, reads: true,
		pulls: []string{"sum 1x12 weighted scored"}, scratch: 1 + 12}},
	"relations": {func(b *Builder, x Value) Value {
		w := b.RowScale(b.TypeRows(b.Param("relations", 3, 2, Glorot)), b.TypeShares())
		z := testDense(b, x, "z", 8)
		return b.HeadMean(b.PullWeighted(z, w, b.Lists(), 2, false), 2)
	}, exactAbout{transforms: true, tableCols: 8, outCols: 4, entryCols: 2,
		pulls: []string{"sum 2x8 weighted"}, scratch: 1 + 8 + 4}},
	"attention": {exactAttention(false), exactAbout{transforms: true, tableCols: 6, outCols: 6,
		columnCols: []int{2}, ownCols: []int{2}, entryCols: 2,
		pulls: []string{"sum 2x6 weighted scored softmax"}, scratch: 6 + 2 + 6}},
	"attention with loops": {exactAttention(true), exactAbout{loops: true, transforms: true,
		tableCols: 6, outCols: 6, columnCols: []int{2}, ownCols: []int{2}, entryCols: 2,
		pulls: []string{"sum 2x6 weighted scored softmax"}, scratch: 6 + 2 + 6}},
	"attention 2": {func(b *Builder, x Value) Value {
		src, dst := testDense(b, x, "src", 6), testDense(b, b.Own(x), "dst", 6)
		a := b.Softmax(b.Scores2(src, dst, b.Param("att", 1, 6, Glorot), b.Lists(), 2, 0.2),
			b.Lists())
		return b.PullWeighted(src, a, b.Lists(), 2, false)
	}, exactAbout{transforms: true, tableCols: 6, outCols: 6, columnCols: []int{6},
		ownCols: []int{6}, entryCols: 2, pulls: []string{"sum 2x6 weighted scored softmax"},
		scratch: 6 + 6}},
	// Of an entry: sources and targets of its segment, the score's two parts, weighed and
	// multiplied rows.
	"additive attention by type": {exactAdditive, exactAbout{transforms: true, tableCols: 6,
		outCols: 4, ownCols: []int{6}, entryCols: 2*6 + 6 + 2 + 2 + 2 + 2*6 + 8,
		pulls: []string{"sum 2x8 weighted softmax"}, scratch: 6 + 8 + 6 + 4}},
	// Of an entry: what its segment asks for twice, the score, weighed and multiplied rows.
	"attention by type": {func(b *Builder, x Value) Value {
		l, parts := b.Lists(), []int{3, 3, 3}
		x = b.ReLU(testDense(b, x, "in", 5))
		keys, values := testDense(b, x, "k", 6), testDense(b, x, "v", 6)
		asked := b.Spread(testDense(b, b.Own(x), "q", 6), l.ToNodes())
		asked = b.TypeHeadMul(asked, b.Stack("att", parts, 6), b.SegmentTypes(), parts, 2)
		a := b.Softmax(b.Dots(asked, keys, l.ToSegments(), 2, false), l)
		y := b.PullWeighted(values, a, l.ToSegments(), 2, false)
		y = b.TypeHeadMul(y, b.Stack("msg", parts, 6), b.SegmentTypes(), parts, 2)
		return b.GELU(b.Pull(y, l.ToNodes(), Sum))
	}, exactAbout{transforms: true, tableCols: 5, outCols: 6, columnCols: []int{6, 6},
		ownCols: []int{6}, entryCols: 6 + 6 + 2 + 6 + 6,
		pulls: []string{"sum 2x6 weighted softmax"}, scratch: 5 + 6 + 6 + 6}},
}

// exactAdditive is the layer of rgat.
func exactAdditive(b *Builder, x Value) Value {
	l, parts := b.Lists(), []int{6, 6, 6}
	x = b.ReLU(testDense(b, x, "in", 6))
	w := b.Stack("w", parts, 8)
	src := b.SegmentRows(b.Fold(b.Param("src", 3, 8, Glorot), w, parts, 2))
	dst := b.TypeMatMulT(b.Spread(b.Own(x), l.ToNodes()),
		b.FoldRows(b.Param("dst", 3, 8, Glorot), w, parts, 2), b.SegmentTypes(), 2)
	scores := b.Add(b.Dots(src, x, l.ToSegments(), 2, true),
		b.Spread(dst, l.ToSegments().OfEntries()))
	a := b.Softmax(b.LeakyReLU(scores, 0.2), l)
	y := b.PullWeighted(x, a, l.ToSegments(), 2, true)
	y = b.Pull(b.TypeHeadMul(y, w, b.SegmentTypes(), parts, 2), l.ToNodes(), Sum)
	return b.Add(b.HeadMean(y, 2), testDense(b, b.Own(x), "self", 4))
}

func exactAttention(loops bool) Layer {
	return func(b *Builder, x Value) Value {
		l := List{Hop: 0, Loops: loops}
		z := testDense(b, x, "z", 6)
		src := b.HeadMul(z, b.Param("src", 3, 2, Glorot), 2)
		dst := b.HeadMul(b.Own(z), b.Param("dst", 3, 2, Glorot), 2)
		a := b.Softmax(b.Scores(src, dst, l, 0.2), l)
		return b.ELU(b.Bias(b.PullWeighted(z, a, l, 2, false), b.Param("bias", 1, 6, Glorot)))
	}
}

// exactBench runs a layer both as an ExactLayer and as a program of one layer on whole lists.
type exactBench struct {
	be      *countingBackend
	params  Params
	machine *Machine
	in      Input
	x       []float32
}

// countingBackend counts the floats of scratch that are asked for, and those of transposed lists.
type countingBackend struct {
	backend.Backend
	floats, lists int
}

func (c *countingBackend) Segments(l backend.Lists) backend.Segments {
	if l.Rows > 0 {
		c.lists += backend.SegmentFloats(l.Rows, len(l.Idx), len(l.Off)-1, l.Entries)
	}
	return c.Backend.Segments(l)
}

func (c *countingBackend) Scratch(rows, cols int) backend.Tensor {
	c.floats += rows * cols
	return c.Backend.Scratch(rows, cols)
}

// exactNodes are the nodes of the batch, of which the last exactInner have lists.
const exactNodes, exactInner = 33, 16

func newExactBench(t *testing.T, layer Layer) *exactBench {
	t.Helper()
	cpu, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cpu.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &exactBench{be: &countingBackend{Backend: cpu}}
	draw := rng.NewStream(17)
	d := &dense.Lists{NodeIDOffsets: []uint32{0, exactNodes - exactInner, exactNodes},
		NbrOffsets: []uint32{0}}
	b.in = Input{Dense: d, Degrees: make([]uint32, exactNodes)}
	d.WeightSums = make([]float32, exactNodes)
	for v := range exactNodes {
		b.in.Degrees[v], d.WeightSums[v] = uint32(v%4), float32(draw.Float64())
	}
	for i := range exactInner {
		v, n := exactNodes-exactInner+i, i%5
		b.in.Degrees[v], d.WeightSums[v] = uint32(n), 0
		for range n {
			d.ReprMap = append(d.ReprMap, uint32(draw.Below(exactNodes)))
			d.Weights = append(d.Weights, float32(0.2+draw.Float64()))
			d.Types = append(d.Types, uint32(draw.Below(3)))
			d.WeightSums[v] += d.Weights[len(d.Weights)-1]
		}
		d.NbrOffsets = append(d.NbrOffsets, uint32(len(d.ReprMap)))
	}
	for range exactNodes * exactCols {
		b.x = append(b.x, float32(2*draw.Float64()-1))
	}
	MakeExactLayer(&b.params, layer, exactCols, false, 0)
	if err := b.params.Allocate(b.be, false); err != nil {
		t.Fatal(err)
	}
	b.params.Init(b.be, 5)
	b.machine = NewMachine(b.be, &b.params, nil)
	return b
}

// program computes the layer as a program of one layer does.
func (b *exactBench) program(t *testing.T, layer Layer) []float32 {
	t.Helper()
	if err := b.be.Begin(); err != nil {
		t.Fatal(err)
	}
	p := Make(&b.params, Model(layer), Options{Layers: 1, Features: exactCols})
	in := b.in
	in.X = slices.Clone(b.x)
	y := mustForward(t, b.machine, p, in)
	return b.read(y)
}

func (b *exactBench) read(y backend.Tensor) []float32 {
	out := make([]float32, y.Len())
	b.be.Read(out, y)
	return out
}

// properties returns what the layer reads of all nodes, worked out from degrees and weights.
func (b *exactBench) properties(w *ExactLayer) []float32 {
	values := make([]float32, exactNodes)
	k, _ := w.NodeProperty()
	for v := range values {
		degree, sum := float64(b.in.Degrees[v]), float64(b.in.Dense.WeightSums[v])
		switch {
		case k == InvSqrtDegree:
			values[v] = float32(1 / math.Sqrt(1+degree))
		case k == InvSqrtWeight:
			values[v] = float32(1 / math.Sqrt(1+sum))
		case sum > 0:
			values[v] = float32(1 / sum)
		}
	}
	return values
}

// lists returns the lists, each with an entry for its own node behind it where loops are wanted,
// and what their entries have.
func (b *exactBench) lists(loops bool) (l backend.Lists, e Edges) {
	d := b.in.Dense
	l.Off = []uint32{0}
	for i := range exactInner {
		types := map[uint32]float32{}
		for k := d.NbrOffsets[i]; k < d.NbrOffsets[i+1]; k++ {
			types[d.Types[k]]++
		}
		for k := d.NbrOffsets[i]; k < d.NbrOffsets[i+1]; k++ {
			l.Idx = append(l.Idx, d.ReprMap[k])
			e.Weights, e.Types = append(e.Weights, d.Weights[k]), append(e.Types, d.Types[k])
			e.Shares = append(e.Shares, 1/types[d.Types[k]])
		}
		if loops {
			l.Idx = append(l.Idx, uint32(exactNodes-exactInner+i))
		}
		l.Off = append(l.Off, uint32(len(l.Idx)))
	}
	return l, e
}

// taken is the scratch that the parts of an exact layer took, in floats.
type taken struct{ table, columns, weights, segments, output int }

// exact computes the layer in its parts: rows of the table for all nodes, then results for those
// with lists.
func (b *exactBench) exact(t *testing.T, w *ExactLayer) (out []float32, of taken) {
	t.Helper()
	if err := b.be.Begin(); err != nil {
		t.Fatal(err)
	}
	count := func() (floats int) {
		floats, b.be.floats = b.be.floats, 0
		return floats
	}
	const first = exactNodes - exactInner
	m, x, values := b.machine, slices.Clone(b.x), b.properties(w)
	all, property := b.be.Host(x, exactNodes, exactCols), b.be.Host(values, exactNodes, 1)
	lists, edges := b.lists(w.Loops())
	segments := b.be.Segments(lists)
	count()
	table := w.Table(m, all, property)
	of.table = count()
	columns := w.Columns(m, table, property)
	of.columns = count()
	rows, its := all.Slice(first, exactInner), property.Slice(first, exactInner)
	own, scored := w.Own(m, rows, its), 0
	of.output = count()
	var reduced []backend.Tensor
	for i := range w.Pulls() {
		pull, weights := &w.Pulls()[i], backend.Tensor{}
		switch {
		case pull.Segmented:
			rows := columns
			if len(rows) == 0 {
				rows = []backend.Tensor{table}
			}
			l := &SegmentedLists{}
			l.Set(w, lists.Off, lists.Idx, edges.Types)
			reduced = append(reduced, w.Segment(m, rows, own[0], l).Reduced())
			of.segments, of.output = count(), of.output+exactInner*pull.Cols
			continue
		case pull.Scored:
			weights = w.Weights(m, pull, columns[scored], own[scored], edges, segments)
			scored++
		case pull.Weighted:
			weights = w.Weights(m, pull, backend.Tensor{}, backend.Tensor{}, edges, segments)
		}
		if pull.Softmax {
			w.Softmax(m, weights, segments)
		}
		of.weights += count()
		reduced = append(reduced, w.Reduced(m, pull, table, weights, segments))
		of.output += count()
	}
	y := w.Output(m, rows, its, reduced)
	of.output += count()
	if err := b.be.Err(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x, b.x) || !slices.Equal(values, b.properties(w)) {
		t.Error("the inputs of nodes are overwritten")
	}
	return b.read(y), of
}

func far(got, want []float32, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	for i, v := range want {
		if d := math.Abs(float64(got[i] - v)); !(d <= tolerance*max(1, math.Abs(float64(v)))) {
			return fmt.Errorf("value %d is %g, want %g", i, got[i], v)
		}
	}
	return nil
}

// TestExactLayers: a layer that is computed in parts over whole lists gives what its program gives
// of the same lists, and products of bfloat16 nearly that.
func TestExactLayers(t *testing.T) {
	for name, c := range exactLayers {
		t.Run(name, func(t *testing.T) {
			b := newExactBench(t, c.layer)
			want := b.program(t, c.layer)
			got, _ := b.exact(t, MakeExactLayer(&b.params, c.layer, exactCols, false, 0))
			if err := far(got, want, 2e-5); err != nil {
				t.Error(err)
			}
			got, _ = b.exact(t, MakeExactLayer(&b.params, c.layer, exactCols, true, 0))
			if err := far(got, want, 0.05); err != nil {
				t.Errorf("with products of bfloat16: %v", err)
			}
		})
	}
}

// TestExactLayersTell: what an exact layer says of itself is what the layer has.
func TestExactLayersTell(t *testing.T) {
	for name, c := range exactLayers {
		w := MakeExactLayer(&Params{}, c.layer, exactCols, false, 0)
		got := exactAbout{loops: w.Loops(), transforms: w.Transforms(), tableCols: w.TableCols(),
			outCols: w.OutCols(), columnCols: w.ColumnCols(), ownCols: w.OwnCols(),
			entryCols: w.EntryCols()}
		got.property, got.reads = w.NodeProperty()
		for _, pull := range w.Pulls() {
			line := fmt.Sprintf("%s %dx%d", []string{Mean: "mean", Sum: "sum",
				Max: "max"}[pull.Reduce], pull.Heads, pull.Cols)
			for i, is := range []bool{pull.Weighted, pull.Scored, pull.Softmax} {
				if is {
					line += []string{" weighted", " scored", " softmax"}[i]
				}
			}
			got.pulls = append(got.pulls, line)
		}
		want := c.about
		if got.scratch = want.scratch; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
		}
		sum := 0
		for _, cols := range w.ColumnCols() {
			sum += cols
		}
		if floats := w.ColumnFloats(); floats != sum {
			t.Errorf("%s: %d values of a row, want %d", name, floats, sum)
		}
		typed := strings.Contains(name, "by type") || name == "relations"
		if w.ReadsTypes() != typed {
			t.Errorf("%s: types of edges are read: %v", name, !typed)
		}
		if n := w.ScratchCols(); n != want.scratch {
			t.Errorf("%s: a node takes %d values of scratch, want %d", name, n, want.scratch)
		}
		if edges := name == "relations"; w.Reads(EdgeType) != edges || w.Reads(TypeShare) != edges {
			t.Errorf("%s: reads types: %v, shares: %v", name, w.Reads(EdgeType), w.Reads(TypeShare))
		}
	}
}

// TestExactScratch: the parts of a layer take no more scratch than the layer says, and the largest
// part takes that but for a value of a node's property; weights take what entries have.
func TestExactScratch(t *testing.T) {
	for name, c := range exactLayers {
		for _, half := range []bool{false, true} {
			b := newExactBench(t, c.layer)
			w := MakeExactLayer(&b.params, c.layer, exactCols, half, 0)
			_, of := b.exact(t, w)
			node, fixed := w.ScratchCols(), w.FixedFloats()
			largest := max(of.output, exactInner*of.table/exactNodes,
				exactInner*of.columns/exactNodes)
			if of.table > exactNodes*node+fixed || of.columns > exactNodes*node+fixed ||
				of.output > exactInner*node+fixed || !half && largest < exactInner*(node-1) {
				t.Errorf("%s, half %v: a table of %d floats, columns of %d, results of %d; want "+
					"%d for a node and %d once", name, half, of.table, of.columns, of.output, node,
					fixed)
			}
			lists, _ := b.lists(w.Loops())
			if pulls := w.Pulls(); len(pulls) > 0 && pulls[0].Segmented {
				most := len(lists.Idx)*w.EntryCols() + exactInner*pulls[0].Cols + fixed
				if of.segments > most || of.segments < most/2 {
					t.Errorf("%s: segments of %d floats, want at most %d", name, of.segments, most)
				}
				continue
			}
			if want := len(lists.Idx) * w.EntryCols(); of.weights != want &&
				name != "weighted mean" || name == "weighted mean" && of.weights != 0 {
				t.Errorf("%s: weights of %d floats, want %d", name, of.weights, want)
			}
		}
	}
}

// TestExactLayerWithoutDead: what nobody reads is not computed for whole lists either.
func TestExactLayerWithoutDead(t *testing.T) {
	w := MakeExactLayer(&Params{}, func(b *Builder, x Value) Value {
		b.Pull(testDense(b, x, "unread", 7), b.Lists(), Max)
		return testDense(b, b.Pull(x, b.Lists(), Mean), "n", 20)
	}, exactCols, false, 0)
	if got, want := lines(w.p), []string{"pull-mean(features) hop0", "matmul(·, n)"}; !slices.Equal(
		got, want) || w.TableCols() != exactCols {
		t.Errorf("operations %q on %d columns, want %q on %d", got, w.TableCols(), want, exactCols)
	}
}
