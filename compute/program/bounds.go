package program

import (
	"gdb/compute/backend"
	"gdb/internal/mem"
)

const (
	// boundsBatches is how many batches the first bounds are made of.
	boundsBatches = 8
	// boundsSlack, in sixteenths, is how much larger bounds are than the largest batch so far, and
	// boundsRound what they are multiples of.
	boundsSlack, boundsRound = 1, 16
	// boundsMost, in quarters, bounds the rows and entries of a padded batch by those of the batch.
	boundsMost = 5
)

// Bounds are sizes that batches are padded to, so that a device does the same work for each: after
// Joestar's kernel invocation grouping (section 5.3.2), but with bounds that grow where a batch is
// larger.
// The zero value is ready to use.
type Bounds struct {
	seen    int
	largest Sizes
	padded  Sizes
}

// Fit returns the sizes that a batch of such sizes is padded to, valid until the next call: nil if
// it is to stay as it is. That are the first batches, those that are larger than the bounds, which
// grow then, those that are much smaller, and those of other numbers of seeds, such as the last of
// an epoch.
func (b *Bounds) Fit(s *Sizes) *Sizes {
	last := len(s.Nodes) - 1
	if len(b.largest.Nodes) != len(s.Nodes) || s.Nodes[last] > b.largest.Nodes[last] {
		*b = Bounds{largest: Sizes{Nodes: make([]int, len(s.Nodes)),
			Entries: make([]int, len(s.Entries))}}
		b.largest.Nodes[last] = s.Nodes[last]
	}
	if s.Nodes[last] != b.largest.Nodes[last] {
		return nil
	}
	b.largest.raise(s)
	b.seen++
	switch {
	case b.seen < boundsBatches:
		return nil
	case b.seen == boundsBatches || !b.padded.holds(s):
		b.grow()
		return nil
	}
	if 4*b.padded.all() > boundsMost*s.all() {
		return nil
	}
	return &b.padded
}

// grow makes bounds of the largest sizes so far. The numbers of seeds are equal.
func (b *Bounds) grow() {
	bound := func(n int) int {
		n += (n*boundsSlack + 15) / 16
		return (n + boundsRound - 1) / boundsRound * boundsRound
	}
	b.padded = Sizes{}
	for _, n := range b.largest.Nodes {
		b.padded.Nodes = append(b.padded.Nodes, bound(n))
	}
	last := len(b.largest.Nodes) - 1
	b.padded.Nodes[last] = b.largest.Nodes[last]
	for _, n := range b.largest.Entries {
		b.padded.Entries = append(b.padded.Entries, bound(n))
	}
}

// raise raises sizes to those of another batch.
func (s *Sizes) raise(o *Sizes) {
	for i, n := range o.Nodes {
		s.Nodes[i] = max(s.Nodes[i], n)
	}
	for i, n := range o.Entries {
		s.Entries[i] = max(s.Entries[i], n)
	}
}

// holds reports whether no size of another batch is larger.
func (s *Sizes) holds(o *Sizes) bool {
	for i, n := range o.Nodes {
		if n > s.Nodes[i] {
			return false
		}
	}
	for i, n := range o.Entries {
		if n > s.Entries[i] {
			return false
		}
	}
	return true
}

// all returns the rows and the entries that the first layer reads.
func (s *Sizes) all() int {
	n := s.Nodes[0]
	if len(s.Entries) > 0 {
		n += s.Entries[0]
	}
	return n
}

// Pads reports whether a padded batch gives what the batch gives: rows before the first have no
// gradient, and nothing sums up over entries or counts rows.
func (p *Program) Pads() bool {
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind.counts {
			return false
		}
		k := p.of(o.in[0]).rows.kind
		if o.kind.overRows && (k == entryRows || k == loopRows) {
			return false
		}
	}
	return true
}

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

// words returns the memory, in words of 4 bytes.
func (p *paddedLists) words() int { return cap(p.off) + cap(p.idx) + cap(p.at) }

// PaddedWords returns how many words of 4 bytes a machine holds of the lists of a batch of such
// sizes when it pads them.
func (p *Program) PaddedWords(s *Sizes) (words int) {
	if !p.Pads() {
		return 0
	}
	for _, l := range p.lists {
		words += s.Nodes[l.Hop+1] + 1 + 2*s.Of(Entries(l.List))
	}
	return words
}
