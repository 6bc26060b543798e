//go:build cuda && cgo && linux

package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/cuda/cudatest"
	"gdb/train/runs"
)

// severalConfig trains on a number of devices.
func severalConfig(devices int) Config {
	c := cachedConfig(100 * 4 * plantedDim)
	c.Dropout, c.Batch, c.Epochs = 0, 24, 3
	for i := 1; i < devices; i++ {
		c.MoreDevices = append(c.MoreDevices, i)
	}
	return c
}

// TestSeveralDevices: two devices and four, each with a part of every batch, learn what one does,
// but for rounding, and the same bits each time.
func TestSeveralDevices(t *testing.T) {
	emulator := mustEmulate(t)
	emulator.Set(t, "devices", 4)
	for _, set := range []func(c *Config){
		func(*Config) {},
		func(c *Config) { c.Batch, c.Cache, c.FeatureCache = 23, "static", 20*4*plantedDim },
		func(c *Config) { c.Model, c.Heads, c.Clip, c.PlainLaunches = "gat", 2, 1, true },
		func(c *Config) { c.ClassWeights, c.MacroBatch, c.EvalMode = "balanced", 2, "sampled" },
	} {
		one := severalConfig(1)
		set(&one)
		_, want, _ := trainedOn(t, one)
		for _, devices := range []int{2, 4} {
			t.Run(fmt.Sprint(one.Model, one.Batch, "on", devices), func(t *testing.T) {
				c := severalConfig(devices)
				set(&c)
				state, got, p := trainedOn(t, c)
				again, _, _ := trainedOn(t, c)
				if !bytes.Equal(state, again) {
					t.Error("two runs have other bits")
				}
				sameLosses(t, got, want)
				t.Log(p.OnDevice.Name, got[2].Engine())
			})
		}
	}
}

// sameLosses compares epochs with those of one device.
func sameLosses(t *testing.T, got, want []runs.Epoch) {
	t.Helper()
	for i, e := range want {
		if d := math.Abs(got[i].Loss - e.Loss); d > 1e-4 || got[i].Batches != e.Batches {
			t.Errorf("epoch %d: loss %g in %d batches, %g in %d on one device", i+1, got[i].Loss,
				got[i].Batches, e.Loss, e.Batches)
		}
	}
}

// TestSeveralDevicesResume: a run on two devices that was stopped goes on with the same bits, and
// on one device with losses that differ by rounding.
func TestSeveralDevicesResume(t *testing.T) {
	emulator := mustEmulate(t)
	emulator.Set(t, "devices", 2)
	c := severalConfig(2)
	c.DeviceCache = 0
	want, epochs, _ := trainedOn(t, c)
	for _, devices := range []int{2, 1} {
		s := mustBuild(t, planted(false))
		noteProfiles(t, s)
		if err := stopAfter(t, s, c, 5); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		on := severalConfig(devices)
		on.Resume, on.Run, on.DeviceCache = c.Run, "", 0
		mustRun(t, s, on)
		_, got := finalState(t, s, c.Run)
		if devices == 2 && !bytes.Equal(got, want) {
			t.Error("a run that was stopped has other bits")
		}
		var last []runs.Epoch
		if err := runs.Open(s, c.Run).Epochs(func(e *runs.Epoch) error {
			last = append(last, *e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sameLosses(t, last, epochs)
	}
}

// TestSeveralDevicesFault: a fault on any device ends the run with an error that names the device,
// and the run goes on from its checkpoint.
func TestSeveralDevicesFault(t *testing.T) {
	emulator := mustEmulate(t)
	emulator.Set(t, "devices", 2)
	named := map[string]bool{}
	for _, knob := range []string{"fail_launch", "fail_copy", "fail_blas", "lost_after"} {
		for n := int64(200); n < 900; n += 97 {
			faultOnSeveral(t, emulator, knob, n, named)
		}
	}
	if !named["device 0"] || !named["device 1"] {
		t.Errorf("errors named %v", named)
	}
}

// faultOnSeveral trains with a fault at the n-th call, and notes which device the error names.
func faultOnSeveral(t *testing.T, emulator *cudatest.Emulator, knob string, n int64,
	named map[string]bool) {
	t.Helper()
	c := severalConfig(2)
	c.CheckpointEvery, c.Hidden = 2, 8
	s := mustBuild(t, planted(false))
	noteProfile(t, s, c, diskProfile)
	emulator.Set(t, knob, n)
	_, err := Run(t.Context(), s, mustDevice(t), c, nil)
	emulator.Set(t, knob, 0)
	if err == nil {
		return
	}
	t.Log(knob, n, err)
	for _, name := range []string{"device 0", "device 1"} {
		named[name] = named[name] || strings.Contains(err.Error(), name+": ")
	}
	if _, err := currentCheckpoint(runs.Open(s, c.Run)); err != nil {
		return // it had none yet
	}
	c.Resume, c.Run, c.Backend = c.Run, "", backend.CPU
	if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
		t.Errorf("%s at %d: it does not go on: %v", knob, n, err)
	}
}
