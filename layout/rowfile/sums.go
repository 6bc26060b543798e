package rowfile

import (
	"context"
	"encoding/binary"
	"errors"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
)

// sumsShare says how much of the memory that is left the checksums of a file may take: one part in
// sumsShare. If they take more, they stay on disk.
const sumsShare = 4

// rowSums holds or reads the checksums of a file of rows. In memory they take 4 bytes per unit:
// with rows of 512 to 2048 bytes that is 4 bytes per node. On disk they take no memory: the sectors
// with the checksums of units are read together with these, so a row that is read alone takes two
// reads instead of one, and rows read in sequence 1 % more.
type rowSums struct {
	arena *mem.Arena   // nil if on disk
	file  *layout.File // nil if in memory
}

const sectorBytes = blockdev.Align

// sumOffset returns where the checksum of a unit is in its file.
func sumOffset(unit int64) int64 {
	return codec.HeaderBytes + unit/SumsPerPage*layout.PageBytes + 4 + 4*(unit%SumsPerPage)
}

// sumSectors bounds the sectors that hold the checksums of this many consecutive bytes.
func (s *Shape) sumSectors(bytes int64) int64 {
	units := bytes/int64(s.SumBytes) + 1
	return (4*units+4*(units/SumsPerPage+1))/sectorBytes + 2
}

// sumsFit reports whether checksums go to memory of which room bytes are left.
func (s *Shape) sumsFit(room int64) bool { return 4*s.units() <= room/sumsShare }

// openSums loads the checksums, or opens their file. If they stay on disk their pages are not
// verified in advance: a wrong checksum does not match, and it is then found out which of the two
// is damaged.
func openSums(ctx context.Context, s *layout.Store, dev blockdev.Device, shape *Shape, onDisk bool,
	budget *mem.Budget) (sums rowSums, err error) {
	f, err := s.OpenFile(dev, layout.SumsPath(shape.Path))
	if err != nil {
		return sums, err
	}
	if err = checkHeader(ctx, s, f, layout.KindSums, shape); err == nil && onDisk {
		return rowSums{file: f}, nil
	}
	if err == nil {
		sums.arena, err = readSums(ctx, s, f, shape, budget)
	}
	return sums, errors.Join(err, f.Close())
}

func (s *rowSums) close() (err error) {
	if s.file != nil {
		err = s.file.Close()
	}
	if s.arena != nil {
		err = errors.Join(err, s.arena.Free())
	}
	*s = rowSums{}
	return err
}

// sumCursor finds the checksums of ascending units in the sectors that were read with them: sector
// i is the i-th from the end of buf.
type sumCursor struct {
	buf     []byte
	sectors []int64 // their offsets in the file
	at      int
}

// want returns the checksum of a unit. c is used only if checksums are on disk.
func (s *rowSums) want(unit int64, c *sumCursor) uint32 {
	if s.file == nil {
		return mem.View[uint32](s.arena.Bytes())[unit]
	}
	off := sumOffset(unit)
	for c.sectors[c.at] != off&^(sectorBytes-1) {
		c.at++
	}
	return binary.LittleEndian.Uint32(c.buf[len(c.buf)-(c.at+1)*sectorBytes+int(off%sectorBytes):])
}

// missing returns how many sectors hold checksums of the units from … to, beyond the last of
// sectors.
func (s *rowSums) missing(sectors []int64, from, to, unit int64) (n int64) {
	if s.file == nil {
		return 0
	}
	first, last := s.sectorsOf(from, to, unit)
	if len(sectors) > 0 {
		first = max(first, sectors[len(sectors)-1]+sectorBytes)
	}
	return max(0, (last-first)/sectorBytes+1)
}

// list appends the sectors that missing counts.
func (s *rowSums) list(sectors []int64, from, to, unit int64) []int64 {
	n := s.missing(sectors, from, to, unit)
	if n == 0 {
		return sectors
	}
	_, last := s.sectorsOf(from, to, unit)
	for ; n > 0; n-- {
		sectors = append(sectors, last-(n-1)*sectorBytes)
	}
	return sectors
}

// sectorsOf returns the offsets of the first and the last sector with checksums of the units from …
// to.
func (s *rowSums) sectorsOf(from, to, unit int64) (first, last int64) {
	const mask = sectorBytes - 1
	return sumOffset(from/unit) &^ mask, sumOffset(to/unit-1) &^ mask
}

// requests appends the reads of a cursor's sectors.
func (s *rowSums) requests(reqs []blockdev.Request, c *sumCursor) []blockdev.Request {
	for i, off := range c.sectors {
		end := len(c.buf) - i*sectorBytes
		reqs = append(reqs, blockdev.Request{File: s.file.Handle, Off: off,
			Buf: c.buf[end-sectorBytes : end : end]})
	}
	return reqs
}

// verify checks the unit that begins at off of the data area against its checksum.
func (r *Reader) verify(ctx context.Context, off int64, unit []byte, want uint32) error {
	got := UnitSum(r.seed, unit)
	if got == want {
		return nil
	}
	if r.sums.file != nil {
		page := sumOffset(off/int64(r.shape.SumBytes)) / layout.PageBytes
		if _, err := r.sums.file.ReadPage(ctx, layout.KindSums, r.uuid, page); err != nil {
			return err // the checksum is damaged
		}
	}
	return r.f.Damage(off/int64(r.shape.PageBytes)+1, layout.PageBytes+off,
		"checksum of %d bytes is %08x, they give %08x", len(unit), want, got)
}
