// Package trace counts what each operator of a statement does: rows, time, blocks, bytes.
//
// Whoever runs an operator puts its span into the context; whoever reads a block for it finds the
// span there. A nil *Span counts nothing, so code outside of a statement pays only for one look
// into the context per batch of reads.
package trace

import (
	"context"
	"sync/atomic"
	"time"
)

// Span counts what one operator did. Any goroutine may add to its counters.
type Span struct {
	// Name is the name of the operator in the plan.
	Name string

	out, cached, read, bytes, used atomic.Uint64
	opened, openedBytes            atomic.Uint64
	nanos, openedNanos             atomic.Int64
}

// Counts are the counters of a span.
type Counts struct {
	Out    uint64        // rows handed on
	Cached uint64        // blocks found in a cache
	Read   uint64        // reads from the device
	Bytes  uint64        // bytes read from the device
	Used   uint64        // bytes of all blocks that the operator took, cached ones too
	Time   time.Duration // time without operators that it called, and without opening files
	// Opened and OpenedBytes count reads of headers and indexes while files were opened, and
	// OpenedTime is the time of opening them.
	Opened, OpenedBytes uint64
	OpenedTime          time.Duration
}

// Add returns the sum of two counts.
func (c Counts) Add(o Counts) Counts {
	return Counts{c.Out + o.Out, c.Cached + o.Cached, c.Read + o.Read, c.Bytes + o.Bytes,
		c.Used + o.Used, c.Time + o.Time, c.Opened + o.Opened, c.OpenedBytes + o.OpenedBytes,
		c.OpenedTime + o.OpenedTime}
}

// Counts returns the counters so far.
func (s *Span) Counts() Counts {
	if s == nil {
		return Counts{}
	}
	opening := time.Duration(s.openedNanos.Load())
	return Counts{Out: s.out.Load(), Cached: s.cached.Load(), Read: s.read.Load(),
		Bytes: s.bytes.Load(), Used: s.used.Load(),
		Time:   max(time.Duration(s.nanos.Load())-opening, 0),
		Opened: s.opened.Load(), OpenedBytes: s.openedBytes.Load(), OpenedTime: opening}
}

// Emit counts rows handed on, and the bytes that they were made from.
func (s *Span) Emit(rows int, used uint64) {
	if s != nil {
		s.out.Add(uint64(rows))
		s.used.Add(used)
	}
}

// AddReads adds what another span counted, without its rows and its time.
func (s *Span) AddReads(c Counts) {
	s.cached.Add(c.Cached)
	s.read.Add(c.Read)
	s.bytes.Add(c.Bytes)
	s.used.Add(c.Used)
	s.opened.Add(c.Opened)
	s.openedBytes.Add(c.OpenedBytes)
}

// Hit counts blocks found in a cache.
func (s *Span) Hit(blocks uint64) {
	if s != nil {
		s.cached.Add(blocks)
	}
}

type spanKey struct{}

// At says what a read belongs to: an operator, and whether a file is being opened.
type At struct {
	*Span
	Opening bool
}

// Read counts reads from the device.
func (a At) Read(reads int, bytes uint64) {
	switch {
	case a.Span == nil:
	case a.Opening:
		a.opened.Add(uint64(reads))
		a.openedBytes.Add(bytes)
	default:
		a.read.Add(uint64(reads))
		a.bytes.Add(bytes)
	}
}

// With returns a context whose reads are counted in s.
func With(ctx context.Context, s *Span) context.Context {
	return context.WithValue(ctx, spanKey{}, At{Span: s})
}

// Opening returns a context whose reads count as opening a file. The time until opened is called
// does not count for the operator that runs.
func Opening(ctx context.Context) (_ context.Context, opened func()) {
	at, begun := From(ctx), time.Now()
	at.Opening = true
	return context.WithValue(ctx, spanKey{}, at), func() {
		if at.Span != nil {
			at.openedNanos.Add(int64(time.Since(begun)))
		}
	}
}

// From returns what reads with ctx are counted in. Its Span is nil if nothing counts them.
func From(ctx context.Context) At {
	at, _ := ctx.Value(spanKey{}).(At)
	return at
}

// Watch measures the time of the operators of one goroutine, of which one runs at any moment. The
// zero value is ready to use.
type Watch struct {
	at    *Span
	since time.Time
}

// Switch ends the time of the span that ran, starts that of s, which may be nil, and returns the
// former.
func (w *Watch) Switch(s *Span) (before *Span) {
	now := time.Now()
	if w.at != nil {
		w.at.nanos.Add(int64(now.Sub(w.since)))
	}
	before = w.at
	w.at, w.since = s, now
	return before
}
