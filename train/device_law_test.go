//go:build cuda && cgo && linux

package train

import (
	"errors"
	"fmt"
	"testing"

	"gdb/compute/backend"
	"gdb/layout/layouttest"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestMemoryIsALawWithDevice: with a device too, every plan is kept to, from the least memory of
// the host that is accepted upwards.
func TestMemoryIsALawWithDevice(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, layouttest.Skewed())
	noteProfiles(t, s)
	number := 0
	for _, set := range []func(c *Config){
		func(c *Config) { c.Cache = "auto" },
		func(c *Config) { c.Cache, c.EvalMode = "sieve", "sampled" },
		func(c *Config) { c.Cache = "none" },
		func(c *Config) { c.Cache = "static" },
		func(c *Config) { c.Cache = setting.CacheBelady },
		func(c *Config) { c.Cache, c.PlainLaunches = "auto", true },
		func(c *Config) { c.MacroBatch, c.Cache = 3, "static" },
		func(c *Config) { c.Model, c.Heads = "gat", 2 },
		func(c *Config) { c.Cache, c.SampleOn = "auto", setting.SampleDevice },
		func(c *Config) {
			c.Cache, c.SampleOn, c.EvalMode = "static", setting.SampleDevice, "sampled"
		},
		func(c *Config) {
			c.Cache, c.SampleOn, c.Topology = "none", setting.SampleDevice, "paged"
		},
	} {
		if testing.Short() && number >= 2 {
			return
		}
		c := lawConfig()
		c.Backend, c.DeviceCache, c.Memory, c.Epochs = backend.CUDA, 1<<20, 1<<20, 2
		c.Fanout = []int{6, 6}
		set(&c)
		least := leastMemory(t, c, mustPlan(t, s))
		for _, more := range []int64{0, 2}[:1+number%2] {
			c.Memory = least + more<<20
			number++
			c.Run = fmt.Sprint("run", number)
			drawn := uint64(0)
			_, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
				if e.Epoch != nil {
					drawn += e.Epoch.(*runs.Epoch).Drawn
				}
			})
			if err != nil || (drawn > 0) != (c.SampleOn == setting.SampleDevice) {
				t.Errorf("%s, cache %s, %d MiB: %d batches are drawn on the device, %v", c.Model,
					c.Cache, c.Memory>>20, drawn, err)
			}
		}
	}
}

// TestMemoryOfDeviceIsALaw: what is refused for want of the device's memory is refused before the
// run begins, with what it takes, and so much does.
func TestMemoryOfDeviceIsALaw(t *testing.T) {
	emulator := mustEmulate(t)
	s := mustBuild(t, layouttest.Skewed())
	noteProfiles(t, s)
	for name, set := range map[string]func(c *Config){
		"rows":             func(c *Config) { c.DeviceCache = 1 << 20 },
		"sampled":          func(c *Config) { c.EvalMode = setting.EvalSampled },
		"drawn":            func(c *Config) { c.SampleOn = setting.SampleDevice },
		"drawn-by-degrees": func(c *Config) { c.SampleOn, c.Model = setting.SampleDevice, "gcn" },
		"drawn-gat": func(c *Config) {
			c.SampleOn, c.Model, c.Heads = setting.SampleDevice, "gat", 2
		},
		"macro": func(c *Config) { c.MacroBatch = 3 },
	} {
		c := lawConfig()
		c.Run, c.Backend, c.Hidden, c.Epochs, c.Fanout = name, backend.CUDA, 64, 2, []int{6, 6}
		set(&c)
		emulator.Set(t, "memory", 5<<20)
		_, err := Run(t.Context(), s, mustDevice(t), c, nil)
		var small *plan.DeviceTooSmallError
		if !errors.As(err, &small) {
			t.Fatalf("%s: 5 MiB of a device: %v", name, err)
		}
		t.Log(err)
		d := small.Plan
		emulator.Set(t, "memory", d.Other+d.Model+d.Step+d.Given+d.Eval+d.Lists)
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
			t.Errorf("%s: with the least memory: %v", name, err)
		}
	}
}
