package listfile

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Part is the part of a node's list that is in one block.
type Part struct {
	Start uint32 // position in the list of its first entry
	Count uint32 // number of its entries
	Entry uint32 // index in the block of its first entry, if edges have attributes
	ids   []uint32
	list  listcode.List
	bytes []byte
}

// Part returns the list in a slot, which must be below k.Slots. It checks the size of the list, and
// Decode or Gather check its entries.
func (s *Shape) Part(k *Block, slot uint32) (p Part, err error) {
	if slot == 0 {
		p.Start = k.Start
	}
	if k.raw != nil {
		from, to, err := k.raw.list(k, slot)
		if err == nil {
			p.Entry, p.Count, p.ids = from, to-from, k.raw.ids(k)[from:to]
		}
		return p, err
	}
	from, to, ok := span(k, &k.ends, slot)
	if !ok {
		return p, fmt.Errorf("%w: list of node %d has no end", ErrBlock,
			uint64(k.First)+uint64(slot))
	}
	if p, err = k.coded(slot, from, to); err != nil || p.Count == 0 || k.counts.Count == 0 {
		return p, err
	}
	p.Entry, to, ok = span(k, &k.counts, slot)
	if !ok || to-p.Entry != p.Count || to > k.Entries {
		return p, fmt.Errorf("%w: list of node %d is entries %d to %d, and has %d", ErrBlock,
			uint64(k.First)+uint64(slot), p.Entry, to, p.Count)
	}
	return p, nil
}

// coded parses the coded list of a slot, which takes units from … to-1 of the lists.
func (k *Block) coded(slot, from, to uint32) (p Part, err error) {
	if slot == 0 {
		p.Start = k.Start
	}
	if from > to || unitBits*uint64(to) > k.bound-k.listsAt {
		return p, fmt.Errorf("%w: list of node %d is units %d to %d", ErrBlock,
			uint64(k.First)+uint64(slot), from, to)
	}
	if from == to {
		return p, nil
	}
	p.bytes = k.Bytes
	p.list, err = k.coding.Parse(k.Bytes, k.listsAt+unitBits*uint64(from),
		k.listsAt+unitBits*uint64(to))
	if err != nil {
		return p, fmt.Errorf("%w: list of node %d: %w", ErrBlock, uint64(k.First)+uint64(slot), err)
	}
	p.Count = p.list.Count
	return p, nil
}

// span returns where a slot begins and ends, according to a list of ends.
func span(k *Block, ends *listcode.List, slot uint32) (from, to uint32, ok bool) {
	if slot > 0 {
		if from, ok = ends.At(k.Bytes, slot-1); !ok {
			return 0, 0, false
		}
	}
	to, ok = ends.At(k.Bytes, slot)
	return from, to, ok
}

// Gather writes the entries at positions of the list to out, and checks that they are nodes. A
// position that the part does not have is an error, since other blocks said that it has it.
func (p *Part) Gather(s *Shape, pos []uint32, out []layout.NodeID) error {
	out = out[:len(pos)]
	for i, x := range pos {
		id, ok := p.At(x)
		if !ok {
			return p.lacks(x)
		}
		if uint64(id) >= s.nodes {
			return fmt.Errorf("%w has neighbor %d of %d nodes", ErrBlock, id, s.nodes)
		}
		out[i] = id
	}
	return nil
}

// At returns the entry at a position of the list, and false if the part does not have it.
func (p *Part) At(pos uint32) (id layout.NodeID, ok bool) {
	k := pos - p.Start
	if k >= p.Count {
		return 0, false
	}
	if p.ids != nil {
		return layout.NodeID(p.ids[k]), true
	}
	v, ok := p.list.At(p.bytes, k)
	return layout.NodeID(v), ok
}

// EntryAt returns the index in the block of the entry at a position.
func (p *Part) EntryAt(pos uint32) (uint32, error) {
	if pos-p.Start >= p.Count {
		return 0, p.lacks(pos)
	}
	return p.Entry + pos - p.Start, nil
}

func (p *Part) lacks(pos uint32) error {
	return fmt.Errorf("%w has %d entries from position %d of a list, not that at %d", ErrBlock,
		p.Count, p.Start, pos)
}

