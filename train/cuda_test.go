//go:build cuda && cgo && linux

package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/cuda/cudatest"
	"gdb/layout"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// mustEmulate gives the test a device.
func mustEmulate(t *testing.T) *cudatest.Emulator {
	t.Helper()
	return cudatest.Start(t, "../compute/backend/cuda/kernels/kernels.cu")
}

// TestEveryModelOnDevice trains every model on the CPU and on a device: losses differ by rounding
// only, and the tests of the best weights hardly.
func TestEveryModelOnDevice(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	for _, c := range deviceConfigs() {
		t.Run(c.Run, func(t *testing.T) {
			c.Epochs, c.Clip = 1, 2
			sameTraining(t, s, c)
		})
	}
}

// sameTraining compares the epochs of trainings on both backends.
func sameTraining(t *testing.T, s *layout.Store, c Config) {
	t.Helper()
	name := c.Run
	var epochs [2][]runs.Epoch
	for i, on := range []string{backend.CPU, backend.CUDA} {
		c.Run, c.Backend = name+"-"+on, on
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				epochs[i] = append(epochs[i], *e.Epoch.(*runs.Epoch))
			}
		})
		if err != nil {
			t.Fatalf("%s: %v", on, err)
		}
	}
	for i, want := range epochs[0] {
		got := epochs[1][i]
		if math.Abs(got.Loss-want.Loss) > 1e-3 || math.Abs(*got.Val-*want.Val) > 0.03 {
			t.Errorf("epoch %d: loss %g and val %g, on the CPU %g and %g", i+1, got.Loss, *got.Val,
				want.Loss, *want.Val)
		}
	}
	t.Logf("%s: losses of the last epoch %g and %g", name, epochs[0][len(epochs[0])-1].Loss,
		epochs[1][len(epochs[1])-1].Loss)
}

// TestTF32OnDevice: products whose factors are rounded give other losses than in float32, but for
// little; what they trained is evaluated on the CPU in float32.
func TestTF32OnDevice(t *testing.T) {
	emulator := mustEmulate(t)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	var losses []float64
	for _, precision := range []string{setting.Float32, setting.TF32} {
		c := testConfig()
		c.Run, c.Precision, c.Backend, c.Epochs = precision, precision, backend.CUDA, 3
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil && e.Epoch.(*runs.Epoch).Epoch == c.Epochs {
				losses = append(losses, e.Epoch.(*runs.Epoch).Loss)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := math.Abs(losses[0] - losses[1]); d == 0 || d > 0.01 {
		t.Errorf("losses in f32 and tf32 are %v", losses)
	}
	emulator.Set(t, "devices", 0)
	if _, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: setting.TF32,
		Split: "val"}); err != nil {
		t.Error(err)
	}
}

