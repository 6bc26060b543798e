package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout/layouttest"
	"gdb/sample/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestDeviceUse(t *testing.T) {
	g := layouttest.Random(1, 500, 4000)
	g.Dim, g.Splits = 128, layouttest.Splits(500)
	g.Features = layouttest.Features(500, 128)
	opt := DeviceUseOptions{Workload: Workload{
		Store: layouttest.Build(t, vfs.NewMem(), "store", g), Device: mustDevice(t),
		Fanout: []int{3, 2}, Batch: 20, Seed: 1, Memory: programBytes + 256<<20},
		Batches: 2, Caches: []string{"none", "static", "sieve"}}
	r, err := DeviceUse(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if r.Bench != "gather" || len(r.Rows) != len(opt.Caches) {
		t.Fatalf("%+v", r)
	}
	for i, row := range r.Rows {
		hits := row["hit_ratio"].(float64)
		if row["cache"] != opt.Caches[i] || hits < 0 || hits >= 1 || (hits > 0) != (i > 0) {
			t.Errorf("row %v", row)
		}
		read, sectors := row["bytes"].(int64), row["sector_bytes"].(int64)
		missed := float64(row["nodes"].(int64)) * (1 - hits)
		if want := int64(missed*512 + 0.5); sectors != want || read < sectors {
			t.Errorf("%d bytes of sectors, want %d: %v", sectors, want, row)
		}
		if row["device_use"].(float64) <= 0 || row["merge_gain"].(float64) <= 0 ||
			row["apart_ratio"].(float64) < 1 {
			t.Errorf("row %v", row)
		}
	}
	opt.Caches = []string{"oracle"}
	if _, err := DeviceUse(context.Background(), opt); err == nil {
		t.Error("an unknown cache is taken")
	}
	opt.Caches, opt.Memory = nil, programBytes+5000
	if _, err := DeviceUse(context.Background(), opt); err == nil {
		t.Error("it fits in 5000 bytes")
	}
}

// TestDeviceUseCached has a cache of all rows: that is said, and there is no ratio.
func TestDeviceUseCached(t *testing.T) {
	g := layouttest.Random(1, 100, 1000)
	g.Dim, g.Splits, g.Features = 8, layouttest.Splits(100), layouttest.Features(100, 8)
	of := Workload{Store: layouttest.Build(t, vfs.NewMem(), "store", g), Device: mustDevice(t),
		Batch: 5}
	r, err := DeviceUse(context.Background(), DeviceUseOptions{Workload: of,
		Caches: []string{"static"}, CacheBytes: rowcache.Bytes(100, 8, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if row := r.Rows[0]; row["why"] == nil || row["device_use"] != nil || row["hit_ratio"] != 1.0 {
		t.Errorf("row %v", row)
	}
}

// keeper notes the requests that reach a device.
type keeper struct {
	blockdev.Device
	mu   sync.Mutex
	seen []extent
	most int // requests of a batch
}

func (k *keeper) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	k.mu.Lock()
	k.most = max(k.most, len(reqs))
	for i := range reqs {
		k.seen = append(k.seen, newExtent(reqs[i].Off, len(reqs[i].Buf)))
	}
	k.mu.Unlock()
	return k.Device.ReadBatch(ctx, reqs)
}

// TestReplay holds that a replay asks for each read of its list once, with full batches.
func TestReplay(t *testing.T) {
	fs := vfs.NewMem()
	f, err := fs.Create("f", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	dev := &keeper{Device: devtest.Open(t, blockdev.Options{Backend: blockdev.Memory})}
	file, err := dev.OpenFile(fs, "f")
	if err != nil {
		t.Fatal(err)
	}
	rng, reads := rand.New(rand.NewPCG(1, 1)), make([]extent, 5000)
	for i := range reads {
		n := 512 * (1 + rng.IntN(40))
		reads[i] = newExtent(512*rng.Int64N(int64(1<<20-n)/512), n)
	}
	if _, err := replay(context.Background(), dev, file, reads, nil); err != nil {
		t.Fatal(err)
	}
	slices.Sort(reads)
	slices.Sort(dev.seen)
	if !slices.Equal(reads, dev.seen) || dev.most < 800 || dev.most > ioBatch {
		t.Errorf("%d reads of %d, batches of up to %d", len(dev.seen), len(reads), dev.most)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
