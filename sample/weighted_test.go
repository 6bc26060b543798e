package sample

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample/sampletest"

	"pgregory.net/rapid"
)

// weighed gives the edges of a graph weights, some of them 0.
func weighed(g *sampletest.Graph, weight func(i int) float32) *sampletest.Graph {
	g.Weights = make([]float32, len(g.Nbrs))
	for i := range g.Weights {
		g.Weights[i] = weight(i)
	}
	return g
}

// powers are weights over many orders of magnitude; every fifth is 0.
func powers(i int) float32 {
	x := rng.Key(77, uint64(i))
	if x%5 == 0 {
		return 0
	}
	return float32(math.Exp2(float64(x>>8%40) - 20))
}

// joinedColumns returns the columns of several directions, one after the other.
func joinedColumns(gs ...*sampletest.Graph) edgeColumns {
	return edgeColumns{
		weights: func(v NodeID) (l []float32) {
			for _, g := range gs {
				l = append(l, g.Weights[g.Off[v]:g.Off[v+1]]...)
			}
			return l
		},
		times: func(v NodeID) (l []int64) {
			for _, g := range gs {
				l = append(l, g.Times[g.Off[v]:g.Off[v+1]]...)
			}
			return l
		}}
}

// The sampler draws what keys that are sorted give, over one direction and two.
func TestWeightedEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.SampledFrom([]func(int) float32{powers,
			func(int) float32 { return 1 },
			func(i int) float32 { return float32(i % 2) },
			func(int) float32 { return 0 },
			func(int) float32 { return math.MaxFloat32 },
			func(int) float32 { return math.SmallestNonzeroFloat32 }}).Draw(t, "weight")
		graphs := drawGraphs(t)
		for _, g := range graphs {
			weighed(g, weight)
		}
		checkReference(t, graphs, joinedColumns(graphs...), Config{Draw: DrawWeighted},
			func(d *Dense, _ []int) error { return verifyLayers(d) })
	})
}

// Hubs: most entries are turned down before their key is computed, which changes nothing.
func TestWeightedHub(t *testing.T) {
	const n = 50000
	hub := make([]NodeID, n)
	for i := range hub {
		hub[i] = NodeID(i)
	}
	for _, weight := range []func(int) float32{powers, func(int) float32 { return 3 },
		func(i int) float32 { return float32(i + 1) }} {
		g := weighed(sampletest.FromLists(append([][]NodeID{hub},
			make([][]NodeID, n-1)...)...), weight)
		for _, fanout := range []int{1, 10, 1000, n - 1} {
			c := Config{Fanout: []int{fanout}, Draw: DrawWeighted, Seed: 6}
			s := mustSampler(t, c, g)
			var d Dense
			if err := s.Sample(t.Context(), 0, 0, []NodeID{0}, &d); err != nil {
				t.Fatal(err)
			}
			want := reference(g.List, joinedColumns(g), c, 0, 0, []NodeID{0})
			if !equalDense(&d, &want) {
				t.Errorf("fanout %d: %d neighbors differ from the reference's %d", fanout,
					len(d.Nbrs), len(want.Nbrs))
			}
		}
	}
}

// weightedChooser draws k of the entries with these weights, as a set of bits.
type weightedChooser func(weights []float32, k int, trial uint64) uint64

// byWeight draws as the sampler does: in two parts, as the blocks of a hub come.
func byWeight(weights []float32, k int, trial uint64) (set uint64) {
	c := selection{key: rng.Key(31, trial), front: []NodeID{9}, deg: []uint32{uint32(len(weights))},
		off: []uint32{0, uint32(k)}, entries: make([]entry, k), taken: make([]uint32, 1)}
	half := len(weights) / 2
	if err := errors.Join(c.byWeight(topology.Part{Weights: weights[:half]}),
		c.byWeight(topology.Part{From: uint32(half), Weights: weights[half:]})); err != nil {
		panic(err)
	}
	for _, e := range c.inOrder(0, c.taken[0]) {
		set |= 1 << e.pos
	}
	return set
}

// byKey is the shape of wrong ways: the k entries of least key.
func byKey(weights []float32, k int, key func(p int, w float64) float64) (set uint64) {
	keys := make([]float64, len(weights))
	order := make([]int, len(weights))
	for p, w := range weights {
		keys[p], order[p] = key(p, float64(w)), p
	}
	slices.SortFunc(order, func(a, b int) int {
		if keys[a] < keys[b] {
			return -1
		}
		return 1
	})
	for _, p := range order[:k] {
		set |= 1 << p
	}
	return set
}

