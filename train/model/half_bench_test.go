package model

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gdb/compute/backend"
	"gdb/compute/kernel/bf16"
	"gdb/internal/dense"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
)

// BenchmarkHalf measures steps in float32 and in half precision in turn, on a batch of 1000 seeds
// and three hops of 10 neighbors, 128 features and layers of 256, by the processor's time: medians.
func BenchmarkHalf(b *testing.B) {
	g := sampletest.RMAT(17, 2_000_000, 3)
	s, err := sample.NewSampler([]topology.Reader{g}, sample.Config{Fanout: []int{10, 10, 10},
		Extras: sample.Extras{Degrees: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var seeds []sample.NodeID
	for v := range 1000 {
		seeds = append(seeds, sample.NodeID(67*v))
	}
	d := &sample.Dense{}
	if err := s.Sample(context.Background(), 0, 0, seeds, d); err != nil {
		b.Fatal(err)
	}
	for _, a := range []Architecture{sage{}, gat{}} {
		b.Run("model="+a.Name(), func(b *testing.B) {
			whole := &Spec{Architecture: a, Dims: []int{128, 256, 256, 47}, Dropout: 0.5}
			whole.Heads = 4
			half := *whole
			half.Half = true
			steps := []func() time.Duration{benchStep(b, whole, &d.Lists),
				benchStep(b, &half, &d.Lists)}
			var times [2][]time.Duration
			for b.Loop() {
				for i, step := range steps {
					times[i] = append(times[i], step())
				}
			}
			var middle [2]float64
			for i, all := range times {
				slices.Sort(all)
				middle[i] = all[len(all)/2].Seconds() * 1e3
			}
			b.ReportMetric(middle[0], "f32-ms")
			b.ReportMetric(middle[1], "bf16-ms")
			b.ReportMetric(middle[0]/middle[1], "ratio")
		})
	}
}

// benchStep returns what trains a step and says how long the processor took.
func benchStep(b *testing.B, s *Spec, d *dense.Lists) func() time.Duration {
	be, err := backend.OpenCPU(backend.Options{Workers: runtime.NumCPU()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = be.Close() })
	m, err := New(be, s, true, nil)
	if err != nil {
		b.Fatal(err)
	}
	m.Params().Init(be, 3)
	x := make([]float32, d.Nodes()*s.Dims[0])
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	if s.HalfFeatures() {
		bf16.Round(x)
		x = packed(x, s.Dims[0])
	}
	own := make([]float32, len(x))
	return func() time.Duration {
		copy(own, x) // a step may change them
		if err := be.Begin(); err != nil {
			b.Fatal(err)
		}
		begin := processTime()
		logits, err := m.Forward(d, own, Step{Train: true, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		backend.SoftmaxCrossEntropy(be, m.GradLogits(), logits, backend.Tensor{},
			labelsOf(logits.Rows))
		m.Backward()
		be.Losses(nil)
		return processTime() - begin
	}
}

func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
