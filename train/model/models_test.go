package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/dense"
	"gdb/sample"
	"gdb/train/setting"
)

// goldenModels is testdata/models.json: what an independent implementation, testdata/models.py,
// computed for every model.
type goldenModels struct {
	Labels  []int32       `json:"labels"`
	Batches []goldenBatch `json:"batches"` // by the number of layers, from 1
	Cases   []goldenCase  `json:"cases"`
}

type goldenBatch struct {
	NodeIDOffsets []uint32        `json:"node_id_offsets"`
	NodeIDs       []sample.NodeID `json:"node_ids"`
	NbrOffsets    []uint32        `json:"nbr_offsets"`
	Nbrs          []sample.NodeID `json:"nbrs"`
	ReprMap       []uint32        `json:"repr_map"`
	Degrees       []uint32        `json:"degrees"`
	X             []float32       `json:"x"`
}

func (b *goldenBatch) dense() *dense.Lists {
	return &dense.Lists{NodeIDOffsets: b.NodeIDOffsets, NbrOffsets: b.NbrOffsets,
		ReprMap: b.ReprMap, Degrees: b.Degrees}
}

// goldenCase is one model with its options, and a pass of it.
type goldenCase struct {
	Model string `json:"model"`
	setting.Options
	Dims   []int     `json:"dims"`
	Logits []float64 `json:"logits"`
	Loss   float64   `json:"loss"`
	Params []struct {
		Name   string    `json:"name"`
		Values []float32 `json:"values"`
		Grad   []float64 `json:"grad"`
	} `json:"params"`
}

func (c *goldenCase) String() string {
	return fmt.Sprintf("%s/dims=%v/%s", c.Model, c.Dims, c.Options.String())
}

func (c *goldenCase) spec(t *testing.T) *Spec {
	t.Helper()
	a, err := Find(c.Model)
	if err != nil {
		t.Fatal(err)
	}
	s := &Spec{Architecture: a, Dims: slices.Clone(c.Dims), Options: c.Options}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

func loadGoldenModels(t *testing.T) *goldenModels {
	t.Helper()
	b, err := os.ReadFile("testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	g := &goldenModels{}
	if err := json.Unmarshal(b, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestModelsAgainstIndependentImplementation holds logits, loss and gradients of every model in
// all orders of aggregation and product against those of testdata/models.py.
func TestModelsAgainstIndependentImplementation(t *testing.T) {
	g := loadGoldenModels(t)
	chosen := map[string][2]int{} // places in each order where that costs the least, by model
	for i := range g.Cases {
		c := &g.Cases[i]
		t.Run(c.String(), func(t *testing.T) {
			for _, workers := range []int{1, 3} {
				be, b := openCPU(t, workers), &g.Batches[len(c.Dims)-2]
				m := c.model(t, be)
				first, places := m.transformedFirst(b)
				n := chosen[c.Model]
				chosen[c.Model] = [2]int{n[0] + places - first, n[1] + first}
				for _, order := range m.allOrders() {
					m.spec.Order = order
					c.check(t, be, m, b, g.Labels)
				}
			}
		})
	}
	for _, name := range Names() {
		if n := chosen[name]; (n[0] == 0) != (n[1] == 0) {
			t.Errorf("%s: aggregation is first at %d places, product at %d: one is never", name,
				n[0], n[1])
		}
	}
	if n := chosen["sage"]; n[0] == 0 {
		t.Error("sage has no place where aggregation and product may change their order")
	}
}

// transformedFirst counts the places where a product comes before its aggregation by cost.
func (m *Model) transformedFirst(b *goldenBatch) (first, places int) {
	sizes := program.SizesOf(b.dense())
	p := m.programs.choose(programKey{train: true}, &sizes)
	for k, made := range m.programs.made {
		if made == p {
			first = bits.OnesCount64(k.order)
		}
	}
	return first, p.Places()
}

// allOrders are that of the least cost and all others.
func (m *Model) allOrders() []*uint64 {
	places := m.programs.get(programKey{train: true}).Places()
	orders := []*uint64{nil}
	for order := range uint64(1) << places {
		orders = append(orders, ptr(order))
	}
	return orders
}

// model has the parameters of the case, all of them.
func (c *goldenCase) model(t *testing.T, be backend.Backend) *Model {
	t.Helper()
	m, err := New(be, c.spec(t), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := m.params.Names()
	if len(names) != len(c.Params) {
		t.Fatalf("parameters %v, want %d", names, len(c.Params))
	}
	for _, p := range c.Params {
		i := slices.Index(names, p.Name)
		if i < 0 || m.params.Weight(i).Len() != len(p.Values) {
			t.Fatalf("parameters %v lack %s of %d values", names, p.Name, len(p.Values))
		}
		be.Write(m.params.Weight(i), p.Values)
	}
	return m
}

// check computes the case twice, so that the second step uses memory of the first.
func (c *goldenCase) check(t *testing.T, be backend.Backend, m *Model, b *goldenBatch,
	labels []int32) {
	t.Helper()
	for range 2 {
		logits := forwardOf(t, be, m, b, Step{Train: true})
		checkNear(t, m, "logits", values(be, logits), c.Logits)
		backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
			labels)
		loss := []float32{float32(lastLoss(t, be).Mean)}
		checkNear(t, m, "loss", loss, []float64{c.Loss})
		m.Backward()
		for _, p := range c.Params {
			i := slices.Index(m.params.Names(), p.Name)
			checkNear(t, m, "gradient of "+p.Name, values(be, m.params.Grad(i)), p.Grad)
		}
	}
}

func forwardOf(t *testing.T, be backend.Backend, m *Model, b *goldenBatch,
	s Step) backend.Tensor {
	t.Helper()
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	logits, err := m.Forward(b.dense(), slices.Clone(b.X), s)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

// checkNear allows 1e-4, of values above 1 in relation to the largest.
func checkNear(t *testing.T, m *Model, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	most := 1.0
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= 1e-4*most) {
			order := "by cost"
			if m.spec.Order != nil {
				order = fmt.Sprintf("%b", *m.spec.Order)
			}
			t.Fatalf("%s[%d] = %g, want %g; order %s, %d workers", what, i, got[i], want[i], order,
				m.be.About().Workers)
		}
	}
}
