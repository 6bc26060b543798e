package train

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
)

// mustOpenPredictor opens a run, and keeps all in files or in memory.
func mustOpenPredictor(t *testing.T, s *layout.Store, onDisk bool) *Predictor {
	t.Helper()
	p, err := OpenPredictor(t.Context(), s, mustDevice(t), PredictorConfig{Run: "t",
		Limits: Limits{Memory: 1 << 30, Threads: 2}, OnDisk: onDisk, Kept: mem.NewBudget(1 << 28),
		Unseen: mem.NewBudget(1 << 28), Computing: mem.NewBudget(1 << 29)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plantedLists returns the in-neighbors of each node of a graph.
func plantedLists(g layouttest.Graph) [][]layout.NodeID {
	lists := make([][]layout.NodeID, g.Nodes)
	for _, e := range g.Edges {
		lists[e.Dst] = append(lists[e.Dst], e.Src)
	}
	return lists
}

// rowText is a prediction as Predict writes it to a CSV file.
func rowText(p Prediction) string {
	text := fmt.Sprint(p.Value)
	for _, v := range p.Probabilities {
		text += fmt.Sprintf(",%v", v)
	}
	return text
}

// TestPredictor: answers are to the bit those of Predict, for models that read lists in different
// ways, whether what is kept is in memory or in files; and a new node with the row and the list of
// a node of the graph is predicted as that node is, alone or with others.
func TestPredictor(t *testing.T) {
	g := planted(false)
	lists := plantedLists(g)
	for _, model := range []string{"sage", "gcn", "gat", "gin", "mlp"} {
		for _, half := range []bool{false, true} {
			s := mustBuild(t, g)
			c := testConfig()
			c.Model, c.Normalize, c.Epochs = model, "zscore", 2
			if half {
				c.Precision = "bf16"
			}
			mustRun(t, s, c)
			b := mustPredict(t, s, PredictConfig{Run: "t", Probabilities: true}, "out.csv")
			want, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, onDisk := range []bool{false, true} {
				name := fmt.Sprintf("%s, half %v, on disk %v", model, half, onDisk)
				p := mustOpenPredictor(t, s, onDisk)
				checkPredictor(t, name, p, g, lists, want[1:])
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				names, err := s.FS().List(s.Path("runs", "t"))
				if err != nil || strings.Contains(fmt.Sprint(names), predictJob) {
					t.Errorf("%s: left behind: %v, %v", name, names, err)
				}
			}
		}
	}
}

// checkPredictor compares all predictions with rows of Predict.
func checkPredictor(t *testing.T, name string, p *Predictor, g layouttest.Graph,
	lists [][]layout.NodeID, want [][]string) {
	t.Helper()
	var all []layout.NodeID
	for v := range g.Nodes {
		all = append(all, layout.NodeID(g.Nodes-1-v))
	}
	got, err := p.Predict(t.Context(), append(all, 3), false)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range append(all, 3) {
		if text := strings.Join(want[v][1:], ","); rowText(got[i]) != text {
			t.Fatalf("%s: node %d is %s, want %s", name, v, rowText(got[i]), text)
		}
	}
	var nodes []UnseenNode
	var like []layout.NodeID
	for v := range layout.NodeID(g.Nodes) {
		if !slices.Contains(lists[v], v) {
			nodes = append(nodes, UnseenNode{Neighbors: lists[v],
				Features: g.Features[int(v)*g.Dim : (int(v)+1)*g.Dim]})
			like = append(like, v)
		}
	}
	unseen, err := p.PredictUnseen(t.Context(), nodes)
	if err != nil {
		t.Fatal(name, err)
	}
	for i, v := range like {
		text := strings.Join(want[v][1:], ",")
		if rowText(unseen[i]) != text {
			t.Fatalf("%s: a new node like %d is %s, want %s", name, v, rowText(unseen[i]), text)
		}
		if i%50 > 0 {
			continue
		}
		one, err := p.PredictUnseen(t.Context(), nodes[i:i+1])
		if err != nil || rowText(one[0]) != text {
			t.Fatalf("%s: alone, a new node like %d is %v, %v, want %s", name, v, one, err, text)
		}
	}
}

// TestPredictorUnseenNeighbors: new nodes that name each other are predicted as nodes of a graph
// that has both are: a new node with a copy of a neighbor is as one with the neighbor itself.
func TestPredictorUnseenNeighbors(t *testing.T) {
	g := planted(false)
	lists := plantedLists(g)
	s := mustBuild(t, g)
	mustRun(t, s, testConfig())
	p := mustOpenPredictor(t, s, false)
	defer p.Close()
	row := func(v layout.NodeID) []float32 { return g.Features[int(v)*g.Dim:][:g.Dim] }
	v := layout.NodeID(7)
	last := slices.Max(lists[v]) // new nodes stand at the end of lists, which is where this is
	if slices.Contains(lists[last], last) || slices.Contains(lists[v], v) {
		t.Fatal("choose another node: this one has a loop")
	}
	rest := slices.DeleteFunc(slices.Clone(lists[v]),
		func(u layout.NodeID) bool { return u == last })
	twice := len(lists[v]) - len(rest)
	got, err := p.PredictUnseen(t.Context(), []UnseenNode{
		{Features: row(v), Neighbors: rest, Unseen: slices.Repeat([]int{1}, twice)},
		{Features: row(last), Neighbors: lists[last]}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.Predict(t.Context(), []layout.NodeID{v, last}, false)
	if err != nil || rowText(got[0]) != rowText(want[0]) || rowText(got[1]) != rowText(want[1]) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// TestPredictorUnseenOfScaledStores: rows that are given are not scaled as those of a store that
// ingest scaled, so they are refused.
func TestPredictorUnseenOfScaledStores(t *testing.T) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, testConfig())
	for flag, refused := range map[string]bool{"none": false, "row": true, "zscore": true} {
		s.Meta().Source.Args = []string{"--normalize=" + flag}
		p := mustOpenPredictor(t, s, false)
		err := p.PredictsUnseen()
		if err != nil && !strings.Contains(err.Error(), "--normalize "+flag) ||
			(err != nil) != refused {
			t.Errorf("a store scaled by %s: %v", flag, err)
		}
		p.Close()
	}
}

// TestPredictorRelations: where edges have types, and nodes have some or none, a new node with the
// row, the list and the types of a node's edges is predicted as that is.
func TestPredictorRelations(t *testing.T) {
	g := plantedTypes()
	t.Run("typed", func(t *testing.T) { comparePredictorRelations(t, g) })
	g.Types, g.Relations = nil, nil
	t.Run("plain", func(t *testing.T) { comparePredictorRelations(t, g) })
}

func comparePredictorRelations(t *testing.T, g layouttest.Graph) {
	s := mustBuild(t, g)
	c := testConfig()
	c.Model, c.Epochs = "rgcn", 1
	mustRun(t, s, c)
	p := mustOpenPredictor(t, s, false)
	defer p.Close()
	if err := p.PredictsUnseen(); err != nil || !p.ReadsRelations() {
		t.Fatalf("%v, reads relations: %v", err, p.ReadsRelations())
	}
	var nodes []UnseenNode
	var like []layout.NodeID
	for v := range layout.NodeID(g.Nodes) {
		n, loop := UnseenNode{Features: g.Features[int(v)*g.Dim : (int(v)+1)*g.Dim]}, false
		if s.Meta().Typed() {
			n.Type = s.Meta().TypeOf(v)
			n.Features = n.Features[:p.Features(n.Type)]
		}
		for i := range g.Edges {
			if e := &g.Edges[len(g.Edges)-1-i]; e.Dst == v { // in any order
				n.Neighbors = append(n.Neighbors, e.Src)
				n.Relations = append(n.Relations, uint32(e.Type))
				loop = loop || e.Src == v
			}
		}
		if !loop {
			nodes, like = append(nodes, n), append(like, v)
		}
	}
	want, err := p.Predict(t.Context(), like, false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.PredictUnseen(t.Context(), nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range like {
		if rowText(got[i]) != rowText(want[i]) {
			t.Fatalf("a new node like %d is %s, want %s", v, rowText(got[i]), rowText(want[i]))
		}
	}
}

// TestPredictorRefuses: what cannot be answered is said.
func TestPredictorRefuses(t *testing.T) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, testConfig())
	p := mustOpenPredictor(t, s, false)
	defer p.Close()
	for want, n := range map[string]UnseenNode{
		"row of 2 values": {Features: make([]float32, 2)},
		"new neighbor 1":  {Features: make([]float32, plantedDim), Unseen: []int{1}},
		"1 types of 0":    {Features: make([]float32, plantedDim), Relations: []uint32{0}},
	} {
		_, err := p.PredictUnseen(t.Context(), []UnseenNode{n})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := p.Predict(t.Context(), []layout.NodeID{plantedNodes}, false); err == nil {
		t.Error("a node that is not there is predicted")
	}
}
