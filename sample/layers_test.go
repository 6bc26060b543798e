package sample

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample/sampletest"

	"pgregory.net/rapid"
)

// TestLayersEqualReference: layers are what a draw finds that sorts the candidates, over one
// direction and two, with weights and without.
func TestLayersEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		graphs := drawGraphs(t)
		c := Config{LayerSize: rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 5, 20, 1000}), 1, 4).
			Draw(t, "layers")}
		weight := rapid.SampledFrom([]func(int) float32{nil, powers,
			func(i int) float32 { return float32(i % 2) },
			func(int) float32 { return 0 },
			func(int) float32 { return math.MaxFloat32 },
			func(int) float32 { return math.SmallestNonzeroFloat32 }}).Draw(t, "weight")
		if weight != nil && len(graphs) == 1 {
			weighed(graphs[0], weight)
			c.EdgeWeights = true
		}
		checkReference(t, graphs, joinedColumns(graphs...), c,
			func(d *Dense, _ []int) error { return verifyLayers(d) })
	})
}

// TestLayerOfHubs: lists that are read in several parts give what the reference draws.
func TestLayerOfHubs(t *testing.T) {
	const n = 150000
	lists := make([][]NodeID, n)
	for i := range NodeID(n) {
		lists[0] = append(lists[0], i)
		if i%3 == 0 {
			lists[2] = append(lists[2], i)
		}
	}
	lists[4] = []NodeID{5, 9, 140001}
	g := weighed(sampletest.FromLists(lists...), powers)
	for _, weights := range []bool{false, true} {
		c := Config{LayerSize: []int{700}, Seed: 6, Extras: Extras{EdgeWeights: weights}}
		s := mustSampler(t, c, g)
		var d Dense
		seeds := []NodeID{4, 0, 3, 2}
		if err := s.Sample(t.Context(), 1, 2, seeds, &d); err != nil {
			t.Fatal(err)
		}
		want := reference(g.List, joinedColumns(g), c, 1, 2, seeds)
		if !equalDense(&d, &want) {
			t.Errorf("weights %v: %d neighbors differ from the reference's %d", weights,
				len(d.Nbrs), len(want.Nbrs))
		}
	}
}

// layerTrials are batches with their own draws, and layerSize the layer of each.
const layerTrials, layerSize = 4000, 25

// layerSeeds are the frontier of those batches in extrasGraph: a hub, short lists, an empty one.
var layerSeeds = []NodeID{0, 7, 33, 5, 81, 128}

// tally is what was seen over all trials.
type tally struct {
	drawn map[NodeID]float64 // batches that have the node
	sizes []float64          // different neighbors of each batch
	sums  [][]float64        // of each seed, the estimates of sums over its list
}

// valueOf is what is summed over lists.
func valueOf(u NodeID) float64 { return float64(sampletest.Value(u, 0)) - 0.3 }

func tallyLayers(t *testing.T, g *sampletest.Graph, weights bool) tally {
	t.Helper()
	s := mustSampler(t, Config{LayerSize: []int{layerSize}, Seed: 21,
		Extras: Extras{EdgeWeights: weights}}, g)
	y := tally{drawn: map[NodeID]float64{}, sums: make([][]float64, len(layerSeeds))}
	var d Dense
	for trial := range uint64(layerTrials) {
		if err := s.Sample(t.Context(), trial%50, trial/50, layerSeeds, &d); err != nil {
			t.Fatal(err)
		}
		different := slices.Compact(slices.Sorted(slices.Values(d.Nbrs)))
		y.sizes = append(y.sizes, float64(len(different)))
		for _, u := range different {
			y.drawn[u]++
		}
		inner := len(d.NbrOffsets) - 1 - len(layerSeeds)
		for i := range layerSeeds {
			sum := 0.0
			for e := d.NbrOffsets[inner+i]; e < d.NbrOffsets[inner+i+1]; e++ {
				sum += float64(d.Weights[e]) * valueOf(d.Nbrs[e])
			}
			y.sums[i] = append(y.sums[i], sum)
		}
	}
	return y
}

