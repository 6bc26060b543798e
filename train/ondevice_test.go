//go:build cuda && cgo && linux

package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/cuda/cudatest"
	"gdb/layout"
	"gdb/train/devicecache"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// trainedOn trains and returns what it comes to, its epochs, and its plan.
func trainedOn(t *testing.T, c Config) (state []byte, epochs []runs.Epoch, p *plan.Plan) {
	t.Helper()
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			p = e.Started.Of.(*Begun).Plan
		}
		if e.Epoch != nil {
			epochs = append(epochs, *e.Epoch.(*runs.Epoch))
		}
	}); err != nil {
		t.Fatal(err)
	}
	_, state = finalState(t, s, c.Run)
	return state, epochs, p
}

// cachedConfig trains with a cache of features on the device.
func cachedConfig(size int64) Config {
	c := testConfig()
	c.Backend, c.Epochs, c.DeviceCache = backend.CUDA, 4, size
	return c
}

// TestRowsStayOnDevice: rows that are kept on the device change no bit of what is learned, whatever
// cache the host has; and batches carry the others only.
func TestRowsStayOnDevice(t *testing.T) {
	mustEmulate(t)
	for _, host := range []func(c *Config){
		func(*Config) {},
		func(c *Config) { c.Cache, c.FeatureCache = "none", 0 },
		func(c *Config) { c.Cache, c.FeatureCache = "static", 20*4*plantedDim },
		func(c *Config) { c.Cache, c.FeatureCache = "sieve", 20*4*plantedDim },
		func(c *Config) { c.Cache, c.FeatureCache = setting.CacheBelady, 4096 },
	} {
		plain := cachedConfig(0)
		host(&plain)
		want, without, p := trainedOn(t, plain)
		if p.OnDevice == nil || p.OnDevice.Rows != 0 || without[3].DeviceHit != 0 {
			t.Fatalf("without a cache the plan is %+v, and %g of the rows hit", p.OnDevice,
				without[3].DeviceHit)
		}
		for _, size := range []int64{100 * 4 * plantedDim, setting.DeviceCacheAuto} {
			c := cachedConfig(size)
			host(&c)
			got, epochs, p := trainedOn(t, c)
			if !bytes.Equal(got, want) {
				t.Errorf("cache %s, %d bytes on the device: what is learned has other bits",
					c.Cache, size)
			}
			checkCached(t, c, p, epochs, without)
		}
	}
}

// checkCached checks what epochs say of a cache on the device.
func checkCached(t *testing.T, c Config, p *plan.Plan, epochs, without []runs.Epoch) {
	t.Helper()
	rows := int64(100)
	if c.DeviceCache == setting.DeviceCacheAuto {
		rows = plantedNodes
	}
	if p.OnDevice.Rows != rows {
		t.Errorf("%d rows are planned on the device, not %d", p.OnDevice.Rows, rows)
	}
	last, before := epochs[3], without[3]
	t.Logf("%s: %s; without %s", p.Cache, last.Engine(), before.Engine())
	reads := last.Read > 0 && c.Cache != setting.CacheBelady // which gathers all rows
	if rows == plantedNodes && (last.DeviceHit != 1 || last.Missed != 0 || reads) ||
		last.DeviceHit < float64(rows)/plantedNodes-0.02 {
		t.Errorf("with %d rows of %d on the device %g hit, %g miss, %d bytes are read", rows,
			plantedNodes, last.DeviceHit, last.Missed, last.Read)
	}
	saved := int64(float64(last.Nodes) * last.DeviceHit * 4 * plantedDim)
	// As many words, and those of rows that batches are padded by.
	places := int64(4 * last.Nodes)
	// A quarter of all rows may be read and sent along with them.
	along := int64(before.Nodes) * plantedDim
	if got := int64(before.Sent) - int64(last.Sent); got > saved+places+along ||
		got < saved-2*places-along {
		t.Errorf("%d bytes less were sent: %d of rows, and about %d more that say where these are",
			got, saved, places)
	}
}

// TestDeviceTooSmall: a run that has no place in the device's memory is refused before it begins,
// with what would do; with so much it is trained.
func TestDeviceTooSmall(t *testing.T) {
	emulator := mustEmulate(t)
	c := cachedConfig(setting.DeviceCacheAuto)
	c.Hidden = 512
	emulator.Set(t, "memory", 8<<20)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	_, err := Run(t.Context(), s, mustDevice(t), c, nil)
	var small *plan.DeviceTooSmallError
	if !errors.As(err, &small) {
		t.Fatalf("8 MiB of a device: %v", err)
	}
	t.Log(err)
	d := small.Plan
	need := d.Other + d.Model + d.Step + d.Given + d.Eval
	emulator.Set(t, "memory", need)
	_, epochs, p := trainedOn(t, c)
	if p.OnDevice.Rows != 0 || len(epochs) != c.Epochs {
		t.Errorf("with the least memory %d rows are kept, and %d epochs were trained",
			p.OnDevice.Rows, len(epochs))
	}
}

