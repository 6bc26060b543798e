package sample

import "gdb/layout/topology"

// The latest entries of a list are those with the largest times and, among equal times, those at
// later positions. They depend on the list alone, so every batch of every epoch takes the same.

// byTime chooses among the entries of a part of a node's list. Flipping all bits of a time reverses
// the order without overflow, so the least key belongs to the largest time.
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
