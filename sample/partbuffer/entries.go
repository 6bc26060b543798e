package partbuffer

import (
	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
)

// entries are the lists of the nodes of a set: where each begins and ends, and the neighbors.
type entries struct {
	start  []uint64 // where a list begins, counted over all blocks
	degree []uint32
	blocks [][]sample.NodeID
	count  uint64
	more   func() ([]byte, error) // takes the memory of a block
}

// grow takes the memory of blocks until there is room for this number of entries.
func (e *entries) grow(count uint64) error {
	for uint64(len(e.blocks))*topology.BlockEntries < count {
		all, err := e.more()
		if err != nil {
			return err
		}
		e.blocks = append(e.blocks, mem.View[sample.NodeID](all))
	}
	return nil
}

// begin begins list i, after the last entry.
func (e *entries) begin(i uint32) { e.start[i], e.degree[i] = e.count, 0 }

// keep adds the neighbors for which in is true to list i, which was begun last.
func (e *entries) keep(i uint32, neighbors []sample.NodeID, in func(u sample.NodeID) bool) error {
	first := e.count
	for _, u := range neighbors {
		if !in(u) {
			continue
		}
		if e.count/topology.BlockEntries == uint64(len(e.blocks)) {
			if err := e.grow(e.count + 1); err != nil {
				return err
			}
		}
		e.blocks[e.count/topology.BlockEntries][e.count%topology.BlockEntries] = u
		e.count++
	}
	e.degree[i] += uint32(e.count - first)
	return nil
}

// first brings the neighbors for which in is true to the front of list i, in their order if they
// are all, and returns how many they are.
func (e *entries) first(i uint32, in func(u sample.NodeID) bool) (n uint32) {
	at := func(k uint64) *sample.NodeID {
		return &e.blocks[k/topology.BlockEntries][k%topology.BlockEntries]
	}
	to := e.start[i]
	for k := to; k < e.start[i]+uint64(e.degree[i]); k++ {
		if u := at(k); in(*u) {
			*u, *at(to) = *at(to), *u
			to++
		}
	}
	return uint32(to - e.start[i])
}

// show makes the lists those that a reader reads.
func (e *entries) show(h *topology.Held) {
	h.Blocks, h.EntryCount = e.blocks, e.count
	h.Bytes = 12*int64(len(e.start)) + 4*topology.BlockEntries*int64(len(e.blocks))
}

// blocksOf returns the number of blocks for this number of entries, at least one.
func blocksOf(count uint64) int64 {
	return int64((max(1, count) + topology.BlockEntries - 1) / topology.BlockEntries)
}