// wrongChoosers are near to right, and must not pass for it.
var wrongChoosers = map[string]weightedChooser{
	"uniform": func(weights []float32, k int, trial uint64) uint64 {
		draw := rng.NewStream(rng.Key(32, trial))
		return byKey(weights, k, func(int, float64) float64 { return draw.Float64() })
	},
	"with replacement": func(weights []float32, k int, trial uint64) (set uint64) {
		draw, sum := rng.NewStream(rng.Key(33, trial)), float32(0)
		for _, w := range weights {
			sum += w
		}
		for range k {
			x := float32(draw.Float64()) * sum
			for p, w := range weights {
				if x -= w; x < 0 {
					set |= 1 << p
					break
				}
			}
		}
		return set
	},
	"u/w for -ln(u)/w": func(weights []float32, k int, trial uint64) uint64 {
		draw := rng.NewStream(rng.Key(34, trial))
		return byKey(weights, k, func(_ int, w float64) float64 { return draw.Float64() / w })
	},
	"one draw for two entries": func(weights []float32, k int, trial uint64) uint64 {
		key := rng.Key(35, trial)
		return byKey(weights, k, func(p int, w float64) float64 {
			return -math.Log(rng.Unit(rng.Sub(key, uint64(p/2)))) / w
		})
	},
}

// setProbabilities are the exact probabilities of all sets of k: entries are drawn one after the
// other, by weight among those left.
func setProbabilities(weights []float32, k int) map[uint64]float64 {
	sets, all := map[uint64]float64{0: 1}, 0.0
	for _, w := range weights {
		all += float64(w)
	}
	for range k {
		next := map[uint64]float64{}
		for set, prob := range sets {
			left := all
			for p, w := range weights {
				if set>>p&1 != 0 {
					left -= float64(w)
				}
			}
			for p, w := range weights {
				if set>>p&1 == 0 && w > 0 {
					next[set|1<<p] += prob * float64(w) / left
				}
			}
		}
		sets = next
	}
	return sets
}

const weightedTrials = 20000

// setsStatistic is chi-square over the sets drawn; those that are expected less than five times
// share a cell. A set that cannot be is worth infinity.
func setsStatistic(choose weightedChooser, weights []float32, k int) (statistic, dof float64) {
	counts := map[uint64]float64{}
	for trial := range uint64(weightedTrials) {
		counts[choose(weights, k, trial)]++
	}
	rareWant, rareGot := 0.0, 0.0
	add := func(got, want float64) {
		statistic += (got - want) * (got - want) / want
		dof++
	}
	for set, prob := range setProbabilities(weights, k) {
		want, got := prob*weightedTrials, counts[set]
		delete(counts, set)
		if want < 5 {
			rareWant, rareGot = rareWant+want, rareGot+got
			continue
		}
		add(got, want)
	}
	if len(counts) > 0 {
		return math.Inf(1), dof
	}
	if rareWant > 0 {
		add(rareGot, max(rareWant, 1))
	}
	return statistic, dof - 1
}

// inclusionStatistic is the largest deviation of how often an entry is drawn, in standard
// deviations.
func inclusionStatistic(choose weightedChooser, weights []float32, k int) (most float64) {
	want, got := make([]float64, len(weights)), make([]float64, len(weights))
	for set, prob := range setProbabilities(weights, k) {
		for ; set != 0; set &= set - 1 {
			want[bits.TrailingZeros64(set)] += prob
		}
	}
	for trial := range uint64(weightedTrials) {
		for set := choose(weights, k, trial); set != 0; set &= set - 1 {
			got[bits.TrailingZeros64(set)]++
		}
	}
	for p, prob := range want {
		if prob > 0 && prob < 1 {
			z := (got[p] - weightedTrials*prob) / math.Sqrt(weightedTrials*prob*(1-prob))
			most = max(most, math.Abs(z))
		} else if got[p] != weightedTrials*prob {
			return math.Inf(1)
		}
	}
	return most
}

