package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/embedding"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	plantedNodes   = 600
	plantedClasses = 4
	plantedDim     = 12
)

// planted returns a graph whose classes show in its features, weakly, and in its neighborhoods:
// most edges join nodes of one class. Node 0 is a hub, node 1 has no label.
func planted(multi bool) layouttest.Graph {
	draw := rng.NewStream(9)
	g := layouttest.Graph{Nodes: plantedNodes, Dim: plantedDim,
		Classes: []string{"ash", "birch", "cedar", "fir; red"}, Partitions: 8,
		Splits: map[string][]layout.NodeID{}}
	for v := range plantedNodes {
		class := v % plantedClasses
		g.Labels = append(g.Labels, int32(class))
		for k := range plantedDim {
			x := float32(draw.Float64()*2 - 1)
			if k == class {
				x += 0.6
			}
			g.Features = append(g.Features, x)
		}
		for range 5 {
			to := int(draw.Below(plantedNodes))
			if draw.Below(10) < 8 {
				to = to/plantedClasses*plantedClasses + class
			}
			g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(to % plantedNodes),
				Dst: layout.NodeID(v)})
		}
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v), Dst: 0})
		name := []string{"train", "train", "val", "test", "test"}[draw.Below(5)]
		g.Splits[name] = append(g.Splits[name], layout.NodeID(v))
	}
	g.Labels[1] = -1
	if multi {
		for _, class := range g.Labels {
			if class < 0 {
				g.Multi = append(g.Multi, nil)
				continue
			}
			g.Multi = append(g.Multi, []int{int(class), (int(class) + 1) % plantedClasses})
		}
		g.Labels = nil
	}
	return g
}

func testConfig() Config {
	c := setting.Default()
	c.Fanout, c.Hidden, c.Batch, c.Epochs = []int{4, 3}, 16, 50, 8
	c.LR, c.Dropout, c.Threads, c.Memory = 0.02, 0.2, 2, 1<<30
	c.Run = "t"
	grouped := true // on a device, whatever is faster on this machine
	c.Grouped = &grouped
	return c
}

// notShort leaves a test out of short runs: the race detector makes it slow, and what it begins
// beside each other is begun by others too.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("results are compared in runs that are not short")
	}
}