// TestLayersAreUnbiased: nodes are drawn as often as their probabilities say, layers have the size
// asked for on average, and sums estimate those over whole lists. The bounds are passed by chance
// once in a million times; the seed is fixed.
func TestLayersAreUnbiased(t *testing.T) {
	g := extrasGraph()
	for _, weights := range []bool{false, true} {
		c := Config{Extras: Extras{EdgeWeights: weights}}
		weigh := weighing(c, g.List, joinedColumns(g))
		p := referenceProbabilities(layerSeeds, g.List, weigh, layerSize)
		total, variance := 0.0, 0.0
		for _, prob := range p {
			total, variance = total+prob, variance+prob*(1-prob)
		}
		if math.Abs(total-layerSize) > 1e-9 {
			t.Fatalf("weights %v: probabilities add up to %v, not to %d", weights, total, layerSize)
		}
		y := tallyLayers(t, g, weights)
		if stat, dof := drawnStatistic(y.drawn, p); stat > sampletest.ChiSquareBound(dof) {
			t.Errorf("weights %v: chi-square of the nodes is %.0f of %.0f", weights, stat, dof)
		}
		even := map[NodeID]float64{}
		for u := range p {
			even[u] = layerSize / float64(len(p))
		}
		if stat, dof := drawnStatistic(y.drawn, even); stat < sampletest.ChiSquareBound(dof) {
			t.Errorf("weights %v: the test takes even probabilities for those of layers", weights)
		}
		checkMean(t, "size of a layer", y.sizes, layerSize, variance)
		for i, v := range layerSeeds {
			exact, variance := 0.0, 0.0
			for k, u := range g.List(v) { // each once
				x := float64(weigh(v)[k]) * valueOf(u)
				exact, variance = exact+x, variance+x*x*(1-p[u])/p[u]
			}
			checkMean(t, "sum over a list", y.sums[i], exact, variance)
		}
	}
}

// drawnStatistic is chi-square for nodes that are drawn each by itself; those of probability 1 are
// always there.
func drawnStatistic(drawn, p map[NodeID]float64) (statistic, dof float64) {
	for u, prob := range p {
		if prob == 1 {
			if drawn[u] != layerTrials {
				return math.Inf(1), dof
			}
			continue
		}
		diff := drawn[u] - layerTrials*prob
		statistic += diff * diff / (layerTrials * prob * (1 - prob))
		dof++
	}
	return statistic, dof
}

// checkMean compares the mean of independent values with their expectation, given their variance.
func checkMean(t *testing.T, what string, values []float64, want, variance float64) {
	t.Helper()
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	mean := sum / float64(len(values))
	deviation := math.Sqrt(variance / float64(len(values)))
	if math.Abs(mean-want) > 4.9*deviation+1e-5*math.Abs(want) {
		t.Errorf("%s: mean %v of %d, want %v ± %v", what, mean, len(values), want, deviation)
	}
}

// TestLayersOfNothing: batches work in which no node has a list, and in which none of a list is
// drawn.
func TestLayersOfNothing(t *testing.T) {
	g := sampletest.FromLists(nil, []NodeID{0, 2, 3}, nil, []NodeID{1})
	s := mustSampler(t, Config{LayerSize: []int{1, 1}, Extras: Extras{Degrees: true}}, g)
	var d Dense
	without := 0
	for batch := range uint64(40) {
		for _, seeds := range [][]NodeID{{0}, {2, 0}, {1, 0}} {
			if err := s.Sample(t.Context(), 0, batch, seeds, &d); err != nil {
				t.Fatal(err)
			}
			if err := verifyLayers(&d); err != nil {
				t.Fatal(err)
			}
			if len(d.Nbrs) == 0 && seeds[0] == 1 {
				without++
			}
		}
	}
	if without == 0 {
		t.Error("some neighbor was always drawn")
	}
}

