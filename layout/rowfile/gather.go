package rowfile

import (
	"context"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/pace"
	"gdb/layout"
)

// These say which rows are read together. On a disk that was measured, a random read of 4, 16 and
// 64 KiB takes 9.3, 16.8 and 45 µs: 6.8 µs per read and 0.6 µs per KiB, so reading over a gap of up
// to 11 KiB costs less than a second read; 8 KiB leaves room for faster disks. That makes large
// reads of rows that lie close together. Another disk takes 11.6, 16.8, 34 and 105 µs for 4, 16, 64
// and 256 KiB: there, gaps of up to 26 KiB cost less. A sweep reads over gaps of up to 16 KiB,
// which is not far from the best for either disk. Gathers of scattered rows gain little by gaps and
// would read up to twice the bytes, so they read over small gaps only, and at most a tenth of the
// bytes of their rows. A read ends at 256 KiB, so that several are in flight.
const (
	gatherGapMost = 2 << 10
	gatherShare   = 10
	denseGapMost  = 8 << 10
	sweepGapMost  = 16 << 10
	extentMost    = 256 << 10
)

// Gather reads the rows of nodes, converted to float32 (from f32, f16 and bf16), and writes row
// nodes[i] to out[at[i]*Dim:]; at nil means at[i] = i. Nodes may come in any order and repeat. The
// reads are sorted, merged where neighbors are cheaper together, and issued in batches of up to 512
// KiB, several at a time.
func (r *Reader) Gather(ctx context.Context, nodes []layout.NodeID, at []uint32,
	out []float32) error {
	return r.GatherParts(ctx, nodes, at, out, nil)
}

// GatherParts does what Gather does, and calls arrived, if it is not nil, with some rows at a time
// once they are in out, while others are still read: with node<<32 | index in nodes for each,
// ascending over all calls. There is one call at a time, and keys are valid during the call.
func (r *Reader) GatherParts(ctx context.Context, nodes []layout.NodeID, at []uint32, out []float32,
	arrived func(keys []uint64)) error {
	if r.decode == nil {
		return fmt.Errorf("layout: %s holds %s, not floats", r.f.Path, r.shape.DType)
	}
	dim := uint64(r.Meta().Dim)
	return r.gather(ctx, nodes, func(i uint32, row []byte) {
		to := uint64(i)
		if at != nil {
			to = uint64(at[i])
		}
		r.decode(out[to*dim:(to+1)*dim], row)
	}, arrived)
}

// GatherRaw does what Gather does without conversion, for rows of any type: RowBytes bytes each.
func (r *Reader) GatherRaw(ctx context.Context, nodes []layout.NodeID, at []uint32,
	out []byte) error {
	width := uint64(r.shape.RowBytes)
	return r.gather(ctx, nodes, func(i uint32, row []byte) {
		to := uint64(i)
		if at != nil {
			to = uint64(at[i])
		}
		copy(out[to*width:(to+1)*width], row)
	}, nil)
}

// gather calls emit with the index of each node and its row, and arrived after each part.
func (r *Reader) gather(ctx context.Context, nodes []layout.NodeID, emit func(uint32, []byte),
	arrived func(keys []uint64)) error {
	if r.isLive() {
		return r.gatherLevels(ctx, nodes, emit, arrived)
	}
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	if err := r.sort(ctx, b, nodes); err != nil {
		return err
	}
	keys := b.order.Keys
	return r.stream(ctx, b, r.merging(keys), keys, func(i uint32, row []byte) error {
		emit(i, row)
		return nil
	}, func(p *rowsPart) {
		if arrived != nil {
			arrived(p.keys)
		}
	})
}

// stream reads the rows of ascending keys, and calls emit with the lower half of each key and its
// row, and arrived, if it is not nil, with each part. While one part of the buffer is delivered the
// others are read, so the device does not wait.
func (r *Reader) stream(ctx context.Context, b *rowsBuffer, m merging, keys []uint64,
	emit func(uint32, []byte) error, arrived func(p *rowsPart)) error {
	begun, ended := 0, 0 // parts
	start := func() {
		p := &b.parts[begun%rowsParts]
		if b.into != nil {
			p.buf, p.first = b.into.next(len(p.sums.buf))
		}
		if keys = r.begin(ctx, &m, p, keys); len(p.keys) > 0 {
			begun++
		}
		if b.into != nil {
			b.into.take(p)
		}
	}
	for range rowsParts - 1 {
		start()
	}
	for ended < begun {
		p := &b.parts[ended%rowsParts]
		err := <-p.done
		ended++
		if err == nil {
			start() // in the one part that is neither being read nor delivered
			err = b.held.AtLeast(b.bytes())
		}
		if err == nil {
			err = r.deliver(ctx, p, emit)
		}
		if err == nil {
			if arrived != nil {
				arrived(p)
			}
			err = ctx.Err()
		}
		if err != nil {
			for ; ended < begun; ended++ { // until then the buffer is in use
				<-b.parts[ended%rowsParts].done // the first error is the one to tell
			}
			return err
		}
	}
	return nil
}

