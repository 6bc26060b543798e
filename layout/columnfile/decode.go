package columnfile

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gdb/internal/codec"
	"gdb/internal/mem"

	"github.com/klauspost/compress/zstd"
)

// unzipBytes is what decompression takes, in bytes: 26 KB were measured.
const unzipBytes = 32 << 10

// decoder reads verified blocks. One goroutine may use it at a time.
type decoder struct {
	*column
	rawMost uint32
	strings *Strings // the dictionary
	zip     *zstd.Decoder
	raw     []byte   // a payload that was compressed
	ends    []uint32 // of strings or vectors of the block, from 0 on
	numbers []int64

	// The fields below are about the block that was parsed last.
	rows   int
	coding byte
	valid  []byte  // nil if no row is null
	packed packed  // ints, decimals, codes, or indices of vectors
	power  float64 // by which decimals are divided
	data   []byte  // floats, strings or values of vectors; nil if all are 1
	first  uint64  // its first row

	// feature reads values of the feature from a row on; nil where there are none.
	feature func(row uint64, out []float64) error
}

// bytes returns the memory held, in bytes.
func (d *decoder) bytes() int64 {
	n := int64(cap(d.raw)) + 4*int64(cap(d.ends)) + 8*int64(cap(d.numbers))
	if d.zip != nil {
		n += unzipBytes
	}
	return n
}

// open verifies and parses block n.
func (d *decoder) open(n uint64, b []byte) error {
	if err := d.verify(n, b); err != nil {
		return err
	}
	d.first = (n - 1) * uint64(d.BlockRows)
	return d.parse(b, d.rowsOf(n), n > d.blocks())
}

// parse parses a block of rows, or of the dictionary if dict is set, whose checksum was verified.
func (d *decoder) parse(b []byte, rows int, dict bool) error {
	h := codec.NewDec(b)
	h.U32()
	n, _, raw := h.U32(), h.U64(), h.U32()
	coding, flags, zeros := h.U8(), h.U8(), h.U16()
	payload := h.Bytes(h.Remaining())
	switch {
	case h.Err() != nil:
		return h.Err()
	case int64(n) != int64(rows):
		return fmt.Errorf("it has %d rows, want %d", n, rows)
	case raw > d.rawMost || flags >= 2*flagValues || zeros != 0:
		return fmt.Errorf("%d bytes of rows, flags %d, then %d", raw, flags, zeros)
	}
	d.rows, d.coding, d.valid = rows, coding, nil
	payload, err := d.unzip(payload, int(raw), flags)
	if err != nil {
		return err
	}
	if flags&flagNulls != 0 {
		size := (rows + 7) / 8
		if len(payload) < size {
			return fmt.Errorf("%d bytes are too few for the nulls of %d rows", len(payload), rows)
		}
		d.valid, payload = payload[:size], payload[size:]
	}
	if payload, err = d.parseRows(payload, flags, dict); err != nil {
		return err
	}
	if len(payload) > 0 {
		return fmt.Errorf("%d bytes after its rows", len(payload))
	}
	return nil
}

// unzip returns the payload as it was before it was compressed.
func (d *decoder) unzip(payload []byte, raw int, flags byte) ([]byte, error) {
	if flags&flagZstd != 0 {
		if d.zip == nil {
			zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
			if err != nil {
				return nil, err
			}
			d.zip = zip
		}
		if cap(d.raw) < raw {
			d.raw = make([]byte, 0, raw)
		}
		out, err := d.zip.DecodeAll(payload, d.raw[:0:raw])
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		payload = out
	}
	if len(payload) != raw {
		return nil, fmt.Errorf("%d bytes of rows, want %d", len(payload), raw)
	}
	return payload, nil
}

