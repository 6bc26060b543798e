package devicecache

import (
	"errors"

	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// places says where the rows of a batch are.
type places struct {
	// from has a number for each node, in what was prepared of the batch. The numbers count first
	// the rows that the device keeps; then, if rows are read in place, those that the host keeps;
	// then the values of locked, or of X, so that such a number says where the row begins.
	from []uint32
	kept *kept // nil if the device keeps no rows
	// missed holds the nodes whose rows the device does not keep, and to their indexes in from.
	missed []sample.NodeID
	to     []uint32
	// inPlace says that the device reads rows in the host's memory. whole says that all rows are in
	// locked, or in X, in the order of the nodes.
	inPlace, whole bool
	// slots holds the row in the host's memory of each missed node. apart are the missed nodes
	// whose rows are copied from there, and read those whose rows are read from disk; apartTo and
	// readTo hold their indexes in from. at says where each row that is read begins.
	slots               []uint32
	apart, read         []sample.NodeID
	apartTo, readTo, at []uint32
	// locked holds the rows that are sent or read in place, except rows that the host keeps; nil if
	// they are in X.
	locked []float32
	memory *mem.Arena // page-locked; nil until needed
	held   mem.Account
}

// bytes returns the memory of the lists, without rows.
func (p *places) bytes() int64 {
	return 4 * int64(cap(p.missed)+cap(p.to)+cap(p.slots)+cap(p.apart)+cap(p.read)+
		cap(p.apartTo)+cap(p.readTo)+cap(p.at))
}

// split finds which of the nodes' rows the device keeps. Numbers are written to the end of from,
// behind those of rows of zeros.
func (p *places) split(k *kept, from []uint32, nodes []sample.NodeID) error {
	n := len(nodes)
	p.kept, p.whole, p.inPlace, p.locked = k, false, false, nil
	zeros := len(from) - n
	for i := range zeros {
		from[i] = kernel.NoRow
	}
	p.from, p.missed = from[zeros:], mem.Resize(p.missed, n)[:0]
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

// keptRows returns how many rows the device keeps.
func (p *places) keptRows() int {
	if p.kept == nil {
		return 0
	}
	return p.kept.set.Count()
}

// errTooWide says that a batch has more values than from can number.
var errTooWide = errors.New("the rows of a batch take more than 16 GiB: lower --batch or --fanout")

// inOrder numbers the missed rows as lying one after the other, behind first values.
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

// locate separates missed rows that are in the host's memory, as slots says, from those that are
// read. If rows are read in place, those of the host are numbered after the rows kept.
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

// compact moves the rows that the device does not keep to the front of x.
func (p *places) compact(x []float32, dim int) {
	for j, i := range p.to {
		if to := int(i); to != j {
			copy(x[j*dim:(j+1)*dim], x[to*dim:(to+1)*dim])
		}
	}
}
