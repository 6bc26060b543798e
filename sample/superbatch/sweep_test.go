package superbatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// swept makes a loader sweep wherever it can: reads cost a second, all else nothing. What is
// decided is appended to told.
func swept(c Config, reading *[]Reading) Config {
	c.Costs, c.SweepBytes = Costs{Read: 1}, 8<<20
	c.Decided = func(r Reading) { *reading = append(*reading, r) }
	return c
}

// checkTold holds decisions against the batches from start on: each is decided for once, in order.
func checkTold(t testing.TB, c *Config, reading []Reading, missed uint64) {
	t.Helper()
	step, rows, per := c.Epoch*13+c.StartBatch, uint64(0), uint64(13)
	for _, r := range reading {
		if r.Epoch*per+r.Batch != step || r.Batches < 1 || r.Why == "" {
			t.Errorf("decision %+v, step %d is next", r, step)
		}
		step += uint64(r.Batches)
		rows += r.Rows
	}
	if step != c.Epochs*per || rows != missed {
		t.Errorf("decided for steps up to %d and %d rows, %d were read", step, rows, missed)
	}
}

// TestSweptBatchesAreTheSame: with sweeps, batches have the bits that they have without, whatever
// the width of rows, the cache, and the memory and storage that a sweep may take.
func TestSweptBatchesAreTheSame(t *testing.T) {
	wants, dev := map[string][]uint64{}, mustDevice(t)
	sweeps, spans := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c, reading := testConfigOn(dev), []Reading(nil)
		dim := rapid.SampledFrom([]int{1, 7, 100, 128, 300, 700}).Draw(rt, "dim")
		c.Rows = &sampletest.Rows{Count: c.Nodes, Dim: dim}
		c.StartBatch = rapid.SampledFrom([]uint64{0, 5}).Draw(rt, "start")
		c.Epochs = 1
		if dim < 10 {
			c.Epochs = 2
		}
		key := fmt.Sprint(dim, c.StartBatch)
		if wants[key] == nil {
			wants[key] = wantHashes(t, c)
		}
		c = swept(c, &reading)
		c.Batches = rapid.SampledFrom([]int{1, 2, 7, 0}).Draw(rt, "superbatch")
		c.Slots = rapid.SampledFrom([]int{0, 1, 300, 1100, 2000}).Draw(rt, "slots")
		c.InPlace = c.Slots > 1000
		c.StageRows = rapid.SampledFrom([]int{0, 4, 100}).Draw(rt, "stage")
		c.Ready = rapid.IntRange(0, 2).Draw(rt, "ready")
		c.Overlap = rapid.Bool().Draw(rt, "overlap")
		c.SweepAhead = rapid.Bool().Draw(rt, "ahead")
		c.SlotsKept = rapid.IntRange(0, c.Slots).Draw(rt, "kept")
		c.Costs.Step = rapid.SampledFrom([]float64{0, 1, 100}).Draw(rt, "step")
		c.Costs.Written = rapid.SampledFrom([]float64{0, 1e-3}).Draw(rt, "written")
		c.SweepBytes = rapid.SampledFrom([]int64{1 << 10, 200 << 10, 8 << 20}).Draw(rt, "memory")
		c.StorageBytes = rapid.SampledFrom([]int64{600 << 10, 1 << 30}).Draw(rt, "storage")
		if rapid.Bool().Draw(rt, "worth it") { // else one check in eight has a sweep
			c.Batches, c.Slots, c.InPlace, c.Costs.Step = 0, min(c.Slots, 300), false, 0
			c.SlotsKept, c.SweepBytes, c.StorageBytes = 0, 8<<20, 1<<30
		}
		if c.StorageBytes > 1<<20 && rapid.Bool().Draw(rt, "spill") {
			c.Spill = func(uint64) bool { return true }
		}
		l := mustOpen(t, c)
		got, err := stepHashes(l.Epoch, 0, c.Epochs)
		if err != nil || !slices.Equal(got, wants[key]) {
			rt.Fatalf("%d of %d batches, %v", len(got), len(wants[key]), err)
		}
		s := l.CacheStats()
		checkTold(t, &c, reading, s.Requests-s.Hits)
		for _, r := range reading {
			if r.Swept {
				sweeps++
			}
		}
		spans += len(reading)
		closeAll(t, l)
	})
	if sweeps == 0 || sweeps == spans {
		t.Errorf("%d of %d spans were swept", sweeps, spans)
	}
}

