package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample/superbatch"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// costlyReads notes a profile by which reading a byte takes long, and writing it nothing.
func costlyReads(t *testing.T, s *layout.Store, c Config) {
	t.Helper()
	noteProfile(t, s, c, plan.Profile{RandomReads: 1, Sequential: 1e12, ByteSeconds: 1e-3,
		GFLOPS: 10})
}

// diskProfile is of a usual machine. With a profile in the catalog none is measured, which takes
// longer than most runs of tests, above all with the race detector.
var diskProfile = plan.Profile{RandomReads: 1e5, RowBytes: 512, Sequential: 1e9, ReadSeconds: 1e-5,
	ByteSeconds: 1e-9, ReadCPU: 3e-6, ByteCPU: 3e-10, Write: plan.Work{Seconds: 1e-9, CPU: 5e-10},
	GFLOPS: 100,
	Copy:   plan.Work{Seconds: 2e-7, CPU: 2e-7}, Hit: plan.Work{Seconds: 3e-7, CPU: 3e-7},
	Miss:   plan.Work{Seconds: 3e-7, CPU: 3e-7},
	Decide: plan.Work{Seconds: 3e-8, CPU: 3e-8}}

// noteProfile puts a profile of the usual device into the catalog.
func noteProfile(t testing.TB, s *layout.Store, c Config, p plan.Profile) {
	t.Helper()
	noteProfileOf(t, mustDevice(t), s, c, p)
}

// noteProfileOf puts a profile of a device into the catalog.
func noteProfileOf(t testing.TB, dev blockdev.Device, s *layout.Store, c Config, p plan.Profile) {
	t.Helper()
	rows, err := rowfile.Open(t.Context(), s, dev, s.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Threads == 0 {
		c.Threads = runtime.NumCPU()
	}
	p.Cores = float64(c.Threads)
	name := probe.ProfileName(dev, rows.Meta(), c.Threads)
	b, err := json.Marshal(p)
	if err == nil {
		err = s.Catalog().PutProfile(t.Context(), name, b)
	}
	if err := errors.Join(err, rows.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSweptRun: where reading is expensive rows are swept, which the events and records tell. A run
// with sweeps has the same weights as one without, also if it was stopped and resumed.
func TestSweptRun(t *testing.T) {
	c := beladyConfig()
	c.Epochs = 4
	s := mustBuild(t, planted(false))
	costly := mustBuild(t, planted(false))
	mustRun(t, s, c)
	_, want := finalState(t, s, c.Run)

	costlyReads(t, costly, c)
	for _, stop := range []int{0, 1, 9} {
		c.Run = strings.Repeat("s", stop+1)
		told, records := []superbatch.Reading(nil), 0
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		obs := func(e run.Event) {
			if e.Reading != nil {
				told = append(told, *e.Reading)
			}
			if e.Progress != nil {
				if steps++; steps == stop {
					cancel()
				}
			}
			if e.Epoch != nil {
				records += len(e.Epoch.(*runs.Epoch).Reads)
			}
		}
		_, err := Run(ctx, costly, mustDevice(t), c, obs)
		if stop > 0 {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped after %d steps: %v", stop, err)
			}
			_, err = Run(t.Context(), costly, mustDevice(t), resumed(c.Run), obs)
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if _, got := finalState(t, costly, c.Run); !bytes.Equal(got, want) {
			t.Errorf("stopped after %d steps: other weights", stop)
		}
		if len(told) == 0 || !told[0].Swept || records == 0 ||
			!strings.Contains(told[0].String(), "swept") {
			t.Errorf("stopped after %d steps: told %+v, %d in records", stop, told, records)
		}
		checkPrep(t, costly)
	}
}

// sessionOf is a session that has opened nothing, with a plan of superbatches.
func sessionOf(schedule setting.Schedule, b *superbatch.Plan) *session {
	return &session{pos: &position{}, planned: &planned{plan: &plan.Plan{Superbatch: b},
		data: &data{checked: &checked{cfg: Config{Schedule: schedule}}}}}
}

// TestCertain: no superbatch goes beyond an epoch that the run may end with.
func TestCertain(t *testing.T) {
	for _, c := range []struct {
		every, patience, since int
		at, begins, want       uint64
	}{
		{1, 0, 0, 0, 0, 8},
		{1, 0, 0, 3, 5, 13},
		{20, 0, 0, 0, 3, 20},
		{1, 1, 0, 4, 4, 5},
		{1, 3, 1, 4, 4, 6},
		{1, 3, 1, 4, 6, 7}, // sampled ahead, of an epoch that may not come
		{5, 2, 0, 7, 7, 15},
		{1, 100, 0, 2, 2, 10},
	} {
		s := sessionOf(setting.Schedule{EvalEvery: c.every, Patience: c.patience},
			&superbatch.Plan{})
		s.pos.Epoch, s.pos.SinceBest = c.at, c.since
		if got := s.certain(c.begins); got != c.want {
			t.Errorf("%+v: epoch %d", c, got)
		}
	}
	pair := sessionOf(setting.Schedule{EvalEvery: 1}, &superbatch.Plan{SweepAhead: true})
	if got := pair.certain(3); got != 19 {
		t.Errorf("a pair of superbatches from epoch 3 on: epoch %d", got)
	}
}

// TestFullDiskWhileSweeping: a disk that is full while rows are swept, beside training too, ends
// the run with the file, the offset and how to go on; resumed, it has the same weights.
func TestFullDiskWhileSweeping(t *testing.T) {
	c := beladyConfig()
	c.Epochs, c.Superbatch = 3, 7
	sound := mustBuild(t, planted(false))
	mustRun(t, sound, c)
	_, want := finalState(t, sound, c.Run)
	writes := 0
	for nth := range 4 {
		fs := vfs.NewMem()
		s := layouttest.Build(t, fs, "store", planted(false))
		costlyReads(t, s, c)
		d := newSickDisk(fs)
		d.at, d.nth = place{"superbatch.rows", fullDisk}, nth
		sick, err := layout.Open(t.Context(), d, "store")
		if err != nil {
			t.Fatal(err)
		}
		c.Run = strings.Repeat("f", nth+1)
		_, err = Run(t.Context(), sick, mustDevice(t), c, nil)
		if d.op == "" || !errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), ".rows") ||
			!strings.Contains(err.Error(), "--resume "+c.Run) {
			t.Errorf("full at operation %d, %q: %v", nth, d.op, err)
		}
		if d.op == "write" {
			if writes++; !strings.Contains(err.Error(), "offset") {
				t.Errorf("full at operation %d: %v", nth, err)
			}
		}
		if _, err = Run(t.Context(), s, mustDevice(t), resumed(c.Run), nil); err != nil {
			t.Fatal(err)
		}
		if _, got := finalState(t, s, c.Run); !bytes.Equal(got, want) {
			t.Errorf("full at operation %d: other weights", nth)
		}
		checkPrep(t, s)
	}
	if writes == 0 {
		t.Error("no write failed")
	}
}