// TestPlanOfDevice: what is planned of the device's memory is what a run takes at most, and not
// much more; it can be planned without the device. A step that is larger than those before takes
// memory beside theirs, from what plans leave free; the next begins with memory for both. Whether
// one of the first does depends on the way of rows to the device, which a trial of both decides.
func TestPlanOfDevice(t *testing.T) {
	emulator := mustEmulate(t)
	c := cachedConfig(0)
	c.Hidden = 256
	steps, growing, peak := peakOf(t, emulator, c)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	p, err := MakePlan(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	d := p.OnDevice
	planned := d.Other + d.Model + d.Step + d.Given
	t.Logf("planned %d (%+v), taken by steps %d, %d while memory grew, with evaluations %d",
		planned, *d, steps, growing, peak)
	if steps > planned || steps-d.Other < (planned-d.Other)/2 ||
		growing > planned+d.Step+d.Given || peak > planned+d.Eval {
		t.Errorf("%d bytes are planned (%+v), and %d taken by steps, %d while memory grew, "+
			"%d in all", planned, *d, steps, growing, peak)
	}
	c.DeviceMemory = 1 << 30
	emulator.Set(t, "devices", 0)
	alone, err := MakePlan(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	a := alone.OnDevice
	if a.Model != d.Model || a.Step != d.Step || a.Given != d.Given || a.Memory != 1<<30 {
		t.Errorf("without the device the plan is %+v, with it %+v", *a, *d)
	}
}

// peakOf trains and returns how much memory of the device was allocated after all steps of the
// first epoch, the most after any of them, and in all.
func peakOf(t *testing.T, on *cudatest.Emulator, c Config) (steps, growing, peak int64) {
	t.Helper()
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		allocated := on.Count("allocated_bytes")
		peak = max(peak, allocated)
		if e.Progress != nil && e.Progress.Epoch == 1 {
			steps, growing = allocated, peak
		}
	}); err != nil {
		t.Fatal(err)
	}
	return steps, growing, peak
}

// TestStepsWaitForNothing: between two reads of losses the host waits for no stream, whatever comes
// over the bus: only for copies of the step before the last one, whose memory is used again.
func TestStepsWaitForNothing(t *testing.T) {
	emulator := mustEmulate(t)
	c := cachedConfig(100 * 4 * plantedDim)
	c.Batch, c.Epochs, c.Cache, c.FeatureCache = 5, 1, "none", 0
	c.PlainLaunches = true // a graph that is left waits
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	before, events, allocated, quiet := int64(0), int64(0), int64(0), 0
	if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Progress == nil {
			return
		}
		now, ends := emulator.Count("waits"), emulator.Count("event_waits")
		// Steps that read losses, that which fills the cache, and those that are larger than any
		// before and take more memory wait.
		reads := e.Progress.Batch%16 == 0 || e.Progress.Batch == devicecache.StepsBefore ||
			emulator.Count("allocations") != allocated
		if !reads && e.Progress.Batch > 4 {
			if quiet++; now != before || ends-events > 1 {
				t.Errorf("step %d waited %d times for streams, %d times for events",
					e.Progress.Batch, now-before, ends-events)
			}
		}
		before, events, allocated = now, ends, emulator.Count("allocations")
	}); err != nil {
		t.Fatal(err)
	}
	if quiet < 20 {
		t.Errorf("only %d steps were looked at", quiet)
	}
}

// TestStepsAreGivenOneBlock: where the device keeps all rows, one copy gives a step all that it
// needs, labels too, beside the few numbers that launches of steps differ by.
func TestStepsAreGivenOneBlock(t *testing.T) {
	emulator := mustEmulate(t)
	for name, s := range map[string]*layout.Store{"classes": mustBuild(t, planted(false)),
		"several": mustBuild(t, planted(true)), "numbers": mustBuild(t, plantedNumbers())} {
		noteProfiles(t, s)
		c := cachedConfig(setting.DeviceCacheAuto)
		c.Batch, c.Epochs, c.Dropout, c.PlainLaunches = 5, 1, 0, true
		before, allocated, looked := int64(0), int64(0), 0
		if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Progress == nil {
				return
			}
			now, batch := emulator.Count("copies"), e.Progress.Batch
			quiet := batch%16 != 0 && emulator.Count("allocations") == allocated
			if batch > devicecache.StepsBefore+6 && quiet {
				looked++
				if now != before+2 {
					t.Errorf("%s: step %d was given %d copies", name, batch, now-before)
				}
			}
			before, allocated = now, emulator.Count("allocations")
		}); err != nil {
			t.Fatal(err)
		}
		if looked < 10 {
			t.Errorf("%s: only %d steps were looked at", name, looked)
		}
	}
}

