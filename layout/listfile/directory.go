package listfile

import "encoding/binary"

//go:generate go run -tags avogen ./gen

// directory has of each node in which block its list begins, and where in the block, in units of
// bits. Nodes are in groups, of which each is a line of a cache if blocks have 4 KiB:
//
//	block   32 bits: the first block in which one of these lists begins
//	places  of each node its block, less that, in 2 bits, above the unit in the bits that it needs
//
// If the block is outsideGroup after the first or further on, it is looked for by who needs it. A
// place of ones is that of an empty list. Kernels know where the fields are.
type directory struct {
	b         []byte
	unitBits  int
	groupSize uint64 // bytes
	next      uint64 // the first node without a place so far
	based     uint64 // the group with a block so far, counted from 1
}

const (
	groupNodes   = 32
	groupHead    = 4
	blockBits    = 2
	outsideGroup = 1<<blockBits - 1
)

// groupSize is the size of a group, in bytes.
func groupSize(unitBits int) uint64 {
	return groupHead + uint64(groupNodes*(unitBits+blockBits)+31)/32*4
}

// directoryBytes is what the directory of so many nodes takes; a group more has what a load reads
// after the last.
func directoryBytes(unitBits int, nodes uint64) int64 {
	return int64((nodes/groupNodes + 2) * groupSize(unitBits))
}

// newDirectory returns a directory in bytes, all 0, as many as Bytes says. A unit has at most 29
// bits.
func newDirectory(unitBits int, b []byte) directory {
	return directory{b: b, unitBits: unitBits, groupSize: groupSize(unitBits)}
}

// directoryPlace is what a directory has of a node.
type directoryPlace struct {
	first uint32 // block of the group
	place uint32
	bits  uint8 // of the unit
}

func (p directoryPlace) after() uint32 { return p.place >> p.bits }

// Known says that the list is not empty, and that its block is known.
func (p directoryPlace) Known() bool { return p.after() != outsideGroup }

// Empty says that the list is empty, if its block is not known.
func (p directoryPlace) Empty() bool { return p.Unit() == 1<<p.bits-1 }

// Block is that of the list if it is known, else one before it.
func (p directoryPlace) Block() int { return int(p.first) + int(p.after()) }

// Unit is where the list begins in its block.
func (p directoryPlace) Unit() uint64 { return uint64(p.place & (1<<p.bits - 1)) }

// group is where that of a node begins, in bytes, and the number of the node in it.
func (d *directory) group(v uint64) (at, number uint64) {
	g := v / groupNodes
	return g * d.groupSize, v - g*groupNodes
}

// At is what is known of a node. It looks at nothing beyond the group.
func (d *directory) At(v uint64) directoryPlace {
	at, n := d.group(v)
	b := d.b[at:]
	n = 8*groupHead + n*uint64(d.unitBits+blockBits)
	from := min(n>>3, d.groupSize-8)
	word := binary.LittleEndian.Uint64(b[from:]) >> (n - 8*from)
	return directoryPlace{first: binary.LittleEndian.Uint32(b), bits: uint8(d.unitBits),
		place: uint32(word & (1<<(d.unitBits+blockBits) - 1))}
}

// set notes the place of a node that has none.
func (d *directory) set(v uint64, place uint64) {
	at, n := d.group(v)
	n *= uint64(d.unitBits + blockBits)
	b := d.b[at+groupHead+n>>3:]
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)|place<<(n&7))
}

// Add notes where the list of a node begins that is not empty; nodes come in their order. Those
// between have empty ones.
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

// Finish notes that the lists of all nodes below one that have no place are empty.
func (d *directory) Finish(nodes uint64) {
	for ; d.next < nodes; d.next++ {
		d.set(d.next, 1<<(d.unitBits+blockBits)-1)
	}
}
