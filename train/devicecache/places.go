package devicecache

import (
	"errors"

	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// places say where the rows of a batch are.
type places struct {
	// from is the row of each node among those kept; behind these, if they are read in place, among
	// those that the host holds; and behind these, the value of locked or X that it begins with.
	from []uint32
	kept *kept // nil for none
	// missed are the nodes whose rows the device does not have, and to their numbers in from.
	missed []sample.NodeID
	to     []uint32
	// inPlace says that the device reads rows in the host's memory; whole that all are in locked,
	// or in X, in the order of nodes.
	inPlace, whole bool
	// slots are rows of missed in the host's memory; apart and read are the nodes of those that are
	// copied from there and read from disk, and apartTo and readTo their numbers in from. at is
	// where the latter begin.
	slots               []uint32
	apart, read         []sample.NodeID
	apartTo, readTo, at []uint32
	// locked has the rows that are sent or read in place, but for those that the host holds; nil
	// if X has them.
	locked []float32
	memory *mem.Arena // page-locked; nil until there is some
	held   mem.Account
}

// bytes is the memory of places but for rows.
func (p *places) bytes() int64 {
	return 4 * int64(cap(p.from)+cap(p.missed)+cap(p.to)+cap(p.slots)+cap(p.apart)+cap(p.read)+
		cap(p.apartTo)+cap(p.readTo)+cap(p.at))
}

// split finds which rows the device keeps.
func (p *places) split(k *kept, nodes []sample.NodeID) error {
	n := len(nodes)
	p.kept, p.whole, p.inPlace, p.locked = k, false, false, nil
	p.from, p.missed = mem.Resize(p.from, n), mem.Resize(p.missed, n)[:0]
	p.to = mem.Resize(p.to, n)[:0]
	for i, v := range nodes {
		if k != nil && k.set.Has(uint32(v)) {
			p.from[i] = k.set.Row(uint32(v))
			continue
		}
		p.missed, p.to = append(p.missed, v), append(p.to, uint32(i))
	}
	return p.held.AtLeast(p.bytes())
}

// keptRows is how many rows the device keeps.
func (p *places) keptRows() int {
	if p.kept == nil {
		return 0
	}
	return p.kept.set.Count()
}

// errTooWide says that places of values have no number.
var errTooWide = errors.New("the rows of a batch take more than 16 GiB: lower --batch or --fanout")

// inOrder has the rows that miss one after the other, behind so many values.
func (p *places) inOrder(first, dim int) error {
	if first += p.keptRows(); first+len(p.missed)*dim >= kernel.NoRow {
		return errTooWide
	}
	for j, i := range p.to {
		p.from[i] = uint32(first + j*dim)
	}
	p.whole = p.kept == nil
	return nil
}

// locate tells rows in the host's memory, of which slots has the numbers, from others. In place
// those have their numbers behind the rows kept.
func (p *places) locate(inPlace bool) {
	p.apart, p.apartTo, p.read, p.readTo = p.apart[:0], p.apartTo[:0], p.read[:0], p.readTo[:0]
	p.inPlace = inPlace
	for j, v := range p.missed {
		i, slot := p.to[j], p.slots[j]
		switch {
		case slot == rowcache.NoRow:
			p.read, p.readTo = append(p.read, v), append(p.readTo, i)
		case inPlace:
			p.from[i] = uint32(p.keptRows()) + slot
		default:
			p.apart, p.apartTo = append(p.apart, v), append(p.apartTo, i)
		}
	}
	p.at = mem.Resize(p.at, len(p.read))
}

// compact moves the rows that the device does not have to the front.
func (p *places) compact(x []float32, dim int) {
	for j, i := range p.to {
		if to := int(i); to != j {
			copy(x[j*dim:(j+1)*dim], x[to*dim:(to+1)*dim])
		}
	}
}
