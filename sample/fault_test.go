package sample

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failing is a device whose reads of one file fail after some that do not.
type failing struct {
	blockdev.Device
	file string
	good atomic.Int64
}

func (f *failing) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	for _, r := range reqs {
		if strings.Contains(r.File.Path(), f.file) && f.good.Add(-1) < 0 {
			return &blockdev.ReadError{Path: r.File.Path(), Off: r.Off, Len: len(r.Buf),
				Err: syscall.EIO}
		}
	}
	return f.Device.ReadBatch(ctx, reqs)
}

// A failed read ends the pipeline with the file and offset, and nothing hangs or stays behind.
func TestReadErrorsStopThePipeline(t *testing.T) {
	g := metaGraph()
	store := layouttest.Build(t, vfs.NewMem(), "store", g)
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	running := runtime.NumGoroutine()
	for _, file := range []string{"topology", "features"} {
		for _, workers := range []int{1, 2} {
			for _, good := range []int64{0, 1, 5} {
				bad := &failing{Device: dev, file: file}
				bad.good.Store(1 << 40)
				runFailing(t, store, bad, workers, good, false)
				bad.good.Store(1 << 40)
				runFailing(t, store, bad, workers, good, true)
			}
		}
	}
	checkGoroutines(t, running)
}

func runFailing(t *testing.T, store *layout.Store, dev *failing, workers int, good int64,
	weighted bool) {
	ctx := context.Background()
	topo, err := store.Topology(ctx, dev, layout.In, layout.TopologyOptions{CacheBytes: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Rows(ctx, dev, store.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	f := metaFeatures(t, store, dev, rows, "lru")
	dev.good.Store(good)
	p := mustPipeline(t, ctx, metaPipeline(topo, f, nil, workers, weighted))
	for err == nil {
		var b *Batch
		if b, err = p.Next(ctx); err == nil {
			b.Release()
		}
	}
	var failed *blockdev.ReadError
	if err == io.EOF || !errors.As(err, &failed) || !errors.Is(err, syscall.EIO) ||
		!strings.Contains(failed.Path, dev.file) || failed.Len == 0 {
		t.Errorf("%s, %d workers, after %d reads: error %v", dev.file, workers, good, err)
	}
	if err := errors.Join(p.Close(), f.Close(), rows.Close(), topo.Close()); err != nil {
		t.Error(err)
	}
}