// TestSweepReads: a sweep reads each row once for all batches that miss it.
func TestSweepReads(t *testing.T) {
	var reading []Reading
	c := swept(testConfig(t), &reading)
	c.Slots = 0
	rows := c.Rows.(*sampletest.Rows)
	l := mustOpen(t, c)
	if _, err := stepHashes(l.Epoch, 0, c.Epochs); err != nil {
		t.Fatal(err)
	}
	closeAll(t, l)
	row := uint64(4 * testDim)
	// sampletest computes a row for every key; the cost says what a file would be read.
	if len(reading) != 1 || !reading[0].Swept || rows.BytesRead() != reading[0].Rows*row ||
		uint64(reading[0].SweptBytes) > c.Nodes*row ||
		reading[0].PackedBytes < int64(reading[0].Rows*row) {
		t.Errorf("%d bytes read, %+v", rows.BytesRead(), reading)
	}
}

func TestWeigh(t *testing.T) {
	disk := Costs{Read: 8e-6, Byte: 1e-9, Written: 1e-9}
	const file = 4.3e9
	// epochs gives n epochs of 42 batches. Each batch of epoch e misses missed[e] rows of 1 KiB.
	epochs := func(n int, missed ...uint64) (l load) {
		l.once = rowfile.ReadCost{Reads: file >> 18, Bytes: file}
		for i := range 42 * n {
			rows := missed[min(i/42, len(missed)-1)]
			l.apart = append(l.apart, rowfile.ReadCost{Reads: rows, Bytes: int64(rows << 10)})
			l.packed = append(l.packed, rowfile.ReadCost{Reads: rows >> 6,
				Bytes: int64(rows << 10)})
		}
		return l
	}
	with := func(c Costs, set func(*Costs)) Costs { set(&c); return c }
	slow := with(disk, func(c *Costs) { c.Written = 1e-7 })
	hidden := with(disk, func(c *Costs) { c.Step = 0.5 })
	for _, c := range []struct {
		name  string
		costs Costs
		load  load
		swept bool
	}{
		{"one epoch", disk, epochs(1, 15000), false},
		{"ten epochs", disk, epochs(10, 15000), true},
		{"ten epochs, writes are slow", slow, epochs(10, 15000), false},
		{"ten epochs, steps take longer", hidden, epochs(10, 15000), false},
		{"the first epoch takes longer than the steps", hidden, epochs(3, 100000, 100), true},
		{"no row is missed", disk, load{apart: make([]rowfile.ReadCost, 5),
			packed: make([]rowfile.ReadCost, 5)}, false},
		{"reads cost nothing", Costs{Byte: 1e-9}, epochs(1, 15000), false},
		{"seeks cost a lot", with(disk, func(c *Costs) { c.Read = 1e-3 }), epochs(1, 15000), true},
	} {
		var r Reading
		c.costs.weigh(c.load, &r)
		if r.Swept != c.swept || r.Swept != (r.Once < r.Apart) || r.Why == "" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestFirstBatchesAreSwept: where only the first batches miss much, the sweep is for these.
func TestFirstBatchesAreSwept(t *testing.T) {
	var reading []Reading
	c := swept(testConfig(t), &reading)
	c.Slots = 2000 // after one epoch or two, all is there
	want := wantHashes(t, c)
	c.Costs, c.Rows = Costs{Read: 1, Written: 1e-2, Step: 30}, onePass{c.Rows}
	l := mustOpen(t, c)
	got, err := stepHashes(l.Epoch, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d batches, %v", len(got), len(want), err)
	}
	s := l.CacheStats()
	checkTold(t, &c, reading, s.Requests-s.Hits)
	if len(reading) < 2 || !reading[0].Swept || reading[len(reading)-1].Swept ||
		reading[0].Batches > 13 {
		t.Errorf("decided: %+v", reading)
	}
	closeAll(t, l)
}

// onePass sweeps in one read.
type onePass struct{ Rows }

func (s onePass) SweepCost(keys iter.Seq[[]uint64], lists int) (once rowfile.ReadCost,
	apart []rowfile.ReadCost) {
	once, apart = s.Rows.SweepCost(keys, lists)
	once.Reads = 1
	return once, apart
}

// TestSweepStorage: rows take what batches leave of the storage, and go when they were used.
func TestSweepStorage(t *testing.T) {
	for i := range 4 {
		var reading []Reading
		c := swept(testConfig(t), &reading)
		c.SweepAhead, c.Overlap = i%2 == 1, i > 1
		c.StorageBytes = 400 << 10
		if c.Overlap {
			c.StorageBytes, c.Batches = 600<<10, 20
		}
		checkStorage(t, c, &reading)
	}
}

func checkStorage(t *testing.T, c Config, reading *[]Reading) {
	want := wantHashes(t, c)
	l := mustOpen(t, c)
	most, rows := int64(0), 0
	got, err := stepHashes(func(e uint64) (sample.Batches, error) {
		b, err := l.Epoch(e)
		return &watched{b, func() {
			size := int64(0)
			names, _ := c.FS.List(l.dir.Path)
			for _, n := range names {
				if st, err := c.FS.Stat(c.FS.PathJoin(l.dir.Path, n)); err == nil {
					size += st.Size()
				}
				if strings.HasSuffix(n, ".rows") {
					rows++
				}
			}
			most = max(most, size)
		}}, err
	}, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d batches, %v", len(got), len(want), err)
	}
	if most > c.StorageBytes || rows == 0 || len(*reading) < 3 {
		t.Errorf("%d bytes of files, %d with rows, %d decisions", most, rows, len(*reading))
	}
	closeAll(t, l)
}

// fullFS has no space for files whose name ends so, after some writes.
type fullFS struct {
	vfs.FS
	only   string
	writes int
}

func (f *fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, f.only) {
		return &fullFile{file, &f.writes}, nil
	}
	return file, err
}

type fullFile struct {
	vfs.File
	writes *int
}

func (f *fullFile) Write(p []byte) (int, error) {
	if *f.writes--; *f.writes < 0 {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// TestSweepFails: a full disk and a row that cannot be read end the training with an error that
// says where, and nothing is left behind.
func TestSweepFails(t *testing.T) {
	dev, before := mustDevice(t), runtime.NumGoroutine()
	want := wantHashes(t, testConfigOn(dev))
	for writes := range 14 {
		var reading []Reading
		c := testConfigOn(dev)
		c.Rows = &sampletest.Rows{Count: c.Nodes, Dim: 300}
		c = swept(c, &reading)
		c.SweepAhead, c.SweepBytes, c.Overlap = writes%2 == 1, 240<<10, writes%3 == 1
		c.FS = &fullFS{vfs.NewMem(), ".rows", writes}
		l := mustOpen(t, c)
		got, err := stepHashes(l.Epoch, 0, c.Epochs)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), ".rows") ||
			!strings.Contains(err.Error(), "offset") ||
			!strings.Contains(err.Error(), "free space") {
			t.Errorf("full after %d writes: %v", writes, err)
		}
		if len(got) > len(want) || c.SweepAhead && writes > 8 && len(got) == 0 {
			t.Errorf("full after %d writes: %d batches", writes, len(got))
		}
		closeAll(t, l)
	}
	bad := sample.NodeID(3)
	for _, slots := range []int{100, 1100} {
		var reading []Reading
		c := testConfigOn(dev)
		c.Slots, c.InPlace = slots, slots > 1000
		c.Rows = &sampletest.Rows{Count: c.Nodes, Dim: testDim, Fail: &bad}
		l := mustOpen(t, swept(c, &reading))
		_, err := stepHashes(l.Epoch, 0, c.Epochs)
		if err == nil || !strings.Contains(err.Error(), "row 3 cannot be read") {
			t.Errorf("a row that cannot be read: %v", err)
		}
		closeAll(t, l)
	}
	devtest.CheckGoroutines(t, before)
}

// TestSweepGivenUp: a wait that is given up while rows are swept leaves nothing, and the batches
// come when they are asked for again.
func TestSweepGivenUp(t *testing.T) {
	var reading []Reading
	c := swept(testConfig(t), &reading)
	want := wantHashes(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	c.Rows = &cancelling{c.Rows, cancel}
	l := mustOpen(t, c)
	b, err := l.Epoch(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled sweep: %v", err)
	}
	got, err := stepHashes(l.Epoch, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) || !reading[0].Swept {
		t.Errorf("%d of %d batches, %v, %+v", len(got), len(want), err, reading)
	}
	closeAll(t, l)
}

// cancelling cancels before its first sweep.
type cancelling struct {
	Rows
	cancel context.CancelFunc
}

func (c *cancelling) Sweep(ctx context.Context, keys []uint64, buf []byte,
	emit func(list uint32, row []byte) error) error {
	c.cancel()
	return c.Rows.Sweep(ctx, keys, buf, emit)
}

// TestSweepRefusesFlippedBits: no bit of packed rows is trained on that was not written.
func TestSweepRefusesFlippedBits(t *testing.T) {
	good, draw, found := mustDevice(t), rng.NewStream(22), 0
	base := testConfigOn(good)
	base.Rows, base.Epochs = &sampletest.Rows{Count: base.Nodes, Dim: 300}, 1
	want := wantHashes(t, base)
	const flips = 16
	for range flips {
		var reading []Reading
		c := swept(base, &reading)
		c.Budget, c.FS = mem.NewBudget(0), vfs.NewMem()
		dev := &flipping{Device: good, nth: draw.Below(14), bit: draw.Uint64(), only: ".rows"}
		c.Device = dev
		l := mustOpen(t, c)
		if dev.refused(t, l, &c, want) {
			found++
		}
		closeAll(t, l)
	}
	if found < flips/2 {
		t.Errorf("%d of %d flips were found", found, flips)
	}
}

// TestSweepAhead: the rows of the batches to come are swept for while those before are trained on,
// the first of the superbatch that follows too; a sweep that waits keeps no batch from coming, and
// ends with the loader.
func TestSweepAhead(t *testing.T) {
	dev, before := mustDevice(t), runtime.NumGoroutine()
	for _, overlap := range []bool{false, true} {
		var reading []Reading
		c := swept(testConfigOn(dev), &reading)
		want := wantHashes(t, c)
		c.SweepAhead, c.SweepBytes, c.Overlap, c.Batches = true, 300<<10, overlap, 36
		rows := c.Rows
		held := &holding{Rows: rows, after: 1, begun: make(chan struct{})}
		c.Rows = held
		l := mustOpen(t, c)
		var got []uint64
		b, err := l.Epoch(0)
		if err != nil {
			t.Fatal(err)
		}
		first := 0
		for n := 0; n == 0 || n < first; n++ { // the second sweep does not end
			d, err := b.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			h, err := wholeHash(d)
			if err != nil {
				t.Fatal(err)
			}
			got, first = append(got, h), reading[0].Batches
			d.Release()
		}
		<-held.begun
		if !reading[0].Swept || first >= 13 || !slices.Equal(got, want[:first]) ||
			len(reading) != 1 {
			t.Errorf("%d batches from %+v", len(got), reading)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := b.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a batch whose rows are not there: %v", err)
		}
		closeAll(t, l)
		c.Rows = rows
		checkAheadOfNext(t, c, want)
	}
	devtest.CheckGoroutines(t, before)
}

// checkAheadOfNext: with superbatches that overlap or come in pairs, a sweep for the one that
// follows begins before it does.
func checkAheadOfNext(t *testing.T, c Config, want []uint64) {
	c.SweepBytes = 8 << 20
	l := mustOpen(t, c)
	early := 0
	got, err := stepHashes(func(e uint64) (sample.Batches, error) {
		b, err := l.Epoch(e)
		return &watched{b, func() {
			if c.Overlap && l.upcoming != nil {
				<-l.upcoming.done // the first superbatch is short, and batches take no time
			}
			if s := l.following(); s != nil && s.upcoming != nil {
				early++
			}
		}}, err
	}, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) || early == 0 {
		t.Errorf("overlap=%v: %d of %d batches, %v, %d before they are due", c.Overlap, len(got),
			len(want), err, early)
	}
	closeAll(t, l)
}

// holding does not end its sweeps after some.
type holding struct {
	Rows
	after int
	begun chan struct{}
}

func (h *holding) Sweep(ctx context.Context, keys []uint64, buf []byte,
	emit func(list uint32, row []byte) error) error {
	if h.after--; h.after >= 0 {
		return h.Rows.Sweep(ctx, keys, buf, emit)
	}
	close(h.begun)
	<-ctx.Done()
	return ctx.Err()
}
