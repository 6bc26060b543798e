package sample

import (
	"context"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
)

// frontier is the lists of the nodes of a hop. A node of a typed store has one for each relation
// that ends at its type, next to each other; else its list is the only one.
type frontier struct {
	numbers *layout.NodeLists // nil if each node has one list
	lists   []NodeID
	ends    []uint32 // where the lists of each node end in lists; of a typed store
	off     []uint32 // where what is drawn of each list begins, and the last ends
	times   []int64  // as of which each list is read, with a Seeding
}

// expand finds the lists of nodes.
func (f *frontier) expand(held *mem.Account, nodes []NodeID) (err error) {
	if f.numbers == nil {
		f.lists = nodes
		return nil
	}
	if err := reserve(held, &f.lists, len(nodes)*f.numbers.Most()); err != nil {
		return err
	}
	if err := reserve(held, &f.ends, len(nodes)); err != nil {
		return err
	}
	f.lists, f.ends, err = f.numbers.Expand(nodes, f.lists[:0], f.ends[:0])
	return err
}

// room makes room for off: of a store that is not typed, behind those of the nodes before node a.
func (f *frontier) room(s *Sampler, a int) error {
	if f.numbers == nil {
		err := resize(&s.held, &s.off, a+len(f.lists)+1)
		f.off = s.off[a:]
		return err
	}
	if err := resize(&s.held, &f.off, len(f.lists)+1); err != nil {
		return err
	}
	f.off[0] = uint32(len(s.nbrs))
	return nil
}

// offsets writes to off where the neighbors by each list but the first start, given where those of
// the first do, and where those of the last end, which it returns: the number of edges so far.
func (s *Sampler) offsets(ctx context.Context, off []uint32, h int) (int, error) {
	sum, off := uint64(off[0]), off[1:]
	all, byRelation := s.cfg.fanoutOf(h)
	if byRelation != nil {
		return s.offsetsByRelation(sum, off, byRelation)
	}
	most := mostOf(all)
	for i, d := range s.deg {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		sum += uint64(min(d, most))
		off[i] = uint32(sum)
	}
	return edgesOf(sum)
}

// offsetsByRelation does the work of offsets where each relation has a fanout.
func (s *Sampler) offsetsByRelation(sum uint64, off []uint32, fanouts []int) (int, error) {
	s.front.numbers.Relations(s.front.lists, func(i int, relation uint16) {
		sum += uint64(min(s.deg[i], mostOf(fanouts[relation])))
		off[i] = uint32(sum)
	})
	return edgesOf(sum)
}

// mostOf returns the most neighbors that a fanout takes.
func mostOf(fanout int) uint32 {
	if fanout == All {
		return math.MaxUint32
	}
	return uint32(fanout)
}

// edgesOf returns a number of edges that a batch can have.
func edgesOf(sum uint64) (int, error) {
	if sum >= math.MaxUint32 {
		return 0, fmt.Errorf("the batch has %d edges, the most is %d: take a smaller fanout or "+
			"batch", sum, uint32(math.MaxUint32)-1)
	}
	return int(sum), nil
}

// join sets where the neighbors of the nodes from a on begin, given where those of their lists do.
func (s *Sampler) join(a int) error {
	f := &s.front
	if f.numbers == nil {
		return nil
	}
	if err := resize(&s.held, &s.off, a+len(f.ends)+1); err != nil {
		return err
	}
	for i, end := range f.ends {
		s.off[a+1+i] = f.off[end]
	}
	return nil
}

// byNode makes of what was drawn from the lists of nodes what was drawn for each node.
func (f *frontier) byNode(held *mem.Account, nodes []NodeID, x Extras, d *Drawn) error {
	if f.numbers == nil {
		return nil
	}
	f.lists = nil // they may be the caller's
	if err := f.expand(held, nodes); err != nil {
		return err
	}
	if x.Degrees {
		degrees := make([]uint32, len(nodes))
		fold(f, d.Degrees, degrees)
		d.Degrees = degrees
	}
	if x.WeightSums {
		sums := make([]float32, len(nodes))
		fold(f, d.Sums, sums)
		d.Sums = sums
	}
	if len(d.Off) > 0 {
		off := make([]uint32, len(nodes)+1)
		for i, end := range f.ends {
			off[i+1] = d.Off[end]
		}
		d.Off = off
	}
	return nil
}

// types writes the relation of each entry that was drawn, the one that its list is of.
func (f *frontier) types(types []uint32) {
	f.numbers.Relations(f.lists, func(i int, relation uint16) {
		for e := f.off[i]; e < f.off[i+1]; e++ {
			types[e] = uint32(relation)
		}
	})
}

// nodeOf returns the node of a list.
func (f *frontier) nodeOf(list NodeID) NodeID {
	if f.numbers != nil {
		list, _ = f.numbers.Node(list)
	}
	return list
}

// fold adds up values of lists, those of each node.
func fold[T uint32 | float32](f *frontier, of []T, to []T) {
	at := uint32(0)
	for i, end := range f.ends {
		sum := T(0)
		for ; at < end; at++ {
			sum += of[at]
		}
		to[i] = sum
	}
}
