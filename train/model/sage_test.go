package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"
)

// golden is testdata/sage.json: a pass of an independent implementation, testdata/sage.py.
type golden struct {
	Dims          []int           `json:"dims"`
	Seeds         []sample.NodeID `json:"seeds"`
	NodeIDOffsets []uint32        `json:"node_id_offsets"`
	NodeIDs       []sample.NodeID `json:"node_ids"`
	NbrOffsets    []uint32        `json:"nbr_offsets"`
	Nbrs          []sample.NodeID `json:"nbrs"`
	ReprMap       []uint32        `json:"repr_map"`
	X             []float32       `json:"x"`
	Weights       []goldenLayer   `json:"weights"`
	Labels        []int32         `json:"labels"`
	Targets       []float32       `json:"targets"`
	Logits        []float64       `json:"logits"`
	SoftmaxLoss   float64         `json:"softmax_loss"`
	SoftmaxGrads  []goldenLayer   `json:"softmax_grads"`
	BCELoss       float64         `json:"bce_loss"`
	BCEGrads      []goldenLayer   `json:"bce_grads"`
}

type goldenLayer struct {
	Self []float32 `json:"self"`
	Nbr  []float32 `json:"nbr"`
	Bias []float32 `json:"bias"`
}

func loadGolden(t *testing.T) *golden {
	t.Helper()
	b, err := os.ReadFile("testdata/sage.json")
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{}
	if err := json.Unmarshal(b, g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *golden) dense() *dense.Lists {
	return &dense.Lists{NodeIDOffsets: g.NodeIDOffsets, NbrOffsets: g.NbrOffsets,
		ReprMap: g.ReprMap}
}

func openCPU(t testing.TB, workers int) backend.Backend {
	t.Helper()
	be, err := backend.OpenCPU(backend.Options{Workers: workers, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	})
	return be
}

func newModel(t testing.TB, be backend.Backend, dims []int) *Model {
	t.Helper()
	m, err := New(be, &Spec{Architecture: sage{}, Dims: dims}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (g *golden) model(t *testing.T, be backend.Backend) *Model {
	m := newModel(t, be, g.Dims)
	for i, w := range g.Weights {
		be.Write(m.params.Weight(3*i), w.Self)
		be.Write(m.params.Weight(3*i+1), w.Nbr)
		be.Write(m.params.Weight(3*i+2), w.Bias)
	}
	return m
}

const goldenTolerance = 1e-5

func checkClose[T float32 | float64](t *testing.T, what string, got []float32, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= goldenTolerance) {
			t.Fatalf("%s[%d] = %g, want %g", what, i, got[i], want[i])
		}
	}
}

func values(be backend.Backend, x backend.Tensor) []float32 {
	out := make([]float32, x.Len())
	be.Read(out, x)
	return out
}

// orders are the ways to order aggregation and transformation.
var orders = map[string]*uint64{"by cost": nil, "aggregate first": new(uint64),
	"transform first": ptr(math.MaxUint64)}

func ptr(x uint64) *uint64 { return &x }

func TestAgainstIndependentImplementation(t *testing.T) {
	g := loadGolden(t)
	for name, order := range orders {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(t *testing.T) {
				be := openCPU(t, workers)
				m := g.model(t, be)
				m.spec.Order = order
				s := Step{Train: true}
				for range 2 { // the second step uses memory of the first
					logits := mustForward(t, be, m, g, s)
					checkClose(t, "logits", values(be, logits), g.Logits)
					backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
						g.Labels)
					loss := lastLoss(t, be)
					if loss.Rows != 4 || math.Abs(loss.Mean-g.SoftmaxLoss) > goldenTolerance {
						t.Fatalf("loss %+v, want %g over 4 rows", loss, g.SoftmaxLoss)
					}
					m.Backward()
					checkGrads(t, be, m, g.SoftmaxGrads)

					logits = mustForward(t, be, m, g, s)
					targets := be.Host(g.Targets, len(g.Seeds), g.Dims[len(g.Dims)-1])
					backend.SigmoidBCE(be, m.GradLogits(), logits, targets, backend.Tensor{})
					if loss := lastLoss(t, be); math.Abs(loss.Mean-g.BCELoss) > goldenTolerance {
						t.Fatalf("loss %+v, want %g", loss, g.BCELoss)
					}
					m.Backward()
					checkGrads(t, be, m, g.BCEGrads)
				}
			})
		}
	}
}

// lastLoss returns the loss of the only step since the last call.
func lastLoss(t *testing.T, be backend.Backend) backend.Loss {
	t.Helper()
	all := be.Losses(nil)
	if len(all) != 1 || be.Err() != nil {
		t.Fatalf("losses %+v of one step, %v", all, be.Err())
	}
	return all[0]
}

