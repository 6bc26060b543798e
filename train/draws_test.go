//go:build cuda && cgo && linux

package train

import (
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/sample"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// TestSampleOn: batches that the device draws give the losses that the host's give, bit for bit, in
// all forms of the topology, and of models that read degrees.
func TestSampleOn(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	for _, c := range []struct{ model, topology string }{{"sage", "plain"}, {"gcn", "paged"},
		{"gat", "packed"}} {
		var losses [3][]float64
		for i, on := range []string{setting.SampleHost, setting.SampleDevice, setting.SampleAuto} {
			d := testConfig()
			d.Model, d.Topology, d.Batch, d.Fanout = c.model, c.topology, 30, []int{3, sample.All}
			d.Run, d.Backend, d.Epochs, d.SampleOn = c.model+on, backend.CUDA, 2, on
			drawn := uint64(0)
			_, err := Run(t.Context(), s, mustDevice(t), d, func(e run.Event) {
				if e.Epoch != nil {
					rec := e.Epoch.(*runs.Epoch)
					losses[i] = append(losses[i], rec.Loss, *rec.Val)
					drawn += rec.Drawn
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if on != setting.SampleAuto && (drawn > 0) != (on == setting.SampleDevice) {
				t.Errorf("%s, --sample-on %s: the device drew %d batches", c.model, on, drawn)
			}
			if i > 0 && !equalBits(losses[0], losses[i]) {
				t.Errorf("%s, --sample-on %s: %v, on the host %v", c.model, on, losses[i],
					losses[0])
			}
		}
	}
}

// equalBits reports whether losses are equal, of two epochs at least.
func equalBits(a, b []float64) bool {
	if len(a) < 4 || len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestSampleOnRefuses: what a device does not draw is refused, in words that say what to do.
func TestSampleOnRefuses(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	for says, change := range map[string]func(c *Config){
		"--backend cuda": func(c *Config) { c.Backend = backend.CPU },
		"--macro-batch":  func(c *Config) { c.MacroBatch = 4 },
		"1024 neighbors": func(c *Config) { c.Fanout = []int{2000, 5} },
		"--sampler layer": func(c *Config) {
			c.Sampler, c.LayerSize, c.Fanout = "layer", []int{9, 9}, nil
		},
		"too small: this":  func(c *Config) { c.DeviceMemory = 1 << 20 },
		"latest":           func(c *Config) { c.Sample = setting.SampleLatest },
		"--sample-on host": func(c *Config) { c.MacroBatch = 2 },
	} {
		c := testConfig()
		c.Backend, c.SampleOn = backend.CUDA, setting.SampleDevice
		change(&c)
		_, err := Run(t.Context(), s, mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
