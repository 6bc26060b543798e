package listfile

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
