package columnfile

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
)

// A gap of up to gapMost between two blocks is read over, since that costs less than a second read:
// see docs/format/rows.md. A read ends at extentMost, so that several are in flight.
const (
	gapMost    = 8 << 10
	extentMost = 512 << 10
)

// nextBlock yields ascending numbers of blocks, and 0 after the last.
type nextBlock func(ctx context.Context) (uint64, error)

// sequence yields the blocks from … to-1.
func sequence(from, to uint64) nextBlock {
	return func(context.Context) (uint64, error) {
		if from == to {
			return 0, nil
		}
		from++
		return from - 1, nil
	}
}

// each calls fn with blocks, each verified and parsed by the decoder of b, or with what is wrong
// with it. While one part of the buffer is delivered the others are read.
func (r *Reader) each(ctx context.Context, b *buffer, next nextBlock,
	fn func(n uint64, damage error) error) error {
	b.dec.feature = func(row uint64, out []float64) error {
		return r.features.values(ctx, r.Shared, row, out)
	}
	ahead, err := next(ctx)
	begun, ended := 0, 0 // parts
	start := func() {
		p := &b.parts[begun%partsOf]
		if err != nil || ahead == 0 {
			return
		}
		if ahead, err = r.plan(ctx, p, ahead, next); err == nil {
			begun++
			go func() {
				defer bug.Catch()
				p.done <- r.readPart(ctx, p)
			}()
		}
	}
	for range partsOf - 1 {
		start()
	}
	for ; ended < begun; ended++ {
		p := &b.parts[ended%partsOf]
		if e := <-p.done; err == nil {
			err = e
		}
		if err != nil {
			continue // until all have ended the buffer is in use
		}
		start() // in the one part that is neither being read nor delivered
		if err == nil {
			err = r.deliver(ctx, b, p, fn)
		}
		if err == nil {
			err = b.held.AtLeast(b.bytes())
		}
	}
	return err
}

// plan lays out the reads of the block ahead and those that follow, as many as the part has room
// for, and returns the next one.
func (r *Reader) plan(ctx context.Context, p *part, ahead uint64, next nextBlock) (uint64, error) {
	p.blocks, p.at, p.reqs = p.blocks[:0], p.at[:0], p.reqs[:0]
	var used, begin, end int64 // of the buffer; the last read
	for n := ahead; ; {
		from, to := r.span(n)
		low, high := from&^(alignBytes-1), aligned(to)
		merged := len(p.reqs) > 0 && low <= end+gapMost && high-begin <= extentMost
		if !merged {
			if used+high-low > int64(len(p.buf)) {
				return n, nil
			}
			begin, end = low, low
			p.reqs = append(p.reqs, blockdev.Request{File: r.f.Handle, Off: low})
		} else if used+max(high-end, 0) > int64(len(p.buf)) {
			return n, nil
		}
		at := used - (end - begin) // where the read begins in the buffer
		used += max(high-end, 0)
		end = max(end, high)
		p.reqs[len(p.reqs)-1].Buf = p.buf[at:used:used]
		p.blocks, p.at = append(p.blocks, n), append(p.at, uint32(at+from-begin))
		var err error
		if n, err = next(ctx); err != nil || n == 0 {
			return 0, err
		}
	}
}

// readPart issues the planned reads.
func (r *Reader) readPart(ctx context.Context, p *part) error {
	if err := r.f.Dev.ReadBatch(ctx, p.reqs); err != nil {
		return fmt.Errorf("layout: read blocks of %s: %w", r.f.Path, err)
	}
	n := 0
	for i := range p.reqs {
		n += len(p.reqs[i].Buf)
	}
	r.read.Add(uint64(n))
	return nil
}

// deliver verifies and parses the blocks of a part.
func (r *Reader) deliver(ctx context.Context, b *buffer, p *part,
	fn func(n uint64, damage error) error) error {
	for i, n := range p.blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, to := r.span(n)
		if err := fn(n, b.dec.open(n, p.buf[p.at[i]:][:to-from])); err != nil {
			return err
		}
	}
	return nil
}

// blockDamage returns the error for what is wrong with a block, or nil.
func (r *Reader) blockDamage(n uint64, err error) error {
	if of, ok := err.(sharedError); ok || err == nil {
		return of.error
	}
	from, _ := r.span(n)
	return r.f.Damage(int64(n), from, "%v", err)
}

