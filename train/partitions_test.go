package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// partitionConfigs train with some partitions in memory.
func partitionConfigs() map[string]Config {
	all := map[string]Config{}
	for name, p := range map[string]struct {
		order  string
		counts setting.PartitionCounts
	}{
		"dispersed": {setting.OrderDispersed, setting.PartitionCounts{Partitions: 8,
			PartitionsInMemory: 2}},
		"one by one": {setting.OrderDispersed, setting.PartitionCounts{Partitions: 8,
			PartitionsInMemory: 3, LogicalPartitions: 8}},
		"sequential": {setting.OrderSequential, setting.PartitionCounts{Partitions: 8,
			PartitionsInMemory: 6}},
	} {
		c := resumeConfig()
		c.PartitionOrder, c.PartitionCounts = p.order, p.counts
		all[name] = c
	}
	macro := resumeConfig()
	macro.Strategy, macro.PartitionsInMemory, macro.Hubs = setting.StrategyMacro, 2, 2<<10
	all["macro"] = macro
	macro.Reuse, macro.HubsBy = 2, "degree"
	all["macro twice"] = macro
	macro.Reuse, macro.HubsBy, macro.Precompute, macro.Norm = 0, "", true, ""
	all["macro with sums ahead"] = macro
	macro.Precompute = false
	pbs := macro
	pbs.Strategy, pbs.HubsBy, pbs.Fanout = setting.StrategyPBS, "degree", []int{5, 5, 4}
	all["pbs"] = pbs
	pbs.Precompute = true
	all["pbs with sums ahead"] = pbs
	pbs.Precompute = false
	pbs.Model, pbs.Hubs = "gat", setting.HubsNone
	all["pbs of gat"] = pbs
	return all
}

// TestPartitions: a run that is interrupted in any set of partitions ends as one that is not, says
// that it is approximate, and learns.
func TestPartitions(t *testing.T) {
	for name, c := range partitionConfigs() {
		want, weights := undisturbed(t, c)
		if want.Best < 0.6 {
			t.Errorf("%s: val %g", name, want.Best)
		}
		for _, stop := range []int{4, 13, 1, 7}[:stopped()] {
			s := mustBuild(t, planted(false))
			ctx, cancel := context.WithCancel(t.Context())
			steps, note := 0, ""
			_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
				if e.Started != nil {
					note = e.Started.Note
				}
				if e.Progress != nil {
					if steps++; steps == stop {
						cancel()
					}
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(name, err)
			}
			if !strings.Contains(note, "approximate: neighbors ") {
				t.Errorf("%s: the note is %q", name, note)
			}
			again := c
			again.Run, again.Resume = "", c.Run
			mustRun(t, s, again)
			checkFinal(t, s, c, want, weights)
		}
	}
}

// TestAllPartitionsInMemory: with all of them there, a run comes to the bits of exact sampling.
func TestAllPartitionsInMemory(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		exact := resumeConfig()
		exact.Precompute = ahead
		want, weights := undisturbed(t, exact)
		for _, order := range []string{setting.OrderDispersed, setting.OrderSequential,
			setting.StrategyMacro} {
			c := exact
			c.PartitionOrder, c.Partitions, c.PartitionsInMemory = order, 5, 5
			if order == setting.StrategyMacro { // it finds that all fit
				c.Strategy, c.PartitionOrder = order, ""
				c.PartitionCounts = setting.PartitionCounts{}
			}
			s := mustBuild(t, planted(false))
			mustRun(t, s, c)
			checkFinal(t, s, c, want, weights)
		}
	}
}

