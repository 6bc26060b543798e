package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
)

// signalled returns a graph of nodes with 6 random neighbors each and one that carries a signal in
// column 2, which is the class of the node: its neighbor is as many nodes behind as there are.
func signalled(nodes int) layouttest.Graph {
	g := planted(false)
	g.Nodes, g.Dim, g.Classes = 2*nodes, 4, []string{"down", "up"}
	g.Features, g.Labels, g.Edges = nil, nil, nil
	g.Splits = map[string][]layout.NodeID{}
	for v := range 2 * nodes {
		row := []float32{float32(v%7)/7 - 0.5, float32(v%5)/5 - 0.5, 0, float32(v%3) / 3}
		label := int32(-1)
		if v < nodes {
			label = int32(v * 7 / 3 % 2)
			for k := range 6 {
				from := layout.NodeID((v*(k+3) + k*k) % nodes)
				g.Edges = append(g.Edges, layouttest.Edge{Src: from, Dst: layout.NodeID(v)})
			}
			g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v + nodes),
				Dst: layout.NodeID(v)})
			name := []string{"train", "train", "val", "test"}[v%4]
			g.Splits[name] = append(g.Splits[name], layout.NodeID(v))
		} else {
			row[2] = float32(2*((v-nodes)*7/3%2) - 1)
		}
		g.Labels, g.Features = append(g.Labels, label), append(g.Features, row...)
	}
	return g
}

