package program

import (
	"gdb/compute/backend"
	"gdb/internal/mem"
)

// paddedLists are lists behind empty ones, whose entries are behind others that no list has. All
// rows of a padded batch are the last of their matrices, as those of a later layer are the last of
// an earlier one's: what stands before them is padding, and rows that other layers have.
type paddedLists struct{ off, idx, at []uint32 }

// pad returns l with empty lists and entries added up to the given numbers. Row numbers grow by
// shift; the places that dropout draws by stay.
func (p *paddedLists) pad(l backend.Lists, lists, entries, shift int) backend.Lists {
	if len(l.Off) == 0 {
		return l
	}
	padLists, padEntries := lists-(len(l.Off)-1), entries-len(l.Idx)
	p.off = mem.Resized(p.off, lists+1)
	for i := range p.off[:padLists] {
		p.off[i] = uint32(padEntries)
	}
	for i, o := range l.Off {
		p.off[padLists+i] = o - l.Off[0] + uint32(padEntries)
	}
	p.idx = mem.Resized(p.idx, entries)
	clear(p.idx[:padEntries])
	for i, r := range l.Idx {
		p.idx[padEntries+i] = r + uint32(shift)
	}
	l.Off, l.Idx = p.off, p.idx
	if l.At != nil {
		p.at = mem.Resized(p.at, entries)
		clear(p.at[:padEntries])
		copy(p.at[padEntries:], l.At)
		l.At = p.at
	}
	return l
}

// words is the memory, in words of 4 bytes.
func (p *paddedLists) words() int { return cap(p.off) + cap(p.idx) + cap(p.at) }

// PaddedWords is how many words of 4 bytes a machine holds of the lists of a batch of such sizes
// when it pads them.
func (p *Program) PaddedWords(s *Sizes) (words int) {
	if !p.Pads() {
		return 0
	}
	for _, l := range p.lists {
		words += s.Nodes[l.Hop+1] + 1 + 2*s.Of(Entries(l.List))
	}
	return words
}
