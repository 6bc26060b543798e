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
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"

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
				for _, draws := range metaDraws {
					bad.good.Store(1 << 40)
					runFailing(t, store, bad, workers, good, draws)
				}
			}
		}
	}
	devtest.CheckGoroutines(t, running)
}

func runFailing(t *testing.T, store *layout.Store, dev *failing, workers int, good int64,
	draws drawing) {
	ctx := context.Background()
	topo, err := topology.Open(ctx, store, dev, layout.In, topology.Options{CacheBytes: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := rowfile.Open(ctx, store, dev, store.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	f := metaFeatures(t, store, dev, rows, "sieve")
	dev.good.Store(good)
	p := mustPipeline(t, ctx, metaPipeline(topo, f, nil, workers, draws))
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

// TestReadErrorBesideHits: an error of what a cache reads while it copies hits is the gather's, and
// the next gather is whole.
func TestReadErrorBesideHits(t *testing.T) {
	const count, dim = 100, 3
	rows := &failingRows{Rows: &sampletest.Rows{Count: count, Dim: dim}}
	f, err := rowcache.New(t.Context(), rows, rowcache.NewSIEVE(),
		rowcache.Options{Bytes: 4 << 10, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, 4*dim)
	for i, nodes := range [][]NodeID{{1, 2}, {2, 50, 1, 51}, {1, 2}, {51, 1, 2, 50}} {
		rows.err = nil
		if i == 1 {
			rows.err = syscall.EIO
		}
		err := f.Gather(t.Context(), nodes, out)
		if !errors.Is(err, rows.err) {
			t.Fatalf("gather %d: %v, want %v", i, err, rows.err)
		}
		for k, v := range nodes {
			if x := out[k*dim]; err == nil && x != sampletest.Value(v, 0) {
				t.Errorf("gather %d: node %d has %v", i, v, x)
			}
		}
	}
	if s := f.Stats(); s.Requests != 12 || s.Hits != 6 {
		t.Errorf("%+v", s)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// failingRows fails if it is told to.
type failingRows struct {
	rowcache.Rows
	err error
}

func (r *failingRows) GatherParts(ctx context.Context, nodes []NodeID, at []uint32,
	out []float32, arrived func([]uint64)) error {
	return errors.Join(r.Rows.GatherParts(ctx, nodes, at, out, arrived), r.err)
}