// begin starts to read the rows of the first keys, as many as the part has room for, and returns
// the remaining keys.
func (r *Reader) begin(ctx context.Context, m *merging, p *rowsPart, keys []uint64) []uint64 {
	n := r.plan(m, p, keys)
	if p.keys = keys[:n]; n > 0 {
		go func() {
			defer bug.Catch()
			p.done <- r.readPart(ctx, p)
		}()
	}
	return keys[n:]
}

// sort sorts nodes into the order of reading.
func (r *Reader) sort(ctx context.Context, b *rowsBuffer, nodes []layout.NodeID) error {
	b.order.Reset(len(nodes))
	for i, v := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if uint64(v) >= r.shape.Nodes {
			return layout.OutOfRange(v, r.shape.Nodes)
		}
		b.order.Keys = append(b.order.Keys, uint64(v)<<32|uint64(i))
	}
	if err := b.order.Sort(ctx); err != nil {
		return err
	}
	return b.held.AtLeast(b.bytes())
}

// Cost returns how many reads, and of how many bytes, Gather of these nodes takes. It reads
// nothing, leaves out nodes that levels added, and takes no row for replaced.
func (r *Reader) Cost(ctx context.Context, nodes []layout.NodeID) (reads int, bytes int64,
	err error) {
	if len(r.levels) > 0 {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(v layout.NodeID) bool {
			return uint64(v) >= r.shape.Nodes
		})
	}
	b, err := r.take(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer r.give(b)
	if err := r.sort(ctx, b, nodes); err != nil {
		return 0, 0, err
	}
	p, m := &b.parts[0], r.merging(b.order.Keys)
	for keys := b.order.Keys; len(keys) > 0; {
		keys = keys[r.plan(&m, p, keys):]
		reads += len(p.reqs)
		for i := range p.reqs {
			bytes += int64(len(p.reqs[i].Buf))
		}
	}
	return reads, bytes, ctx.Err()
}

// merging decides which rows are read together.
type merging struct {
	gapMost int64 // the largest gap between two rows that is read over
	share   int64 // bytes of rows that pay for one byte of gaps; 0 if gaps are free

	begin, end int64 // range of the data area that the last read covers so far
	spare      int64 // bytes of rows so far, minus those that paid for gaps
}

func gathers() merging { return merging{gapMost: gatherGapMost, share: gatherShare} }
func dense() merging   { return merging{gapMost: denseGapMost} }
func sweeps() merging  { return merging{gapMost: sweepGapMost} }

// merging returns how rows of ascending keys are gathered: as rows that lie close together if that
// takes less than three quarters of the time. It reckons that a read costs as much as denseGapMost
// bytes.
func (r *Reader) merging(keys []uint64) merging {
	var c gatherCost
	c.init()
	for _, key := range keys {
		c.add(r.shape.span(key >> 32))
	}
	if _, close := c.cost(); close {
		return dense()
	}
	return gathers()
}

// gatherCost is what gathering would cost in either way, without checksums.
type gatherCost struct {
	ways  [2]merging // gathers, dense
	costs [2]ReadCost
}

func (c *gatherCost) init() { c.ways = [2]merging{gathers(), dense()} }

// add adds the units from … to.
func (c *gatherCost) add(from, to int64) {
	if from == to {
		return // a row of no values
	}
	for i := range c.ways {
		c.ways[i].count(&c.costs[i], from, to)
	}
}

// cost returns the cost of the way that is taken, and whether that is the one for close rows.
func (c *gatherCost) cost() (cost ReadCost, close bool) {
	time := func(c ReadCost) int64 { return denseGapMost*int64(c.Reads) + c.Bytes }
	if 4*time(c.costs[1]) < 3*time(c.costs[0]) {
		return c.costs[1], true
	}
	return c.costs[0], false
}

// takes reports whether the units from … to are read with the last read, not by another one.
func (m *merging) takes(from, to int64) bool {
	gap := max(from-m.end, 0)
	return gap <= m.gapMost && gap*m.share <= m.spare && to-m.begin <= max(extentMost, to-from)
}

// restart starts a new read at from.
func (m *merging) restart(from int64) { m.begin, m.end = from, from }

