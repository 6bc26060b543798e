package train

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"gdb/sample"
	"gdb/train/history"
	"gdb/train/setting"
)

// pbsConfig has neighbors outside memory by their hidden states.
func pbsConfig() Config {
	c := partitionConfigs()["macro"]
	c.Strategy, c.Norm = setting.StrategyPBS, ""
	return c
}

// plainSage computes a batch of GraphSAGE with two layers and ReLU, node by node: the hidden states
// of nodes in memory, those of others from the history, and the mean loss.
type plainSage struct {
	b      *sample.Batch
	h      *history.History
	of     map[string][]float32 // weights by name
	cols   map[string]int
	summed bool        // rows have the means of whole lists, and the first layer reads no lists
	hidden [][]float32 // nil where there is none
}

// times adds x times a matrix to y.
func (p *plainSage) times(y, x []float32, name string) {
	for i, v := range x {
		for j := range y {
			y[j] += v * p.of[name][i*p.cols[name]+j]
		}
	}
}

// layer computes a row from the rows of a node and of its neighbors.
func (p *plainSage) layer(at string, own []float32, neighbors [][]float32) []float32 {
	y, mean := make([]float32, p.cols[at+"self"]), make([]float32, len(own))
	for _, x := range neighbors {
		for j := range x {
			mean[j] += x[j] / float32(len(neighbors))
		}
	}
	p.times(y, own, at+"self")
	p.times(y, mean, at+"neighbors")
	for j := range y {
		y[j] += p.of[at+"bias"][j]
	}
	return y
}

// rows returns what is known of the neighbors of the node at a position, as of tells.
func (p *plainSage) rows(i int, of func(i uint32) []float32) (all [][]float32) {
	d := &p.b.Dense
	k := i - int(d.NodeIDOffsets[1])
	for _, r := range d.ReprMap[d.NbrOffsets[k]:d.NbrOffsets[k+1]] {
		if x := of(r); x != nil {
			all = append(all, x)
		}
	}
	return all
}

// firstHidden returns the first node that has hidden states.
func (p *plainSage) firstHidden() int {
	if p.summed {
		return 0
	}
	return int(p.b.Dense.NodeIDOffsets[1])
}

// states computes the hidden states.
func (p *plainSage) states() {
	d := &p.b.Dense
	p.hidden = make([][]float32, len(d.NodeIDs))
	x := func(i uint32) []float32 { return p.b.X[int(i)*p.b.Dim:][:p.b.Dim] }
	for i := p.firstHidden(); i < len(d.NodeIDs); i++ {
		if v := d.NodeIDs[i]; p.h.Outside(v) {
			if states, written := p.h.Row(v); written[0] > 0 {
				p.hidden[i] = states
			}
			continue
		}
		if own := x(uint32(i)); p.summed {
			n := len(own) / 2
			p.hidden[i] = p.layer("layer 1 ", own[:n], [][]float32{own[n:]})
		} else {
			p.hidden[i] = p.layer("layer 1 ", own, p.rows(i, x))
		}
		for j, v := range p.hidden[i] {
			p.hidden[i][j] = max(0, v)
		}
	}
}

// loss computes the mean loss from the hidden states.
func (p *plainSage) loss() (loss float64) {
	n := 0
	for s, label := range p.b.Labels {
		if label < 0 {
			continue
		}
		i := int(p.b.Dense.NodeIDOffsets[p.b.Dense.Layers()]) + s
		y := p.layer("layer 2 ", p.hidden[i],
			p.rows(i, func(i uint32) []float32 { return p.hidden[i] }))
		sum := 0.0
		for _, v := range y {
			sum += math.Exp(float64(v))
		}
		loss += math.Log(sum) - float64(y[label])
		n++
	}
	return loss / float64(n)
}

// TestHistory holds each batch of three epochs against the plain computation: the hidden states
// that it leaves, and its loss. Other states stay as they are.
func TestHistory(t *testing.T) {
	for name, sums := range map[string]bool{"drawn": false, "sums ahead": true} {
		t.Run(name, func(t *testing.T) {
			c := pbsConfig()
			c.Dropout, c.Epochs, c.Hubs, c.Precompute = 0, 3, setting.HubsNone, sums
			testHistory(t, c)
		})
	}
}

func testHistory(t *testing.T, c Config) {
	l, err := Open(t.Context(), mustBuild(t, planted(false)), mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h, read, refreshed, missing := l.s.steps.history, uint64(0), 0, uint64(0)
	for range c.Epochs {
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := e.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Refresh {
				refreshed++
			}
			checkHistory(t, l, b)
			read, missing = read+h.Used().States, missing+h.Used().Missing
			b.Release()
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if read == 0 || missing == 0 || refreshed == 0 {
		t.Errorf("%d states read, %d missing, %d batches refreshed: nothing to see", read, missing,
			refreshed)
	}
}

// checkHistory takes a step, and compares.
func checkHistory(t *testing.T, l *Training, b *sample.Batch) {
	t.Helper()
	s, h := l.s.steps, l.s.steps.history
	w, err := s.weights()
	if err != nil {
		t.Fatal(err)
	}
	p := &plainSage{b: b, h: h, of: map[string][]float32{}, cols: map[string]int{},
		summed: l.s.cfg.Precompute}
	s.model.Params().Each(func(name string, rows, cols, off int) {
		p.of[name], p.cols[name] = w[off:][:rows*cols], cols
	})
	want := 0.0
	if p.states(); !b.Refresh {
		want = p.loss()
	}
	all := map[sample.NodeID][]float32{} // states, and when they were written
	for v := range sample.NodeID(plantedNodes) {
		states, written := h.Row(v)
		all[v] = slices.Concat(states, written)
	}
	first := p.firstHidden()
	for i, v := range b.Dense.NodeIDs[first:] {
		if !h.Outside(v) {
			all[v] = append(p.hidden[first+i], float32(b.Epoch+1))
		} else if row := b.X[i*b.Dim:][:b.Dim]; p.summed && slices.Max(row) != slices.Min(row) {
			t.Fatalf("the row of node %d, which is not in memory, was read", v)
		}
	}
	got, err := l.Step(b)
	if err != nil || math.Abs(got-want) > 1e-4 {
		t.Fatalf("loss %g, want %g, %v", got, want, err)
	}
	for v, want := range all {
		states, written := h.Row(v)
		for j, got := range slices.Concat(states, written) {
			if math.Abs(float64(got-want[j])) > 1e-4 {
				t.Fatalf("value %d of node %d is %g, want %g", j, v, got, want[j])
			}
		}
	}
}