// TestPartitionsRefused: what does not go with partitions, each with what to do.
func TestPartitionsRefused(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"of --task link":            func(c *Config) { c.PartitionOrder = "tlbeta" },
		"from 1 on":                 func(c *Config) { c.Partitions = -1 },
		"leave numbers of":          func(c *Config) { c.PartitionOrder = "" },
		"--cache":                   func(c *Config) { c.Cache = "sieve" },
		"--macro-batch":             func(c *Config) { c.MacroBatch = 2 },
		"--node-embedding":          func(c *Config) { c.NodeEmbedding = 4 },
		"use dispersed":             func(c *Config) { c.PartitionOrder = setting.OrderSequential },
		"9 partitions in memory of": func(c *Config) { c.PartitionsInMemory = 9 },
		"take another --model":      func(c *Config) { c.Model = "rgcn" },
		"for --strategy macro":      func(c *Config) { c.Reuse = 2 },
		`unknown strategy "some"`:   func(c *Config) { c.Strategy = "some" },
		"leave --order dispersed":   func(c *Config) { c.Strategy = "macro" },
		"that the store has: leave": func(c *Config) { c.Strategy, c.PartitionOrder = "macro", "" },
		"--model sage, gat or gatv2": func(c *Config) {
			c.Strategy, c.PartitionOrder, c.PartitionCounts = "pbs", "", setting.PartitionCounts{}
			c.Model, c.Norm = "gcn", ""
		},
		"give two fanouts": func(c *Config) {
			c.Strategy, c.PartitionOrder, c.PartitionCounts = "pbs", "", setting.PartitionCounts{}
			c.Fanout, c.Norm = []int{5}, ""
		},
		"has sums in place of all": func(c *Config) {
			c.Strategy, c.PartitionOrder, c.PartitionCounts = "pbs", "", setting.PartitionCounts{}
			c.Model, c.Precompute, c.Norm = "mlp", true, ""
		},
		"--norm batch": func(c *Config) {
			c.Strategy, c.PartitionOrder, c.PartitionCounts = "pbs", "", setting.PartitionCounts{}
		},
		"than the store has": func(c *Config) {
			c.Strategy, c.PartitionOrder = "macro", ""
			c.PartitionCounts = setting.PartitionCounts{PartitionsInMemory: 9}
		},
		"the store has one": func(c *Config) {
			c.Strategy, c.PartitionOrder, c.PartitionCounts = "macro", "", setting.PartitionCounts{}
			c.Seed = 99 // of one partition
		},
	} {
		c := partitionConfigs()["dispersed"]
		change(&c)
		g := planted(false)
		g.EdgeTypes = []string{"a"}
		if c.Seed == 99 {
			g.Partitions = 1
		}
		s := layouttest.Build(t, vfs.NewMem(), "store", g)
		_, err := Run(t.Context(), s, mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestReuseIsKept: a run that goes on keeps how often macro-batches are used, as it was decided.
func TestReuseIsKept(t *testing.T) {
	c := partitionConfigs()["macro"]
	c.Reuse = setting.ReuseAuto
	s := mustBuild(t, planted(false))
	mustRun(t, s, c)
	old, err := runs.Load(s, c.Run)
	if err != nil || old.Reuse == setting.ReuseAuto || old.Hubs != c.Hubs {
		t.Fatalf("recorded are reuse %d and hubs of %d bytes, %v", old.Reuse, old.Hubs, err)
	}
	c.Resolved(&old.PartitionSettings)
	if c.Reuse != old.Reuse {
		t.Errorf("goes on with %d, began with %d", c.Reuse, old.Reuse)
	}
}

// TestPlanOfSums: pbs with sums ahead has no hubs unless some are asked for, and its plan says that
// nothing reads features of neighbors outside memory.
func TestPlanOfSums(t *testing.T) {
	for name, want := range map[string]struct {
		sums     bool
		given    int64
		hubs     int64
		features string
	}{
		"drawn":         {false, 0, 0, "features are read one by one"},
		"sums":          {true, 0, setting.HubsNone, "features nothing reads"},
		"sums and hubs": {true, 2 << 10, 2 << 10, "features nothing reads"},
	} {
		c := partitionConfigs()["pbs"]
		c.Precompute, c.Hubs = want.sums, want.given
		l, err := Open(t.Context(), mustBuild(t, planted(false)), mustDevice(t), c)
		if err != nil {
			t.Fatal(name, err)
		}
		hubs, lines := l.s.cfg.Hubs, strings.Join(l.Plan().Partitions.Lines, "\n")
		if want.hubs != 0 && hubs != want.hubs || want.hubs == 0 && hubs <= 0 {
			t.Errorf("%s: hubs take %d bytes, want %d", name, hubs, want.hubs)
		}
		if !strings.Contains(lines, want.features) {
			t.Errorf("%s: the plan says %q, want %q", name, lines, want.features)
		}
		if err := l.Close(); err != nil {
			t.Error(name, err)
		}
	}
}