func mustForward(t testing.TB, be backend.Backend, m *Model, g *golden, s Step) backend.Tensor {
	t.Helper()
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	x := append([]float32(nil), g.X...)
	logits, err := m.Forward(g.dense(), x, s)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

func checkGrads(t *testing.T, be backend.Backend, m *Model, want []goldenLayer) {
	t.Helper()
	for i, w := range want {
		for k, want := range [][]float32{w.Self, w.Nbr, w.Bias} {
			checkClose(t, m.params.Names()[3*i+k], values(be, m.params.Grad(3*i+k)), want)
		}
	}
}

// TestGradientsByDifferences holds the gradients of every parameter, with dropout, against finite
// differences of the loss.
func TestGradientsByDifferences(t *testing.T) {
	g := loadGolden(t)
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			be := openCPU(t, 2)
			m := g.model(t, be)
			m.spec.Order = order
			m.spec.Dropout = 0.3
			s := Step{Train: true, Seed: 5, Epoch: 1, Batch: 2}
			lossOf := func() float64 {
				logits := mustForward(t, be, m, g, s)
				backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
					g.Labels)
				return lastLoss(t, be).Mean
			}
			lossOf()
			m.Backward()
			grad, w := values(be, m.params.G), values(be, m.params.W)
			draw := rng.NewStream(1)
			for range 120 {
				i := int(draw.Below(uint64(len(w))))
				const h = 1.0 / 256
				old := w[i]
				w[i] = old + h
				be.Write(m.params.W, w)
				up := lossOf()
				w[i] = old - h
				be.Write(m.params.W, w)
				down := lossOf()
				w[i] = old
				be.Write(m.params.W, w)
				want := (up - down) / (2 * h)
				// The loss is piecewise smooth: a ReLU between the two points spoils a few.
				if d := math.Abs(float64(grad[i]) - want); d > 2e-3+0.02*math.Abs(want) {
					t.Errorf("gradient of parameter %d is %g, differences give %g", i, grad[i],
						want)
				}
			}
		})
	}
}

func TestDropoutIsOfTheStep(t *testing.T) {
	g := loadGolden(t)
	be := openCPU(t, 2)
	m := g.model(t, be)
	m.spec.Dropout = 0.5
	run := func(s Step) []float32 { return values(be, mustForward(t, be, m, g, s)) }
	base := Step{Train: true, Seed: 1, Epoch: 2, Batch: 3}
	first := run(base)
	if !equal(first, run(base)) {
		t.Error("the same step drops out differently")
	}
	for name, s := range map[string]Step{
		"seed":  {Train: true, Seed: 2, Epoch: 2, Batch: 3},
		"epoch": {Train: true, Seed: 1, Epoch: 3, Batch: 3},
		"batch": {Train: true, Seed: 1, Epoch: 2, Batch: 4},
		"eval":  {Seed: 1, Epoch: 2, Batch: 3},
	} {
		if equal(first, run(s)) {
			t.Errorf("another %s drops out the same", name)
		}
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// countedBackend counts the scratch of a step.
type countedBackend struct {
	backend.Backend
	floats int64
}

func (c *countedBackend) Scratch(rows, cols int) backend.Tensor {
	c.floats += int64(rows * cols)
	return c.Backend.Scratch(rows, cols)
}

func (c *countedBackend) Segments(l backend.Lists) backend.Segments {
	if l.Rows > 0 {
		c.floats += int64(backend.SegmentFloats(l.Rows, len(l.Idx), len(l.Off)-1,
			l.Entries))
	}
	return c.Backend.Segments(l)
}

// TestDeadRowsAreOverwritten: results that find a place in the inputs, and those that do not, are
// the same, and so are gradients.
func TestDeadRowsAreOverwritten(t *testing.T) {
	g := loadGolden(t)
	run := func(table bool) (all []float32, floats int64) {
		be := &countedBackend{Backend: openCPU(t, 2)} // in float32
		m := g.model(t, be)
		m.spec.Order = orders["aggregate first"]
		s, x := Step{Train: true}, slices.Clone(g.X)
		if table {
			s.Table = be.Table(slices.Clone(g.X), len(g.NodeIDs), g.Dims[0])
			s.Rows = g.ReprMap
			x = x[int(g.NodeIDOffsets[1])*g.Dims[0]:]
		}
		if err := be.Begin(); err != nil {
			t.Fatal(err)
		}
		logits, err := m.Forward(g.dense(), x, s)
		if err != nil {
			t.Fatal(err)
		}
		all = values(be, logits)
		backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
			g.Labels)
		m.Backward()
		return append(all, values(be, m.params.G)...), be.floats
	}
	want, most := run(true)
	got, least := run(false)
	if !equal(got, want) {
		t.Error("values differ from those of a step that overwrites nothing")
	}
	if least >= most {
		t.Errorf("a step takes %d floats besides its inputs, %d if it overwrites none", least, most)
	}
}

func TestInitialWeights(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, []int{100, 50, 7})
	m.params.Init(be, 1)
	w := values(be, m.params.W)
	limit := float32(math.Sqrt(6.0 / 150))
	sum := 0.0
	for _, v := range w[:100*50] {
		if v < -limit || v > limit {
			t.Fatalf("weight %g beyond ±%g", v, limit)
		}
		sum += float64(v) * float64(v)
	}
	if want := float64(limit*limit) / 3; math.Abs(sum/5000-want) > 0.1*want {
		t.Errorf("variance %g, want %g", sum/5000, want)
	}
	for _, v := range values(be, m.params.Weight(2)) {
		if v != 0 {
			t.Fatal("a bias does not start at zero")
		}
	}
	m.params.Init(be, 2)
	if equal(w, values(be, m.params.W)) {
		t.Error("another seed gives the same weights")
	}
}