// What is drawn has the exact probabilities, found by enumeration; the same test turns down draws
// that are uniform, with replacement, or by keys that are not exponential.
func TestWeightedProbabilities(t *testing.T) {
	const inclusionBound = 5.5 // standard deviations
	for _, c := range []struct {
		weights []float32
		k       int
	}{{[]float32{1, 2}, 1}, {[]float32{1, 2, 3}, 2}, {[]float32{4, 1, 1, 1}, 2},
		{[]float32{1, 10, 100, 1000, 3}, 2}, {[]float32{1, 2, 0, 0, 5}, 2},
		{[]float32{.5, .25, 2, 7, 1, 1}, 3}, {[]float32{1, 2, 3, 4, 5, 6, 7, 8}, 4},
		{[]float32{1e-30, 2e-30, 4e-30, 3e-30}, 2}, {[]float32{9, 1, 1, 1, 1, 1, 1, 1}, 4}} {
		got, dof := setsStatistic(byWeight, c.weights, c.k)
		bound := sampletest.ChiSquareBound(max(dof, 1))
		if got > bound {
			t.Errorf("%d of %v: sets: chi-square %.1f over %.1f", c.k, c.weights, got, bound)
		}
		if z := inclusionStatistic(byWeight, c.weights, c.k); z > inclusionBound {
			t.Errorf("%d of %v: an entry is %.1f standard deviations off", c.k, c.weights, z)
		}
		t.Logf("%d of %v: sets: %.1f, bound %.1f", c.k, c.weights, got, bound)
		for name, choose := range wrongChoosers {
			if name == "with replacement" && c.k == 1 {
				continue // there is no difference
			}
			wrong, _ := setsStatistic(choose, c.weights, c.k)
			if wrong <= bound {
				t.Errorf("%d of %v: chi-square %.1f of %s is taken for right", c.k, c.weights,
					wrong, name)
			}
		}
	}
}

func TestWeightedErrors(t *testing.T) {
	lists := [][]NodeID{{1, 2, 2}, {0}, nil}
	sampleOf := func(weights ...float32) error {
		g := sampletest.FromLists(lists...)
		g.Weights = weights
		s := mustSampler(t, Config{Fanout: []int{2, 1}, Draw: DrawWeighted}, g)
		return s.Sample(t.Context(), 0, 0, []NodeID{0}, &Dense{})
	}
	if err := sampleOf(); !errors.Is(err, topology.ErrNoWeights) {
		t.Errorf("without weights: %v", err)
	}
	for _, w := range []float32{-1, float32(math.NaN()), float32(math.Inf(1)),
		float32(math.Inf(-1))} {
		err := sampleOf(1, 1, w, 1)
		if err == nil || !strings.Contains(err.Error(), "hop 1: node #0: entry 2 of its list has "+
			"the weight") {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	if err := sampleOf(1, 1, 1, -2); err == nil ||
		!strings.Contains(err.Error(), "hop 2: node #1: entry 0") {
		t.Errorf("at the second hop: %v", err)
	}
	if err := sampleOf(0, float32(math.Copysign(0, -1)), 0, -2); err != nil {
		t.Errorf("a node whose edges weigh nothing: %v", err)
	}
	if _, err := NewSampler([]topology.Reader{unweighable{sampletest.FromLists(nil)}},
		Config{Fanout: []int{1}, Draw: DrawWeighted}); err == nil {
		t.Error("a topology that reads no weights is taken")
	}
}

// unweighable has sessions that read no weights.
type unweighable struct{ *sampletest.Graph }

func (u unweighable) NewSession() topology.Session {
	return struct{ topology.Session }{u.Graph.NewSession()}
}

func TestWeightedMemory(t *testing.T) {
	g := weighed(sampletest.RMAT(12, 60000, 3), powers)
	checkSamplerMemory(t, g, Config{Fanout: []int{10, 40}, Draw: DrawWeighted}, 12)
}

// Every part of the counter changes the keys.
func TestKeysDependOnAllParts(t *testing.T) {
	seen := map[uint64][6]uint64{}
	for i := range uint64(3 * 3 * 3 * 3 * 3 * 3) {
		c := [6]uint64{i % 3, i / 3 % 3, i / 9 % 3, i / 27 % 3, i / 81 % 3, i / 243}
		key := rng.Sub(rng.Sub(rng.Key(c[0], c[1], c[2], c[3]), c[4]), c[5])
		if other, ok := seen[key]; ok {
			t.Errorf("%v and %v draw the same", c, other)
		}
		seen[key] = c
	}
}
