package model

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
	"gdb/train/setting"
)

// costOptions are options of which each takes memory in its own way.
var costOptions = []setting.Options{{Heads: 2}, {Heads: 1, Aggregate: "sum", Norm: "layer"},
	{Heads: 4, Aggregate: "mean", Residual: true, Activation: "gelu", Norm: "layer"},
	{Aggregate: "max", Activation: "elu", InputDropout: ptrTo(0.5)}}

func ptrTo(x float64) *float64 { return &x }

// sampledBatch is a mini-batch of some thousand nodes.
func sampledBatch(t *testing.T, fanout []int) *dense.Lists {
	t.Helper()
	g := sampletest.RMAT(13, 60000, 3)
	s, err := sample.NewSampler([]topology.Reader{g}, sample.Config{Fanout: fanout,
		Extras: sample.Extras{Degrees: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var seeds []sample.NodeID
	for v := range 300 {
		seeds = append(seeds, sample.NodeID(3*v))
	}
	d := &sample.Dense{}
	if err := s.Sample(context.Background(), 0, 0, seeds, d); err != nil {
		t.Fatal(err)
	}
	for i := range d.Nbrs { // of the graph's edges nothing has types
		d.Types = append(d.Types, uint32(i%relationsOfTests))
	}
	return &d.Lists
}

// relationsOfTests is how many types of edges batches have.
const relationsOfTests = 5

// TestStepCostCountsTheStep, of all models with rows that a step may overwrite and without, with
// layers too wide to find a place there, and with dropout.
func TestStepCostCountsTheStep(t *testing.T) {
	fanouts := [][]int{{7}, {6, 5}, {4, 3, 3}}
	for _, fanout := range fanouts {
		d := sampledBatch(t, fanout)
		for _, a := range architectures {
			for i, o := range costOptions {
				for _, hidden := range []int{4, 48, 600} {
					if hidden == 600 && i != 2 || len(fanout) == 1 && hidden != 4 {
						continue
					}
					dims := Widths(a, 24, 5, make([]int, len(fanout)-1))
					for l := range dims[1:len(fanout)] {
						if dims[l+1] == 0 {
							dims[l+1] = hidden
						}
					}
					s := &Spec{Architecture: a, Dims: dims, Options: o, Dropout: 0.25 * float32(i)}
					if s.Extras().EdgeTypes {
						s.Relations = relationsOfTests
					}
					if s.Validate() != nil {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/dims=%v", a.Name(), o.String(), dims),
						func(t *testing.T) {
							checkStepCost(t, s, d, fanout[0])
							half := *s
							half.Half = true
							checkStepCost(t, &half, d, fanout[0])
						})
				}
			}
		}
	}
}

// TestStepCostInPieces: rows in pieces take no more memory than is counted.
func TestStepCostInPieces(t *testing.T) {
	d := sampledBatch(t, []int{7, 5})
	for _, dropout := range []float32{0, 0.25} {
		checkStepCost(t, &Spec{Architecture: hsage{}, Dims: []int{24, 8, 5}, Dropout: dropout,
			Options: setting.Options{Relations: relationsOfTests, TypeWidths: []int{24}}}, d, 7)
	}
}

// halves are rows of a batch in two pieces each.
func halves(d *dense.Lists, cols int) (c kernel.Cut) {
	c.Dim = cols / 2
	for i := range 2 * d.Nodes() {
		c.At = append(c.At, uint32(i))
	}
	for i := range d.Nodes() + 1 {
		c.Off = append(c.Off, uint32(2*i))
	}
	return c
}

// TestCutGivesTheSame: rows that are read in pieces give logits and gradients of the same bits.
func TestCutGivesTheSame(t *testing.T) {
	d := sampledBatch(t, []int{6, 5})
	x := make([]float32, d.Nodes()*24)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	for _, dropout := range []float32{0, 0.25} {
		s := &Spec{Architecture: hsage{}, Dims: []int{24, 8, 20}, Dropout: dropout,
			Options: setting.Options{Relations: relationsOfTests, TypeWidths: []int{24}}}
		if !s.InPlace() {
			t.Fatal("rows are not read in place")
		}
		want, cut := resultsOf(t, s, d, x, nil), halves(d, 24)
		if got := resultsOf(t, s, d, x, &cut); !equal(got[0], want[0]) || !equal(got[1], want[1]) {
			t.Errorf("dropout %g: other logits or gradients", dropout)
		}
	}
}

func checkStepCost(t *testing.T, s *Spec, d *dense.Lists, longest int) {
	const workers = 3
	in, inner := s.Dims[0], int(d.NodeIDOffsets[1])
	if s.HalfFeatures() {
		in = rowfile.PackedDim(in)
	}
	for _, inPlace := range []bool{false, true} {
		if inPlace && !s.InPlace() {
			continue
		}
		total, held := mem.NewBudget(0), mem.NewBudget(0)
		cpu, err := backend.OpenCPU(backend.Options{Workers: workers, Budget: total})
		if err != nil {
			t.Fatal(err)
		}
		be := &countedBackend{Backend: cpu}
		m, err := New(be, s, true, held)
		if err != nil {
			t.Fatal(err)
		}
		params := total.Used()
		x, step := make([]float32, d.Nodes()*in), Step{Train: true, Seed: 1}
		own := x
		if inPlace {
			step.Table, step.Rows = be.Table(x, d.Nodes(), in), d.ReprMap
			own = make([]float32, len(x)-inner*in)
		}
		if inPlace && len(s.TypeWidths) > 0 { // rows may be in pieces
			step.Table, step.Rows, step.Cut = be.Table(x, 2*d.Nodes(), in/2), nil, halves(d, in)
		}
		for range 3 { // kernels take scratch of those before them
			be.floats = 0
			trainStep(t, be, m, d, own, step)
		}
		floats := be.floats
		if err := be.Begin(); err != nil { // counts what kernels hold
			t.Fatal(err)
		}
		if err := be.Trim(); err != nil {
			t.Fatal(err)
		}
		c := s.StepCost(d, inPlace, Growth{1, 1, 1}, workers, longest)
		if floats != c.Floats {
			t.Errorf("half %v, in place %v: %d floats, the model took %d", s.Half, inPlace,
				c.Floats, floats)
		}
		lists := c.Lists + c.Computed
		if step.Cut.Dim > 0 { // sorted entries name no rows
			lists -= int64(len(d.ReprMap))
		}
		if got := held.Used(); got < 4*lists || got > 5*lists {
			t.Errorf("half %v, in place %v: lists of %d bytes, the model holds %d", s.Half,
				inPlace, 4*lists, got)
		}
		// One worker may have done all the work.
		one := s.StepCost(d, inPlace, Growth{1, 1, 1}, 1, longest).KernelBytes
		got := total.Used() - params
		if got > c.KernelBytes || one > 3*got+2<<20 {
			t.Errorf("half %v, in place %v: kernels take %d bytes, they hold %d", s.Half,
				inPlace, c.KernelBytes, got)
		}
		if err := cpu.Close(); err != nil {
			t.Error(err)
		}
	}
}

// trainStep is one step of training.
func trainStep(t *testing.T, be backend.Backend, m *Model, d *dense.Lists, x []float32, s Step) {
	t.Helper()
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	logits, err := m.Forward(d, x, s)
	if err != nil {
		t.Fatal(err)
	}
	backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
		make([]int32, logits.Rows))
	m.Backward()
	if err := be.Err(); err != nil {
		t.Fatal(err)
	}
}
