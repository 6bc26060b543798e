package train

import (
	"slices"
	"strings"
	"testing"

	"gdb/layout/layouttest"
	"gdb/train/model"
	"gdb/train/setting"
)

// modelConfigs are a run of every model, with options that take memory in their own way.
func modelConfigs(c Config) (all []Config) {
	for i, name := range model.Names() {
		// These read types of edges: see TestEdgesAreReadTheSame.
		if slices.Contains([]string{"rgcn", "hsage", "hgt", "rgat"}, name) {
			continue
		}
		c := c
		c.Run, c.Model = name, name
		switch i % 3 {
		case 1:
			c.Options = setting.Options{Heads: 2, Norm: "layer", Residual: true}
		case 2:
			c.Options = setting.Options{Aggregate: "sum", Norm: "layer", Activation: "gelu"}
		}
		all = append(all, c)
	}
	mean, largest := c, c // other ways to reduce lists
	mean.Run, mean.Model, mean.Aggregate = "gcn-mean", "gcn", "mean"
	largest.Run, largest.Model, largest.Aggregate = "sage-max", "sage", "max"
	largest.Activation = "elu"
	all = append(all, mean, largest)
	for _, name := range []string{"gcn", "sgc", "mlp"} { // with one hop less, and without any
		c := c
		c.Run, c.Model = name+"-ahead", name
		c.Options = setting.Options{Precompute: true, Residual: true}
		all = append(all, c)
	}
	return append(all, halfConfigs(c)...)
}

// halfConfigs have models in half precision, with layers wide enough for products of bfloat16.
func halfConfigs(c Config) (all []Config) {
	c.Precision, c.Hidden = setting.BFloat16, 32
	for name, o := range map[string]setting.Options{"sage": {}, "gat": {Heads: 2},
		"gin": {Norm: "layer", Residual: true}, "gcn": {Precompute: true},
		"mlp": {NodeEmbedding: 5}} {
		c.Run, c.Model, c.Options = name+"-bf16", name, o
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Config) int { return strings.Compare(a.Run, b.Run) })
	return all
}

// TestEveryModelInItsLeast: every model trains and evaluates with the least memory that its plan
// accepts.
func TestEveryModelInItsLeast(t *testing.T) {
	if testing.Short() {
		t.Skip("trains every model")
	}
	s := mustBuild(t, layouttest.Skewed())
	noteProfile(t, s, lawConfig(), diskProfile)
	for i, c := range modelConfigs(lawConfig()) {
		c.Hidden, c.Batch, c.Memory = []int{32, 256}[i%2], 60*(1+i%2), 1<<20
		c.Cache = []string{"none", setting.CacheBelady}[i%2]
		c.Topology = []string{"resident", "paged"}[i/2%2]
		c.Memory = leastMemory(t, c, mustPlan(t, s))
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
			t.Errorf("%s, %d MiB: %v", c.Run, c.Memory>>20, err)
		}
	}
}
