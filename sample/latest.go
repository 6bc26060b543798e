package sample

import "gdb/layout/topology"

// The latest entries of a list are those of the largest times, and of equal times those at later
// positions. They are a function of the list alone: every batch of every epoch takes the same.

// byTime goes over a part of the list of a node. Flipping all bits of a time turns the order
// around, so that the least key is that of the largest time, without overflow.
func (c *selection) byTime(p topology.Part) error {
	heap, n, from, err := c.begin(&p, len(p.Times))
	if err != nil {
		return err
	}
	for j, t := range p.Times {
		n = heap.put(n, entry{key: ^t, pos: from + uint32(j)})
	}
	c.taken[p.List] = n
	return nil
}
