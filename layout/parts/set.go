package parts

import (
	"context"
	"fmt"
	"iter"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

// nodeSet is a set of nodes as bits in an arena, 1/8 byte for each node of the graph.
type nodeSet struct {
	words []uint64
	arena *mem.Arena
}

func newNodeSet(nodes uint64, budget *mem.Budget) (*nodeSet, error) {
	a, err := mem.NewArena(budget, "a set of nodes", int64(nodes/64+1)*8)
	if err != nil {
		return nil, err
	}
	return &nodeSet{mem.View[uint64](a.Bytes()), a}, nil
}

// add adds a node, and returns whether it was not a member.
func (s *nodeSet) add(v layout.NodeID) bool {
	w, bit := &s.words[v/64], uint64(1)<<(v%64)
	fresh := *w&bit == 0
	*w |= bit
	return fresh
}

func (s *nodeSet) remove(v layout.NodeID) { s.words[v/64] &^= 1 << (v % 64) }

// addAll adds the members of another set.
func (s *nodeSet) addAll(of *nodeSet) {
	for i, w := range of.words {
		s.words[i] |= w
	}
}

func (s *nodeSet) clear() { clear(s.words) }

func (s *nodeSet) count() (n uint64) {
	for _, w := range s.words {
		n += uint64(bits.OnesCount64(w))
	}
	return n
}

// all iterates over the members in ascending order. A lower member may be added meanwhile.
func (s *nodeSet) all() iter.Seq[layout.NodeID] {
	return func(yield func(layout.NodeID) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(layout.NodeID(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// chunks iterates over the members, up to most at a time. A chunk is valid until the next.
func (s *nodeSet) chunks(most int) iter.Seq[[]layout.NodeID] {
	return func(yield func([]layout.NodeID) bool) {
		chunk := make([]layout.NodeID, 0, most)
		for v := range s.all() {
			if chunk = append(chunk, v); len(chunk) == most {
				if !yield(chunk) {
					return
				}
				chunk = chunk[:0]
			}
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

func (s *nodeSet) free() error { return s.arena.Free() }

// entriesMost bounds the entries of lists in memory, and chunkNodes the lists that are read
// together.
const entriesMost, chunkNodes = 1 << 16, 4096

// eachList calls fn with the lists of a set of nodes, in ascending order, some at a time, long ones
// in several pieces. The lists are valid during the call.
func eachList(ctx context.Context, s topology.Session, set *nodeSet,
	fn func(nodes []layout.NodeID, l *listfile.Lists) error) error {
	most := topology.ListsMost{Nodes: chunkNodes, Entries: entriesMost}
	for nodes := range set.chunks(chunkNodes) {
		err := topology.EachList(ctx, s, nodes, most,
			func(nodes []layout.NodeID, l *listfile.Lists) (bool, error) {
				return true, fn(nodes, l)
			})
		if err != nil {
			return fmt.Errorf("partition: lists: %w", err)
		}
	}
	return nil
}