func mustExplain(t *testing.T, s *layout.Store, c ExplainConfig) *Explanation {
	t.Helper()
	c.Run, c.Memory, c.Threads, c.Top = "t", 1<<30, 2, 10
	e, err := Explain(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExplainFindsWhatIsPlanted: the edge and the column that decide the class come first.
func TestExplainFindsWhatIsPlanted(t *testing.T) {
	const nodes = 160
	s := mustBuild(t, signalled(nodes))
	c := testConfig()
	c.Fanout, c.Epochs, c.Dropout = []int{7, 7}, 40, 0
	if res := mustRun(t, s, c); res.Test == nil || *res.Test < 0.95 {
		t.Fatalf("the model has not learned the signal: %v", res.Test)
	}
	found, columns := 0, 0
	for v := range 20 {
		e := mustExplain(t, s, ExplainConfig{Node: fmt.Sprint(v)})
		if slices.ContainsFunc(e.Edges[:3], func(x ExplainedEdge) bool {
			return x.Src == fmt.Sprint(v+nodes) && x.Dst == e.Node && x.Hops == 0
		}) {
			found++
		}
		if e.Columns[0].Name == "f2" {
			columns++
		}
		if *e.OnlyEdges.Confidence < *e.WithoutEdges.Confidence {
			t.Errorf("node %d: from the first edges alone the class has %.3f, without them %.3f", v,
				*e.OnlyEdges.Confidence, *e.WithoutEdges.Confidence)
		}
	}
	if found < 18 || columns < 18 {
		t.Errorf("of 20 nodes %d have the planted edge and %d the planted column first", found,
			columns)
	}
}

// TestExplainModels: with nothing masked, each model predicts what it predicts without a mask, and
// what is listed has finite numbers.
func TestExplainModels(t *testing.T) {
	for _, name := range []string{"sage", "gcn", "gat", "gatv2", "gin", "sgc", "mlp"} {
		t.Run(name, func(t *testing.T) {
			s := mustBuild(t, planted(false))
			c := testConfig()
			c.Model, c.Epochs, c.Norm = name, 2, "batch"
			mustRun(t, s, c)
			checkExplained(t, s, "5", name != "mlp")
		})
	}
	t.Run("of relations", func(t *testing.T) {
		for _, name := range []string{"rgcn", "hsage", "hgt", "rgat"} {
			g := planted(false)
			g.EdgeTypes = []string{"a", "b", "c"}
			for i := range g.Edges {
				g.Edges[i].Type = uint16(i * 5 % 3)
			}
			s := mustBuild(t, g)
			c := testConfig()
			c.Model, c.Epochs = name, 2
			mustRun(t, s, c)
			e := checkExplained(t, s, "5", true)
			if !slices.Contains(g.EdgeTypes, e.Edges[0].Relation) {
				t.Errorf("%s: an edge is of relation %q", name, e.Edges[0].Relation)
			}
		}
	})
}

func checkExplained(t *testing.T, s *layout.Store, node string, edges bool) *Explanation {
	t.Helper()
	e := mustExplain(t, s, ExplainConfig{Node: node})
	var id layout.NodeID
	if _, err := fmt.Sscan(node, &id); err != nil {
		t.Fatal(err)
	}
	err := PredictNodes(t.Context(), s, mustDevice(t), "t", false, []layout.NodeID{id}, 1<<30,
		func(_ layout.NodeID, prediction any, p float64) error {
			if prediction != e.Prediction || math.Abs(p-*e.Confidence) > 1e-4 {
				t.Errorf("explained is %v (%g), predicted %v (%g)", e.Prediction, *e.Confidence,
					prediction, p)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if edges != (len(e.Edges) > 0) || len(e.Columns) == 0 || e.Neighbors != "all" {
		t.Errorf("there are %d edges and %d columns of %s neighbors", len(e.Edges), len(e.Columns),
			e.Neighbors)
	}
	some := false
	for _, x := range e.Edges {
		some = some || x.Gradient != 0
		if math.IsNaN(x.Mask+x.Gradient) || x.Mask < 0 || x.Mask > 1 {
			t.Errorf("an edge has mask %g and gradient %g", x.Mask, x.Gradient)
		}
	}
	if edges && !some {
		t.Error("no edge has a gradient")
	}
	return e
}

// TestExplainSampled: where the neighborhood is drawn as the run draws, it has fewer edges.
func TestExplainSampled(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Fanout, c.Epochs = []int{1, 1}, 1
	mustRun(t, s, c)
	whole := mustExplain(t, s, ExplainConfig{Node: "5"})
	e, err := explainWith(t.Context(), s, mustDevice(t), ExplainConfig{Run: "t", Node: "5", Top: 3,
		Limits: Limits{Memory: 1 << 30, Threads: 2}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if e.EdgeCount != 2 || e.Neighbors != "sampled" || whole.EdgeCount <= 2 {
		t.Errorf("%s neighbors have %d edges, want sampled with 2; all have %d", e.Neighbors,
			e.EdgeCount, whole.EdgeCount)
	}
}

// TestExplainRefuses: what cannot be explained is refused with why, and a class by its name.
func TestExplainRefuses(t *testing.T) {
	for _, c := range []struct {
		set         func(c *Config)
		of          ExplainConfig
		want, class string
	}{
		{set: func(c *Config) { c.Aggregate = "max" }, want: "--aggregate max"},
		{set: func(c *Config) { c.Precompute = true }, want: "--precompute"},
		{of: ExplainConfig{Class: "oak"}, want: "--class oak: there is no such class: want ash"},
		{of: ExplainConfig{Class: "cedar"}, class: "cedar"},
	} {
		s := mustBuild(t, planted(false))
		settings := testConfig()
		settings.Epochs = 1
		if c.set != nil {
			c.set(&settings)
		}
		mustRun(t, s, settings)
		c.of.Run, c.of.Node, c.of.Top, c.of.Memory, c.of.Threads = "t", "5", 3, 1<<30, 2
		e, err := Explain(context.Background(), s, mustDevice(t), c.of)
		var full *mem.LimitError
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			errors.As(err, &full)) {
			t.Errorf("%s: the error is %v", c.want, err)
		}
		if c.class != "" && (err != nil || e.Class != c.class) {
			t.Errorf("class %s is not explained: %v, %v", c.class, e, err)
		}
	}
}

// TestExplainNumbers: a number has no class, and only what is predicted.
func TestExplainNumbers(t *testing.T) {
	g := planted(false)
	for _, l := range g.Labels {
		g.Targets = append(g.Targets, float32(l))
	}
	g.Labels, g.Classes = nil, nil
	s := mustBuild(t, g)
	c := testConfig()
	c.Loss, c.Metric = "auto", "auto"
	mustRun(t, s, c)
	e := mustExplain(t, s, ExplainConfig{Node: "5"})
	if e.Confidence != nil || e.Class != "" || e.Prediction == nil || len(e.Edges) == 0 {
		t.Errorf("a number is explained as %+v", e)
	}
}
