//go:build cuda && cgo && linux

package link

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/decoder"
	"gdb/internal/cuda/cudatest"
	"gdb/layout"
	"gdb/layout/live/livetest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustEmulate gives the test a device.
func mustEmulate(t *testing.T) *cudatest.Emulator {
	t.Helper()
	return cudatest.Start(t, "../../compute/backend/cuda/kernels/kernels.cu")
}

// deviceConfig is settings of few and small steps.
func deviceConfig(name, loss string) Config {
	c := circleConfig(name)
	c.Loss, c.Margin = loss, 2
	c.Dim, c.Batch, c.Epochs, c.EvalEvery, c.Negatives = 8, 60, 2, 2, 9
	return c
}

// TestLinksOnDevice trains every decoder with every loss on the CPU and on a device, and in all
// ways to draw negatives: losses and ranks differ by rounding.
func TestLinksOnDevice(t *testing.T) {
	mustEmulate(t)
	typed, plain := mustCircle(t, true), mustCircle(t, false)
	for _, name := range setting.Decoders {
		s := typed
		if name == "dot" {
			s = plain
		}
		for i, loss := range decoder.LossNames() {
			c := deviceConfig(name, loss)
			c.Norm = 1 + i%2
			c.Reciprocal, c.Dropout = i%2 == 1 && name != "dot", 0.1*float64(i)
			sameOnDevice(t, s, c)
		}
	}
	for _, set := range []func(c *Config){
		func(c *Config) { c.NegativeSampling, c.FilterNegatives = setting.NegativesChunked, true },
		func(c *Config) { c.NegativeSampling, c.Optimizer = setting.NegativesBatch, "adam" },
		func(c *Config) { c.NegativeSampling, c.Decoder = setting.NegativesEdge, "transe" },
		func(c *Config) { c.NegativeSampling, c.Negatives = setting.NegativesEdge, 3 },
		func(c *Config) { c.NegativeSampling, c.Negatives = setting.NegativesDegree, 1 },
		func(c *Config) { c.Regularizer, c.RegularizerWeight = setting.RegularizerN3, 0.01 },
		func(c *Config) {
			c.Decoder, c.Regularizer, c.RegularizerWeight = "complex", setting.RegularizerN3, 0.01
		},
		func(c *Config) { c.Regularizer, c.RegularizerWeight = setting.RegularizerL2, 0.01 },
	} {
		c := deviceConfig("distmult", decoder.Softmax)
		set(&c)
		sameOnDevice(t, typed, c)
	}
	shop := livetest.ShopBothWays(t, vfs.NewMem(), "shop")
	for _, kind := range setting.NegativeSamplings {
		c := deviceConfig("distmult", decoder.Softmax)
		c.NegativeSampling = kind
		sameOnDevice(t, shop, c)
	}
	for _, order := range []string{setting.OrderBeta, setting.OrderTwoLevel} {
		c := deviceConfig("distmult", decoder.Softmax)
		c.Order, c.Partitions, c.PartitionsInMemory = order, 6, 3
		if order == setting.OrderTwoLevel {
			c.Partitions, c.PartitionsInMemory, c.LogicalPartitions = 8, 4, 4
			c.Optimizer = "adam"
		}
		sameOnDevice(t, typed, c)
	}
	for i, name := range []string{"sage", "gat", "rgcn"} {
		c := deviceConfig("distmult", decoder.Softmax)
		c.Encoder, c.Fanout, c.EncoderLR = name, "3,2", 0.003
		c.EncoderInput = setting.EncoderVectors
		c.NegativeSampling = []string{setting.NegativesUniform, setting.NegativesChunked,
			setting.NegativesEdge}[i]
		sameOnDevice(t, typed, c)
		if name == "sage" {
			c.Order, c.Partitions, c.PartitionsInMemory = setting.OrderBeta, 6, 3
			sameOnDevice(t, typed, c)
		}
	}
	for i, name := range setting.Decoders {
		s := typed
		if name == "dot" {
			s = plain
		}
		for j, loss := range []string{decoder.Softmax, decoder.Logistic} {
			c := deviceConfig(name, loss)
			c.Negatives, c.Reciprocal, c.Norm = setting.NegativesAll, j == 1 && name != "dot", 2
			c.Optimizer, c.Dropout = []string{"adagrad", "adam"}[(i+j)%2], 0.2*float64(j)
			c.Regularizer, c.RegularizerWeight = setting.Regularizers[(i+j)%3], 0.01
			sameOnDevice(t, s, c)
		}
	}
}

// sameOnDevice trains on both backends.
func sameOnDevice(t *testing.T, s *layout.Store, c Config) {
	t.Helper()
	var last [2]runs.LinkEpoch
	for i, on := range []string{backend.CPU, backend.CUDA} {
		c.Run, c.Backend = "", on
		if _, err := Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
			if e.Epoch != nil {
				last[i] = *e.Epoch.(*runs.LinkEpoch)
			}
		}); err != nil {
			t.Fatalf("%s, %s on %s: %v", c.Decoder, c.Loss, on, err)
		}
	}
	near := 1e-4
	if c.Norm == 1 { // the gradient of a distance has steps
		near = 2e-3
	}
	if d := math.Abs(last[0].Loss - last[1].Loss); !(d < near*(1+last[0].Loss)) ||
		math.Abs(*last[0].Val-*last[1].Val) > 0.01 || last[0].Edges != last[1].Edges {
		t.Errorf("%s: loss %g and val %g on the device, %g and %g on the CPU", c.Text(),
			last[1].Loss, *last[1].Val, last[0].Loss, *last[0].Val)
	}
}

