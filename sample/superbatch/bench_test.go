package superbatch

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkBuild samples and plans superbatches of a graph of a million nodes and 16 million edges
// to the disk, with the files between on the disk or in memory. Per access, which is a node of a
// batch: the time of each phase, and the bytes of batches and plans, which stay.
func BenchmarkBuild(b *testing.B) {
	g := sampletest.RMAT(20, 16<<20, 1)
	var train []sample.NodeID
	for v := range sample.NodeID(200000) {
		train = append(train, v*5)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, access := range []int64{0, 64 << 20} {
		b.Run(fmt.Sprintf("memory=%dMiB", access>>20), func(b *testing.B) {
			c := Config{Order: func(e uint64) (*sample.Order, error) {
				return sample.EpochOrder(train, 1, e, 1000)
			}, Drawer: drawingAs(func() (*sample.Sampler, error) {
				return sample.NewSampler([]topology.Reader{g},
					sample.Config{Fanout: []int{10, 10}, Seed: 1})
			}), Epochs: 1, Nodes: g.Nodes(), Rows: &sampletest.Rows{Count: g.Nodes(), Dim: 1},
				FS: vfs.Default, Prep: b.TempDir(), Name: "bench", Device: dev,
				StorageBytes: 8 << 30, Slots: 200000, PlanBytes: 64 << 20,
				AccessBytes: access, NextBytes: access, Workers: 2, Budget: mem.NewBudget(0)}
			for b.Loop() {
				buildOnce(b, c)
			}
		})
	}
}

// buildOnce builds the superbatch of an epoch and reports what it took.
func buildOnce(b *testing.B, c Config) {
	l, err := Open(c)
	if err != nil {
		b.Fatal(err)
	}
	p, ctx := &l.builder, context.Background()
	p.seq = 1
	s := p.newSuperbatch(p.want(0, nil))
	a, err := newAccesses(s.id, p.ranges, c.AccessBytes, c.Budget)
	if err != nil {
		b.Fatal(err)
	}
	begun, before := time.Now(), cpuTime(b)
	if err := p.sample(ctx, s, a); err != nil {
		b.Fatal(err)
	}
	sampled, between := time.Now(), cpuTime(b)
	if err := p.plan(ctx, s, a); err != nil {
		b.Fatal(err)
	}
	planned, after := time.Now(), cpuTime(b)
	accesses := float64(p.sampled.Nodes.Load())
	report := func(took time.Duration, what string) {
		b.ReportMetric(float64(took.Nanoseconds())/accesses, what)
	}
	report(sampled.Sub(begun), "sample-ns/access")
	report(planned.Sub(sampled), "plan-ns/access")
	report(between-before, "sample-cpu-ns/access")
	report(after-between, "plan-cpu-ns/access")
	b.ReportMetric(float64(s.batches.File.Size())/accesses, "batch-B/access")
	b.ReportMetric(float64(s.plans.File.Size())/accesses, "plan-B/access")
	b.ReportMetric(accesses/float64(len(s.index)), "accesses/batch")
	b.ReportMetric(float64(c.Budget.Peak())/(1<<20), "MiB-peak")
	a.Free()
	l.current = s
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// cpuTime is what all cores did for this process.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