// parseRows parses what follows the nulls, and returns the rest.
func (d *decoder) parseRows(b []byte, flags byte, dict bool) (rest []byte, err error) {
	switch k := d.class; {
	case k == ints && d.coding == codingPlain, k == texts && d.coding == codingDict && !dict:
		d.packed, rest, err = parsePacked(b, d.rows)
		return rest, err
	case k == floats && d.coding == codingDecimal:
		if len(b) == 0 || int(b[0]) >= len(powers) {
			return nil, fmt.Errorf("no power of ten, or too large a one")
		}
		d.power = powers[b[0]]
		d.packed, rest, err = parsePacked(b[1:], d.rows)
		return rest, err
	case k == floats && d.coding == codingShared:
		if len(b) == 0 || int(b[0]) >= len(powers) && b[0] != asFeature || d.Shared.Path == "" ||
			d.valid != nil {
			return nil, fmt.Errorf("no feature, or no power of ten, or nulls")
		}
		if d.power = 0; b[0] != asFeature {
			d.power = powers[b[0]]
		}
		return b[1:], nil
	case k == floats && d.coding == codingPlain:
		return d.take(b, 8*int64(d.rows))
	case k == texts && d.coding == codingPlain:
		if b, err = d.parseEnds(b); err != nil {
			return nil, err
		}
		return d.take(b, int64(d.ends[d.rows]))
	case k == lists && d.coding == codingPlain:
		if b, err = d.parseEnds(b); err != nil {
			return nil, err
		}
		entries := d.ends[d.rows]
		if d.packed, b, err = parsePacked(b, int(entries)); err != nil {
			return nil, err
		}
		if most := int64(d.rows) << min(d.packed.bits, 32); int64(entries) > most {
			return nil, fmt.Errorf("%d entries of %d bits in %d rows", entries, d.packed.bits,
				d.rows)
		}
		if d.data = nil; flags&flagValues == 0 {
			return b, nil
		}
		return d.take(b, 4*int64(entries))
	}
	return nil, fmt.Errorf("coding %d of %s", d.coding, d.Type)
}

// take takes the data of a block from the front of b.
func (d *decoder) take(b []byte, n int64) (rest []byte, err error) {
	if n > int64(len(b)) {
		return nil, fmt.Errorf("%d bytes of rows, want %d", len(b), n)
	}
	d.data = b[:n]
	return b[n:], nil
}

// parseEnds parses packed lengths to ends.
func (d *decoder) parseEnds(b []byte) (rest []byte, err error) {
	lengths, rest, err := parsePacked(b, d.rows)
	if err != nil {
		return nil, err
	}
	d.numbers = lengths.appendTo(d.numbers[:0], 0, d.rows)
	d.ends = append(d.ends[:0], 0)
	at := int64(0)
	for _, n := range d.numbers {
		if at += n; n < 0 || n > rawMost || at > rawMost {
			return nil, fmt.Errorf("a string or vector of %d, up to %d", n, at)
		}
		d.ends = append(d.ends, uint32(at))
	}
	return rest, nil
}

// appendTo appends rows from … to-1 of the parsed block.
func (d *decoder) appendTo(v *Values, from, to int) error {
	switch d.class {
	case ints:
		at := len(v.Ints)
		v.Ints = d.packed.appendTo(v.Ints, from, to)
		d.clearNulls(from, to, func(i int) { v.Ints[at+i] = 0 })
	case floats:
		if err := d.appendFloats(v, from, to); err != nil {
			return err
		}
	case texts:
		if d.coding == codingDict {
			if err := d.appendCoded(&v.Strings, from, to); err != nil {
				return err
			}
		} else {
			s := &v.Strings
			s.Off = appendEnds(s.Off, len(s.Bytes), d.ends[from:to+1])
			s.Bytes = append(s.Bytes, d.data[d.ends[from]:d.ends[to]]...)
		}
	case lists:
		if err := d.appendLists(&v.Sparse, from, to); err != nil {
			return err
		}
	}
	if n := max(len(v.Strings.Bytes), len(v.Sparse.Index)); n > math.MaxUint32 {
		return fmt.Errorf("%d bytes or entries of rows are too many to read together", n)
	}
	d.appendValid(v, from, to)
	v.Rows += to - from
	return nil
}

// null reports whether a row is null.
func (d *decoder) null(i int) bool { return d.valid != nil && d.valid[i>>3]>>(i&7)&1 == 0 }

