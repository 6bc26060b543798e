package superbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	testDim   = 7
	testScale = 10
)

var testGraph = sampletest.RMAT(testScale, 9000, 4)

// testTrain are the seeds: 13 batches of 5 an epoch, the last one of 2.
func testTrain() (ids []sample.NodeID) {
	for i := range 62 {
		ids = append(ids, sample.NodeID(i*16+3))
	}
	return ids
}

func testOrder(epoch uint64) (*sample.Order, error) {
	return sample.EpochOrder(testTrain(), 8, epoch, 5)
}

// testDrawer draws with one sampler for each worker.
func testDrawer(workers int, perEpoch, first, end uint64) (sample.Drawer, error) {
	return drawing(testGraph, false)(workers, perEpoch, first, end)
}

// drawing returns a Config.Drawer of samplers, which may give batches the degrees of their nodes.
func drawing(r topology.Reader, degrees bool) drawerFunc {
	return drawingAs(func() (*sample.Sampler, error) { return newSampler(r, degrees) })
}

// drawingAs returns a Config.Drawer of samplers that are opened so.
func drawingAs(open func() (*sample.Sampler, error)) drawerFunc {
	return func(workers int, _, _, _ uint64) (sample.Drawer, error) {
		return sample.NewSamplers(workers, open)
	}
}

type drawerFunc = func(workers int, perEpoch, first, end uint64) (sample.Drawer, error)

// drawerOf returns the drawer of all batches, for a pipeline.
func drawerOf(c Config) func(workers int) (sample.Drawer, error) {
	return func(workers int) (sample.Drawer, error) {
		return c.Drawer(workers, 13, 0, c.Epochs*13)
	}
}

func newSampler(r topology.Reader, degrees bool) (*sample.Sampler, error) {
	return sample.NewSampler([]topology.Reader{r},
		sample.Config{Fanout: []int{4, sample.All, 2}, Seed: 8,
			Extras: sample.Extras{Degrees: degrees}})
}

func testConfig(t testing.TB) Config { return testConfigOn(mustDevice(t)) }

func testConfigOn(dev blockdev.Device) Config {
	return Config{Drawer: testDrawer, Order: testOrder, Epochs: 3, Nodes: testGraph.Nodes(),
		Rows: &sampletest.Rows{Count: testGraph.Nodes(), Dim: testDim}, FS: vfs.NewMem(),
		Prep: "prep", Name: "test", UUID: [16]byte{7}, Device: dev,
		StorageBytes: 1 << 30, Slots: 100, PlanBytes: 1 << 20, Budget: mem.NewBudget(0)}
}

// stepHashes runs epochs of batches from where to begin, and returns a hash of each.
func stepHashes(next func(epoch uint64) (sample.Batches, error), first, end uint64) (
	all []uint64, err error) {
	for e := first; e < end; e++ {
		b, err := next(e)
		if err != nil {
			return all, err
		}
		for {
			d, err := b.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return all, errors.Join(err, b.Close())
			}
			if len(d.Seeds) == 0 || d.Epoch != e {
				return all, errors.Join(fmt.Errorf("batch of epoch %d, %d seeds", d.Epoch,
					len(d.Seeds)), b.Close())
			}
			h, err := wholeHash(d)
			if err != nil {
				return all, errors.Join(err, b.Close())
			}
			all = append(all, h)
			d.Release()
		}
		if err := b.Close(); err != nil {
			return all, err
		}
	}
	return all, nil
}

// wholeHash is the hash of a batch with the features of all its nodes. Those that stay in a table
// are copied, and the others held against it.
func wholeHash(d *sample.Batch) (uint64, error) {
	if d.Table == nil {
		return sample.BatchHash(d), nil
	}
	whole, n, inner := *d, len(d.Dense.NodeIDs), int(d.Dense.NodeIDOffsets[1])
	if d.TablePieces != nil {
		return cutHash(d)
	}
	if len(d.X) != (n-inner)*d.Dim || len(d.TableRows) != len(d.Dense.Nbrs) {
		return 0, fmt.Errorf("%d values, %d rows of a table for %d neighbors", len(d.X),
			len(d.TableRows), len(d.Dense.Nbrs))
	}
	whole.X = append(make([]float32, inner*d.Dim), d.X...)
	for e, i := range d.Dense.ReprMap {
		row := d.Table[int(d.TableRows[e])*d.Dim:][:d.Dim]
		at := whole.X[int(i)*d.Dim:][:d.Dim]
		if int(i) >= inner && !slices.Equal(row, at) {
			return 0, fmt.Errorf("node %d has other values in the table", d.Dense.NodeIDs[i])
		}
		copy(at, row)
	}
	return sample.BatchHash(&whole), nil
}

