package columnfile

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/layout"
)

// checkShared says of how many blocks whose values follow from a feature one has its bounds
// compared, since whole rows of features are read for it.
const checkShared = 64

// Check verifies all blocks: their checksums, and that rows, nulls and bounds are what the pages
// say. It calls find for each damaged block, and goes on. Open has verified the rest.
func (r *Reader) Check(ctx context.Context, find func(block, off int64, what string)) error {
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	var nulls uint64
	var of bounds
	whole, pages := true, pageReader{r: r, loaded: -1}
	err = r.each(ctx, b, sequence(1, r.Blocks()+1), func(n uint64, damage error) error {
		x, err := pages.entry(ctx, n)
		if err != nil {
			return err
		}
		b.got.Reset()
		if damage == nil && b.dec.coding == codingShared && n%checkShared != 1 {
			return nil
		}
		if damage == nil {
			damage = b.dec.appendTo(&b.got, 0, r.rowsOf(n))
		}
		if of, ok := damage.(sharedError); ok && !errors.Is(of, layout.ErrCorrupt) {
			return of.error
		}
		if damage == nil {
			damage = r.checkBlock(n, &b.got, x, &of)
		}
		if damage != nil {
			from, _ := r.span(n)
			find(int64(n), from, damage.Error())
			whole = false
		}
		nulls += uint64(countNulls(&b.got))
		return nil
	})
	if err == nil && whole && nulls != r.Nulls {
		find(-1, 0, fmt.Sprintf("%d rows are null, want %d", nulls, r.Nulls))
	}
	return err
}

// checkBlock compares the rows of a block with what its page says.
func (r *Reader) checkBlock(n uint64, v *Values, x *entry, of *bounds) error {
	if err := v.check(&r.column); err != nil {
		return err
	}
	if of.reset(); n <= r.blocks() {
		of.of(v, r.class)
	}
	least, greatest := of.keys(r.class)
	if k := countNulls(v); uint32(k) != x.nulls || least != x.least || greatest != x.greatest {
		return fmt.Errorf("%d rows are null, keys are %x to %x: its page says %d, %x to %x", k,
			least, greatest, x.nulls, x.least, x.greatest)
	}
	return nil
}

// ReadBlock reads a block, from 1 to Blocks, without verifying it.
func (r *Reader) ReadBlock(ctx context.Context, n uint64) ([]byte, error) {
	from, to := r.span(n)
	low := from &^ (alignBytes - 1)
	b := blockdev.AlignedBuffer(int(aligned(to) - low))
	if err := r.f.Read(ctx, low, b); err != nil {
		return nil, fmt.Errorf("layout: read %s: %w", r.f.Path, err)
	}
	return b[from-low : to-low], nil
}

// dumpRows is how many rows of a block are printed.
const dumpRows = 12

// DumpBlock prints block n, whose bytes are b.
func (r *Reader) DumpBlock(d *codec.Dump, n uint64, b []byte) {
	h := codec.NewDec(b)
	state := "ok"
	want := h.U32()
	if got := r.sum(b); got != want {
		state = fmt.Sprintf("BAD: the bytes give %08x", got)
	}
	d.Field(4, "crc32c %08x %s", want, state)
	d.Field(4, "rows %d", h.U32())
	d.Field(8, "number %d", h.U64())
	d.Field(4, "bytes of the payload %d", h.U32())
	d.Field(1, "coding %d", h.U8())
	d.Field(1, "flags %d: 1 nulls, 2 zstd, 4 values", h.U8())
	d.Field(2, "zeros %d", h.U16())
	dec := decoder{column: &r.column, rawMost: r.end.raw, strings: &r.strings}
	var v Values
	err := dec.parse(b, r.rowsOf(n), n > r.blocks())
	if err == nil {
		err = dec.appendTo(&v, 0, min(dumpRows, r.rowsOf(n)))
	}
	if err != nil {
		d.Note("cannot be decoded: %v", err)
	}
	first := (n - 1) * uint64(r.BlockRows)
	if n > r.blocks() {
		first -= r.blocks() * uint64(r.BlockRows)
		d.Note("strings of the dictionary:")
	}
	for i := range v.Rows {
		d.Note("row %d: %s", first+uint64(i), v.text(i))
	}
	d.Field(d.Remaining(), "payload")
}

// text returns a row for people.
func (v *Values) text(i int) string {
	switch {
	case v.Null(i):
		return "null"
	case len(v.Ints) > 0:
		return fmt.Sprint(v.Ints[i])
	case len(v.Floats) > 0:
		return fmt.Sprint(v.Floats[i])
	case len(v.Strings.Off) > 0:
		return fmt.Sprintf("%q", v.Strings.At(i))
	}
	l := &v.Sparse
	from, to := l.Off[i], l.Off[i+1]
	if len(l.Value) == 0 {
		return fmt.Sprint(l.Index[from:to])
	}
	return fmt.Sprint(l.Index[from:to], l.Value[from:to])
}

// pageReader reads what pages say of ascending blocks, a page for pageEntries of them.
type pageReader struct {
	r      *Reader
	loaded int // number of the page, from 0 on; -1 for none
	page   page
	buf    []byte
}

// entry returns what the page of block n says of it. It is valid until the next call.
func (p *pageReader) entry(ctx context.Context, n uint64) (*entry, error) {
	if i := int((n - 1) / pageEntries); i != p.loaded {
		if p.buf == nil {
			p.buf = blockdev.AlignedBuffer(layout.PageBytes)
		}
		at := int64(p.r.pages[i])
		if err := p.r.f.Read(ctx, at, p.buf); err != nil {
			return nil, fmt.Errorf("layout: read %s: %w", p.r.f.Path, err)
		}
		if err := p.r.decodePage(i, p.buf, &p.page); err != nil {
			return nil, p.r.f.Damage(-1, 0, "page %d of blocks at offset %d: %v", i+1, at, err)
		}
		p.loaded = i
	}
	return &p.page.entries[(n-1)%pageEntries], nil
}
