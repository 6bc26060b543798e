package sample

import (
	"context"
	"errors"
	"testing"

	"gdb/layout/topology"
	"gdb/sample/sampletest"
)

// extrasGraph has lists without repeated neighbors, a hub among them, and weights and types that
// follow from the ends of an edge.
func extrasGraph() *sampletest.Graph {
	const nodes = 400
	lists := make([][]NodeID, nodes)
	for v := range lists {
		step := 1 + v%7*13
		for u := 0; u < nodes; u += step {
			lists[v] = append(lists[v], NodeID(u))
		}
	}
	lists[5] = nil
	g := sampletest.FromLists(lists...)
	for v := range nodes {
		for _, u := range g.List(NodeID(v)) {
			g.Weights = append(g.Weights, edgeWeight(u, NodeID(v)))
			g.Types = append(g.Types, edgeType(u, NodeID(v)))
		}
	}
	return timed(g, fewTimes)
}

func edgeWeight(u, v NodeID) float32 { return float32(u*31+v*7%97+1) / 64 }

func edgeType(u, v NodeID) uint32 { return uint32(u*5+v*3) % 1000 }

// TestExtras: each drawn neighbor has the weight and the type of its edge, and each node the degree
// and the sum of its whole list, whichever of them are asked for and however neighbors are drawn;
// and the draws stay the same.
func TestExtras(t *testing.T) {
	g := extrasGraph()
	for bits := range 64 * 3 {
		x := Extras{Degrees: bits&1 != 0, EdgeWeights: bits&2 != 0, EdgeTypes: bits&4 != 0,
			WeightSums: bits&8 != 0, Places: bits&32 != 0}
		if bits&16 != 0 {
			x.Columns = placed{t, g}
		}
		c := Config{Fanout: []int{3, All, 40}, Seed: 9, Draw: Draw(bits / 64)}
		plain := mustSampler(t, c, g)
		c.Extras = x
		s := mustSampler(t, c, g)
		var d, want Dense
		for batch := range uint64(3) {
			seeds := []NodeID{NodeID(30 + batch), 17, 300, 5}
			if err := errors.Join(s.Sample(t.Context(), 0, batch, seeds, &d),
				plain.Sample(t.Context(), 0, batch, seeds, &want)); err != nil {
				t.Fatal(err)
			}
			checkExtras(t, g, &d, x, c.Draw == DrawWeighted)
			d.Degrees, d.Types, d.WeightSums, d.Columns, d.Places = nil, nil, nil, nil, nil
			if c.Draw != DrawWeighted {
				d.Weights = nil
			}
			if !equalDense(&d, &want) {
				t.Fatalf("%+v: the draws changed", x)
			}
		}
	}
}

func checkExtras(t *testing.T, g *sampletest.Graph, d *Dense, x Extras, weighted bool) {
	t.Helper()
	count := func(asked bool, n int) int {
		if asked {
			return n
		}
		return 0
	}
	for _, n := range []struct{ got, want int }{
		{len(d.Degrees), count(x.Degrees, len(d.NodeIDs))},
		{len(d.WeightSums), count(x.WeightSums, len(d.NodeIDs))},
		{len(d.Weights), count(x.EdgeWeights || weighted, len(d.Nbrs))},
		{len(d.Types), count(x.EdgeTypes, len(d.Nbrs))},
		{len(d.Columns), count(x.Columns != nil, len(d.Nbrs))},
		{len(d.Places), count(x.Places || x.Columns != nil, len(d.Nbrs))},
	} {
		if n.got != n.want {
			t.Fatalf("%+v: an array of %d, want %d", x, n.got, n.want)
		}
	}
	inner := d.NodeIDs[d.NodeIDOffsets[1]:]
	for i, v := range inner {
		for e := d.NbrOffsets[i]; e < d.NbrOffsets[i+1]; e++ {
			if u := d.Nbrs[e]; len(d.Weights) > 0 && d.Weights[e] != edgeWeight(u, v) ||
				len(d.Types) > 0 && d.Types[e] != edgeType(u, v) ||
				len(d.Places) > 0 && g.List(v)[d.Places[e].At] != u {
				t.Fatalf("%+v: edge %d of node %d to %d has another weight, type or place", x, e, v,
					u)
			}
		}
	}
	for i, v := range d.NodeIDs {
		sum := float32(0)
		for _, w := range g.Weights[g.Off[v]:g.Off[v+1]] {
			sum += w
		}
		if x.Degrees && int(d.Degrees[i]) != len(g.List(v)) ||
			x.WeightSums && d.WeightSums[i] != sum {
			t.Fatalf("%+v: node %d: degree or sum is wrong", x, v)
		}
	}
}

// placed reads a column of which it knows nothing but the places of edges, which it checks.
type placed struct {
	t *testing.T
	g *sampletest.Graph
}

func (placed) Width() int { return 1 }

func (p placed) Fill(_ context.Context, d *Dense) error {
	d.Columns = d.Columns[:0]
	for i, v := range d.NodeIDs[d.NodeIDOffsets[1]:] {
		list := p.g.List(v)
		for e := d.NbrOffsets[i]; e < d.NbrOffsets[i+1]; e++ {
			at := d.Places[e]
			if int(at.Length) != len(list) || list[at.At] != d.Nbrs[e] {
				p.t.Fatalf("edge %d of node %d is at %+v", e, v, at)
			}
			d.Columns = append(d.Columns, float32(at.At))
		}
	}
	return nil
}

// unreadable has sessions that know nothing of what edges have.
type unreadable struct{ *sampletest.Graph }

func (u unreadable) NewSession() topology.Session {
	return struct{ topology.Session }{u.Graph.NewSession()}
}

func TestExtrasAreRefused(t *testing.T) {
	g := sampletest.FromLists([]NodeID{0, 1}, nil)
	for _, x := range []Extras{{EdgeWeights: true}, {EdgeTypes: true}, {WeightSums: true}} {
		if _, err := NewSampler([]topology.Reader{unreadable{g}},
			Config{Fanout: []int{1}, Extras: x}); err == nil {
			t.Errorf("%+v of lists that cannot be asked", x)
		}
		if _, err := NewSampler([]topology.Reader{g, g},
			Config{Fanout: []int{1}, Extras: x}); err == nil {
			t.Errorf("%+v of two directions", x)
		}
		s := mustSampler(t, Config{Fanout: []int{1}, Extras: x}, g)
		var d Dense
		err := s.Sample(context.Background(), 0, 0, []NodeID{0}, &d)
		if !errors.Is(err, topology.ErrNoWeights) && !errors.Is(err, topology.ErrNoTypes) {
			t.Errorf("%+v without weights and types: %v", x, err)
		}
	}
}
