package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/compute/decoder"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/train/link"
	"gdb/train/link/triples"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// linkMmap is the baseline whose vectors and state are in one file that is mapped into memory, and
// whose edges come in a random order.
const linkMmap = "mmap"

// DefaultLinkOrders returns the orders that are compared if none are named.
func DefaultLinkOrders() []string {
	return []string{setting.OrderMemory, setting.OrderBeta, setting.OrderTwoLevel}
}

// LinkOrders returns all that can be compared.
func LinkOrders() []string { return append(DefaultLinkOrders(), linkMmap) }

// linkRunName is the run that is trained for each row, and removed after it.
const linkRunName = "bench-link"

// allPartitions is the buffer of a row whose vectors are all in memory.
const allPartitions = "all"

// LinkOptions configure Link.
type LinkOptions struct {
	Store  *layout.Store
	Device blockdev.Device
	// Config is what all rows share: Order, PartitionsInMemory and LogicalPartitions are set by the
	// row. Of Partitions, 0 has the rules choose, once for all rows.
	Config setting.Link
	// Orders are measured in this order. All but setting.OrderMemory and "mmap" once with each of
	// Buffers.
	Orders []string
	// Buffers are shares of the partitions that are in memory: N of 1/N, 2 or more.
	Buffers []int
	// MmapSeconds is how long the mapped baseline trains, of which the first half is not measured:
	// its epochs may take hours.
	MmapSeconds float64
	// Progress gets epochs of a row; nil for none.
	Progress func(phase string, done, total int64, unit string)
}

// ParseBuffers reads shares such as 1/2,1/4.
func ParseBuffers(list string) (all []int, err error) {
	for _, share := range strings.Split(list, ",") {
		text, found := strings.CutPrefix(strings.TrimSpace(share), "1/")
		n, err := strconv.Atoi(text)
		if !found || err != nil || n < 2 {
			return nil, optionErrorf("bench: link: a buffer of %q: want shares such as 1/2,1/4",
				share)
		}
		all = append(all, n)
	}
	return all, nil
}

// Validate reports the first setting that makes no sense.
func (o *LinkOptions) Validate() error {
	if len(o.Orders) == 0 {
		return optionErrorf("bench: link: no --orders: want some of %s",
			strings.Join(LinkOrders(), ", "))
	}
	for _, order := range o.Orders {
		if !slices.Contains(LinkOrders(), order) {
			return optionErrorf("bench: link: unknown order %q: want some of %s", order,
				strings.Join(LinkOrders(), ", "))
		}
	}
	if o.MmapSeconds <= 0 {
		return optionErrorf("bench: link: --mmap-seconds %g: want more than 0", o.MmapSeconds)
	}
	c := o.Config
	c.Order = setting.OrderTwoLevel // which has no vectors of all to work with
	return link.Validate(&c)
}

// linkColumns are the fields of a row, in the order of the table. epoch_s, wait_s, read_bytes and
// written_bytes are means of all epochs.
var linkColumns = []string{"system", "order", "buffer", "partitions", "logical_partitions", "sets",
	"epb", "epoch_s", "wait_s", "read_bytes", "written_bytes", "epochs", "mrr", "peak_rss_bytes"}

// linkPoint is a row to be: an order, and one of how many partitions are in memory.
type linkPoint struct {
	order string
	of    int
}

// buffer returns the share of the partitions in memory.
func (p *linkPoint) buffer() string {
	if p.of == 0 {
		return allPartitions
	}
	return fmt.Sprintf("1/%d", p.of)
}

// Link trains once for each row. A setting that cannot be has a row that says why. The report
// has all rows that were measured with an error too, after a Ctrl-C for one.
func Link(ctx context.Context, opt LinkOptions) (*Report, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if runs.Open(opt.Store, linkRunName).Exists() {
		return nil, fmt.Errorf("bench: link: the store has a run %s, of a measurement that was "+
			"killed: remove it with %s runs STORE rm %s", linkRunName, message.Program, linkRunName)
	}
	r := newReport("link", linkColumns...)
	var points []linkPoint
	for _, order := range opt.Orders {
		if order == setting.OrderMemory || order == linkMmap {
			points = append(points, linkPoint{order: order})
			continue
		}
		for _, of := range opt.Buffers {
			points = append(points, linkPoint{order, of})
		}
	}
	for _, p := range points {
		row, err := measureLink(ctx, &opt, p)
		if ctx.Err() != nil {
			return r, fmt.Errorf("bench: link: interrupted after %d of %d rows: %w", len(r.Rows),
				len(points), ctx.Err())
		}
		if err != nil {
			row["why"] = err.Error()
		}
		r.Rows = append(r.Rows, row)
	}
	failed := func(row Row) bool { return row["epoch_s"] == nil }
	if !slices.ContainsFunc(r.Rows, func(row Row) bool { return !failed(row) }) {
		return r, fmt.Errorf("bench: link: nothing could be measured: %v",
			r.Rows[len(r.Rows)-1]["why"])
	}
	return r, nil
}

