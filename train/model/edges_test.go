package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
	"gdb/train/setting"
)

// logitsOf are the logits of the seeds 0 to 9 of a graph over whole lists, of random features, and
// the parameters by which they were computed.
func logitsOf(t *testing.T, s *Spec, g *sampletest.Graph) (logits []float32, m *Model) {
	t.Helper()
	m, forward := sampledForward(t, s, g)
	return values(m.be, forward(Step{})), m
}

// sampledForward returns a model and what computes these logits.
func sampledForward(t *testing.T, s *Spec, g *sampletest.Graph) (m *Model,
	forward func(s Step) backend.Tensor) {
	t.Helper()
	be, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	})
	if m, err = New(be, s, true, nil); err != nil {
		t.Fatal(err)
	}
	m.Params().Init(be, 4)
	c := sample.Config{Fanout: slices.Repeat([]int{sample.All}, s.Layers()), Extras: s.Extras()}
	if n := len(s.EdgeFeatures); n > 0 {
		c.Columns = plantedColumns(n)
	}
	if s.LayerWise {
		c.Fanout, c.LayerSize = nil, slices.Repeat([]int{1000}, s.Layers())
	}
	sampler, err := sample.NewSampler([]topology.Reader{g}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer sampler.Close()
	var d sample.Dense
	seeds := []sample.NodeID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	if err := sampler.Sample(context.Background(), 0, 0, seeds, &d); err != nil {
		t.Fatal(err)
	}
	return m, func(s Step) backend.Tensor {
		if err := be.Begin(); err != nil {
			t.Fatal(err)
		}
		var x []float32
		for _, v := range d.NodeIDs {
			x = append(x, featuresOf(v, m.spec.Dims[0])...)
		}
		s.Nodes = d.NodeIDs
		y, err := m.Forward(&d.Lists, x, s)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
}

// plantedColumns are columns of edges that follow from their place.
type plantedColumns int

func (n plantedColumns) Width() int { return int(n) }

func (n plantedColumns) of(node sample.NodeID, at, k int) float32 {
	return float32(math.Sin(float64(int(node)*31 + at*7 + k)))
}

func (n plantedColumns) Fill(_ context.Context, d *sample.Dense) error {
	d.Columns = d.Columns[:0]
	for i, v := range d.NodeIDs[d.NodeIDOffsets[1]:] {
		for e := d.NbrOffsets[i]; e < d.NbrOffsets[i+1]; e++ {
			for k := range int(n) {
				d.Columns = append(d.Columns, n.of(v, int(d.Places[e].At), k))
			}
		}
	}
	return nil
}

// featuresOf returns the features of a node.
func featuresOf(v sample.NodeID, dim int) (x []float32) {
	draw := rng.NewStream(rng.Key(77, uint64(v)))
	for range dim {
		x = append(x, float32(2*draw.Float64()-1))
	}
	return x
}

func sameLogits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: logit %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// repeated is a graph in which edges stand 1 to 4 times, and the same with each once and as a
// weight how often.
func repeated() (often, weighted *sampletest.Graph) {
	draw := rng.NewStream(3)
	var lists, once [][]sample.NodeID
	var weights []float32
	for range 60 {
		var list, each []sample.NodeID
		for u := range sample.NodeID(60) {
			if draw.Below(7) > 0 {
				continue
			}
			n := 1 + draw.Below(4)
			for range n {
				list = append(list, u)
			}
			each, weights = append(each, u), append(weights, float32(n))
		}
		lists, once = append(lists, list), append(once, each)
	}
	often, weighted = sampletest.FromLists(lists...), sampletest.FromLists(once...)
	weighted.Weights = weights
	return often, weighted
}

// TestWeightsAreRepetitions: an edge of weight n counts as n edges do, in all models that have
// weights.
func TestWeightsAreRepetitions(t *testing.T) {
	often, weighted := repeated()
	tested := 0
	for _, a := range architectures {
		if !weighs(a) {
			continue
		}
		for _, aggregate := range []string{"", "mean", "sum"} {
			s := &Spec{Architecture: a, Dims: Widths(a, 6, 3, []int{8}),
				Options: setting.Options{Aggregate: aggregate}}
			want, _ := logitsOf(t, s, often)
			s.EdgeWeight = true
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			got, _ := logitsOf(t, s, weighted)
			sameLogits(t, fmt.Sprint(a.Name(), " ", aggregate), got, want)
			tested++
		}
	}
	if tested != 12 {
		t.Errorf("%d models and ways have weights, want 12", tested)
	}
}

// TestRelations compares rgcn, hsage and sage with their definition, relation by relation.
func TestRelations(t *testing.T) {
	const relations = 4
	g, _ := repeated()
	g.Classify(relations, 5)
	columns := setting.Options{EdgeFeatures: []string{"weight", "price", "degree"}}
	for _, s := range []*Spec{{Architecture: sage{}}, {Architecture: sage{}, Options: columns},
		{Architecture: hsage{}, Options: columns},
		{Architecture: rgcn{}, Options: setting.Options{Bases: 1}},
		{Architecture: rgcn{}, Options: setting.Options{Bases: 3}}, {Architecture: rgcn{}},
		{Architecture: rgcn{}, Options: setting.Options{Bases: 3, NodeTypes: []int{0, 4, 200},
			TypeWidths: []int{6, 2, 5}}},
		{Architecture: hsage{}}, {Architecture: hsage{}, Options: setting.Options{
			NodeTypes: []int{0, 4, 4, 200}, TypeWidths: []int{6, 0, 2, 5},
			RelationSources: []int{3, 0, 2, 1}}}} {
		s.Dims, s.Relations = []int{6, 8, 3}, relations
		if s.Name() == "sage" {
			s.Relations = 1
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		got, m := logitsOf(t, s, g)
		h := make([][]float32, g.Nodes())
		for v := range h {
			h[v] = featuresOf(sample.NodeID(v), 6)
		}
		for l := range 2 {
			h = m.relational(g, l, h)
		}
		var want []float32
		for _, row := range h[:10] {
			want = append(want, row...)
		}
		sameLogits(t, fmt.Sprint(s.Name(), " ", s.Options), got, want)
	}
}

// weights returns the values of a parameter of a layer, nil if there is none.
func (m *Model) weights(l int, name string) []float32 {
	i := slices.Index(m.params.Names(), layerName(l)+name)
	if i < 0 {
		return nil
	}
	w := m.params.Weight(i)
	x := make([]float32, w.Len())
	m.be.Read(x, w)
	return x
}

// stacked returns the value at row i and column o of the matrix of a type in a stack; 0 behind its
// rows.
func stacked(stack []float32, parts []int, cols int) func(kind, i, o int) float32 {
	return func(kind, i, o int) float32 {
		if i >= parts[kind] {
			return 0
		}
		for _, n := range parts[:kind] {
			i += n
		}
		return stack[i*cols+o]
	}
}

// relationWeight returns how column i of the rows of a type counts for column o, in the mean of a
// relation.
func (m *Model) relationWeight(l int) func(kind, r, i, o int) (sum float32) {
	out, n := m.spec.Dims[l+1], m.spec.bases()
	if w := m.weights(l, "neighbors"); w != nil {
		return func(_, _, i, o int) float32 { return w[i*out+o] }
	}
	stack, coefficients := m.weights(l, "relations"), m.weights(l, "coefficients")
	if stack != nil {
		of := stacked(stack, m.spec.relationParts(l), out)
		return func(_, r, i, o int) float32 { return of(r, i, o) }
	}
	bases := stacked(m.weights(l, "bases"), m.spec.typeParts(l), n*out)
	return func(kind, r, i, o int) (sum float32) {
		for b := range n {
			sum += coefficients[r*n+b] * bases(kind, i, b*out+o)
		}
		return sum
	}
}

// kinds returns the type of a node, and which matrix of a layer its row takes: rgcn has the same
// for all behind the first layer.
func (m *Model) kinds(l, v int) (kind, matrix int) {
	kinds := make([]uint32, 1)
	program.NodeTypes(kinds, []uint32{uint32(v)}, m.spec.NodeTypes)
	if l > 0 && m.spec.Name() == "rgcn" {
		return int(kinds[0]), 0
	}
	return int(kinds[0]), int(kinds[0])
}

// relational computes a layer of rgcn, hsage or sage for all nodes.
func (m *Model) relational(g *sampletest.Graph, l int, h [][]float32) (next [][]float32) {
	out, weight := m.spec.Dims[l+1], m.relationWeight(l)
	self, bias := stacked(m.weights(l, "self"), m.spec.typeParts(l), out), m.weights(l, "bias")
	edges, n := m.weights(l, "edges"), len(m.spec.EdgeFeatures)
	for v := range h {
		kind, matrix := m.kinds(l, v)
		row := append([]float32(nil), bias[kind*out:][:out]...)
		for o := range row {
			for i, x := range h[v] {
				row[o] += self(matrix, i, o) * x
			}
		}
		counts := make([]float32, m.spec.Relations)
		relation := func(e uint64) int { return int(g.Types[e]) % m.spec.Relations }
		for e := g.Off[v]; e < g.Off[v+1]; e++ {
			counts[relation(e)]++
		}
		for e := g.Off[v]; e < g.Off[v+1]; e++ {
			r, u := relation(e), int(g.Nbrs[e])
			_, matrix := m.kinds(l, u)
			for o := range row {
				for k := range n {
					x := plantedColumns(n).of(sample.NodeID(v), int(e-g.Off[v]), k)
					row[o] += edges[(r*n+k)*out+o] * x / counts[r]
				}
				for i, x := range h[u] {
					row[o] += weight(matrix, r, i, o) * x / counts[r]
				}
			}
		}
		for o := range row {
			if l == 0 {
				row[o] = max(0, row[o])
			}
		}
		next = append(next, row)
	}
	return next
}

// TestEdgeGradients compares the gradients of what reads columns of edges with differences of the
// loss, and gat with its definition.
func TestEdgeGradients(t *testing.T) {
	g, _ := repeated()
	g.Classify(2, 5)
	labels := []int32{0, 1, 2, 0, 1, 2, 0, 1, 2, 0}
	for _, a := range []Architecture{sage{}, hsage{}, gat{}} {
		s := &Spec{Architecture: a, Dims: []int{6, 8, 3}, Options: setting.Options{Heads: 2,
			Relations: 2, Activation: "elu",
			EdgeFeatures: []string{"weight", "price", "degree"}}}
		m, forward := sampledForward(t, s, g)
		if a.Name() == "gat" {
			sameLogits(t, "gat", values(m.be, forward(Step{})), m.attentive(g))
		}
		lossOf := func() float64 {
			logits := forward(Step{Train: true})
			backend.SoftmaxCrossEntropy(m.be, m.GradLogits(), logits, backend.Tensor{}, labels)
			return lastLoss(t, m.be).Mean
		}
		lossOf()
		m.Backward()
		for i, name := range m.params.Names() {
			if !strings.Contains(name, "edges") {
				continue
			}
			grad, at := values(m.be, m.params.Grad(i)), m.params.Weight(i)
			w := values(m.be, at)
			for k := range w {
				const h = 1.0 / 64
				moved := func(by float32) float64 {
					x := slices.Clone(w)
					x[k] += by
					m.be.Write(at, x)
					return lossOf()
				}
				want := (moved(h) - moved(-h)) / (2 * h)
				if d := math.Abs(float64(grad[k]) - want); d > 2e-3+0.03*math.Abs(want) {
					t.Errorf("%s: gradient %d of %s is %g, differences give %g", a.Name(), k,
						name, grad[k], want)
				}
			}
			m.be.Write(at, w)
		}
	}
}

// attentive computes the logits of gat with columns of edges, of two heads, node by node.
func (m *Model) attentive(g *sampletest.Graph) (logits []float32) {
	const heads, n = 2, 3
	h := make([][]float32, g.Nodes())
	for v := range h {
		h[v] = featuresOf(sample.NodeID(v), 6)
	}
	for l := range 2 {
		width, next := m.spec.headWidth(l), make([][]float32, len(h))
		plain := func(name string, cols int) func(x []float32) []float32 {
			w := m.weights(l, name)
			return func(x []float32) []float32 {
				return multiplied(func(_, i, o int) float32 { return w[i*cols+o] }, 0, x, cols)
			}
		}
		times, edges := plain("weights", heads*width), plain("edges", heads*width)
		src, dst := plain("attention of sources", heads), plain("attention of targets", heads)
		ofEdges, bias := plain("attention of edges", heads), m.weights(l, "bias")
		for v := range h {
			y := make([]float32, heads*width)
			for k := range heads {
				part, total := y[k*width:][:width], 0.0
				add := func(u int, e []float32) {
					z := times(h[u])[k*width:][:width]
					score := src(z)[k] + dst(times(h[v])[k*width:][:width])[k] + ofEdges(e)[k]
					a := math.Exp(float64(max(score, leak*score)))
					total += a
					for i, x := range edges(e)[k*width:][:width] {
						part[i] += float32(a) * (z[i] + x)
					}
				}
				for at, u := range g.List(sample.NodeID(v)) {
					e := make([]float32, n)
					for i := range e {
						e[i] = plantedColumns(n).of(sample.NodeID(v), at, i)
					}
					add(int(u), e)
				}
				add(v, make([]float32, n))
				for i := range part {
					part[i] /= float32(total)
				}
			}
			if l == 1 {
				for i := range width {
					y[i] = (y[i] + y[width+i]) / 2
				}
				y = y[:width]
			}
			for i := range y {
				if y[i] += bias[i]; l == 0 && y[i] < 0 {
					y[i] = float32(math.Expm1(float64(y[i])))
				}
			}
			next[v] = y
		}
		h = next
	}
	return slices.Concat(h[:10]...)
}

// TestHGT compares hgt with its definition, node by node.
func TestHGT(t *testing.T) {
	g, _ := repeated()
	g.Classify(4, 5)
	s := &Spec{Architecture: hgt{}, Dims: []int{6, 8, 3}, Options: setting.Options{Heads: 2,
		Relations: 4, NodeTypes: []int{0, 4, 200}, TypeWidths: []int{6, 2, 5}}}
	got, m := logitsOf(t, s, g)
	h, kinds := make([][]float32, g.Nodes()), make([]uint32, 1)
	for v := range h {
		h[v] = featuresOf(sample.NodeID(v), 6)
	}
	for l := range 2 {
		times := func(name string, parts []int, cols int, v int, x []float32) []float32 {
			program.NodeTypes(kinds, []uint32{uint32(v)}, s.NodeTypes)
			return multiplied(stacked(m.weights(l, name), parts, cols), int(kinds[0]), x, cols)
		}
		all := []int{8, 8, 8}
		for v := range h {
			if l == 0 {
				h[v] = times("input", s.typeParts(0), 8, v, h[v])
				for i, x := range h[v] {
					h[v][i] = max(0, x)
				}
			}
		}
		next := make([][]float32, len(h))
		for v := range h {
			y, weights := make([]float32, 8), [2]float64{}
			for head := range 2 {
				part := func(x []float32) []float32 { return x[4*head:][:4] }
				by := func(name string, r int, x []float32) []float32 {
					w := stacked(m.weights(l, name), []int{4, 4, 4, 4}, 8)
					return multiplied(func(r, i, o int) float32 {
						return w(r, i, o+4*head)
					}, r, part(x), 4)
				}
				for e := g.Off[v]; e < g.Off[v+1]; e++ {
					u, r := int(g.Nbrs[e]), int(g.Types[e])
					score := 0.0
					asked := by("attention", r, times("queries", all, 8, v, h[v]))
					for i, k := range part(times("keys", all, 8, u, h[u])) {
						score += float64(k*asked[i]) / 2
					}
					a := math.Exp(score)
					weights[head] += a
					for i, x := range by("messages", r, times("values", all, 8, u, h[u])) {
						part(y)[i] += float32(a) * x
					}
				}
			}
			for i, x := range y {
				if x /= float32(weights[i/4]); x != x {
					x = 0 // no neighbors
				}
				y[i] = x / 2 * float32(1+math.Erf(float64(x)/math.Sqrt2))
			}
			next[v] = times("result", all, s.Dims[l+1], v, y)
			for i := range next[v] {
				if l == 0 {
					next[v][i] += h[v][i]
				}
			}
		}
		h = next
	}
	sameLogits(t, "hgt", got, slices.Concat(h[:10]...))
}

// TestRGAT compares rgat with its definition, node by node.
func TestRGAT(t *testing.T) {
	g, _ := repeated()
	g.Classify(4, 5)
	s := &Spec{Architecture: rgat{}, Dims: []int{6, 8, 3}, Options: setting.Options{Heads: 2,
		Relations: 4, NodeTypes: []int{0, 4, 200}, TypeWidths: []int{6, 2, 5}}}
	got, m := logitsOf(t, s, g)
	h, kinds := make([][]float32, g.Nodes()), make([]uint32, 1)
	times := func(l int, name string, parts []int, cols, v int, x []float32) []float32 {
		program.NodeTypes(kinds, []uint32{uint32(v)}, s.NodeTypes)
		return multiplied(stacked(m.weights(l, name), parts, cols), int(kinds[0]), x, cols)
	}
	for v := range h {
		h[v] = times(0, "input", s.typeParts(0), 8, v, featuresOf(sample.NodeID(v), 6))
		for i, x := range h[v] {
			h[v][i] = max(0, x)
		}
	}
	for l, cols := range []int{8, 6} { // of both heads
		next := make([][]float32, len(h))
		for v := range h {
			y := m.attendedRelations(g, l, cols, h, v)
			if l == 1 {
				y = []float32{(y[0] + y[3]) / 2, (y[1] + y[4]) / 2, (y[2] + y[5]) / 2}
			}
			for i, x := range times(l, "self", []int{8, 8, 8}, len(y), v, h[v]) {
				if y[i] += x; l == 0 && y[i] < 0 {
					y[i] = float32(math.Expm1(float64(y[i])))
				}
			}
			next[v] = y
		}
		h = next
	}
	sameLogits(t, "rgat", got, slices.Concat(h[:10]...))
}

// attendedRelations returns what two heads of rgat sum up of a list in layer l, side by side.
func (m *Model) attendedRelations(g *sampletest.Graph, l, cols int, h [][]float32,
	v int) []float32 {
	y, d := make([]float32, cols), cols/2
	relations := stacked(m.weights(l, "relations"), []int{8, 8, 8, 8}, cols)
	source, target := m.weights(l, "attention of sources"), m.weights(l, "attention of targets")
	for head := range 2 {
		part, total := y[head*d:][:d], 0.0
		for e := g.Off[v]; e < g.Off[v+1]; e++ {
			r, score := int(g.Types[e]), float32(0)
			z := multiplied(relations, r, h[g.Nbrs[e]], cols)[head*d:][:d]
			own := multiplied(relations, r, h[v], cols)[head*d:][:d]
			for i := range z {
				at := r*cols + head*d + i
				score += source[at]*z[i] + target[at]*own[i]
			}
			a := math.Exp(float64(max(score, leak*score)))
			total += a
			for i, x := range z {
				part[i] += float32(a) * x
			}
		}
		for i := range part {
			if total > 0 {
				part[i] /= float32(total)
			}
		}
	}
	return y
}

// multiplied returns the product of a row with the matrix of a type.
func multiplied(w func(kind, i, o int) float32, kind int, x []float32, cols int) []float32 {
	y := make([]float32, cols)
	for o := range y {
		for i, v := range x {
			y[o] += v * w(kind, i, o)
		}
	}
	return y
}

// TestDrawnByWeight: what is drawn by weight has plain means, and whole lists weighted ones; sums
// are refused.
func TestDrawnByWeight(t *testing.T) {
	s := &Spec{Architecture: sage{}, Dims: []int{6, 8, 3}, DrawnByWeight: true,
		Options: setting.Options{EdgeWeight: true}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Extras().EdgeWeights || !s.ExactLayers()[0].Reads(program.EdgeWeight) {
		t.Error("weights count twice, or not at all")
	}
	s.Aggregate = "sum"
	if err := s.Validate(); err == nil {
		t.Error("a sum over draws by weight was taken")
	}
}
