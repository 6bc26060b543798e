package serve

import (
	"context"
	"errors"
	"flag"
	"io"
	"runtime"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/sample"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

var handOffStore = flag.String("store", "", "store of BenchmarkHandOff")

// BenchmarkHandOff measures what batches cost inside gdb, with their rows gathered into memory of
// their own, and what they cost a client that receives them and does nothing else:
//
//	go test ./serve -run '^$' -bench HandOff -benchtime 200x -store STORE
//
// Both come from the same loader and plan. A third, received by Python, is bench/loaders.py.
func BenchmarkHandOff(b *testing.B) {
	if *handOffStore == "" {
		b.Skip("no -store")
	}
	st, err := layout.Open(b.Context(), vfs.Default, *handOffStore)
	if err != nil {
		b.Fatal(err)
	}
	opt := Options{Memory: 4 << 30, Threads: runtime.NumCPU()}
	ask := protocol.Open{Split: "train", Fanout: []int{10, 10, 10}, Batch: 1000, Seed: 1, World: 1}
	b.Run("inside", func(b *testing.B) {
		dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Auto})
		if err != nil {
			b.Fatal(err)
		}
		opt := opt
		opt.Store, opt.Device = st, dev
		s := New(opt)
		f, err := s.open(b.Context(), &ask, nil)
		if err != nil {
			b.Fatal(err)
		}
		insideBatches(b, f)
		if err := errors.Join(s.close(), dev.Close()); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("received", func(b *testing.B) {
		k := start(b, st, opt).connect(b)
		k.open(ask)
		receivedBatches(b, k)
	})
}

// insideBatches makes batches as training does that gathers into the batch. As many batches are
// there at a time as a client and the server have.
func insideBatches(b *testing.B, f *feed) {
	var rows [][]float32
	for range f.stock.Most() {
		rows = append(rows, nil)
	}
	gather := func(d *sample.Dense) {
		n := len(d.NodeIDs) * f.pack.features.Dim()
		if cap(rows[0]) < n {
			rows[0] = make([]float32, n+n/8)
		}
		if err := f.pack.features.Gather(b.Context(), d.NodeIDs, rows[0][:n]); err != nil {
			b.Fatal(err)
		}
		rows = append(rows[1:], rows[0])
	}
	batches(b, func(ctx context.Context, epoch uint64, each func() bool) error {
		e, err := f.loader.Epoch(ctx, epoch, 0)
		if err != nil {
			return err
		}
		for more := true; more; {
			batch, err := e.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return errors.Join(err, e.Close())
			}
			gather(&batch.Dense)
			batch.Release()
			more = each()
		}
		return e.Close()
	})
}

// receivedBatches receives batches, and gives each back with the next request.
func receivedBatches(b *testing.B, k *client) {
	batches(b, func(_ context.Context, epoch uint64, each func() bool) error {
		k.start(epoch, 0)
		for more := true; more; {
			got, err := k.next()
			if got == nil || err != nil {
				return err
			}
			k.give(got)
			more = each()
		}
		return nil
	})
}

// batches takes epochs until b.N batches were there, after one epoch that warms caches. each says
// whether more are wanted.
func batches(b *testing.B, epoch func(ctx context.Context, n uint64, each func() bool) error) {
	if err := epoch(b.Context(), 0, func() bool { return true }); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	begun, used := time.Now(), cpuTime(b)
	for n, done := uint64(1), 0; done < b.N; n++ {
		if err := epoch(b.Context(), n, func() bool { done++; return done < b.N }); err != nil {
			b.Fatal(err)
		}
	}
	each := float64(time.Millisecond) * float64(b.N)
	b.ReportMetric(float64(time.Since(begun))/each, "ms/batch")
	b.ReportMetric(float64(cpuTime(b)-used)/each, "cpu-ms/batch")
}

// cpuTime is what the process has used of its cores.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