// add adds the units from … to to the last read, and returns by how many bytes it grows.
func (m *merging) add(from, to int64) int64 {
	more, gap := max(to-m.end, 0), max(from-m.end, 0)
	m.end += more
	m.spare += more - gap - gap*m.share
	return more
}

// count adds the units from … to to a cost.
func (m *merging) count(c *ReadCost, from, to int64) {
	if m.end == 0 || !m.takes(from, to) {
		m.restart(from)
		c.Reads++
	}
	c.Bytes += m.add(from, to)
}

// span returns the range of whole units that holds a row; it is empty for a row of no values.
func (s *Shape) span(row uint64) (from, to int64) {
	unit, at := int64(s.SumBytes), s.at(row)
	width := s.width(row)
	if width == 0 {
		return at, at // at is the beginning of a page
	}
	return at / unit * unit, (at + width + unit - 1) / unit * unit
}

// plan lays out the reads of rows and of their checksums, from the first key on, as many as the
// part has room for, and returns how many. It sets p.at to where in the buffer each row begins.
func (r *Reader) plan(m *merging, p *rowsPart, keys []uint64) int {
	p.sums.sectors, p.sums.at = p.sums.sectors[:0], 0
	n := r.planRows(m, p, keys)
	p.reqs = r.sums.requests(p.reqs, &p.sums)
	return n
}

func (r *Reader) planRows(m *merging, p *rowsPart, keys []uint64) int {
	p.reqs, p.at = p.reqs[:0], p.at[:0]
	unit := int64(r.shape.SumBytes)
	used := int64(0) // bytes of the buffer
	for i, key := range keys {
		if i > 0 && key>>32 == keys[i-1]>>32 { // the same row, for another list of a sweep
			p.at = append(p.at, p.at[i-1])
			continue
		}
		from, to := r.shape.span(key >> 32)
		if from == to {
			p.at = append(p.at, 0) // a row of no values
			continue
		}
		if len(p.reqs) == 0 || !m.takes(from, to) {
			m.restart(from)
			p.reqs = append(p.reqs, blockdev.Request{File: r.f.Handle, Off: layout.PageBytes +
				from})
		}
		sectors := int64(len(p.sums.sectors)) + r.sums.missing(p.sums.sectors, from, to, unit)
		if used+max(to-m.end, 0)+sectorBytes*sectors > int64(len(p.buf)) {
			if m.begin == m.end { // the read just begun stays empty
				p.reqs = p.reqs[:len(p.reqs)-1]
			}
			return i
		}
		last := &p.reqs[len(p.reqs)-1]
		at := used - (m.end - m.begin) // where the read begins in the buffer
		used += m.add(from, to)
		last.Buf = p.buf[at:used:used]
		p.at = append(p.at, uint32(at+r.shape.at(key>>32)-m.begin))
		p.sums.sectors = r.sums.list(p.sums.sectors, from, to, unit)
	}
	return len(keys)
}

// readPart issues the planned reads.
func (r *Reader) readPart(ctx context.Context, p *rowsPart) error {
	if err := r.f.Dev.ReadBatch(ctx, p.reqs); err != nil {
		return fmt.Errorf("layout: read rows of %s: %w", r.f.Path, err)
	}
	n := 0
	for i := range p.reqs {
		n += len(p.reqs[i].Buf)
	}
	r.read.Add(uint64(n))
	return nil
}

// entryBytes is how many bytes of a row count as one step of pace.Steps.
const entryBytes = 16

// deliver verifies the units that hold rows, each once, and emits the rows.
func (r *Reader) deliver(ctx context.Context, p *rowsPart,
	emit func(uint32, []byte) error) error {
	buf, unit, pad := p.buf, int64(r.shape.SumBytes), r.shape.padded()
	var steps pace.Steps
	verified := int64(0) // where the next unit to verify may begin in the buffer
	var values []byte    // the last row
	for i, key := range p.keys {
		if i == 0 || key>>32 != p.keys[i-1]>>32 {
			row, at, width := r.shape.at(key>>32), int64(p.at[i]), r.shape.width(key>>32)
			lead := row % unit
			for u := max(verified, at-lead); u < at+width; u += unit {
				off := row + u - at
				want := r.sums.want(off/unit, &p.sums)
				if err := r.verify(ctx, off, buf[u:u+unit], want); err != nil {
					return err
				}
				verified = u + unit
			}
			if values = buf[at : at+width]; pad != nil {
				values = pad(values, 1)
			}
		}
		if err := steps.Took(ctx, 1+len(values)/entryBytes); err != nil {
			return err
		}
		if err := emit(uint32(key), values); err != nil {
			return err
		}
	}
	return nil
}
