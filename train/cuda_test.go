//go:build cuda && cgo && linux

package train

import (
	"math"
	"os"
	"testing"

	"gdb/internal/cuda/cudatest"
	"gdb/layout"
	"gdb/train/backend"
	"gdb/train/runs"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

// mustEmulate gives the test a device.
func mustEmulate(t *testing.T) *cudatest.Emulator {
	t.Helper()
	return cudatest.Start(t, "backend/cuda/kernels/kernels.cu")
}

// TestEveryModelOnDevice trains every model on the CPU and on a device: losses differ by rounding
// only, and the tests of the best weights hardly.
func TestEveryModelOnDevice(t *testing.T) {
	mustEmulate(t)
	s := mustBuild(t, planted(false))
	noteProfiles(t, s)
	for _, c := range modelConfigs(testConfig()) {
		t.Run(c.Run, func(t *testing.T) {
			c.Epochs, c.Clip = 3, 2
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
		_, err := Run(t.Context(), s, mustDevice(t), c, func(e Event) {
			if e.Epoch != nil {
				epochs[i] = append(epochs[i], *e.Epoch)
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
