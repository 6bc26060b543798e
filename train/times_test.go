package train

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/train/run"
	"gdb/train/setting"
)

func before(limit int64) *int64 { return &limit }

// earlierEdges is a graph, and the same without the edges from a time on.
func earlierEdges(limit int64) (all, earlier layouttest.Graph) {
	all, earlier = plantedEdges(), plantedEdges()
	earlier.Edges = slices.DeleteFunc(earlier.Edges, func(e layouttest.Edge) bool {
		return e.Time >= limit
	})
	return all, earlier
}

// TestBeforeIsAStoreOfEarlierEdges: what is not before a time does not exist for a run. Weights,
// evaluations and predictions of every model are, to the bit, those of a run on a store that never
// had the later edges: draws, degrees, sums of weights and whole lists come of the rest.
func TestBeforeIsAStoreOfEarlierEdges(t *testing.T) {
	const limit = 60
	all, earlier := earlierEdges(limit)
	full, rest := mustBuild(t, all), mustBuild(t, earlier)
	noteProfiles(t, full)
	noteProfiles(t, rest)
	configs := modelConfigs(testConfig())
	if testing.Short() {
		configs = configs[:3]
	}
	for _, set := range []func(c *Config){
		func(c *Config) { c.EdgeWeight = true },
		func(c *Config) { c.Model, c.EdgeWeight = "gcn", true },
		func(c *Config) { c.Model, c.Bases = "rgcn", 2 },
		func(c *Config) { c.Sample = setting.SampleWeighted },
		func(c *Config) { c.Sample = setting.SampleLatest },
		func(c *Config) { c.Sample, c.EvalMode = setting.SampleLatest, setting.EvalSampled },
		func(c *Config) { layered(c, 40, 60) },
		func(c *Config) {
			c.Model, c.EdgeWeight, c.EvalMode = "gcn", true, setting.EvalSampled
			layered(c, 40, 60)
		},
	} {
		c := testConfig()
		set(&c)
		c.Run = fmt.Sprint("edges", len(configs))
		configs = append(configs, c)
	}
	for _, c := range configs {
		c.Epochs = 2
		mustRun(t, rest, c)
		want, weights := finalState(t, rest, c.Run)
		now := c
		now.Before = before(limit)
		mustRun(t, full, now)
		got, b := finalState(t, full, c.Run)
		if string(b) != string(weights) || got.Best != want.Best || *got.Test != *want.Test {
			t.Errorf("%s: %s %s is another run with later edges left out: best %v, want %v", c.Run,
				c.Model, c.Sample, got.Best, want.Best)
		}
		e := EvalConfig{Run: c.Run, Split: "train"}
		a, errA := Evaluate(t.Context(), full, mustDevice(t), e)
		z, errZ := Evaluate(t.Context(), rest, mustDevice(t), e)
		if errA != nil || errZ != nil || a.Value != z.Value {
			t.Errorf("%s: evaluated as %v, want %v: %v, %v", c.Run, a, z, errA, errZ)
		}
	}
}

// TestSumsAheadAreBeforeTheTime: sums that are computed before a training are over the edges that
// count for it, though files of other sums are kept beside them.
func TestSumsAheadAreBeforeTheTime(t *testing.T) {
	notShort(t)
	const limit = 60
	all, earlier := earlierEdges(limit)
	full, rest := mustBuild(t, all), mustBuild(t, earlier)
	for _, name := range []string{"sgc", "sage", "mlp"} {
		c := testConfig()
		c.Model, c.Precompute, c.Epochs, c.Run = name, true, 2, name
		mustRun(t, rest, c)
		want, weights := finalState(t, rest, c.Run)
		c.Run = name + "-all"
		mustRun(t, full, c)
		c.Run, c.Before = name, before(limit)
		mustRun(t, full, c)
		checkFinal(t, full, c, want, weights)
	}
}

// TestLatestSumsOverAll: models that sum train on the latest edges where every list is whole, as
// they do with uniform draws.
func TestLatestSumsOverAll(t *testing.T) {
	s := mustBuild(t, plantedEdges())
	c := testConfig()
	c.Model, c.Fanout, c.Epochs = "gcn", []int{sample.All, sample.All}, 2
	mustRun(t, s, c)
	want, weights := finalState(t, s, c.Run)
	c.Run, c.Sample = "latest", setting.SampleLatest
	mustRun(t, s, c)
	checkFinal(t, s, c, want, weights)
	c.Run, c.Fanout = "some", []int{sample.All, 4}
	_, err := Run(t.Context(), s, mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "gcn sums over neighbors") {
		t.Errorf("where one list is not whole: %v", err)
	}
}

// TestTimesAreOfTheRun: a run that goes on keeps how it draws and which edges count, and does not
// become another run; runs of before there were such settings go on.
func TestTimesAreOfTheRun(t *testing.T) {
	c := setting.Default()
	old := c
	for _, set := range []func(c *Config){
		func(c *Config) { c.Sample = setting.SampleLatest },
		func(c *Config) { c.Before = before(0) },
	} {
		now := c
		set(&now)
		if err := now.SameResult(&old); err == nil {
			t.Errorf("%s before %s is the same run", now.Sample, now.Limit())
		}
	}
	c.Before, old.Before = before(7), before(7)
	if err := c.SameResult(&old); err != nil {
		t.Errorf("two settings of one time differ: %v", err)
	}
	old.Before = before(8)
	err := c.SameResult(&old)
	if err == nil || !strings.Contains(err.Error(), "before 7: it began with 8") {
		t.Errorf("another time: %v", err)
	}
}

// TestNothingBeforeIsSaid: where no edge is left, the run says so.
func TestNothingBeforeIsSaid(t *testing.T) {
	for limit, want := range map[int64]bool{0: true, 50: false} {
		c, note := testConfig(), ""
		c.Epochs, c.Before = 1, before(limit)
		_, err := Run(context.Background(), mustBuild(t, plantedEdges()), mustDevice(t), c,
			func(e run.Event) {
				if e.Started != nil {
					note = e.Started.Note
				}
			})
		if err != nil || strings.Contains(note, "has an edge before 0") != want {
			t.Errorf("before %d: %v, note %q", limit, err, note)
		}
	}
}

// TestTimesKeepTheMemory: from the least memory that is accepted, runs that read times keep to it.
func TestTimesKeepTheMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains with ten bounds")
	}
	g := layouttest.Skewed()
	g.Timed = true
	for i := range g.Edges {
		g.Edges[i].Time = int64(i * 37 % 100)
	}
	s := mustBuild(t, g)
	for i, set := range []func(c *Config){
		func(c *Config) { c.Sample = setting.SampleLatest },
		func(c *Config) { c.Before = before(60) },
		func(c *Config) {
			c.Sample, c.Before, c.Cache = setting.SampleLatest, before(60),
				"belady"
		},
		func(c *Config) { c.Model, c.Before = "gcn", before(60) },
		func(c *Config) { c.Before = before(60); layered(c, 100, 100, 100) },
	} {
		c := lawConfig()
		set(&c)
		c.Memory = 1 << 20
		least := leastMemory(t, c, mustPlan(t, s))
		for _, more := range []int64{0, 1 + 3*int64(i%2)} {
			c.Memory, c.Run = least+more<<20, fmt.Sprintf("run%d-%d", i, more)
			if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
				t.Errorf("%s before %s, %d MiB: %v", c.Sample, c.Limit(), c.Memory>>20, err)
			}
		}
	}
}
