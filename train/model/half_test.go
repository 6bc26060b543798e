package model

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/train/setting"
)

// packed returns rows of dim values as bfloat16, packed as features are read.
func packed(x []float32, dim int) []float32 {
	words := rowfile.PackedDim(dim)
	out := make([]float32, len(x)/dim*words)
	for i := range len(x) / dim {
		row := mem.View[bf16.Number](mem.BytesOf(out[i*words : (i+1)*words]))
		bf16.Narrow(nil, row[:dim], x[i*dim:(i+1)*dim])
	}
	return out
}

// halfSpecs returns a model of every architecture for features of in values, with layers wide
// enough that products are computed in bfloat16.
func halfSpecs(in int) (all []*Spec) {
	for _, a := range architectures {
		for _, o := range []setting.Options{{}, {Heads: 2, Aggregate: "sum", Residual: true,
			Norm: "layer"},
			{Heads: 1, Aggregate: "max", Activation: "gelu"}, {NodeEmbedding: 4}} {
			s := &Spec{Architecture: a, Dims: Widths(a, in, 20, []int{32}), Options: o,
				Dropout: 0.25}
			if s.Extras().EdgeTypes {
				s.Relations = relationsOfTests
			}
			if o.NodeEmbedding > 0 {
				s.Dropout = 0
			}
			if s.Validate() == nil {
				all = append(all, s)
			}
		}
	}
	return all
}

// TestHalfIsNearFloat32: in half precision logits and gradients are near those of float32, of every
// architecture, for even and odd widths of features; and the same to the bit where the first layer
// reads rows in place.
func TestHalfIsNearFloat32(t *testing.T) {
	d := sampledBatch(t, []int{6, 5})
	for _, in := range []int{24, 31} {
		x := make([]float32, d.Nodes()*in)
		for i := range x {
			x[i] = float32(math.Sin(float64(i))) + 0.25
		}
		bf16.Round(x)
		for _, s := range halfSpecs(in) {
			t.Run(fmt.Sprintf("%s/%s/in=%d", s.Name(), s.Options.String(), in),
				func(t *testing.T) { checkHalf(t, s, d, x) })
		}
	}
}

func checkHalf(t *testing.T, s *Spec, d *dense.Lists, x []float32) {
	want := resultsOf(t, s, d, x, nil)
	half := *s
	half.Half = true
	features := x
	if half.HalfFeatures() {
		features = packed(x, s.Dims[0])
	}
	got := resultsOf(t, &half, d, features, nil)
	for i, name := range []string{"logits", "gradients"} {
		// 2⁻⁹ is what one rounding may take; some follow each other.
		if d := distance(got[i], want[i]); !(d < 0.05) || d == 0 {
			t.Errorf("%s differ by %g of their norm", name, d)
		}
	}
	if half.HalfFeatures() && s.InPlace() && s.Dims[0]%2 == 0 {
		place := resultsOf(t, &half, d, features, &kernel.Cut{})
		if !equal(place[0], got[0]) || !equal(place[1], got[1]) {
			t.Error("rows that are read in place give other results")
		}
	}
}

// resultsOf are the logits and all gradients of one step, which reads rows in place if cut is not
// nil: in pieces if it says where.
func resultsOf(t *testing.T, s *Spec, d *dense.Lists, x []float32,
	cut *kernel.Cut) [2][]float32 {
	t.Helper()
	be := openCPU(t, 2)
	m, err := New(be, s, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Params().Init(be, 3)
	step, own := Step{Train: true, Seed: 1}, append([]float32(nil), x...)
	if cut != nil {
		width := len(x) / d.Nodes()
		step.Table, step.Rows = be.Table(x, d.Nodes(), width), d.ReprMap
		if step.Cut = *cut; cut.Dim > 0 {
			step.Table, step.Rows = be.Table(x, len(x)/cut.Dim, cut.Dim), nil
		}
		own = own[int(d.NodeIDOffsets[1])*width:]
	}
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	logits, err := m.Forward(d, own, step)
	if err != nil {
		t.Fatal(err)
	}
	out := values(be, logits)
	backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
		labelsOf(logits.Rows))
	m.Backward()
	if err := be.Err(); err != nil {
		t.Fatal(err)
	}
	return [2][]float32{out, values(be, m.Params().G)}
}

func labelsOf(n int) []int32 {
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i % 20)
	}
	return labels
}

// distance is the norm of a-b over that of b.
func distance(a, b []float32) float64 {
	diff, sum := 0.0, 0.0
	for i := range a {
		diff += float64(a[i]-b[i]) * float64(a[i]-b[i])
		sum += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(diff / sum)
}

// TestHalfProgram: products and sums over lists read bfloat16, weights are converted once a step,
// and an activation where it is made.
func TestHalfProgram(t *testing.T) {
	s := &Spec{Architecture: sage{}, Dims: []int{24, 32, 20}, Dropout: 0.5, Half: true}
	got := s.text()
	for _, line := range []string{"(N0 x 24 bf16) = dropout(features)",
		"(N1 x 24 bf16) = pull-mean(", "(24 x 32 bf16) = narrow(layer 1 self)",
		"(N1 x 32 bf16) = bias-relu(%9, layer 1 bias) dropout",
		"(N2 x 20 bf16) = narrow(", "(N1 x 32 bf16) = relu-grad("} {
		if strings.Count(got, line) != 1 {
			t.Errorf("%d lines with %q in\n%s", strings.Count(got, line), line, got)
		}
	}
	if n := strings.Count(got, "narrow("); n != 5 { // four weights, and the gradient of the loss
		t.Errorf("%d conversions in\n%s", n, got)
	}
}

// TestHalfAttention: in gat the bias, ELU and dropout of a layer are one operation, as is their
// gradient, and both write bfloat16.
func TestHalfAttention(t *testing.T) {
	s := &Spec{Architecture: gat{}, Dims: []int{24, 64, 64, 20}, Dropout: 0.5, Half: true}
	s.Heads = 4
	got := s.text()
	for line, want := range map[string]int{"= elu(": 2, "layer 1 bias) dropout": 1,
		"(N1 x 64 bf16) = elu-grad(": 1, "(N2 x 64 bf16) = elu-grad(": 1, "= bias(": 1,
		"= widen(": 0, "= narrow(layer": 3, "= narrow(": 7} { // and sums of gradients
		if n := strings.Count(got, line); n != want {
			t.Errorf("%d lines with %q, want %d, in\n%s", n, line, want, got)
		}
	}
}