func mustDevice(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

// mustBuild makes a store in memory, with profiles, so that no training measures one.
func mustBuild(t testing.TB, g layouttest.Graph) *layout.Store {
	t.Helper()
	s := mustBuildBare(t, g)
	if len(s.Meta().Features) > 0 {
		noteProfiles(t, s)
	}
	return s
}

// mustBuildBare makes a store in memory without profiles.
func mustBuildBare(t testing.TB, g layouttest.Graph) *layout.Store {
	t.Helper()
	return layouttest.Build(t, vfs.NewMem(), "store", g)
}

// resumed returns settings that go on with a run as it was.
func resumed(run string) Config {
	return Config{Identity: setting.Identity{Resume: run, AsBefore: true}}
}

func mustRun(t testing.TB, s *layout.Store, c Config) *Result {
	t.Helper()
	res, err := Run(context.Background(), s, mustDevice(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// currentCheckpoint reads the checkpoint that CURRENT names.
func currentCheckpoint(dir runs.Dir) (checkpoint, error) {
	name, err := dir.Current()
	if err != nil {
		return checkpoint{}, err
	}
	return readCheckpoint(dir, name, 1<<20)
}

// finalState is the current checkpoint of a run, without the times in it.
func finalState(t testing.TB, s *layout.Store, run string) (position, []byte) {
	t.Helper()
	c, err := currentCheckpoint(runs.Open(s, run))
	if err != nil {
		t.Fatal(err)
	}
	var state []byte
	for _, a := range c.arrays {
		state = fmt.Appendf(state, "%s %d ", a.Name, len(a.Values))
		state = append(state, mem.BytesOf(a.Values)...)
	}
	vectors, err := readAll(s.FS(), s.Path("runs", run, c.name, embedding.FileName))
	if err != nil && !oserror.IsNotExist(err) {
		t.Fatal(err)
	}
	c.pos.Sums = epochSums{}
	return c.pos, append(state, vectors...)
}

func TestRunLearnsAndLeavesItsFiles(t *testing.T) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	var records []runs.Epoch
	started, steps := 0, 0
	res, err := Run(context.Background(), s, dev, testConfig(), func(e run.Event) {
		switch {
		case e.Started != nil:
			started++
		case e.Progress != nil:
			steps++
		case e.Epoch != nil:
			records = append(records, *e.Epoch.(*runs.Epoch))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Test == nil || *res.Test < 0.8 || res.Best < 0.8 {
		t.Errorf("%s: it did not learn", res)
	}
	if started != 1 || len(records) != 8 || steps != 8*records[0].Batches {
		t.Errorf("%d starts, %d epochs, %d steps of %d a epoch", started, len(records), steps,
			records[0].Batches)
	}
	if records[7].Loss >= records[0].Loss || records[7].Sampled == 0 || records[7].Val == nil ||
		records[7].ValLoss == nil || !(*records[7].ValLoss < *records[0].ValLoss) {
		t.Errorf("records: first %+v, last %+v", records[0], records[7])
	}
	log, err := readAll(s.FS(), s.Path("runs", "t", "metrics.jsonl"))
	if err != nil || bytes.Count(log, []byte("\n")) != 8 {
		t.Errorf("metrics.jsonl: %v\n%s", err, log)
	}
	var file runs.File
	text, err := readAll(s.FS(), s.Path("runs", "t", "run.json"))
	if err != nil || json.Unmarshal(text, &file) != nil || file.Store != s.Meta().UUID.String() ||
		file.Config.Loss != "softmax" || file.Config.Metric != "accuracy" {
		t.Errorf("run.json: %v\n%s", err, text)
	}
	noted, err := s.Catalog().Runs(context.Background())
	if err != nil || len(noted) != 1 || noted[0].Status != "done" || noted[0].Test != *res.Test {
		t.Errorf("catalog: %+v, %v", noted, err)
	}
	if _, err := s.FS().Stat(s.Path("runs", "t", "tmp")); err == nil {
		t.Error("hidden states were left behind")
	}
}

// TestOptionsWithoutEffect: options that a model does not read are named when the run begins.
func TestOptionsWithoutEffect(t *testing.T) {
	s, c := mustBuild(t, planted(false)), testConfig()
	c.Epochs, c.Heads, c.Aggregate = 1, 2, "max"
	for name, want := range map[string]string{"sage": "--heads changes nothing in this sage",
		"mlp": "--heads, --aggregate changes nothing in this mlp", "gatv2": "--aggregate changes"} {
		c.Model, c.Run = name, name
		told := ""
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				told = e.Started.Note
			}
		})
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("%s: noted %q, %v", name, told, err)
		}
	}
}

func TestRunNames(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Run, c.Epochs = "", 1
	for i, want := range []string{"r0001", "r0002"} {
		if got := mustRun(t, s, c).Run; got != want {
			t.Errorf("run %d is called %s, want %s", i, got, want)
		}
	}
	c.Run = "r0001"
	_, err := Run(context.Background(), s, mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "--resume r0001") {
		t.Errorf("a second run of the same name: %v", err)
	}
}

func TestMultiLabels(t *testing.T) {
	s := mustBuild(t, planted(true))
	c := testConfig()
	c.Epochs = 15
	res := mustRun(t, s, c)
	if res.Metric != task.MicroF1 || res.Test == nil || *res.Test < 0.7 {
		t.Errorf("%s: it did not learn, by %s", res, res.Metric)
	}
}

func TestEarlyStopping(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Epochs, c.Patience, c.LR = 200, 3, 0.05
	res := mustRun(t, s, c)
	if !res.Stopped || res.Epochs != res.BestEpoch+3 {
		t.Errorf("stopped %v after %d epochs, best %d, patience 3", res.Stopped, res.Epochs,
			res.BestEpoch)
	}
}

// beladyConfig trains on superbatches with a cache that holds some rows.
func beladyConfig() Config {
	c := testConfig()
	c.Cache, c.FeatureCache = setting.CacheBelady, 8<<10
	return c
}

// checkPrep checks that nothing but a neighbor cache, the nodes of static caches and sums of
// features were left behind.
func checkPrep(t testing.TB, s *layout.Store) {
	t.Helper()
	names, err := s.FS().List(s.Path("prep"))
	names = slices.DeleteFunc(names, func(n string) bool {
		return n == "neighbors-in.lists" || n == "hot.nodes" || strings.HasPrefix(n, "sums-")
	})
	if err == nil && len(names) > 0 {
		t.Errorf("left in prep: %v", names)
	}
}

// TestEmptySplits: where val has no nodes some of train validate, as where there is no val, and a
// test without nodes is none.
func TestEmptySplits(t *testing.T) {
	for missing, want := range map[bool]string{false: "the store's val has no labeled node: ",
		true: "the store has no val: "} {
		g, c := planted(false), testConfig()
		if g.Splits["val"], g.Splits["test"] = nil, nil; missing {
			delete(g.Splits, "val")
			delete(g.Splits, "test")
		}
		said := ""
		r, err := Run(context.Background(), mustBuild(t, g), mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				said = e.Started.Note
			}
		})
		if err != nil || r.Test != nil || !strings.Contains(said, want) {
			t.Errorf("missing %v: %+v, %v, %s", missing, r, err, said)
		}
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		graph  func(g *layouttest.Graph)
		config func(c *Config)
		want   string
	}{
		"no features": {graph: func(g *layouttest.Graph) { g.Dim, g.Features = 0, nil },
			want: "no features"},
		"no labels": {graph: func(g *layouttest.Graph) { g.Labels, g.Classes = nil, nil },
			want: "no labels"},
		"no train split": {graph: func(g *layouttest.Graph) { delete(g.Splits, "train") },
			want: `"train"`},
		"nothing to validate with": {graph: func(g *layouttest.Graph) {
			delete(g.Splits, "val")
			g.Splits["train"] = g.Splits["train"][:1]
		}, want: "the store has no val, and too few nodes"},
		"unlabeled validation": {graph: func(g *layouttest.Graph) {
			g.Splits["val"] = []layout.NodeID{1}
		}, want: "none of the 1 nodes of val has a label"},
		"unlabeled training": {graph: func(g *layouttest.Graph) {
			g.Splits["train"] = []layout.NodeID{1}
		}, want: "no training node has a label"},
		"other column":  {config: func(c *Config) { c.Split = "7" }, want: `"train@7"`},
		"unknown model": {config: func(c *Config) { c.Model = "mlp2" }, want: "known: sage"},
		"backend": {config: func(c *Config) { c.Backend = "tpu" },
			want: "known are auto, cpu, cuda"},
		"multi loss": {config: func(c *Config) { c.Loss = "bce" }, want: "--loss auto"},
		"resume of nothing": {config: func(c *Config) { c.Resume = "nope" },
			want: `no run "nope"`},
		"too little memory": {config: func(c *Config) { c.Memory = 60 << 20 },
			want: "is too small"},
		"divergence": {config: func(c *Config) { c.LR, c.Optimizer = 1e30, "sgd" },
			want: "lower --lr"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, c := planted(false), testConfig()
			if tc.graph != nil {
				tc.graph(&g)
			}
			if tc.config != nil {
				tc.config(&c)
			}
			_, err := Run(context.Background(), mustBuild(t, g), mustDevice(t), c, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]func(c *Config){
		"unknown model \"lstm\"; known: sage": func(c *Config) { c.Model = "lstm" },
		"no fanout":                           func(c *Config) { c.Fanout = nil },
		"fanout 0":                            func(c *Config) { c.Fanout = []int{5, 0} },
		"hidden 0":                            func(c *Config) { c.Hidden = 0 },
		"batch 0":                             func(c *Config) { c.Batch = 0 },
		"epochs -1":                           func(c *Config) { c.Epochs = -1 },
		"lr 0":                                func(c *Config) { c.LR = 0 },
		"dropout 1":                           func(c *Config) { c.Dropout = 1 },
		"weight-decay -1":                     func(c *Config) { c.WeightDecay = -1 },
		"unknown optimizer \"lion\"":          func(c *Config) { c.Optimizer = "lion" },
		"unknown cache \"fifo\"":              func(c *Config) { c.Cache = "fifo" },
		"run name \"a/b\"":                    func(c *Config) { c.Run = "a/b" },
		"run name \"..\"":                     func(c *Config) { c.Run = ".." },
		"leave --fanout out":                  func(c *Config) { c.Sampler = setting.SamplerLayer },
		"--sampler layer: give --layer-size": func(c *Config) {
			c.Sampler, c.Fanout = setting.SamplerLayer, nil
		},
		"by --sampler layer only": func(c *Config) { c.LayerSize = []int{5, 5} },
		"layer size 0 of hop 2":   func(c *Config) { layered(c, 5, 0) },
		"have weights count with": func(c *Config) {
			layered(c, 5, 5)
			c.Sample = setting.SampleWeighted
		},
		"gat takes a softmax": func(c *Config) {
			layered(c, 5, 5)
			c.Model = "gat"
		},
		"one of each of the 1 layers": func(c *Config) {
			layered(c, 5, 5)
			c.Widths = []int{8, 8}
		},
	}
	for want, change := range cases {
		c := setting.Default()
		change(&c)
		if err := model.Of(&c).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	c := setting.Default()
	if err := model.Of(&c).Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func TestLines(t *testing.T) {
	val := 0.667
	got := runs.Epoch{Epoch: 3, Loss: 0.9141, Train: 0.712, Val: &val, Time: 12.4,
		Sampled: 41_200_000, Read: 1288490189, Hit: 0.851, IOWait: 0.12, Eval: 0.5, Best: true}
	want := "epoch 3  loss 0.914  train 0.712  val 0.667*  12.9s"
	if got.String() != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "time 12.4s sampled 41.2M edges read 1.2GiB hit 85.1% io-wait 12%"
	if got.Engine() != want {
		t.Errorf("%q, want %q", got.Engine(), want)
	}
	withStages := runs.Epoch{Time: 10, Stages: []runs.StageTimes{
		{Name: "sample", Workers: 2, Busy: 5, Blocked: 15},
		{Name: "step", Workers: 1, Busy: 9, Starved: 1}}}.Engine()
	if want = " busy/starved/blocked sample 25/0/75% step 90/10/0%"; !strings.HasSuffix(withStages,
		want) {
		t.Errorf("%q, want %q at its end", withStages, want)
	}
	test := 0.6712
	last := (&Result{Test: &test, BestEpoch: 8, Best: 0.669}).String()
	if want = "test 0.6712 (epoch 8, best val 0.6690)"; last != want {
		t.Errorf("%q, want %q", last, want)
	}
}

// TestBatchesCountFrom1 lets the second step of a run fail: the error counts as the shell's SAMPLE
// does, so that SAMPLE EPOCH 1 BATCH 2 shows the batch.
func TestBatchesCountFrom1(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Optimizer, c.LR, c.Batch = "sgd", 1e38, 30
	_, err := Run(context.Background(), s, mustDevice(t), c, nil)
	if err == nil || !strings.Contains(err.Error(), "epoch 1, batch 2: the loss is") {
		t.Errorf("error %v", err)
	}
}

// TestDamagedRunFile flips a bit of each byte of run.json: it is refused, by name.
func TestDamagedRunFile(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	path := s.Path("runs", c.Run, "run.json")
	sound, err := readAll(s.FS(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Load(s, c.Run); err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{nil, sound[:len(sound)-1], append(bytes.Clone(sound), '\n')}
	for i := range sound {
		b := bytes.Clone(sound)
		b[i] ^= 1 << (i % 8)
		damaged = append(damaged, b)
	}
	for i, b := range damaged {
		if err := writeSynced(s.FS(), path, b); err != nil {
			t.Fatal(err)
		}
		_, err := runs.Load(s, c.Run)
		if !errors.Is(err, layout.ErrCorrupt) ||
			!strings.Contains(err.Error(), "runs/"+c.Run+"/run.json: ") {
			t.Fatalf("damage %d: %v", i, err)
		}
	}
}

// The neighbor cache is in the plan and in the record of an epoch, and kept for the next run.
func TestNeighborCache(t *testing.T) {
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Epochs, c.Topology, c.NeighborCache = 1, "paged", 1<<20
	c.Cache = "static" // the choice among all would depend on what this machine measures
	for _, c.Run = range []string{"first", "again"} {
		var hit *float64
		var planned *plan.Plan
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				planned = e.Started.Of.(*Begun).Plan
				if e.Started.Note != "" {
					t.Error(e.Started.Note)
				}
			}
			if e.Epoch != nil {
				hit = e.Epoch.(*runs.Epoch).NeighborHit
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if planned.Neighbor < 1<<20 || hit == nil || *hit != 1 {
			t.Errorf("planned %+v, hits %v", planned, hit)
		}
	}
	if _, err := s.FS().Stat(s.Path("prep/neighbors-in.lists")); err != nil {
		t.Error(err)
	}
}

// TestUnlabeled: an epoch tells how many nodes of the train split have no label.
func TestUnlabeled(t *testing.T) {
	g := planted(false)
	for _, v := range g.Splits["train"][3:8] {
		g.Labels[v] = -1
	}
	want := uint64(0)
	for _, v := range g.Splits["train"] {
		if g.Labels[v] < 0 {
			want++
		}
	}
	c, epochs := testConfig(), 0
	_, err := Run(t.Context(), mustBuild(t, g), mustDevice(t), c, func(e run.Event) {
		r, ok := e.Epoch.(*runs.Epoch)
		if !ok {
			return
		}
		if epochs++; r.Unlabeled != want {
			t.Errorf("%d nodes have no label, want %d", r.Unlabeled, want)
		}
	})
	if err != nil || epochs != c.Epochs || want < 5 {
		t.Errorf("%d epochs, %d nodes without a label, %v", epochs, want, err)
	}
}
