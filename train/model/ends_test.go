package model

import (
	"math"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/rng"
)

// TestHeadOfEdges: what is computed of edges follows from the outputs of their ends, as plain loops
// compute it, and gradients of all parameters agree with differences of the loss. An edge may lead
// from a node to itself, and a node may be an end of several.
func TestHeadOfEdges(t *testing.T) {
	g, be := loadGolden(t), openCPU(t, 2)
	d := g.dense()
	seeds := d.Nodes() - int(d.NodeIDOffsets[d.Layers()])
	d.Ends = []uint32{0, 1, 1, 1, uint32(seeds) - 1, 0, 1, 0}
	edges, width := len(d.Ends)/2, g.Dims[len(g.Dims)-1]
	m, err := New(be, &Spec{Architecture: sage{}, Dims: g.Dims, EdgeOutputs: 2}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.params.Init(be, 3)
	forward := func(m *Model) backend.Tensor {
		if err := be.Begin(); err != nil {
			t.Fatal(err)
		}
		y, err := m.Forward(d, append([]float32(nil), g.X...), Step{Train: true})
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	got := values(be, forward(m))

	ends, err := New(be, &Spec{Architecture: sage{}, Dims: g.Dims}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	be.Write(ends.params.W, values(be, m.params.W)[:ends.params.Total])
	z, of := values(be, forward(ends)), m.params.Names()
	param := func(name string) []float32 {
		for i, n := range of {
			if n == "head "+name {
				return values(be, m.params.Weight(i))
			}
		}
		t.Fatalf("no parameter %q in %v", name, of)
		return nil
	}
	first, second, both := param("first"), param("second"), param("both")
	bias, outputs, last := param("bias"), param("outputs"), param("outputs bias")
	for e := range edges {
		u, v := z[int(d.Ends[2*e])*width:][:width], z[int(d.Ends[2*e+1])*width:][:width]
		want := append([]float32(nil), last...)
		for j := range width {
			h := bias[j]
			for i := range width {
				h += u[i]*first[i*width+j] + v[i]*second[i*width+j] + u[i]*v[i]*both[i*width+j]
			}
			for k := range want {
				want[k] += max(0, h) * outputs[j*2+k]
			}
		}
		for k := range want {
			if diff := got[2*e+k] - want[k]; diff > 1e-4 || diff < -1e-4 {
				t.Errorf("output %d of edge %d is %g, want %g", k, e, got[2*e+k], want[k])
			}
		}
	}

	lossOf := func() float64 {
		backend.SoftmaxCrossEntropy(be, m.GradLogits(), forward(m), backend.Tensor{},
			[]int32{0, 1, 1, 0})
		return lastLoss(t, be).Mean
	}
	lossOf()
	m.Backward()
	grad, w := values(be, m.params.G), values(be, m.params.W)
	draw := rng.NewStream(2)
	for range 150 {
		i, old := int(draw.Below(uint64(len(w)))), float32(0)
		const h = 1.0 / 256
		at := func(x float32) float64 {
			w[i] = x
			be.Write(m.params.W, w)
			return lossOf()
		}
		old = w[i]
		want := (at(old+h) - at(old-h)) / (2 * h)
		at(old)
		if d := math.Abs(float64(grad[i]) - want); d > 3e-3+0.02*math.Abs(want) {
			t.Errorf("gradient of parameter %d is %g, differences give %g", i, grad[i], want)
		}
	}
}