// cutHash is the wholeHash of a batch whose rows are in pieces.
func cutHash(d *sample.Batch) (uint64, error) {
	whole, n, inner := *d, len(d.Dense.NodeIDs), int(d.Dense.NodeIDOffsets[1])
	whole.X = make([]float32, n*d.Dim)
	for i := range n {
		row := whole.X[i*d.Dim : (i+1)*d.Dim]
		for _, at := range d.TableRows[d.TablePieces[i]:d.TablePieces[i+1]] {
			row = row[copy(row, d.Table[int(at)*d.TableDim:][:d.TableDim]):]
		}
	}
	if !slices.Equal(whole.X[inner*d.Dim:], d.X) {
		return 0, errors.New("rows of inner nodes have other values in the table")
	}
	return sample.BatchHash(&whole), nil
}

// wantHashes makes the batches as they are due.
func wantHashes(t testing.TB, c Config) []uint64 {
	start := c.StartBatch
	all, err := stepHashes(func(e uint64) (sample.Batches, error) {
		o, err := c.Order(e)
		if err != nil {
			return nil, err
		}
		p := sample.PipelineConfig{Drawer: drawerOf(c), Order: o, StartBatch: start,
			Features: rowcache.NewDirect(c.Rows)}
		start = 0
		return sample.NewPipeline(context.Background(), p)
	}, c.Epoch, c.Epochs)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustOpen(t testing.TB, c Config) *Loader {
	t.Helper()
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// closeAll closes a loader and checks that nothing stays behind.
func closeAll(t testing.TB, l *Loader) {
	t.Helper()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if used := l.cfg.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
	if names, err := l.cfg.FS.List(l.cfg.Prep); err != nil || len(names) != 0 {
		t.Errorf("left in %s: %v, %v", l.cfg.Prep, names, err)
	}
}

// inPlaceLeast is how many slots hold the largest batch.
const inPlaceLeast = 470

// TestBatchesAreTheSame: whatever the superbatch, the cache and the memory, the batches have the
// bits that they have without.
func TestBatchesAreTheSame(t *testing.T) {
	starts := []uint64{5, 0, 13}
	if testing.Short() {
		starts = starts[:1]
	}
	for _, start := range starts {
		wants := map[bool][]uint64{}
		for _, degrees := range []bool{false, true} {
			c := testConfig(t)
			if c.StartBatch = start; degrees {
				c.Drawer = drawing(testGraph, true)
			}
			wants[degrees] = wantHashes(t, c)
		}
		if slices.Equal(wants[false], wants[true]) {
			t.Error("hashes are not of degrees")
		}
		for i, size := range []int{1, 2, 7, 13, 26, 0} {
			for _, slots := range []int{0, 1, 301, 1100, inPlaceLeast, 2000} {
				c := testConfig(t)
				c.InPlace = slots%2 == 0 && slots > 0
				c.SlotsKept = slots * i / 4
				if i%2 == 0 {
					c.Spill = func(epoch uint64) bool { return int(epoch)%3 != i }
				}
				c.Overlap = (i+slots)%2 == 0
				want := wants[slots%3 > 0]
				if slots%3 > 0 {
					c.Drawer = drawing(testGraph, true)
				}
				c.StartBatch, c.Batches, c.Slots = start, size, slots
				c.Workers, c.Ready, c.Threads, c.StageRows = 1+slots%2, size%3, 2, 4*(size%2)
				c.AccessBytes, c.NextBytes = 4<<20*int64(i%2), 4<<20*int64(slots%2)
				l := mustOpen(t, c)
				got, err := stepHashes(l.Epoch, c.Epoch, c.Epochs)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("from %d, superbatch %d, %d slots: %d of %d batches, %v", start, size,
						slots, len(got), len(want), err)
				}
				checkStats(t, l, slots)
				closeAll(t, l)
			}
		}
	}
}

func checkStats(t *testing.T, l *Loader, slots int) {
	t.Helper()
	s, p := l.CacheStats(), l.Stats()
	if s.Requests != p.Nodes || s.Hits > s.Requests || s.Used > s.Capacity ||
		slots == 2000 && s.Hits == 0 || slots == 0 && s.Hits != 0 {
		t.Errorf("%d slots: cache %+v, %+v", slots, s, p)
	}
	for _, st := range p.Stages {
		if st.Done == 0 {
			t.Errorf("stage %+v did nothing", st)
		}
	}
}

// TestHitsOfAnEpoch: the loader hits as often as the plain rule over the same batches.
func TestHitsOfAnEpoch(t *testing.T) {
	c := testConfig(t)
	c.Epochs, c.Slots = 1, 150
	var batches [][]sample.NodeID
	l := mustOpen(t, c)
	b, err := l.Epoch(0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		d, err := b.Next(context.Background())
		if err != nil {
			break
		}
		batches = append(batches, slices.Clone(d.Dense.NodeIDs))
		d.Release()
	}
	want := 0
	for _, h := range (&minCache{slots: c.Slots}).run(batches) {
		want += h
	}
	if got := l.CacheStats().Hits; int(got) != want || want == 0 {
		t.Errorf("%d hits, want %d", got, want)
	}
	closeAll(t, l)
}

// TestStorageBounds: a superbatch ends where its storage does, and the files stay below it.
func TestStorageBounds(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		storageBounds(t, overlap)
	}
}