// TestSentIsOfTraining: what an evaluation is given does not count as sent in the next epoch.
func TestSentIsOfTraining(t *testing.T) {
	mustEmulate(t)
	c := cachedConfig(100 * 4 * plantedDim)
	c.EvalMode, c.EvalEvery = setting.EvalSampled, 1
	_, often, _ := trainedOn(t, c)
	c.EvalEvery = 4
	_, once, _ := trainedOn(t, c)
	for i := range often {
		a, b := often[i], once[i]
		if a.Sent != b.Sent || a.DeviceHit != b.DeviceHit {
			t.Errorf("epoch %d: %d bytes sent, %g hit, with an evaluation before it; else %d, %g",
				i+1, a.Sent, a.DeviceHit, b.Sent, b.DeviceHit)
		}
	}
}

// heldConfig is a training whose host keeps no rows, some or, with cache auto, all.
func heldConfig(cache string) Config {
	c := cachedConfig(100 * 4 * plantedDim)
	c.Epochs, c.Batch, c.Cache = 2, 40, cache
	if cache != "none" && cache != "auto" {
		c.FeatureCache = 200 * 6 * plantedDim
	}
	return c
}

// TestRowsInPlaceOnDevice: where copies to the device are slow it reads rows in the host's memory,
// and what is learned has the same bits as with a cache from which copies are sent; what it read
// counts as sent.
func TestRowsInPlaceOnDevice(t *testing.T) {
	emulator := mustEmulate(t)
	want, sent, p := trainedOn(t, heldConfig("sieve"))
	if bus := p.OnDevice.Bus; bus == nil || bus.InPlace || sent[1].InPlace {
		t.Errorf("with cache sieve rows come by %+v", bus)
	}
	emulator.Set(t, "copy_rate", 2<<20)
	for _, cache := range []string{"none", "static", "auto"} {
		got, epochs, p := trainedOn(t, heldConfig(cache))
		bus := p.OnDevice.Bus
		if bus == nil || !bus.InPlace || bus.Read > bus.Send || bus.Why != "" {
			t.Fatalf("cache %s: with slow copies rows come by %+v", cache, bus)
		}
		t.Logf("cache %s: %s; %s", cache, bus, epochs[1].Engine())
		if !bytes.Equal(got, want) {
			t.Errorf("cache %s: with rows read in place other bits are learned", cache)
		}
		if n := emulator.Count("locked"); n != 0 {
			t.Errorf("cache %s: %d ranges are locked after the run", cache, n)
		}
		a, b := sent[1], epochs[1]
		rows := uint64(float64(b.Nodes) * (1 - b.DeviceHit) * 4 * plantedDim)
		if !b.InPlace || b.Sent < rows || b.Sent > a.Sent*5/4 {
			t.Errorf("cache %s: in place an epoch is %s, else %s", cache, b.Engine(), a.Engine())
		}
	}
}

// TestLockRefusedOnDevice: where memory of the host cannot be locked the run says so, and either
// copies of rows are sent, with the same bits, or it ends with an error that says which memory.
func TestLockRefusedOnDevice(t *testing.T) {
	emulator := mustEmulate(t)
	c := heldConfig("static")
	c.Epochs = 1
	want, _, _ := trainedOn(t, c)
	told := 0
	for n := int64(1); n <= 24 && told < 2; n++ {
		s := mustBuild(t, planted(false))
		noteProfiles(t, s)
		emulator.Set(t, "copy_rate", 4<<20)
		emulator.Set(t, "fail_lock", n)
		note, way := "", (*plan.BusWay)(nil)
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Started != nil {
				note, way = e.Started.Note, e.Started.Of.(*Begun).Plan.OnDevice.Bus
			}
		})
		emulator.Set(t, "copy_rate", 0)
		emulator.Set(t, "fail_lock", 0)
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), "bytes of memory") {
				t.Errorf("lock %d: %v", n, err)
			}
		case way.Why != "":
			told++
			if way.InPlace || !strings.Contains(note, "are copied and sent to the device") {
				t.Errorf("lock %d: rows come by %+v, %q", n, way, note)
			}
			if _, state := finalState(t, s, c.Run); !bytes.Equal(state, want) {
				t.Errorf("lock %d: what is learned has other bits", n)
			}
		}
		if n := emulator.Count("locked") + emulator.Count("allocated_bytes"); n != 0 {
			t.Errorf("lock %d: %d ranges are locked, or bytes allocated, after the run", n, n)
		}
	}
	if told < 2 {
		t.Errorf("%d runs told that memory could not be locked", told)
	}
}

