package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/model"
	"gdb/train/run"
	"gdb/train/setting"
)

// plantedEdges is planted with two types of edges, within a class and others, and weights that tell
// them apart.
func plantedEdges() layouttest.Graph {
	g := planted(false)
	g.Weighted, g.Timed, g.EdgeTypes = true, true, []string{"likes", "meets"}
	for i := range g.Edges {
		e := &g.Edges[i]
		e.Weight, e.Time = 1+float32(i%3)/8, int64(i*37%100)
		if e.Src%plantedClasses != e.Dst%plantedClasses {
			e.Type, e.Weight = 1, 0.125
		}
	}
	return g
}

// plantedTypes is planted with two types of nodes, of which the second has two features, and a type
// of edges for each two of them.
func plantedTypes() layouttest.Graph { return plantedTypesFrom(plantedNodes / 2) }

// plantedTypesFrom is plantedTypes whose second type begins with a node.
func plantedTypesFrom(first layout.NodeID) layouttest.Graph {
	g := planted(false)
	g.EdgeTypes = []string{"a:a", "a:b", "b:a", "b:b"}
	g.Relations = []kv.RelationMeta{{Src: 0, Dst: 0}, {Src: 0, Dst: 1}, {Src: 1, Dst: 0},
		{Src: 1, Dst: 1}}
	g.Types = []layouttest.Type{{Name: "a", Nodes: int(first), Dim: plantedDim},
		{Name: "b", Nodes: plantedNodes - int(first), Dim: 2}}
	for i := range g.Edges {
		for k, v := range []layout.NodeID{g.Edges[i].Dst, g.Edges[i].Src} {
			if v >= first {
				g.Edges[i].Type |= 1 << k
			}
		}
	}
	for v := int(first); v < plantedNodes; v++ {
		clear(g.Features[v*plantedDim+2 : (v+1)*plantedDim])
	}
	return g
}

// edgeConfigs are runs that read what edges have.
func edgeConfigs() map[string]Config {
	all := map[string]Config{}
	for name, set := range map[string]func(c *Config){
		"weighted mean": func(c *Config) { c.EdgeWeight = true },
		"gcn":           func(c *Config) { c.Model, c.EdgeWeight = "gcn", true },
		"weighted draws": func(c *Config) {
			c.Sample, c.EdgeWeight = setting.SampleWeighted, true
		},
		"rgcn":  func(c *Config) { c.Model, c.Bases = "rgcn", 2 },
		"hsage": func(c *Config) { c.Model = "hsage" },
		"rgat":  func(c *Config) { c.Model, c.Dropout = "rgat", 0.2 },
		"columns": func(c *Config) {
			c.EdgeFeatures, c.Before = []string{"weight", "degree"}, before(80)
		},
		"by relation, columns": func(c *Config) {
			c.Model, c.EdgeFeatures = "hsage", []string{"degree"}
		},
		"latest": func(c *Config) { c.Sample = setting.SampleLatest },
		"latest before, weights": func(c *Config) {
			c.Sample, c.EdgeWeight, c.Before = setting.SampleLatest, true, before(60)
		},
		"gcn before, weights": func(c *Config) {
			c.Model, c.EdgeWeight, c.Before = "gcn", true, before(60)
		},
		"layers before, weights": func(c *Config) {
			c.EdgeWeight, c.Before = true, before(60)
			layered(c, 40, 60)
		},
		"weighted draws before": func(c *Config) {
			c.Sample, c.Before = setting.SampleWeighted, before(60)
		},
	} {
		c := resumeConfig()
		c.Epochs, c.Hidden = 3, 8
		set(&c)
		all[name] = c
	}
	return all
}

// edgeWays are ways to hold lists and rows.
var edgeWays = []struct {
	how string
	set func(c *Config)
}{
	{"paged", func(c *Config) { c.Topology, c.NeighborCache = "paged", 0 }},
	{"cached", func(c *Config) { c.Topology, c.NeighborCache = "paged", 64<<10 }},
	{"belady", func(c *Config) { c.Cache, c.FeatureCache = setting.CacheBelady, 8<<10 }},
	{"resident", func(c *Config) { c.Topology, c.Cache = "resident", "none" }},
	{"packed", func(c *Config) { c.Topology = "packed" }},
	{"compact", func(c *Config) { c.Topology = "compact" }},
}

// TestEdgesAreReadTheSame: weights and types of edges give the same run wherever the lists are,
// through superbatches, and when it was interrupted. Of the ways every second is taken in turn, so
// that each one meets half of the runs.
func TestEdgesAreReadTheSame(t *testing.T) {
	notShort(t)
	configs := edgeConfigs()
	for turn, name := range slices.Sorted(maps.Keys(configs)) {
		c, graph := configs[name], plantedEdges
		if c.Model == "hsage" || c.Model == "rgat" {
			graph = plantedTypes
		}
		t.Run(name, func(t *testing.T) {
			s := mustBuild(t, graph())
			mustRun(t, s, c)
			want, weights := finalState(t, s, c.Run)
			for i := turn % 2; i < len(edgeWays); i += 2 {
				w, now := edgeWays[i], c
				w.set(&now)
				if now.Cache == setting.CacheBelady && len(c.EdgeFeatures) > 0 {
					continue // refused
				}
				s := mustBuild(t, graph())
				interrupted(t, s, now)
				t.Log(w.how)
				checkFinal(t, s, c, want, weights)
			}
		})
	}
}

