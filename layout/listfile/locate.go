package listfile

// locator finds where the lists of some nodes begin at a time, in blocks that are in memory one
// after the other.
type locator struct {
	*directory
	Blocks     []byte
	BlockShift int    // a block has 2^BlockShift bits
	Index      []byte // locatorIndexBytes of each block
}

const (
	// nowhere is the place of an empty list: that of the header of the first block.
	nowhere = 0
	// locatorIndexBytes is what the index has of a block. With those of a block the first word of
	// the next is asked for.
	locatorIndexBytes = 16
)

// Locate writes where the lists of nodes[from:from+len(at)] begin, in bits of Blocks, and their
// blocks, and asks for the memory there, in the index, and in the directory for nodes after them.
// Of lists whose block must be looked for the block is one before it, and so is the place; it
// returns how many these are, and writes their numbers to seek, which has room for all.
func (l *locator) Locate(nodes []uint32, from int, at []uint64, blocks, seek []uint32) int {
	if len(at) == 0 {
		return 0
	}
	return l.locate(nodes[from:], at, blocks[:len(at)], seek[:len(at)])
}

// locatePlain is the specification of the kernel.
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
