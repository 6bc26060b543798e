package listfile

import "encoding/binary"

//go:generate go run -tags avogen ./gen

// directory holds for each node in which block its list begins, and where in the block, in units.
// Nodes are in groups; with blocks of 4 KiB a group is a line of a cache:
//
//	block   32 bits: the first block in which one of these lists begins
//	places  of each node its block, less that, in 2 bits, above the unit in the bits that it needs
//
// A block that is outsideGroup or more after the group's first is searched for by the reader. A
// place whose bits are all ones stands for an empty list. Kernels in assembly know this layout.
type directory struct {
	b         []byte
	unitBits  int
	groupSize uint64 // bytes
	next      uint64 // the first node that has no place yet
	based     uint64 // the last group that got a block, counted from 1
}

const (
	groupNodes   = 32
	groupHead    = 4
	blockBits    = 2
	outsideGroup = 1<<blockBits - 1
)

// groupSize returns the size of a group, in bytes.
func groupSize(unitBits int) uint64 {
	return groupHead + uint64(groupNodes*(unitBits+blockBits)+31)/32*4
}

// directoryBytes returns the size of a directory of this number of nodes, with a group more for
// loads that read past the last one.
func directoryBytes(unitBits int, nodes uint64) int64 {
	return int64((nodes/groupNodes + 2) * groupSize(unitBits))
}

// newDirectory returns an empty directory in b, which has directoryBytes bytes, all 0. unitBits is
// at most 29.
func newDirectory(unitBits int, b []byte) directory {
	return directory{b: b, unitBits: unitBits, groupSize: groupSize(unitBits)}
}

// directoryPlace is what a directory holds for a node.
type directoryPlace struct {
	first uint32 // first block of the group
	place uint32
	bits  uint8 // number of bits of the unit
}

func (p directoryPlace) after() uint32 { return p.place >> p.bits }

// Known reports whether the list is not empty and its block is known.
func (p directoryPlace) Known() bool { return p.after() != outsideGroup }

// Empty reports whether the list is empty. It is valid only if Known is false.
func (p directoryPlace) Empty() bool { return p.Unit() == 1<<p.bits-1 }

// Block returns the block where the list begins if it is known, else a block before it.
func (p directoryPlace) Block() int { return int(p.first) + int(p.after()) }

// Unit returns where in its block the list begins, in units.
func (p directoryPlace) Unit() uint64 { return uint64(p.place & (1<<p.bits - 1)) }

// group returns where the group of a node begins, in bytes, and the node's number in the group.
func (d *directory) group(v uint64) (at, number uint64) {
	g := v / groupNodes
	return g * d.groupSize, v - g*groupNodes
}

// At returns the place of a node. It reads nothing beyond the node's group.
func (d *directory) At(v uint64) directoryPlace {
	at, n := d.group(v)
	b := d.b[at:]
	n = 8*groupHead + n*uint64(d.unitBits+blockBits)
	from := min(n>>3, d.groupSize-8)
	word := binary.LittleEndian.Uint64(b[from:]) >> (n - 8*from)
	return directoryPlace{first: binary.LittleEndian.Uint32(b), bits: uint8(d.unitBits),
		place: uint32(word & (1<<(d.unitBits+blockBits) - 1))}
}

// set writes the place of a node that has none yet.
func (d *directory) set(v uint64, place uint64) {
	at, n := d.group(v)
	n *= uint64(d.unitBits + blockBits)
	b := d.b[at+groupHead+n>>3:]
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)|place<<(n&7))
}

// Add notes where the list of node v begins, which is not empty. Nodes come in ascending order;
// those in between have empty lists.
func (d *directory) Add(v uint64, block int, unit uint64) {
	d.Finish(v)
	at, _ := d.group(v)
	b := d.b[at:]
	if g := v/groupNodes + 1; g != d.based {
		binary.LittleEndian.PutUint32(b, uint32(block))
		d.based = g
	}
	after := min(outsideGroup, uint64(block)-uint64(binary.LittleEndian.Uint32(b)))
	d.set(v, after<<d.unitBits|unit)
	d.next = v + 1
}

// Finish notes that all nodes below this number that have no place have empty lists.
func (d *directory) Finish(nodes uint64) {
	for ; d.next < nodes; d.next++ {
		d.set(d.next, 1<<(d.unitBits+blockBits)-1)
	}
}

// locator finds where the lists of several nodes begin, in blocks that are in memory one after the
// other.
type locator struct {
	*directory
	Blocks     []byte
	BlockShift int    // a block has 2^BlockShift bits
	Index      []byte // locatorIndexBytes for each block
}

const (
	// nowhere is the place of an empty list: the header of the first block.
	nowhere = 0
	// locatorIndexBytes is the size of a block's part of the index. A block's part and the first
	// word of the next are prefetched together.
	locatorIndexBytes = 16
)

// Locate writes where the lists of nodes[from:from+len(at)] begin to at, in bits of Blocks, and
// their blocks to blocks. It prefetches the memory there, in the index, and in the directory for
// later nodes. If a list's block must be searched for, it writes a block before it, with the place
// counted from there; it returns how many these are, and writes their indexes to seek, which has
// room for all.
func (l *locator) Locate(nodes []uint32, from int, at []uint64, blocks, seek []uint32) int {
	if len(at) == 0 {
		return 0
	}
	return l.locate(nodes[from:], at, blocks[:len(at)], seek[:len(at)])
}

// locatePlain specifies what the kernel in assembly does.
func (l *locator) locatePlain(nodes []uint32, at []uint64, blocks, seek []uint32) (n int) {
	for i, v := range nodes[:len(at)] {
		p := l.At(uint64(v))
		blocks[i] = uint32(p.Block())
		at[i] = uint64(p.Block())<<l.BlockShift + p.Unit()*unitBits
		switch {
		case p.Known():
		case p.Empty():
			at[i], blocks[i] = nowhere, 0
		default:
			seek[n] = uint32(i)
			n++
		}
	}
	return n
}