// TestTrainingOnDevice: steps without a run fill the device's cache of rows too, and send less
// then.
func TestTrainingOnDevice(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Backend, c.Batch = backend.CUDA, 12
	noteProfile(t, s, c, diskProfile)
	l, err := Open(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	var sent [3]int64
	for i := range sent {
		before := l.s.steps.be.Device().Sent()
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for b, err := e.Next(t.Context()); err != io.EOF; b, err = e.Next(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			_, err := l.Step(b)
			b.Release()
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		sent[i] = l.s.steps.be.Device().Sent() - before
	}
	if !l.s.replicas.all[0].rows.Cache.Filled() || sent[2] > sent[0]*9/10 {
		t.Errorf("epochs sent %v bytes", sent)
	}
}

// TestEvaluateInLittleOfDevice: an evaluation on a device in a part of its memory gives what it
// gives in all of it; with too little it says what would do, and leaves nothing behind.
func TestEvaluateInLittleOfDevice(t *testing.T) {
	emulator := mustEmulate(t)
	s := mustBuild(t, planted(false))
	c := testConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	evaluate := func(memory int64) (*EvalResult, error) {
		e := EvalConfig{Run: c.Run, Split: "val"}
		e.Backend, e.DeviceMemory = backend.CUDA, memory
		before := emulator.Count("launches")
		res, err := Evaluate(t.Context(), s, mustDevice(t), e)
		if err == nil && emulator.Emulated() && emulator.Count("launches") == before {
			t.Error("nothing ran on the device")
		}
		return res, err
	}
	whole, err := evaluate(0)
	if err != nil {
		t.Fatal(err)
	}
	part, err := evaluate(48 << 20)
	if err != nil || part.Value != whole.Value && emulator.Emulated() ||
		math.Abs(part.Value-whole.Value) > 0.02 {
		t.Errorf("in 48 MiB of the device: %v, %v, want %g", part, err, whole.Value)
	}
	_, err = evaluate(4<<20 + 100<<10)
	if err == nil || !strings.Contains(err.Error(), "allow more with --device-memory") {
		t.Errorf("in too little: %v", err)
	}
	if left := emulator.Count("allocated_bytes"); left != 0 {
		t.Errorf("%d bytes of the device are left", left)
	}
}

// TestTasksOnDevice trains on labels of all kinds, on typed and weighted edges and on vectors of
// nodes, and evaluates in other ways.
func TestTasksOnDevice(t *testing.T) {
	mustEmulate(t)
	edges, numbers := mustBuild(t, plantedEdges()), mustBuild(t, plantedNumbers())
	multi, plain := mustBuild(t, planted(true)), mustBuild(t, planted(false))
	for _, s := range []*layout.Store{edges, numbers, multi, plain} {
		noteProfiles(t, s)
	}
	for _, v := range []struct {
		run   string
		store *layout.Store
		set   func(c *Config)
	}{
		{"rgcn", edges, func(c *Config) { c.Model = "rgcn" }},
		{"weights", edges, func(c *Config) { c.Model, c.EdgeWeight = "gcn", true }},
		{"sums-of-weights", edges, func(c *Config) { c.Aggregate, c.EdgeWeight = "sum", true }},
		{"drawn-by-weight", edges, func(c *Config) { c.Sample = setting.SampleWeighted }},
		{"numbers", numbers, func(c *Config) { c.Optimizer = "adagrad" }},
		{"huber", numbers, func(c *Config) { c.Loss, c.Optimizer = "huber", "sgd" }},
		{"multi", multi, func(c *Config) { c.Norm = "batch" }},
		{"multi-balanced", multi, func(c *Config) { c.ClassWeights = setting.WeightsBalanced }},
		{"balanced", plain, func(c *Config) { c.ClassWeights = setting.WeightsBalanced }},
		{"vectors", plain, func(c *Config) { c.NodeEmbedding, c.Clip = 5, 1 }},
		{"batch-norm", plain, func(c *Config) { c.Norm, c.Optimizer = "batch", "adamw" }},
		{"sampled", plain, func(c *Config) { c.EvalMode = setting.EvalSampled }},
		{"belady", plain, func(c *Config) { c.Cache, c.FeatureCache = setting.CacheBelady, 4096 }},
		{"layers", plain, func(c *Config) {
			c.Sampler, c.Fanout, c.LayerSize = setting.SamplerLayer, nil, []int{60, 60}
			c.Model = "gcn"
		}},
		{"whole", plain, func(c *Config) { c.Model, c.Fanout = "gat", []int{-1, -1} }},
	} {
		t.Run(v.run, func(t *testing.T) {
			c := testConfig()
			c.Run, c.Epochs = v.run, 2
			v.set(&c)
			sameTraining(t, v.store, c)
		})
	}
}

// TestCheckpointsMove begins runs on one backend and ends them on the other, in the middle of an
// epoch: they come to what a run on the CPU comes to.
func TestCheckpointsMove(t *testing.T) {
	mustEmulate(t)
	for _, way := range [][2]string{{backend.CPU, backend.CUDA}, {backend.CUDA, backend.CPU},
		{backend.CUDA, backend.CUDA}} {
		c := resumeConfig()
		want, _ := undisturbed(t, c)
		s := mustBuild(t, planted(false))
		c.Backend = way[0]
		if err := stopAfter(t, s, c, 7); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		c.Backend, c.Resume = way[1], c.Run
		c.Run = ""
		mustRun(t, s, c)
		got, _ := finalState(t, s, c.Resume)
		if math.Abs(got.Best-want.Best) > 0.02 || math.Abs(*got.Test-*want.Test) > 0.02 {
			t.Errorf("%v: val %g and test %g, not %g and %g", way, got.Best, *got.Test, want.Best,
				*want.Test)
		}
		if set, err := runs.Load(s, c.Resume); err != nil || set.Backend != way[1] {
			t.Errorf("the run says that it computed on %s, %v", set.Backend, err)
		}
	}
}

// stopAfter trains until a number of steps were done.
func stopAfter(t *testing.T, s *layout.Store, c Config, steps int) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
		if e.Progress != nil {
			if steps--; steps == 0 {
				cancel()
			}
		}
	})
	return err
}