// TestLayersAreCounted: the candidates are counted, too many of them are an error that says what to
// do, and all is given back.
func TestLayersAreCounted(t *testing.T) {
	lists := make([][]NodeID, 200000)
	for i := range NodeID(len(lists)) {
		lists[0] = append(lists[0], i)
	}
	g := sampletest.FromLists(lists...)
	for _, limit := range []int64{4 << 20, 64 << 20} {
		budget := mem.NewBudget(limit)
		s, err := NewSampler([]topology.Reader{g}, Config{LayerSize: []int{10}, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		var d Dense
		err = s.Sample(t.Context(), 0, 0, []NodeID{0}, &d)
		var full *mem.LimitError
		if small := limit < 8<<20; errors.As(err, &full) != small {
			t.Errorf("%d bytes: %v", limit, err)
		} else if small && !strings.Contains(err.Error(), "smaller layers") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		if used := budget.Used(); err == nil && (used < 16*200000 || used > s.LayerBytes()) {
			t.Errorf("%d bytes are counted of about %d", used, s.LayerBytes())
		}
		if s.Close(); budget.Used() != 0 {
			t.Errorf("%d bytes are still counted", budget.Used())
		}
	}
}

// TestLayersAreRefused: what layers cannot do.
func TestLayersAreRefused(t *testing.T) {
	g := sampletest.FromLists([]NodeID{0, 1}, []NodeID{0})
	for what, c := range map[string]Config{
		"one of both":                    {LayerSize: []int{1}, Fanout: []int{1}},
		"positive":                       {LayerSize: []int{1, 0}},
		"ask for the":                    {LayerSize: []int{1}, Draw: DrawWeighted},
		"times of edges: draw uniformly": {LayerSize: []int{1}, Draw: DrawLatest},
		"hops, at most":                  {LayerSize: make([]int, hopsMost+1)},
	} {
		if _, err := NewSampler([]topology.Reader{g}, c); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v, want %q", c, err, what)
		}
	}
	weights := Config{LayerSize: []int{1}, Extras: Extras{EdgeWeights: true}}
	if _, err := NewSampler([]topology.Reader{unreadable{g}}, weights); err == nil {
		t.Error("weights of lists that cannot be asked")
	}
	weighed(g, func(i int) float32 { return float32(1 - 2*i) })
	s := mustSampler(t, weights, g)
	var d Dense
	if err := s.Sample(t.Context(), 0, 0, []NodeID{0}, &d); err == nil ||
		!strings.Contains(err.Error(), "entry 1") {
		t.Errorf("a negative weight: %v", err)
	}
}

// TestLayersFollowTheirKey: another epoch, batch, hop or seed draws others.
func TestLayersFollowTheirKey(t *testing.T) {
	g, seen := extrasGraph(), map[uint64]bool{}
	for _, k := range [][3]uint64{{1, 0, 0}, {2, 0, 0}, {1, 1, 0}, {1, 0, 1}} {
		s := mustSampler(t, Config{LayerSize: []int{layerSize}, Seed: k[0]}, g)
		var d Dense
		if err := s.Sample(t.Context(), k[1], k[2], layerSeeds, &d); err != nil {
			t.Fatal(err)
		}
		seen[hashIDs(rng.Key(0), d.Nbrs)] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d of 4 draws differ", len(seen))
	}
}

// TestLayersHaveExtras: drawn edges have their types, and nodes their degrees and sums.
func TestLayersHaveExtras(t *testing.T) {
	g := extrasGraph()
	x := Extras{Degrees: true, EdgeTypes: true, WeightSums: true}
	s := mustSampler(t, Config{LayerSize: []int{layerSize, 40}, Seed: 4, Extras: x}, g)
	var d Dense
	if err := s.Sample(t.Context(), 0, 0, layerSeeds, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Weights) != len(d.Nbrs) || len(d.Types) == 0 {
		t.Fatalf("%d weights and %d types of %d edges", len(d.Weights), len(d.Types), len(d.Nbrs))
	}
	d.Weights = nil
	checkExtras(t, g, &d, x, false)
}
