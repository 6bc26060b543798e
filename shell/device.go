package shell

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"gdb/blockdev"
	"gdb/internal/trace"
)

// Where reads come from.
const (
	phaseOpen  = "open"  // headers, indexes and checksums of a file that is opened
	phaseQuery = "query" // what a statement asks for
	opOther    = "other" // reads of no operator
)

// ioKey names a group of reads.
type ioKey struct{ file, phase, op string }

// ioCounts are the reads of a group. Wait is the time of the batches that held some of them.
type ioCounts struct {
	reads, bytes, errors uint64
	wait                 time.Duration
}

func (c *ioCounts) add(o ioCounts) {
	c.reads += o.reads
	c.bytes += o.bytes
	c.errors += o.errors
	c.wait += o.wait
}

// ioRecord is one read of TRACE IO.
type ioRecord struct {
	ioKey
	at     time.Time
	offset int64
	bytes  int
	wait   time.Duration // of its batch
	failed bool
}

// ioRecordsMost bounds what TRACE IO keeps: about 128 bytes a record.
const ioRecordsMost = 1 << 16

// countingDevice counts the reads of a session by file, phase and operator, and hands them to the
// device below. Memory: one entry for each group, and while tracing up to ioRecordsMost records.
type countingDevice struct {
	blockdev.Device
	root string // the directory of the store

	mu struct {
		sync.Mutex
		groups  map[ioKey]*ioCounts
		tracing bool
		records []ioRecord // a ring once it is full
		next    int
	}
}

func newCountingDevice(dev blockdev.Device, root string) *countingDevice {
	d := &countingDevice{Device: dev, root: root}
	d.mu.groups = map[ioKey]*ioCounts{}
	return d
}

// ReadBatch reads, and counts in the span of ctx.
func (d *countingDevice) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	begun := time.Now()
	err := d.Device.ReadBatch(ctx, reqs)
	took, at := time.Since(begun), trace.From(ctx)
	if err == nil {
		total := 0
		for i := range reqs {
			total += len(reqs[i].Buf)
		}
		at.Read(len(reqs), uint64(total))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var last ioKey
	var group *ioCounts
	for i := range reqs {
		r := &reqs[i]
		key := ioKey{strings.TrimPrefix(r.File.Path(), d.root), phaseQuery, opOther}
		if at.Opening {
			key.phase = phaseOpen
		}
		if at.Span != nil {
			key.op, _, _ = strings.Cut(at.Name, " ")
		}
		if group == nil || key != last {
			if group, last = d.mu.groups[key], key; group == nil {
				group = &ioCounts{}
				d.mu.groups[key] = group
			}
			group.wait += took
		}
		d.countLocked(group, err != nil, len(r.Buf))
		if d.mu.tracing {
			d.recordLocked(ioRecord{key, begun, r.Off, len(r.Buf), took, err != nil})
		}
	}
	return err
}

func (d *countingDevice) countLocked(c *ioCounts, failed bool, bytes int) {
	if failed {
		c.errors++
		return
	}
	c.reads++
	c.bytes += uint64(bytes)
}

func (d *countingDevice) recordLocked(r ioRecord) {
	if len(d.mu.records) < ioRecordsMost {
		d.mu.records = append(d.mu.records, r)
		return
	}
	d.mu.records[d.mu.next] = r
	d.mu.next = (d.mu.next + 1) % ioRecordsMost
}

// trace begins or ends recording; beginning forgets what was recorded.
func (d *countingDevice) trace(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.tracing = on
	if on {
		d.mu.records, d.mu.next = nil, 0
	}
}

// last returns the newest n records, oldest first, and whether recording is on.
func (d *countingDevice) last(n int) (out []ioRecord, tracing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clone(d.mu.records[d.mu.next:]), d.mu.records[:d.mu.next]...)
	return all[max(len(all)-n, 0):], d.mu.tracing
}

// reset forgets the counts.
func (d *countingDevice) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.mu.groups)
}

// ioRow is a named sum of groups.
type ioRow struct {
	name string
	ioCounts
}

// by sums the groups by what name says, in order of bytes, most first.
func (d *countingDevice) by(name func(ioKey) string) (rows []ioRow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sums := map[string]ioCounts{}
	for k, c := range d.mu.groups {
		s := sums[name(k)]
		s.add(*c)
		sums[name(k)] = s
	}
	for n, c := range sums {
		rows = append(rows, ioRow{n, c})
	}
	slices.SortFunc(rows, func(a, b ioRow) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	return rows
}
