package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train/link"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"
)

// linkMmap is the baseline whose vectors and state are in one file that is mapped into memory, and
// whose edges come in a random order.
const linkMmap = "mmap"

// DefaultLinkOrders are the orders that are compared if none are named.
func DefaultLinkOrders() []string {
	return []string{setting.OrderMemory, setting.OrderBeta, setting.OrderTwoLevel}
}

// LinkOrders are all that can be compared.
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

// buffer is the share of the partitions in memory.
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