// clearNulls calls zero with the number, from 0 on, of each null row.
func (d *decoder) clearNulls(from, to int, zero func(i int)) {
	for at := from &^ 7; at < to && d.valid != nil; at += 8 {
		nulls := ^d.valid[at>>3]
		for ; nulls != 0; nulls &= nulls - 1 {
			if i := at + bits.TrailingZeros8(nulls); i >= from && i < to {
				zero(i - from)
			}
		}
	}
}

// appendValid appends which rows are not null.
func (d *decoder) appendValid(v *Values, from, to int) {
	if d.valid == nil && len(v.Valid) == 0 {
		return
	}
	at := v.Rows
	for i := from; i < to; {
		v.growValid(at)
		word, n := uint64(1), 1
		switch {
		case i&7 == 0 && at&7 == 0 && i+8 <= to:
			word, n = math.MaxUint8, 8
			if d.valid != nil {
				word = uint64(d.valid[i>>3])
			}
		case d.null(i):
			word = 0
		}
		v.Valid[at>>6] |= word << (at & 63)
		i, at = i+n, at+n
	}
}

func (d *decoder) appendFloats(v *Values, from, to int) error {
	at := len(v.Floats)
	v.Floats = slices.Grow(v.Floats, to-from)[:at+to-from]
	out := v.Floats[at:]
	switch d.coding {
	case codingPlain:
		copy(mem.BytesOf(out), d.data[8*from:8*to])
		return nil
	case codingShared:
		return d.fromFeature(from, out)
	}
	d.numbers = d.packed.appendTo(d.numbers[:0], from, to)
	for i, x := range d.numbers {
		out[i] = float64(x) / d.power
	}
	d.clearNulls(from, to, func(i int) { out[i] = 0 })
	return nil
}

// fromFeature writes values that follow from a feature.
func (d *decoder) fromFeature(from int, out []float64) error {
	if d.feature == nil {
		return fmt.Errorf("its values follow from value %d of rows of %s", d.Shared.Column,
			d.Shared.Path)
	}
	if err := d.feature(d.first+uint64(from), out); err != nil {
		return sharedError{err}
	}
	if d.power > 0 {
		for i, x := range out {
			out[i] = math.RoundToEven(x*d.power) / d.power
		}
	}
	return nil
}

func (d *decoder) appendCoded(s *Strings, from, to int) error {
	d.numbers = d.packed.appendTo(d.numbers[:0], from, to)
	if len(s.Off) == 0 {
		s.Off = append(s.Off, 0)
	}
	for i, code := range d.numbers {
		if !d.null(from + i) {
			if code < 0 || code >= int64(len(d.strings.Off)-1) {
				return fmt.Errorf("row %d has string %d of the dictionary of %d", from+i, code,
					len(d.strings.Off)-1)
			}
			s.Bytes = append(s.Bytes, d.strings.At(int(code))...)
		}
		s.Off = append(s.Off, uint32(len(s.Bytes)))
	}
	return nil
}

func (d *decoder) appendLists(l *Lists, from, to int) error {
	first, last := int(d.ends[from]), int(d.ends[to])
	d.numbers = d.packed.appendTo(d.numbers[:0], first, last)
	base := len(l.Index)
	l.Index = slices.Grow(l.Index, last-first)
	for _, k := range d.numbers {
		if uint64(k) >= uint64(d.Dim) {
			return fmt.Errorf("index %d of %d dimensions", k, d.Dim)
		}
		l.Index = append(l.Index, uint32(k))
	}
	switch {
	case d.data == nil && !d.Ones:
		l.Value = ones(l.Value, last-first)
	case d.data != nil && d.Ones:
		return fmt.Errorf("it has values, and the column none")
	case d.data != nil:
		at := len(l.Value)
		l.Value = slices.Grow(l.Value, last-first)[:at+last-first]
		copy(mem.BytesOf(l.Value[at:]), d.data[4*first:4*last])
	}
	l.Off = appendEnds(l.Off, base, d.ends[from:to+1])
	return nil
}