// TestAutoIsRecorded: a run says where it computed.
func TestAutoIsRecorded(t *testing.T) {
	emulator := mustEmulate(t)
	s := mustBuild(t, planted(false))
	for _, devices := range []int64{1, 0} {
		emulator.Set(t, "devices", devices)
		c := testConfig()
		c.Epochs, c.Backend, c.Run = 1, backend.Auto, fmt.Sprint("auto", devices)
		mustRun(t, s, c)
		want := []string{backend.CPU, backend.CUDA}[devices]
		if set, err := runs.Load(s, c.Run); err != nil || set.Backend != want {
			t.Errorf("with %d devices: %s, %v", devices, set.Backend, err)
		}
	}
}

// TestFaultsOfDevice has each allocation fail once, other kinds of calls at many places of a run,
// and the device lost at many calls: the error says so, and in which batch, and the run goes on
// from its checkpoint on the CPU.
func TestFaultsOfDevice(t *testing.T) {
	emulator := mustEmulate(t)
	for knob, says := range map[string]string{"fail_alloc": "memory", "fail_launch": "cuda",
		"fail_copy": "cuda", "fail_blas": "cuda", "lost_after": "cuda"} {
		t.Run(knob, func(t *testing.T) {
			failed, ended, most := 0, 0, 10
			for n := int64(1); ended < most; n++ {
				if knob != "fail_alloc" {
					n, most = n+n*2/3, 3
				}
				if faultOfDevice(t, emulator, knob, n, says) {
					failed++
				} else { // there are no more calls, or the allocation was tried again
					ended++
				}
			}
			t.Logf("%d runs failed", failed)
			if failed < 5 {
				t.Errorf("only %d runs failed", failed)
			}
		})
	}
}

// faultOfDevice trains with a fault at the n-th call, and says whether there was one.
func faultOfDevice(t *testing.T, emulator *cudatest.Emulator, knob string, n int64,
	says string) bool {
	t.Helper()
	c := resumeConfig()
	c.Epochs, c.Backend, c.CheckpointEvery, c.Hidden = 2, backend.CUDA, 2, 8
	s := mustBuild(t, planted(false))
	noteProfile(t, s, c, diskProfile)
	products := emulator.Count("products")
	emulator.Set(t, knob, n)
	_, err := Run(t.Context(), s, mustDevice(t), c, nil)
	emulator.Set(t, knob, 0)
	if err == nil {
		return false
	}
	if !strings.Contains(err.Error(), says) || emulator.Count("products") > products &&
		!slices.ContainsFunc([]string{"batch", "valuat", "exact", ": test: ", "time a step of",
			"rows come to the device", "read the weights",
			"close the device"},
			func(of string) bool { return strings.Contains(err.Error(), of) }) {
		t.Errorf("%s %d: %v", knob, n, err)
	}
	if left := emulator.Count("allocated_bytes"); left != 0 {
		t.Errorf("%s %d: %d bytes of the device are left", knob, n, left)
	}
	if _, err := runs.Load(s, c.Run); err != nil { // it had not begun
		return true
	}
	c.Backend, c.Resume, c.Run = backend.CPU, c.Run, ""
	res := mustRun(t, s, c)
	if res.Epochs != c.Epochs || !(res.Best > 0.3) {
		t.Errorf("%s %d: after it went on: %+v", knob, n, res)
	}
	return true
}

