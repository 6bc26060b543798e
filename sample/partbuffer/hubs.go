package partbuffer

import (
	"context"
	"fmt"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"
)

// hubs are nodes that stay in memory, with their whole lists ("Hanoi", section 4.3.3).
type hubs struct {
	nodes  []sample.NodeID
	set    []uint64 // a bit for each node of the graph
	before []uint32 // how many hubs come before every hubWords words of set
	off    []uint64 // where the list of each begins, and the last one ends
	nbrs   []sample.NodeID
	loaded bool
}

// hubWords is how many words of the set have one count.
const hubWords = 8

// hubArrays returns the sizes of the memory of hubs, in bytes.
func hubArrays(c *Config) [4]int64 {
	words := (int64(c.Deal.Nodes()) + 63) / 64
	return [4]int64{8 * words, 4 * (words/hubWords + 1), 8 * (int64(len(c.Macro.Hubs)) + 1),
		4 * int64(c.Macro.HubEntries)}
}

// place takes the memory of hubs, and notes which they are.
func (h *hubs) place(c *Config, take func(what string, bytes int64) ([]byte, error)) error {
	h.nodes = c.Macro.Hubs
	for i, to := range []func(all []byte){
		func(a []byte) { h.set = mem.View[uint64](a) },
		func(a []byte) { h.before = mem.View[uint32](a) },
		func(a []byte) { h.off = mem.View[uint64](a) },
		func(a []byte) { h.nbrs = mem.View[sample.NodeID](a) },
	} {
		all, err := take("hubs", hubArrays(c)[i])
		if err != nil {
			return err
		}
		to(all)
	}
	for i, v := range h.nodes {
		if uint64(v) >= c.Deal.Nodes() || i > 0 && v <= h.nodes[i-1] {
			return fmt.Errorf("sample: hub %d of %d is node %d: hubs ascend", i, len(h.nodes), v)
		}
		h.set[v>>6] |= 1 << (v & 63)
	}
	n := 0
	for w, word := range h.set {
		if w%hubWords == 0 {
			h.before[w/hubWords] = uint32(n)
		}
		n += bits.OnesCount64(word)
	}
	return nil
}

// has says whether a node is a hub.
func (h *hubs) has(v sample.NodeID) bool { return h.set[v>>6]>>(v&63)&1 != 0 }

// slot returns the number of a hub, from 1 on; 0 for other nodes.
func (h *hubs) slot(v sample.NodeID) uint32 {
	if !h.has(v) {
		return 0
	}
	at := v >> 6
	n := h.before[at/hubWords] + uint32(bits.OnesCount64(h.set[at]<<(63-v&63)))
	for w := at / hubWords * hubWords; w < at; w++ {
		n += uint32(bits.OnesCount64(h.set[w]))
	}
	return n
}

// load reads the lists of the hubs.
func (h *hubs) load(ctx context.Context, lists topology.Reader) error {
	s := lists.NewSession()
	defer s.Release()
	n, list, last := uint64(0), -1, sample.NodeID(lists.Nodes())
	err := topology.EachList(ctx, s, h.nodes, listsOnce,
		func(of []sample.NodeID, l *listfile.Lists) (bool, error) {
			for i, v := range of {
				if v != last {
					list++
					h.off[list] = n
				}
				last = v
				nbrs := l.Nbrs[l.Off[i]:l.Off[i+1]]
				if n+uint64(len(nbrs)) > uint64(len(h.nbrs)) {
					return false, fmt.Errorf("sample: lists of hubs have more than their %d "+
						"entries", len(h.nbrs))
				}
				n += uint64(copy(h.nbrs[n:], nbrs))
			}
			return true, checkNodes(l.Nbrs, lists.Nodes())
		})
	if err != nil {
		return err
	}
	h.off[len(h.nodes)] = n
	h.loaded = true
	return nil
}

// list returns the whole list of hub i, counted from 0.
func (h *hubs) list(i int) []layout.NodeID { return h.nbrs[h.off[i]:h.off[i+1]] }