func storageBounds(t *testing.T, overlap bool) {
	c := testConfig(t)
	want := wantHashes(t, c)
	c.StorageBytes, c.Overlap = 120<<10, overlap
	if overlap {
		c.StorageBytes *= 2
	}
	l := mustOpen(t, c)
	most, batches := int64(0), uint64(0)
	got, err := stepHashes(func(e uint64) (sample.Batches, error) {
		b, err := l.Epoch(e)
		return &watched{b, func() {
			size := int64(0)
			names, _ := c.FS.List(l.dir.Path)
			for _, n := range names {
				if st, err := c.FS.Stat(c.FS.PathJoin(l.dir.Path, n)); err == nil {
					size += st.Size()
				}
			}
			most = max(most, size)
			batches = l.builder.planning.Done.Load()
		}}, err
	}, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d batches, %v", len(got), len(want), err)
	}
	if most > c.StorageBytes || batches == 0 || l.builder.seq < 3 {
		t.Errorf("%d bytes of files, %d batches planned", most, batches)
	}
	closeAll(t, l)
	c.StorageBytes = 1000
	l = mustOpen(t, c)
	if _, err := stepHashes(l.Epoch, 0, c.Epochs); err == nil ||
		!strings.Contains(err.Error(), "raise the storage") {
		t.Errorf("storage for no batch: %v", err)
	}
	closeAll(t, l)
}

// watched calls back before each batch.
type watched struct {
	sample.Batches
	look func()
}

func (w *watched) Next(ctx context.Context) (*sample.Batch, error) {
	w.look()
	return w.Batches.Next(ctx)
}

