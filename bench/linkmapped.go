package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/train/link"
	"gdb/train/link/decoder"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	// mappedName is the file of vectors and state of linkMmap, in the store's runs.
	mappedName = "bench-link.mmap"
	// windowEdges are read at a time, and come in an order that is random among them: 12 MiB.
	windowEdges = 1 << 20
	// warmShare is the part of the time of a row that is not measured: the page cache fills.
	warmShare = 0.5
)

// mappedTable is vectors and the optimizer's state in a file that is mapped into memory, for reads
// and writes at random: the page cache of the kernel has what is in memory.
type mappedTable struct {
	link.Table
	fs    vfs.FS
	path  string
	bytes []byte
}

// newMapped writes the vectors that training begins with, and state of zeros, and maps them.
func newMapped(s *layout.Store, c *setting.Link) (t *mappedTable, err error) {
	rows := int(s.Meta().Nodes)
	t = &mappedTable{fs: s.FS(), path: s.Path("runs", mappedName)}
	if err := t.fs.MkdirAll(s.Path("runs"), 0o755); err != nil {
		return nil, err
	}
	f, err := t.fs.Create(t.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	arrays := 1 + len(runs.LinkState(c.Optimizer))
	if err := writeFirst(f, c, rows, arrays); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	size := 4 * rows * c.Dim
	t.bytes, err = unix.Mmap(int(f.Fd()), 0, arrays*size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err == nil { // with the default advice a fault reads as much as read-ahead allows
		err = unix.Madvise(t.bytes, unix.MADV_RANDOM)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.Table = link.Table{Rows: rows, Dim: c.Dim, Values: mem.View[float32](t.bytes[:size])}
	for i := 1; i < arrays; i++ {
		t.State = append(t.State, mem.View[float32](t.bytes[i*size:(i+1)*size]))
	}
	return t, nil
}

// writeFirst writes vectors as they begin, and zeros for the other arrays. Memory: a row at a time
// is drawn, 4096 of them are written together.
func writeFirst(f vfs.File, c *setting.Link, rows, arrays int) error {
	const once = 4096
	buf := make([]float32, once*c.Dim)
	for i := range arrays {
		for lo := 0; lo < rows; lo += once {
			some := buf[:min(once, rows-lo)*c.Dim]
			if clear(some); i == 0 {
				for row := range len(some) / c.Dim {
					decoder.InitialEntity(some[row*c.Dim:][:c.Dim], c.Seed, uint64(lo+row), c.Init)
				}
			}
			if _, err := f.Write(mem.BytesOf(some)); err != nil {
				return err
			}
		}
	}
	return f.Sync()
}

// willNeed has the kernel begin to read rows, so that the disk works on many of them at once: page
// faults would wait for one after the other.
func (t *mappedTable) willNeed(rows []uint32) error {
	page, rowBytes := os.Getpagesize(), 4*t.Dim
	array := t.Rows * rowBytes
	for _, row := range rows {
		for at := int(row) * rowBytes; at < len(t.bytes); at += array {
			lo := at / page * page
			if err := unix.Madvise(t.bytes[lo:at+rowBytes], unix.MADV_WILLNEED); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close unmaps and removes the file.
func (t *mappedTable) Close() (err error) {
	if t.bytes != nil {
		err = unix.Munmap(t.bytes)
	}
	return errors.Join(err, t.fs.Remove(t.path))
}

// mappedRun is the training of a row of linkMmap.
type mappedRun struct {
	opt   *LinkOptions
	table *mappedTable
	steps *link.Steps
	warm  time.Duration
	until time.Duration

	begun, measured time.Time
	batches, timed  int // all, and those since measured
}

// errMappedTime ends a row whose time is over.
var errMappedTime = errors.New("the time of the row is over")

// measureMapped trains over a file that is mapped into memory, in a random order of edges, for as
// long as Options.MmapSeconds, and writes to row how long an epoch would take.
func measureMapped(ctx context.Context, opt *LinkOptions, row Row) (err error) {
	c := &opt.Config
	t, err := newMapped(opt.Store, c)
	if err != nil {
		return fmt.Errorf("bench: link: vectors in a file that is mapped: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	r := &mappedRun{opt: opt, table: t,
		until: time.Duration(opt.MmapSeconds * float64(time.Second))}
	r.warm = time.Duration(warmShare * float64(r.until))
	if r.steps, err = link.NewSteps(c, opt.Store.Meta(), &t.Table); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.steps.Close()) }()
	f, err := edgefile.Open(ctx, opt.Store, opt.Device, "train")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r.begun = time.Now()
	for epoch := uint64(0); err == nil; epoch++ {
		err = r.epoch(ctx, f, epoch)
	}
	if !errors.Is(err, errMappedTime) {
		return err
	}
	return r.into(row, f.Count())
}

// epoch trains on the edges, window by window: these come in a random order, and so do the edges of
// each.
func (r *mappedRun) epoch(ctx context.Context, f *edgefile.File, epoch uint64) error {
	key := rng.Key(r.opt.Config.Seed, epoch)
	windows := (f.Count() + windowEdges - 1) / windowEdges
	order := rng.NewPermutation(windows, key)
	for i := range windows {
		first := order.At(i) * windowEdges
		var e edgefile.Edges
		if err := f.Read(ctx, first, min(f.Count(), first+windowEdges), &e); err != nil {
			return err
		}
		if err := r.window(ctx, &e, rng.Sub(key, first)); err != nil {
			return err
		}
	}
	return nil
}

// window trains on some edges. The rows of the next batch are on their way while one is trained on.
func (r *mappedRun) window(ctx context.Context, e *edgefile.Edges, key uint64) error {
	n, size := e.Len(), r.opt.Config.Batch
	order := rng.NewPermutation(uint64(n), key)
	var now, next []triples.Triple
	for at := 0; at < n+size; at += size {
		next = next[:0]
		for i := at; i < min(n, at+size); i++ {
			j := order.At(uint64(i))
			t := triples.Triple{Head: e.Src[j], Tail: e.Dst[j]}
			if e.Rel != nil {
				t.Relation = uint32(e.Rel[j])
			}
			next = append(next, t)
		}
		if len(next) > 0 {
			if err := r.table.willNeed(r.steps.Rows(next, rng.Sub(key, uint64(at)))); err != nil {
				return err
			}
		}
		if len(now) > 0 {
			if err := r.steps.Step(now, rng.Sub(key, uint64(at-size))); err != nil {
				return err
			}
			if err := r.tick(ctx); err != nil {
				return err
			}
		}
		now, next = next, now
	}
	return nil
}

// tick counts a batch, and ends the row when its time is over.
func (r *mappedRun) tick(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	r.batches++
	switch spent := now.Sub(r.begun); {
	case !r.measured.IsZero():
		if r.timed++; spent >= r.until {
			return errMappedTime
		}
	case spent >= r.warm:
		r.measured = now
	}
	return nil
}

// into writes the time of an epoch: of all its batches by those that were measured.
func (r *mappedRun) into(row Row, edges uint64) error {
	if r.timed == 0 {
		return fmt.Errorf("bench: link: no batch was measured in %g s: take more --mmap-seconds",
			r.opt.MmapSeconds)
	}
	size := uint64(r.opt.Config.Batch)
	all := float64((edges + size - 1) / size)
	each := time.Since(r.measured).Seconds() / float64(r.timed)
	row["epoch_s"], row["epochs"] = each*all, float64(r.batches)/all
	row["why"] = fmt.Sprintf("mmap: an epoch of %.0f batches by %d of them, after %d to warm up; "+
		"nothing is evaluated", all, r.timed, r.batches-r.timed)
	return nil
}
