package rowfile

import (
	"context"
	"errors"

	"gdb/layout"
)

// stored is memory of a caller to which rows are read and in which they stay.
type stored struct {
	buf  []byte
	used int
}

// next returns where the next part may be read to, at most this number of bytes, and where that
// begins in the memory.
func (s *stored) next(most int) (buf []byte, first int) {
	return s.buf[s.used:min(len(s.buf), s.used+most)], s.used
}

// take takes the memory that a part was planned to use, without its sectors of checksums.
func (s *stored) take(p *rowsPart) {
	for i := range p.reqs[:len(p.reqs)-len(p.sums.sectors)] {
		s.used += len(p.reqs[i].Buf)
	}
}

// errNoRoom is returned if rows take more memory than was expected.
var errNoRoom = errors.New("layout: there is no room for rows as they are stored")

// GatherStored does what Gather does for rows that are stored as float32 and not changed, but
// leaves them where they are read. It calls room once for memory at a multiple of 512, with about
// how many bytes are read and how many are needed. If room returns none, or rows must be converted,
// nothing is read and read is false. When it returns true, each row was verified, and at[i] is
// where the row of nodes[i] begins in that memory, in units of 4 bytes.
func (r *Reader) GatherStored(ctx context.Context, nodes []layout.NodeID, at []uint32,
	room func(read, bytes int64) ([]byte, error)) (read bool, err error) {
	if r.shape.DType != F32 || r.scaled || r.packed || r.shape.sections != nil ||
		r.isLive() {
		return false, nil
	}
	b, err := r.take(ctx)
	if err != nil {
		return false, err
	}
	defer r.give(b)
	if err := r.sort(ctx, b, nodes); err != nil {
		return false, err
	}
	least, most := r.storedBytes(b)
	if most == 0 {
		return false, nil
	}
	buf, err := room(least, most)
	if err != nil || buf == nil {
		return false, err
	}
	if err = r.readStored(ctx, b, buf, at); errors.Is(err, errNoRoom) {
		return false, nil
	}
	return err == nil, err
}

// storedBytes estimates how many bytes are read for the rows of sorted keys, and bounds the memory
// that they take, except in rare cases. It returns 0 if rows are too large for parts.
func (r *Reader) storedBytes(b *rowsBuffer) (least, most int64) {
	var c gatherCost
	c.init()
	widest := int64(0)
	for _, key := range b.order.Keys {
		from, to := r.shape.span(key >> 32)
		c.add(from, to)
		widest = max(widest, to-from)
	}
	// A part ends before a row that it has no room for, with a gap before it; the next one reads
	// the units that both have again, and may read other gaps.
	cost, _ := c.cost()
	part, lost := int64(len(b.parts[0].sums.buf)), widest+denseGapMost
	if 4*lost > part {
		return 0, 0
	}
	return cost.Bytes, cost.Bytes + (cost.Bytes/(part-lost)+1)*2*lost
}

// readStored reads the rows of sorted keys to buf, and sets at.
func (r *Reader) readStored(ctx context.Context, b *rowsBuffer, buf []byte, at []uint32) error {
	b.into = &stored{buf: buf}
	defer func() {
		b.into = nil
		for i := range b.parts {
			b.parts[i].buf = b.parts[i].sums.buf
		}
	}()
	keys, done := b.order.Keys, 0
	err := r.stream(ctx, b, r.merging(keys), keys, func(uint32, []byte) error { return nil },
		func(p *rowsPart) {
			for i, key := range p.keys {
				at[uint32(key)] = uint32((p.first + int(p.at[i])) / 4)
			}
			done += len(p.keys)
		})
	if err == nil && done < len(keys) {
		return errNoRoom
	}
	return err
}
