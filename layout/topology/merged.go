package topology

import (
	"context"
	"encoding/binary"
	"errors"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

// mergedMeta returns what the arrays of a resident reader have room for: the nodes of the store,
// and the entries of the base and of all levels that add edges.
func mergedMeta(s *layout.Store) *kv.Meta {
	m := *s.Base().Meta()
	m.Nodes = s.Meta().Nodes
	for _, l := range s.Lists() {
		if !l.Of.Gone {
			m.Edges += l.Meta().Edges
		}
	}
	return &m
}

// openMerged opens the lists of a store with levels in arrays of a resident reader, in which the
// lists are whole: it reads as fast as from a store that was never appended to. The lists of levels
// are in memory beside while it opens, and stay only if edges have attributes: Lists reads those of
// the base from disk.
func openMerged[P offset](ctx context.Context, s *layout.Store, dev blockdev.Device,
	dir layout.Direction, opt Options) (t Reader, err error) {
	a, err := loadAdded(ctx, s, dev, dir, opt.Budget)
	if err != nil {
		return nil, err
	}
	base, err := loadResident[P](ctx, s.Base(), dev, dir, opt, mergedMeta(s))
	if err != nil {
		return nil, errors.Join(err, a.free())
	}
	r := base.(*resident[P])
	lists := base
	if r.attrs != nil {
		lists = r.attrs
	}
	if err = a.place(ctx, lists); err == nil {
		err = r.merge(ctx, a)
	}
	switch {
	case err != nil:
		return nil, errors.Join(err, r.Close(), a.free())
	case r.attrs == nil:
		err = a.free()
	default:
		r.attrs = &live{Reader: r.attrs, added: a, nodes: r.Nodes(), budget: opt.Budget}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// merge merges the entries of a into the arrays. The lists of the base stand behind room for all of
// these entries, so that a list that moves to the front never covers one that was not moved yet.
func (r *resident[P]) merge(ctx context.Context, a *added) error {
	m := &arrayMerge[P]{r: r, a: a, from: r.ptr[0]}
	if r.nbrs == nil {
		m.packed = &packedMover{ids: &r.packed}
	}
	next := 0 // the first node whose list was not moved
	err := a.has.Each(r.Nodes(), func(v layout.NodeID) error {
		m.run(next, int(v))
		next = int(v) + 1
		begin, end := m.from, r.ptr[next]
		r.ptr[v] = m.to
		rank, _ := a.has.Rank(v)
		a.union(rank, uint32(end-begin), func(from, to uint32) {
			m.base(begin+P(from), begin+P(to))
		}, m.own)
		m.from = end
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	m.run(next, len(r.ptr)-1)
	r.ptr[len(r.ptr)-1] = m.to
	r.edges = uint64(m.to)
	if m.packed != nil {
		m.packed.finish()
	}
	return nil
}

// arrayMerge moves lists to the front of the arrays: from is the next entry of the base, and to
// where the next entry goes.
type arrayMerge[P offset] struct {
	r        *resident[P]
	a        *added
	from, to P
	packed   *packedMover // nil if ids are not packed
}

// run moves the lists of nodes first … end-1, to which no level added.
func (m *arrayMerge[P]) run(first, end int) {
	begin, ptr := m.from, m.r.ptr
	stop, by := ptr[end], m.from-m.to
	for i := range ptr[first:end] {
		ptr[first+i] -= by
	}
	m.base(begin, stop)
	m.from = stop
}

// base moves entries from … end-1 of the arrays.
func (m *arrayMerge[P]) base(from, end P) {
	r := m.r
	if m.packed != nil {
		for i := from; i < end; i++ {
			m.packed.put(r.packed.at(uint64(i)))
		}
	} else {
		copy(r.nbrs[m.to:], r.nbrs[from:end])
	}
	if r.weight != nil {
		copy(r.weight[m.to:], r.weight[from:end])
	}
	if r.types != nil {
		copy(r.types[m.to:], r.types[from:end])
	}
	if r.times != nil {
		copy(r.times[m.to:], r.times[from:end])
	}
	m.to += end - from
}

// own takes entries from … end-1 of the levels.
func (m *arrayMerge[P]) own(from, end uint64) {
	r, a := m.r, m.a
	if m.packed != nil {
		for _, v := range a.nbrs[from:end] {
			m.packed.put(v)
		}
	} else {
		copy(r.nbrs[m.to:], a.nbrs[from:end])
	}
	if r.weight != nil {
		copy(r.weight[m.to:], a.weights[from:end])
	}
	if r.types != nil {
		copy(r.types[m.to:], a.types[from:end])
	}
	if r.times != nil {
		copy(r.times[m.to:], a.times[from:end])
	}
	m.to += P(end - from)
}

// packedMover writes ids from the first on over others, of which those that it covers were read.
type packedMover struct {
	ids        *packedIDs
	at         uint64 // byte where word goes
	word, bits uint64 // bits that were not written, and their number
}

func (p *packedMover) put(v layout.NodeID) {
	width := p.ids.width
	p.word |= uint64(v) << p.bits
	if p.bits += width; p.bits < 64 {
		return
	}
	binary.LittleEndian.PutUint64(p.ids.b[p.at:], p.word)
	p.at, p.bits = p.at+8, p.bits-64
	p.word = uint64(v) >> (width - p.bits)
}

// finish writes the remaining bits. Eight bytes follow the last id: see packedIDs.
func (p *packedMover) finish() {
	b := mem.BytesOf([]uint64{p.word})
	copy(p.ids.b[p.at:], b[:(p.bits+7)/8])
}
