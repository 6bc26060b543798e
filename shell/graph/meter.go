package graph

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

// The phases and the operator name under which reads are counted.
const (
	phaseOpen  = "open"  // headers, indexes and checksums of a file that is opened
	phaseQuery = "query" // what a statement asks for
	opOther    = "other" // reads that belong to no operator
)

// IOKey names a group of reads.
type IOKey struct{ File, Phase, Op string }

// IOCounts counts the reads of a group. Wait is the time of the batches that held some of them.
type IOCounts struct {
	Reads, Bytes, Errors uint64
	Wait                 time.Duration
}

// Add adds the reads of another group.
func (c *IOCounts) Add(o IOCounts) {
	c.Reads += o.Reads
	c.Bytes += o.Bytes
	c.Errors += o.Errors
	c.Wait += o.Wait
}

// IORecord describes one read of TRACE IO.
type IORecord struct {
	IOKey
	At     time.Time
	Offset int64
	Bytes  int
	Wait   time.Duration // the time of the read's batch
	Failed bool
}

// IORecordsMost bounds the records that TRACE IO keeps. A record takes about 128 bytes.
const IORecordsMost = 1 << 16

// Meter counts the reads of a session by file, phase and operator, and hands them to the device
// below. It takes one entry for each group, and while tracing up to IORecordsMost records.
type Meter struct {
	blockdev.Device
	root string // the directory of the store

	mu struct {
		sync.Mutex
		groups  map[IOKey]*IOCounts
		tracing bool
		records []IORecord // used as a ring once it is full
		next    int
	}
}

func newMeter(dev blockdev.Device, root string) *Meter {
	d := &Meter{Device: dev, root: root}
	d.mu.groups = map[IOKey]*IOCounts{}
	return d
}

// ReadBatch reads, and counts the reads in the span of ctx.
func (d *Meter) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
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
	var last IOKey
	var group *IOCounts
	for i := range reqs {
		r := &reqs[i]
		key := IOKey{strings.TrimPrefix(r.File.Path(), d.root), phaseQuery, opOther}
		if at.Opening {
			key.Phase = phaseOpen
		}
		if at.Span != nil {
			key.Op, _, _ = strings.Cut(at.Name, " ")
		}
		if group == nil || key != last {
			if group, last = d.mu.groups[key], key; group == nil {
				group = &IOCounts{}
				d.mu.groups[key] = group
			}
			group.Wait += took
		}
		d.countLocked(group, err != nil, len(r.Buf))
		if d.mu.tracing {
			d.recordLocked(IORecord{key, begun, r.Off, len(r.Buf), took, err != nil})
		}
	}
	return err
}

func (d *Meter) countLocked(c *IOCounts, failed bool, bytes int) {
	if failed {
		c.Errors++
		return
	}
	c.Reads++
	c.Bytes += uint64(bytes)
}

func (d *Meter) recordLocked(r IORecord) {
	if len(d.mu.records) < IORecordsMost {
		d.mu.records = append(d.mu.records, r)
		return
	}
	d.mu.records[d.mu.next] = r
	d.mu.next = (d.mu.next + 1) % IORecordsMost
}

// Trace begins or ends recording. Beginning it forgets earlier records.
func (d *Meter) Trace(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.tracing = on
	if on {
		d.mu.records, d.mu.next = nil, 0
	}
}

// Last returns the newest n records, oldest first, and whether recording is on.
func (d *Meter) Last(n int) (out []IORecord, tracing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clone(d.mu.records[d.mu.next:]), d.mu.records[:d.mu.next]...)
	return all[max(len(all)-n, 0):], d.mu.tracing
}

// Reset forgets the counts.
func (d *Meter) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.mu.groups)
}

// IORow is a named sum of groups.
type IORow struct {
	Name string
	IOCounts
}

// By sums the groups under the name that name gives each, and orders the sums by bytes, the largest
// first.
func (d *Meter) By(name func(IOKey) string) (rows []IORow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sums := map[string]IOCounts{}
	for k, c := range d.mu.groups {
		s := sums[name(k)]
		s.Add(*c)
		sums[name(k)] = s
	}
	for n, c := range sums {
		rows = append(rows, IORow{n, c})
	}
	slices.SortFunc(rows, func(a, b IORow) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return rows
}
