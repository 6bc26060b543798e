package explain

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

// linear is a Net with one output: the sum over entries of mask × row of the entry × weights.
type linear struct {
	in         *Input
	weights    []float64 // of columns
	mask, rows []float32
}

func (l *linear) message(entry int) (sum float64) {
	for j := range l.in.Width {
		sum += float64(l.rows[entry*l.in.Width+j]) * l.weights[j]
	}
	return sum
}

func (l *linear) Outputs(mask, rows []float32) ([]float32, error) {
	l.mask, l.rows = slices.Clone(mask), slices.Clone(rows)
	sum := 0.0
	for i, m := range mask {
		sum += float64(m) * l.message(i)
	}
	return []float32{float32(sum)}, nil
}

func (l *linear) Gradients(outputs []float32) (mask, rows []float32, err error) {
	rows = make([]float32, len(l.rows))
	for i, m := range l.mask {
		mask = append(mask, outputs[0]*float32(l.message(i)))
		for j, w := range l.weights {
			rows[i*l.in.Width+j] = outputs[0] * m * float32(w)
		}
	}
	return mask, rows, nil
}

// planted is a neighborhood of 6 nodes with an entry each, of 5 edges: entries 0 and 5 are both
// ways of edge 0. Column 1 alone counts, of which edges 0 and 3 have much.
func planted() (*Input, *linear) {
	in := &Input{Edge: []int32{0, 1, 2, 3, 4, 0}, Edges: 5, Width: 2, Columns: 3,
		Rows:  []float32{1, 2, 1, 0, 1, 0, 1, 4, 1, -1, 1, 2},
		First: []int32{0, 0, 0, 0, 0, 0}, Wide: []int32{2, 2, 2, 2, 2, 2}}
	return in, &linear{in: in, weights: []float64{0, 1}}
}

func surprise(outputs, gradient []float32) float64 {
	p := 1 / (1 + math.Exp(-float64(outputs[0])))
	gradient[0] = float32(p - 1)
	return -math.Log(p)
}

// TestLearn: what raises the probability stays, what does not goes, and both directions of an edge
// have one mask.
func TestLearn(t *testing.T) {
	in, net := planted()
	m, err := Learn(t.Context(), net, in, surprise)
	if err != nil {
		t.Fatal(err)
	}
	for edge, keep := range []bool{true, false, false, true, false} {
		if got := m.Edges[edge]; keep != (got > 0.6) || !keep && got > 0.4 {
			t.Errorf("edge %d has a mask of %.3f, want it kept: %v", edge, got, keep)
		}
	}
	if m.Columns[1] < 0.3 || m.Columns[0] > 0.05 || m.Columns[2] > 0.05 {
		t.Errorf("columns have masks %.3f, want column 1 alone", m.Columns)
	}
	again, err := Learn(t.Context(), net, in, surprise)
	if err != nil || !slices.Equal(again.Edges, m.Edges) {
		t.Errorf("learning twice gives other masks: %v, %v", again, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Learn(ctx, net, in, surprise); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done, Learn returns %v", err)
	}
}

// TestTimesInput: of a linear output, gradients times inputs are what each adds to it.
func TestTimesInput(t *testing.T) {
	in, net := planted()
	g, err := TimesInput(net, in, func(_, gradient []float32) { gradient[0] = 1 })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want []float64
	}{{"edges", g.Edges, []float64{4, 0, 0, 4, -1}}, {"columns", g.Columns, []float64{0, 7, 0}},
		{"nodes", g.Nodes, []float64{2, 0, 0, 4, -1, 2}}} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s have %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestOnly: what is kept and what is left out, of edges with two entries and of columns.
func TestOnly(t *testing.T) {
	in, _ := planted()
	if got := in.OnlyEdges([]int{0, 4}, false); !slices.Equal(got, []float32{1, 0, 0, 0, 1, 1}) {
		t.Errorf("edges 0 and 4 alone are %v", got)
	}
	if got := in.OnlyEdges([]int{0}, true); !slices.Equal(got, []float32{0, 1, 1, 1, 1, 0}) {
		t.Errorf("without edge 0 there are %v", got)
	}
	if got := in.OnlyColumns([]int{1}, true)[:4]; !slices.Equal(got, []float32{1, 0, 1, 0}) {
		t.Errorf("without column 1 rows begin with %v", got)
	}
}

// TestTypes: rows of a type have columns of their own, and what stands behind them in a row is
// none.
func TestTypes(t *testing.T) {
	in := &Input{Edge: []int32{0, 1}, Edges: 2, Width: 2, Columns: 3, Rows: []float32{1, 5, 2, 3},
		First: []int32{0, 1}, Wide: []int32{1, 2}}
	net := &linear{in: in, weights: []float64{1, 1}}
	g, err := TimesInput(net, in, func(_, gradient []float32) { gradient[0] = 1 })
	if err != nil || !slices.Equal(g.Columns, []float64{1, 2, 3}) {
		t.Errorf("columns have %v (%v), want 1, 2, 3", g.Columns, err)
	}
}