// TestDeadDirectories: what a process left that died is removed, what one holds is not.
func TestDeadDirectories(t *testing.T) {
	c := testConfig(t)
	dead := c.FS.PathJoin(c.Prep, dirPrefix+"dead")
	if err := c.FS.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	layouttest.WriteFile(t, c.FS, c.FS.PathJoin(dead, "1.batches"), []byte("left"))
	other := c
	other.Name, other.Budget = "other", mem.NewBudget(0)
	held := mustOpen(t, other)
	l := mustOpen(t, c)
	if _, err := c.FS.Stat(dead); err == nil {
		t.Error("the directory of a dead process is still there")
	}
	if _, err := Open(c); !errors.Is(err, files.ErrLockHeld) {
		t.Errorf("opened twice: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	got, err := stepHashes(held.Epoch, 0, other.Epochs)
	if err != nil || !slices.Equal(got, wantHashes(t, c)) {
		t.Errorf("%d batches, %v", len(got), err)
	}
	closeAll(t, held)
}

// TestCloseAnywhere closes after any number of batches, with one still held.
func TestCloseAnywhere(t *testing.T) {
	dev := mustDevice(t)
	before := runtime.NumGoroutine()
	for n := range 17 {
		c := testConfigOn(dev)
		c.Batches, c.Overlap = 6, n%2 == 0
		if n%3 == 0 {
			c.InPlace, c.Slots = true, 1100
		}
		l := mustOpen(t, c)
		b, err := l.Epoch(0)
		if err != nil {
			t.Fatal(err)
		}
		var d *sample.Batch
		for range min(n, 13) {
			if d != nil {
				d.Release()
			}
			if d, err = b.Next(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(b.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if d != nil {
			if _, err := wholeHash(d); err != nil { // of memory that is still there
				t.Error(err)
			}
			if x := d.X[len(d.X)-1]; x != sampletest.Value(d.Seeds[len(d.Seeds)-1], testDim-1) {
				t.Errorf("a batch held over Close ends with %v", x)
			}
			d.Release()
		}
		if _, err := b.Next(context.Background()); err == nil {
			t.Error("a batch after Close")
		}
		closeAll(t, l)
	}
	devtest.CheckGoroutines(t, before)
}

// TestCancel cancels a wait while a superbatch is sampled or planned: the next one goes on.
func TestCancel(t *testing.T) {
	for n := range 12 {
		c := testConfig(t)
		ctx, cancel := context.WithCancel(context.Background())
		var reads atomic.Int64
		c.Device = &hooked{c.Device, func() {
			if reads.Add(1) == int64(n+1) {
				cancel()
			}
		}}
		l := mustOpen(t, c)
		b, err := l.Epoch(0)
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Next(ctx)
		if err == nil {
			d.Release()
		} else if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if d, err = b.Next(context.Background()); err != nil {
			t.Error(err)
		} else {
			d.Release()
		}
		cancel()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		closeAll(t, l)
	}
}

// hooked calls back before each batch of reads.
type hooked struct {
	blockdev.Device
	before func()
}

func (h *hooked) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	h.before()
	return h.Device.ReadBatch(ctx, reqs)
}

// TestNoSlot: in place, a cache that a batch does not fit in is an error that says so.
func TestNoSlot(t *testing.T) {
	c := testConfig(t)
	c.InPlace, c.Slots = true, 60
	l := mustOpen(t, c)
	if _, err := stepHashes(l.Epoch, 0, 1); err == nil ||
		!strings.Contains(err.Error(), "do not fit in the feature cache") {
		t.Error(err)
	}
	closeAll(t, l)
}

// TestSlotsKept: what the slots take that are not kept is free while superbatches are made, and
// between epochs where one ends; the rows that are kept are hit again.
func TestSlotsKept(t *testing.T) {
	c := testConfig(t)
	c.Slots, c.SlotsKept, c.Batches, c.Epochs = 4000, 40, 13, 3
	c.PlanBytes = 128 << 10
	var least int64
	l := (*Loader)(nil)
	c.Drawer = func(workers int, perEpoch, first, end uint64) (sample.Drawer, error) {
		if used := c.Budget.Used(); least == 0 || used < least {
			least = used
		}
		return testDrawer(workers, perEpoch, first, end)
	}
	want := wantHashes(t, c)
	least = 0
	l = mustOpen(t, c)
	got, err := stepHashes(l.Epoch, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d batches, %v", len(got), len(want), err)
	}
	values := int64(4 * c.Slots * testDim)
	if used := c.Budget.Used(); used > values || least > values || c.Budget.Peak() < values {
		t.Errorf("%d bytes are used after the epochs, %d when one was sampled, %d at most; all "+
			"slots take %d", used, least, c.Budget.Peak(), values)
	}
	if hits := l.CacheStats().Hits; hits < 40 {
		t.Errorf("%d hits", hits)
	}
	closeAll(t, l)
}
