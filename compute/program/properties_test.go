package program

import (
	"math"
	"slices"
	"testing"

	"gdb/internal/dense"
)

// TestPropertyValues compares each property of a batch with values worked out by hand. Nodes 0 and
// 1 are inputs alone; node 2 has the list 0, 1, 0, node 3 an empty one, node 4 the list 2.
func TestPropertyValues(t *testing.T) {
	in := &Input{
		Dense: &dense.Lists{
			NodeIDOffsets: []uint32{0, 2, 5},
			NbrOffsets:    []uint32{0, 3, 3, 4},
			ReprMap:       []uint32{0, 1, 0, 2},
			Weights:       []float32{.5, 1.5, 2, 8},
			Types:         []uint32{1, 0, 1, 1},
			WeightSums:    []float32{3, -2, 5, 0, 16},
		},
		Degrees: []uint32{3, 0, 6, 0, 8},
	}
	var m measures
	for _, c := range []struct {
		name string
		kind Property
		want []float64
	}{
		{"InvSqrtDegree", InvSqrtDegree, []float64{.5, 1, 1 / math.Sqrt(7), 1, 1. / 3}},
		{"InvSqrtWeight", InvSqrtWeight, []float64{.5, 0, 1 / math.Sqrt(6), 1, 1 / math.Sqrt(17)}},
		{"ListScale", ListScale, []float64{2, 0, 8}},
		{"InvListWeight", InvListWeight, []float64{.25, 0, .125}},
		{"InvDegree", InvDegree, []float64{1. / 6, 0, .125}},
		{"InvWeightSum", InvWeightSum, []float64{.2, 0, .0625}},
		{"TypeShare", TypeShare, []float64{.5, 1, .5, 1}},
		{"weights", EdgeWeight, []float64{.5, 1.5, 2, 8}},
	} {
		got := m.values(c.kind, in)
		if !slices.EqualFunc(got, c.want, func(a float32, b float64) bool {
			return math.Abs(float64(a)-b) < 1e-6
		}) {
			t.Errorf("%s is %v, want %v", c.name, got, c.want)
		}
	}
}

// TestNodeTypes: a node has the last type that begins at it or before it; a type may have no nodes.
func TestNodeTypes(t *testing.T) {
	got := make([]uint32, 7)
	NodeTypes(got, []uint32{0, 9, 10, 24, 25, 26, 9}, []int{0, 10, 10, 25})
	if want := []uint32{0, 0, 2, 2, 3, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("types %v, want %v", got, want)
	}
	if NodeTypes(got, []uint32{7}, []int{0}); got[0] != 0 {
		t.Errorf("of one type: %d", got[0])
	}
}

// TestDeadOperations: what nothing reads is not computed.
func TestDeadOperations(t *testing.T) {
	model := func(dead bool) Model {
		return func(b *Builder, x Value) Value {
			h := testDense(b, x, "a", 16)
			if dead {
				b.GELU(b.Scale(h, 2))
			}
			return b.Pull(h, b.Lists(), Mean)
		}
	}
	for _, train := range []bool{false, true} {
		o := Options{Layers: 1, Features: testCols, Train: train}
		with, without := Make(&Params{}, model(true), o), Make(&Params{}, model(false), o)
		if with.Len() != without.Len() {
			t.Errorf("%d operations, want %d\n%s", with.Len(), without.Len(), with)
		}
	}
}
