// Package links measures link prediction whose vectors are in memory beside that whose vectors are
// on disk, with shares of their partitions in memory, in each order of going through them: what an
// epoch takes and reads, and what was learned in the end.
package links

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/bench"
	"gdb/blockdev"
	"gdb/internal/badoption"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train/link"
	"gdb/train/runs"
	"gdb/train/setting"
)

// OrderMmap is the baseline whose vectors and state are in one file that is mapped into memory, and
// whose edges come in a random order.
const OrderMmap = "mmap"

// DefaultOrders are the orders that are compared if none are named.
func DefaultOrders() []string {
	return []string{setting.OrderMemory, setting.OrderBeta, setting.OrderTwoLevel}
}

// Orders are all that can be compared.
func Orders() []string { return append(DefaultOrders(), OrderMmap) }

// RunName is the run that is trained for each row, and removed after it.
const RunName = "bench-link"

// allPartitions is the buffer of a row whose vectors are all in memory.
const allPartitions = "all"

// Options configure Measure.
type Options struct {
	Store  *layout.Store
	Device blockdev.Device
	// Config is what all rows share: Order, PartitionsInMemory and LogicalPartitions are set by the
	// row. Of Partitions, 0 has the rules choose, once for all rows.
	Config setting.Link
	// Orders are measured in this order. All but OrderMemory and OrderMmap once with each of
	// Buffers.
	Orders []string
	// Buffers are shares of the partitions that are in memory: N of 1/N, 2 or more.
	Buffers []int
	// MmapSeconds is how long OrderMmap trains, of which the first half is not measured: its epochs
	// may take hours.
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
			return nil, badoption.Errorf("bench: link: a buffer of %q: want shares such as 1/2,1/4",
				share)
		}
		all = append(all, n)
	}
	return all, nil
}

// Validate reports the first setting that makes no sense.
func (o *Options) Validate() error {
	if len(o.Orders) == 0 {
		return badoption.Errorf("bench: link: no --orders: want some of %s",
			strings.Join(Orders(), ", "))
	}
	for _, order := range o.Orders {
		if !slices.Contains(Orders(), order) {
			return badoption.Errorf("bench: link: unknown order %q: want some of %s", order,
				strings.Join(Orders(), ", "))
		}
	}
	if o.MmapSeconds <= 0 {
		return badoption.Errorf("bench: link: --mmap-seconds %g: want more than 0", o.MmapSeconds)
	}
	c := o.Config
	c.Order = setting.OrderTwoLevel // which has no vectors of all to work with
	return link.Validate(&c)
}

// columns are the fields of a row, in the order of the table. epoch_s, wait_s, read_bytes and
// written_bytes are means of all epochs.
var columns = []string{"system", "order", "buffer", "partitions", "logical_partitions", "sets",
	"epb", "epoch_s", "wait_s", "read_bytes", "written_bytes", "epochs", "mrr", "peak_rss_bytes"}

// point is a row to be: an order, and one of how many partitions are in memory.
type point struct {
	order string
	of    int
}

// buffer is the share of the partitions in memory.
func (p *point) buffer() string {
	if p.of == 0 {
		return allPartitions
	}
	return fmt.Sprintf("1/%d", p.of)
}

// Measure trains once for each row. A setting that cannot be has a row that says why. The report
// has all rows that were measured with an error too, after a Ctrl-C for one.
func Measure(ctx context.Context, opt Options) (*bench.Report, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if runs.Open(opt.Store, RunName).Exists() {
		return nil, fmt.Errorf("bench: link: the store has a run %s, of a measurement that was "+
			"killed: remove it with %s runs STORE rm %s", RunName, message.Program, RunName)
	}
	r := bench.NewReport("link", columns...)
	var points []point
	for _, order := range opt.Orders {
		if order == setting.OrderMemory || order == OrderMmap {
			points = append(points, point{order: order})
			continue
		}
		for _, of := range opt.Buffers {
			points = append(points, point{order, of})
		}
	}
	for _, p := range points {
		row, err := measure(ctx, &opt, p)
		if ctx.Err() != nil {
			return r, fmt.Errorf("bench: link: interrupted after %d of %d rows: %w", len(r.Rows),
				len(points), ctx.Err())
		}
		if err != nil {
			row["why"] = err.Error()
		}
		r.Rows = append(r.Rows, row)
	}
	failed := func(row bench.Row) bool { return row["epoch_s"] == nil }
	if !slices.ContainsFunc(r.Rows, func(row bench.Row) bool { return !failed(row) }) {
		return r, fmt.Errorf("bench: link: nothing could be measured: %v",
			r.Rows[len(r.Rows)-1]["why"])
	}
	return r, nil
}

// measure trains for one row, which is never nil, and removes the run.
func measure(ctx context.Context, opt *Options, p point) (row bench.Row, err error) {
	row = bench.Row{}
	for _, c := range columns {
		row[c] = nil
	}
	row["system"], row["order"], row["buffer"] = "gdb", p.order, p.buffer()
	if p.order == OrderMmap {
		row["buffer"] = nil
		return row, measureMapped(ctx, opt, row)
	}
	cfg := opt.Config
	cfg.Run, cfg.Order, cfg.Patience = RunName, p.order, 0
	cfg.PartitionsInMemory, cfg.LogicalPartitions, cfg.FewCheckpoints = 0, 0, true
	if p.of > 0 {
		if err := plan(opt, &cfg, p.of, row); err != nil {
			return row, err
		}
	} else {
		cfg.Partitions = 0
	}
	reset := mem.ResetPeak() == nil
	sum := epochs{progress: opt.Progress, phase: p.order + " " + p.buffer(), most: cfg.Epochs}
	res, err := link.Run(ctx, opt.Store, opt.Device, cfg, sum.event)
	if run := runs.Open(opt.Store, RunName); run.Exists() {
		err = errors.Join(err, runs.Remove(context.WithoutCancel(ctx), opt.Store, RunName))
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

// plan sets how many partitions there are and how many are in memory, one of so many, and notes
// what an epoch goes through.
func plan(opt *Options, cfg *setting.Link, of int, row bench.Row) error {
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

// epochs sums up what epochs took.
type epochs struct {
	progress func(phase string, done, total int64, unit string)
	phase    string
	most     int

	count         int
	time, wait    float64
	read, written int64
	disk          bool
}

// event notes an epoch.
func (e *epochs) event(ev link.Event) {
	r := ev.Epoch
	if r == nil {
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
func (e *epochs) into(row bench.Row) {
	n := float64(max(1, e.count))
	row["epochs"], row["epoch_s"] = e.count, e.time/n
	row["read_bytes"], row["written_bytes"] = e.read/int64(n), e.written/int64(n)
	if e.disk {
		row["wait_s"] = e.wait / n
	}
}