// TestGroupedTrainingOnDevice trains every model with the steps launched at once, batches padded,
// and one by one: the same bits on the emulated device, and on another the same losses but for
// rounding, since cuBLAS may add in another order where sizes differ; in a fraction of the
// launches.
func TestGroupedTrainingOnDevice(t *testing.T) {
	emulator := mustEmulate(t)
	plain, edges := mustBuild(t, planted(false)), mustBuild(t, plantedEdges())
	multi := mustBuild(t, planted(true))
	for _, s := range []*layout.Store{plain, edges, multi} {
		noteProfiles(t, s)
	}
	for _, c := range deviceConfigs() {
		t.Run(c.Run, func(t *testing.T) { groupedTraining(t, emulator, plain, c) })
	}
	for name, set := range map[string]func(c *Config){
		"weights": func(c *Config) { c.Model, c.EdgeWeight = "gcn", true },
		"sums":    func(c *Config) { c.Aggregate, c.EdgeWeight = "sum", true },
		"largest": func(c *Config) { c.Aggregate = "max" },
		"copied":  func(c *Config) { c.FeatureCache = 4096 },
	} {
		c := testConfig()
		c.Run = name
		set(&c)
		t.Run(name, func(t *testing.T) { groupedTraining(t, emulator, edges, c) })
	}
	for name, set := range map[string]func(c *Config){
		"multi":   func(c *Config) { c.Clip = 1 },
		"vectors": func(c *Config) { c.NodeEmbedding = 5 },
	} {
		c := testConfig()
		c.Run = name
		set(&c)
		t.Run(name, func(t *testing.T) { groupedTraining(t, emulator, multi, c) })
	}
}

// groupedTraining compares a training with steps at once and one by one.
func groupedTraining(t *testing.T, emulator *cudatest.Emulator, s *layout.Store, c Config) {
	t.Helper()
	c.Backend, c.Batch, c.Epochs, c.EvalEvery, c.Dropout = backend.CUDA, 20, 2, 2, 0.3
	name := c.Run
	var weights [2][]byte
	var last [2]runs.Epoch
	var launched [2]int64
	for i, plain := range []bool{true, false} {
		c.Run, c.PlainLaunches = fmt.Sprint(name, "-", plain), plain
		before := emulator.Count("launches") + emulator.Count("graph_launches")
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				last[i] = *e.Epoch.(*runs.Epoch)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		launched[i] = emulator.Count("launches") + emulator.Count("graph_launches") - before
		_, weights[i] = finalState(t, s, c.Run)
	}
	same := bytes.Equal(weights[0], weights[1]) && last[0].Loss == last[1].Loss
	if !emulator.Emulated() {
		same = math.Abs(last[0].Loss-last[1].Loss) <= 1e-3
	}
	if !same {
		t.Errorf("%s: at once the weights or the optimizer's state differ: loss %g, one by one "+
			"%g", name, last[1].Loss, last[0].Loss)
	}
	one, all := last[0].Launches, last[1].Launches
	t.Logf("%s: %d batches, one by one %+v, at once %+v; in all %v", name, last[0].Batches, *one,
		*all, launched)
	// Padding may have a sum expect lists of more than one part, which another launch adds up.
	if one.Graphs != 0 || all.Operations < one.Operations ||
		all.Operations > one.Operations*101/100 {
		t.Errorf("%s: one by one %+v, at once %+v", name, *one, *all)
	}
	if c.Norm != "batch" && c.Model != "rgcn" && all.Calls > one.Calls*4/10 {
		t.Errorf("%s: at once there are still %d calls of %d", name, all.Calls, one.Calls)
	}
}

// deviceConfigs are a run of every model.
func deviceConfigs() []Config { return modelConfigs(testConfig()) }