// TestMacroBatchesOnDevice: rows that batches of a macro-batch share stay on the device for them,
// which changes no bit of what is learned.
func TestMacroBatchesOnDevice(t *testing.T) {
	mustEmulate(t)
	run := func(cache int64) ([]byte, runs.Epoch, *plan.DevicePlan) {
		c := cachedConfig(cache)
		c.MacroBatch, c.Batch, c.Fanout = 8, 10, []int{3, 3}
		state, epochs, p := trainedOn(t, c)
		return state, epochs[3], p.OnDevice
	}
	want, all, p := run(setting.DeviceCacheAuto) // all rows are kept, so that none are shared
	if p.Rows != plantedNodes || p.SharedRows != 0 || all.DeviceHit != 1 {
		t.Fatalf("the plan is %+v, and %g of the rows hit", p, all.DeviceHit)
	}
	for _, rows := range []int64{0, 100} {
		got, last, p := run(rows * 4 * plantedDim)
		t.Logf("%d rows kept: %+v: %s", rows, *p, last.Engine())
		if p.SharedRows == 0 || p.Rows != rows || last.DeviceHit < 0.2 {
			t.Errorf("the plan is %+v, and %g of the rows hit", p, last.DeviceHit)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("with %d rows kept what is learned has other bits", rows)
		}
	}
}

// preparedSteps trains two epochs with a number of samplers, from a batch of the first on, and
// returns the loss of each step and the bytes that it was given.
func preparedSteps(t *testing.T, s *layout.Store, samplers int, first uint64) (losses []float64,
	sent []int64) {
	t.Helper()
	c := cachedConfig(0)
	c.Batch = 12
	l, err := Open(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	l.s.plan.Samplers, l.s.pos.Batch = samplers, first
	for range 2 {
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for b, err := e.Next(t.Context()); err != io.EOF; b, err = e.Next(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Prepared == nil {
				t.Fatal("a batch comes without what was prepared of it")
			}
			before := l.s.steps.be.Device().Sent()
			loss, err := l.Step(b)
			b.Release()
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, loss)
			sent = append(sent, l.s.steps.be.Device().Sent()-before)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		l.s.pos.Batch = 0
	}
	return losses, sent
}

// TestStepsFollowFromTheSeed: what a step computes, and to which sizes its batch is padded, is the
// same with any number of samplers, in a store that knows the plan and in one that does not, and
// where a run began.
func TestStepsFollowFromTheSeed(t *testing.T) {
	mustEmulate(t)
	noted := mustBuild(t, planted(false))
	noteProfiles(t, noted)
	losses, sent := preparedSteps(t, noted, 1, 0)
	for _, samplers := range []int{2, 4} {
		for _, s := range []*layout.Store{noted, mustBuild(t, planted(false))} {
			again, given := preparedSteps(t, s, samplers, 0)
			if !slices.Equal(again, losses) || !slices.Equal(given, sent) {
				t.Errorf("with %d samplers steps have losses %v and are given %d bytes, with one "+
					"%v and %d", samplers, again, given, losses, sent)
			}
		}
	}
	if _, given := preparedSteps(t, noted, 2, 7); !slices.Equal(given, sent[7:]) {
		t.Errorf("from batch 7 on steps are given %d bytes, want %d", given, sent[7:])
	}
}

// TestLaunchesAreMeasured: a run takes the way to launch steps that was faster, says so, and goes
// on with it, whatever is faster then.
func TestLaunchesAreMeasured(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	c := resumeConfig()
	c.Backend, c.Grouped, c.Norm = backend.CUDA, nil, "" // with a norm by batch none are padded
	if err := stopAfter(t, s, c, 2); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	set, err := runs.Load(s, c.Run)
	if err != nil || set.Grouped == nil {
		t.Fatalf("a run says %v of its launches, %v", set.Grouped, err)
	}
	file, err := runs.Open(s, c.Run).ReadFile()
	if err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := json.Unmarshal(file.Planned, &p); err != nil {
		t.Fatal(err)
	}
	way := p.OnDevice.Measured()
	if way == nil || way.Grouped != *set.Grouped || way.Grouped != (way.AtOnce <= way.OneByOne) ||
		!(way.AtOnce > 0 && way.OneByOne > 0) {
		t.Errorf("it launches at once: %v; measured was %+v", *set.Grouped, way)
	}
	for _, grouped := range []bool{true, false} {
		c := resumeConfig()
		c.Run, c.Backend, c.Norm = fmt.Sprint("grouped-", grouped), backend.CUDA, ""
		c.Grouped = &grouped
		if err := stopAfter(t, s, c, 2); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		c.Resume, c.Run, c.Grouped = c.Run, "", nil
		var last *runs.Epoch
		if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				last = e.Epoch.(*runs.Epoch)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got := last.Launches.Graphs > 0; got != grouped {
			t.Errorf("a run that launched at once: %v, goes on with %+v", grouped, last.Launches)
		}
	}
}