// TestDeviceRepeats: a run on a device that is stopped, and goes on, has the bits of one that is
// not; a run that is begun on one backend ends on the other.
func TestDeviceRepeats(t *testing.T) {
	mustEmulate(t)
	s := mustCircle(t, true)
	c := deviceConfig("complex", decoder.Softmax)
	c.Run, c.Backend, c.Dropout = "whole", backend.CUDA, 0.2
	mustRun(t, s, c)
	for _, on := range []string{backend.CUDA, backend.CPU} {
		c.Run, c.Backend, c.Resume = "parts-"+on, backend.CUDA, ""
		ctx, cancel := context.WithCancel(t.Context())
		steps := 3
		_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
			if e.Progress != nil {
				if steps--; steps == 0 {
					cancel()
				}
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		c.Resume, c.Backend = c.Run, on
		mustRun(t, s, c)
		if on == backend.CUDA {
			sameRows(t, "resumed", lastRows(t, s, c.Run), lastRows(t, s, "whole"))
		}
		if f, err := runs.Open(s, c.Run).ReadLink(); err != nil || f.Link.Backend != on {
			t.Errorf("the run says that it computed on %+v, %v", f.Link, err)
		}
	}
}

// TestEvaluateOnDevice: a run is ranked on a device as on the CPU; with too little memory there it
// is refused.
func TestEvaluateOnDevice(t *testing.T) {
	emulator := mustEmulate(t)
	s := mustCircle(t, true)
	c := deviceConfig("distmult", decoder.Softmax)
	c.Run = "run"
	mustRun(t, s, c)
	evaluated := func(on string) (*Evaluation, error) {
		r, err := Open(t.Context(), s, mustDevice(t), "run",
			Limits{Where: &setting.Where{Backend: on}})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if (r.there.Rows == 0) != (on == backend.CPU) {
			t.Errorf("%s: the device has %d vectors", on, r.there.Rows)
		}
		return r.Evaluate(t.Context(), "val", 0)
	}
	want, err := evaluated(backend.CPU)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluated(backend.CUDA)
	if err != nil || math.Abs(got.MRR-want.MRR) > 0.002 || got.Ranks != want.Ranks {
		t.Errorf("ranks %+v on the device, %+v on the CPU (%v)", got, want, err)
	}
	emulator.Set(t, "memory", 5<<20)
	if _, err := evaluated(backend.CUDA); err == nil ||
		!strings.Contains(err.Error(), "more would do") {
		t.Errorf("with 5 MiB: %v", err)
	}
}

// TestFaultsOfDevice has allocations, launches, copies and products fail at many places of a run,
// and the device lost: the error says so, nothing of the device is left, and the run goes on from
// its checkpoint on the CPU.
func TestFaultsOfDevice(t *testing.T) {
	emulator := mustEmulate(t)
	for knob, says := range map[string]string{"fail_alloc": "memory", "fail_launch": "cuda",
		"fail_copy": "cuda", "fail_blas": "cuda", "lost_after": "cuda"} {
		failed := 0
		for n := int64(1); ; n += 1 + n/2 {
			c := deviceConfig("distmult", decoder.Softmax)
			c.Backend, c.CheckpointEvery = backend.CUDA, 2
			s := mustCircle(t, true)
			emulator.Set(t, knob, n)
			_, err := Run(t.Context(), s, mustDevice(t), c, nil)
			emulator.Set(t, knob, 0)
			if err == nil {
				break
			}
			failed++
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s %d: %v", knob, n, err)
			}
			if left := emulator.Count("allocated_bytes"); left != 0 {
				t.Errorf("%s %d: %d bytes of the device are left", knob, n, left)
			}
			if _, err := runs.Open(s, c.Run).ReadLink(); err == nil {
				c.Resume, c.Backend = c.Run, backend.CPU
				mustRun(t, s, c)
			}
		}
		if failed < 4 {
			t.Errorf("%s: only %d runs failed", knob, failed)
		}
	}
}

// TestDeviceRefuses: what a device does not compute, or has no room for, is refused before the run.
func TestDeviceRefuses(t *testing.T) {
	emulator := mustEmulate(t)
	s := mustCircle(t, true)
	for says, set := range map[string]func(c *Config){
		"--staleness":   func(c *Config) { c.Staleness = 2 },
		"more would do": func(c *Config) { emulator.Set(t, "memory", 5<<20) },
	} {
		c := deviceConfig("distmult", decoder.Softmax)
		c.Run, c.Backend = "", backend.CUDA
		set(&c)
		_, err := Run(t.Context(), s, mustDevice(t), c, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
		if says != "more would do" {
			c.Backend = backend.Auto
			mustRun(t, s, c)
		}
	}
}