// measureLink trains for one row, which is never nil, and removes the run.
func measureLink(ctx context.Context, opt *LinkOptions, p linkPoint) (row Row, err error) {
	row = Row{}
	for _, c := range linkColumns {
		row[c] = nil
	}
	row["system"], row["order"], row["buffer"] = "gdb", p.order, p.buffer()
	if p.order == linkMmap {
		row["buffer"] = nil
		return row, measureMapped(ctx, opt, row)
	}
	cfg := opt.Config
	cfg.Run, cfg.Order, cfg.Patience = linkRunName, p.order, 0
	cfg.PartitionsInMemory, cfg.LogicalPartitions, cfg.FewCheckpoints = 0, 0, true
	if p.of > 0 {
		if err := planLink(opt, &cfg, p.of, row); err != nil {
			return row, err
		}
	} else {
		cfg.Partitions = 0
	}
	reset := mem.ResetPeak() == nil
	sum := linkEpochs{progress: opt.Progress, phase: p.order + " " + p.buffer(), most: cfg.Epochs}
	res, err := link.Run(ctx, opt.Store, opt.Device, cfg, sum.event)
	if dir := runs.Open(opt.Store, linkRunName); dir.Exists() {
		err = errors.Join(err, runs.Remove(context.WithoutCancel(ctx), opt.Store, linkRunName))
	}
	if err != nil {
		return row, err
	}
	sum.into(row)
	if _, peak := mem.RSS(); reset {
		row["peak_rss_bytes"] = peak
	} else {
		row["why"] = "peak_rss_bytes: the kernel does not let the peak be reset"
	}
	if res.Test == nil {
		row["why"] = "mrr: the store has no test edges"
		return row, nil
	}
	row["mrr"], row["hits@10"] = res.Test.MRR, res.Test.Hits10
	return row, nil
}

// planLink chooses partitions for an order, of which one in `of` is in memory, and writes to row
// what an epoch reads.
func planLink(opt *LinkOptions, cfg *setting.Link, of int, row Row) error {
	m := opt.Store.Meta()
	if cfg.Partitions == 0 {
		rules := *cfg
		rules.Order = setting.OrderTwoLevel // so that all orders have equally many
		p, err := link.Plan(rules, m)
		if err != nil {
			return err
		}
		cfg.Partitions = p.Disk.Partitions
	}
	cfg.PartitionsInMemory = cfg.Partitions / of
	if cfg.PartitionsInMemory < 2 {
		return fmt.Errorf("1/%d of %d partitions are fewer than 2, which a pair of them needs", of,
			cfg.Partitions)
	}
	p, err := link.Plan(*cfg, m)
	if err != nil {
		return err
	}
	row["partitions"], row["partitions_in_memory"] = p.Disk.Partitions, p.Disk.InMemory
	row["logical_partitions"], row["sets"] = p.Disk.Logical, len(p.Disk.Sets)
	if p.Disk.Bias != nil {
		row["epb"] = *p.Disk.Bias
	}
	return nil
}

// linkEpochs sums up what epochs took.
type linkEpochs struct {
	progress func(phase string, done, total int64, unit string)
	phase    string
	most     int

	count         int
	time, wait    float64
	read, written int64
	disk          bool
}

// event notes an epoch.
func (e *linkEpochs) event(ev run.Event) {
	r, ok := ev.Epoch.(*runs.LinkEpoch)
	if !ok {
		return
	}
	e.count++
	e.time, e.wait = e.time+r.Time, e.wait+r.Wait
	e.read, e.written = e.read+r.Read, e.written+r.Written
	e.disk = e.disk || r.Sets > 0
	if e.progress != nil {
		e.progress(e.phase, int64(e.count), int64(e.most), "epochs")
	}
}

// into writes the means to a row.
func (e *linkEpochs) into(row Row) {
	n := float64(max(1, e.count))
	row["epochs"], row["epoch_s"] = e.count, e.time/n
	row["read_bytes"], row["written_bytes"] = e.read/int64(n), e.written/int64(n)
	if e.disk {
		row["wait_s"] = e.wait / n
	}
}

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