// Scan calls fn with n rows from number first on, in order, a block or a part of it at a time; at
// is the number of the first of these rows, and they are valid during the call. Blocks that have
// no value of the range want are left out; nil is for all. Reads are large and go on while fn
// works.
func (r *Reader) Scan(ctx context.Context, first, n uint64, want *Range,
	fn func(at uint64, v *Values) error) error {
	if first > r.Rows || n > r.Rows-first {
		return fmt.Errorf("layout: rows %d to %d of %s: it has %d", first, first+n, r.f.Path,
			r.Rows)
	}
	if n == 0 {
		return nil
	}
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	per := uint64(r.BlockRows)
	next := sequence(first/per+1, (first+n-1)/per+2)
	if want != nil {
		next = r.filter(next, want)
	}
	return r.each(ctx, b, next, func(block uint64, err error) error {
		if err != nil {
			return r.blockDamage(block, err)
		}
		at := (block - 1) * per
		lo, hi := max(first, at), min(first+n, at+uint64(r.rowsOf(block)))
		b.got.Reset()
		if err = b.dec.appendTo(&b.got, int(lo-at), int(hi-at)); err != nil {
			return r.blockDamage(block, err)
		}
		return fn(lo, &b.got)
	})
}

// filter yields the blocks that may have values of a range.
func (r *Reader) filter(next nextBlock, want *Range) nextBlock {
	pages := pageReader{r: r, loaded: -1}
	return func(ctx context.Context) (uint64, error) {
		for {
			n, err := next(ctx)
			if err != nil || n == 0 {
				return 0, err
			}
			x, err := pages.entry(ctx, n)
			if err != nil || want.meets(x) {
				return n, err
			}
		}
	}
}

// Gather reads rows by number, in any order, with repetitions, and sets out to them: row i of out
// is number rows[i]. Blocks are read once each, and blocks that lie close together by one read.
// Besides out and a buffer it takes 20 bytes a row, and the size of out once more unless rows
// ascend.
func (r *Reader) Gather(ctx context.Context, rows []uint64, out *Values) error {
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	out.Reset()
	ascend, err := r.sort(ctx, b, rows)
	if err != nil {
		return err
	}
	got := out
	if !ascend {
		got = &b.got
		got.Reset()
	}
	keys := b.order.Keys
	at, per := 0, uint64(r.BlockRows)
	next := func(context.Context) (uint64, error) {
		for ; at < len(keys); at++ {
			if at == 0 || keys[at]>>32 != keys[at-1]>>32 {
				at++
				return keys[at-1]>>32 + 1, nil
			}
		}
		return 0, nil
	}
	var steps pace.Steps
	rest := keys
	err = r.each(ctx, b, next, func(n uint64, err error) error {
		for ; err == nil && len(rest) > 0 && rest[0]>>32 == n-1; rest = rest[1:] {
			row := int(rows[uint32(rest[0])] % per)
			if err = b.dec.appendTo(got, row, row+1); err == nil && steps.Took(ctx, 1) != nil {
				return ctx.Err()
			}
		}
		return r.blockDamage(n, err)
	})
	if err == nil && !ascend {
		b.permute(out)
		err = b.held.AtLeast(b.bytes())
	}
	return err
}

// sort sorts rows by their blocks, and reports whether they ascended.
func (r *Reader) sort(ctx context.Context, b *buffer, rows []uint64) (ascend bool, err error) {
	ascend = true
	per, before := uint64(r.BlockRows), uint64(0)
	b.order.Reset(len(rows))
	for i, row := range rows {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if row >= r.Rows {
			return false, fmt.Errorf("layout: row %d of %s: it has %d", row, r.f.Path, r.Rows)
		}
		block := row / per
		ascend = ascend && block >= before
		before = block
		b.order.Keys = append(b.order.Keys, block<<32|uint64(i))
	}
	if !ascend {
		err = b.order.Sort(ctx)
	}
	return ascend, err
}

// permute sets out to the rows of b.got in the order of the lower halves of keys.
func (b *buffer) permute(out *Values) {
	b.from = mem.Resize(b.from, len(b.order.Keys))
	for k, key := range b.order.Keys {
		b.from[uint32(key)] = uint32(k)
	}
	for _, k := range b.from {
		out.Append(&b.got, int(k), int(k)+1)
	}
}