// Decode writes the ids of the part to out, which has room for Count, and checks them.
func (p *Part) Decode(s *Shape, out []layout.NodeID) error {
	ids := mem.View[uint32](mem.BytesOf(out[:p.Count]))
	if p.Count == 0 {
		return nil
	}
	if p.ids != nil {
		copy(ids, p.ids)
		return nil // checked when the block was read
	}
	if err := p.list.Decode(p.bytes, ids); err != nil {
		return fmt.Errorf("%w: %w", ErrBlock, err)
	}
	if last := ids[len(ids)-1]; uint64(last) >= s.nodes {
		return fmt.Errorf("%w has neighbor %d of %d nodes", ErrBlock, last, s.nodes)
	}
	return nil
}

// value returns the value of an entry in a column of the block.
func (k *Block) value(column int, entry uint32) uint64 {
	if k.raw != nil {
		return k.raw.value(k, column, entry)
	}
	return k.columns[column].At(k.Bytes, entry)
}

// Weight returns the weight of an entry of a block.
func (s *Shape) Weight(k *Block, entry uint32) float32 {
	return math.Float32frombits(uint32(k.value(weightColumn, entry)))
}

// Type returns the number of the type of an entry of a block.
func (s *Shape) Type(k *Block, entry uint32) uint32 { return uint32(k.value(typeColumn, entry)) }

// time returns the time of an entry of a block. Times are stored as unsigned numbers of the same
// order.
func (k *Block) time(entry uint32) int64 { return int64(k.value(timeColumn, entry) ^ 1<<63) }

// CopyAttributes copies types, weights and times of entries from … to-1 of a block to l, from index
// at on. l must have room for them.
func (s *Shape) CopyAttributes(k *Block, from, to int, l *Lists, at uint64) {
	end := at + uint64(to-from)
	if s.Types {
		for i := range l.Types[at:end] {
			l.Types[at+uint64(i)] = uint16(s.Type(k, uint32(from+i)))
		}
	}
	if s.Weights {
		s.CopyWeights(k, from, l.Weights[at:end])
	}
	if s.Times {
		s.CopyTimes(k, from, l.Times[at:end])
	}
}

// CopyWeights fills out with weights of a block, from entry from on.
func (s *Shape) CopyWeights(k *Block, from int, out []float32) {
	for i := range out {
		out[i] = s.Weight(k, uint32(from+i))
	}
}

// CopyTimes fills out with times of a block, from entry from on.
func (s *Shape) CopyTimes(k *Block, from int, out []int64) {
	for i := range out {
		out[i] = k.time(uint32(from + i))
	}
}

// SizeAttributes gives l room for n types, weights and times, as far as the file has them.
func (s *Shape) SizeAttributes(l *Lists, n int) {
	if s.Types {
		l.Types = mem.Resize(l.Types, n)
	}
	if s.Weights {
		l.Weights = mem.Resize(l.Weights, n)
	}
	if s.Times {
		l.Times = mem.Resize(l.Times, n)
	}
}

// Region is a named part of a coded block, in bytes.
type Region struct {
	Name     string
	From, To int
}

// The names of regions; regions of columns are called types, weights and times.
const (
	RegionEnds   = "ends"
	RegionCounts = "counts"
	RegionLists  = "lists"
)

// Regions returns the parts of a coded block after its header, in order.
func (k *Block) Regions(s *Shape) (all []Region) {
	at := blockHeaderBytes
	add := func(name string, end uint64) {
		to := int(end+7) / 8
		all = append(all, Region{name, at, to})
		at = to
	}
	add(RegionEnds, k.ends.End())
	if k.counts.Count > 0 {
		add(RegionCounts, k.counts.End())
	}
	end, _ := k.ends.At(k.Bytes, k.Slots-1) // checked by ParseBlock
	add(RegionLists, k.listsAt+unitBits*uint64(end))
	for i, c := range s.columns() {
		if c.has {
			add(c.name, k.columns[i].End)
		}
	}
	return all
}

// Bits returns where the list of a slot begins and ends in the bits of the lists, 0 and 0 if the
// block has no such slot.
func (k *Block) Bits(slot uint32) (from, to uint32) {
	from, to, _ = span(k, &k.ends, slot)
	return unitBits * from, unitBits * to
}