// interrupted runs a training that is stopped after a few steps, and then goes on.
func interrupted(t *testing.T, s *layout.Store, c Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	steps := 0
	_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
		if e.Progress != nil {
			if steps++; steps == 4 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	mustRun(t, s, resumed(c.Run))
}

// TestTypesAreFitted: of a typed store, the model knows the types and how wide their features are.
func TestTypesAreFitted(t *testing.T) {
	s := mustBuild(t, plantedTypes())
	c := testConfig()
	c.Model = "hsage"
	if err := model.Of(&c).FitEdges(s.Meta()); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(c.NodeTypes, c.TypeWidths, c.RelationSources), fmt.Sprint(
		[]int{0, plantedNodes / 2}, []int{plantedDim, 2}, []int{0, 0, 1, 1}); got != want {
		t.Errorf("types %s, want %s", got, want)
	}
	c.Model, c.Backend = "rgcn", setting.BackendCUDA
	if err := model.Of(&c).FitEdges(s.Meta()); err == nil ||
		!strings.Contains(err.Error(), "rgcn where nodes have types") {
		t.Errorf("rgcn of types on a device: %v", err)
	}
	if err := model.Of(&c).FitEdges(mustBuild(t, plantedEdges()).Meta()); err != nil {
		t.Errorf("rgcn without types on a device: %v", err)
	}
}

// TestEdgesAreRefused: what a store or a model does not have is said in a line.
func TestEdgesAreRefused(t *testing.T) {
	for _, tc := range []struct {
		set  func(c *Config)
		want string
	}{
		{func(c *Config) { c.EdgeWeight = true }, "the edges of this store have no weights"},
		{func(c *Config) { c.Model = "rgcn" }, "have no types"},
		{func(c *Config) { c.Sample = setting.SampleWeighted }, "--sample weighted: the edges of"},
		{func(c *Config) { c.Sample = setting.SampleWeighted; layered(c, 9) },
			"leave --sample out, " +
				"and have weights count with --edge-weight"},
		{func(c *Config) { c.Sample = setting.SampleLatest; layered(c, 9) },
			"leave --sample out, " +
				"and have only earlier edges count with --before"},
		{func(c *Config) { c.Sample, c.Model = setting.SampleWeighted, "gin" }, "gin sums over"},
		{func(c *Config) { c.Sample = "newest" }, "known are uniform, weighted, latest"},
		{func(c *Config) { c.Sample = setting.SampleLatest },
			"--sample latest: the edges of this " +
				"store have no times: ingest with times (--time-col), or leave the flag out"},
		{func(c *Config) { c.Before = before(0) }, "--before: the edges of this store have no " +
			"times: ingest with times (--time-col), or leave the flag out"},
		{func(c *Config) { c.Sample, c.Model = setting.SampleLatest, "gin" }, "gin sums over " +
			"neighbors, and the latest do not tell the sum over all: --fanout all for each layer"},
		{func(c *Config) { c.Sample, c.Model = setting.SampleLatest, "sgc" }, "sgc sums over"},
		{func(c *Config) { c.Sample, c.Aggregate = setting.SampleLatest, "sum" }, "sage sums over"},
		{func(c *Config) { c.Model, c.EdgeWeight = "gat", true }, "gat does not use the weights"},
		{func(c *Config) { c.Aggregate, c.EdgeWeight = "max", true }, "--aggregate mean or sum"},
		{func(c *Config) { c.Model, c.Aggregate = "rgcn", "sum" }, "leave it out"},
		{func(c *Config) { c.Model, c.Bases = "rgcn", -1 }, "at least 1"},
		{func(c *Config) { c.EdgeFeatures = []string{"weight"} }, "edges have no weights"},
		{func(c *Config) { c.EdgeFeatures = []string{"cost"} }, `no column "cost": there are`},
		{func(c *Config) { c.Model, c.EdgeFeatures = "gcn", []string{"degree"} },
			"gcn reads no columns of edges: sage"},
		{func(c *Config) { c.EvalMode, c.EdgeFeatures = "exact", []string{"degree"} },
			"--eval-mode sampled"},
		{func(c *Config) { c.Backend, c.EdgeFeatures = "cuda", []string{"degree"} },
			"--edge-features does not go with --backend cuda"},
	} {
		c := testConfig()
		tc.set(&c)
		_, err := Run(context.Background(), mustBuild(t, planted(false)), mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q in it", err, tc.want)
		}
	}
	c := testConfig()
	c.Model, c.Bases = "rgcn", 3
	_, err := Run(context.Background(), mustBuild(t, plantedEdges()), mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "edges have 2 types") {
		t.Errorf("more bases than types: %v", err)
	}
}

// TestUnused: what a run reads of edges is not among what it does not use.
func TestUnused(t *testing.T) {
	m := mustBuild(t, plantedEdges()).Meta()
	for _, tc := range []struct {
		set  func(c *Config)
		want string
	}{
		{func(c *Config) {}, "edge weights, edge times, edge types"},
		{func(c *Config) { c.EdgeWeight = true }, "edge times, edge types"},
		{func(c *Config) { c.EdgeFeatures = []string{"weight"} }, "edge times, edge types"},
		{func(c *Config) { c.Model = "rgcn" }, "edge weights, edge times"},
		{func(c *Config) { c.Target = "weight" }, "edge types"},
		{func(c *Config) { c.Sample = setting.SampleWeighted }, "edge times, edge types"},
		{func(c *Config) { c.Sample = setting.SampleLatest }, "edge weights, edge types"},
		{func(c *Config) { c.Before = before(7) }, "edge weights, edge types"},
	} {
		c := testConfig()
		tc.set(&c)
		if got := strings.Join(model.Of(&c).Unused(m), ", "); got != tc.want {
			t.Errorf("not used: %s, want %s", got, tc.want)
		}
	}
}
