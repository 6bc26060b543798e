//go:build cuda && cgo && linux

package train

import (
	"fmt"
	"testing"

	"gdb/compute/backend"
	"gdb/layout/layouttest"
	"gdb/train/setting"
)

// TestMemoryIsALawWithDevice: with a device too, every plan is kept to, from the least memory of
// the host that is accepted upwards.
func TestMemoryIsALawWithDevice(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, layouttest.Skewed())
	noteProfiles(t, s)
	run := 0
	for _, set := range []func(c *Config){
		func(c *Config) { c.Cache = "auto" },
		func(c *Config) { c.Cache, c.EvalMode = "sieve", "sampled" },
		func(c *Config) { c.Cache = "none" },
		func(c *Config) { c.Cache = "static" },
		func(c *Config) { c.Cache = setting.CacheBelady },
		func(c *Config) { c.Cache, c.PlainLaunches = "auto", true },
		func(c *Config) { c.MacroBatch, c.Cache = 3, "static" },
		func(c *Config) { c.Model, c.Heads = "gat", 2 },
	} {
		if testing.Short() && run >= 2 {
			return
		}
		c := lawConfig()
		c.Backend, c.DeviceCache, c.Memory, c.Epochs = backend.CUDA, 1<<20, 1<<20, 2
		c.Fanout = []int{6, 6}
		set(&c)
		least := leastMemory(t, c, mustPlan(t, s))
		for _, more := range []int64{0, 2}[:1+run%2] {
			c.Memory = least + more<<20
			run++
			c.Run = fmt.Sprint("run", run)
			if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err != nil {
				t.Errorf("%s, cache %s, %d MiB: %v", c.Model, c.Cache, c.Memory>>20, err)
			}
		}
	}
}
