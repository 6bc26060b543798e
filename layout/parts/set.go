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

// listWalker reads whole lists in bounded memory: long lists come in several pieces.
type listWalker struct {
	ses topology.PartReader
	deg []uint32
}

// each calls fn with the lists of a set of nodes, in ascending order, some at a time. The lists are
// valid during the call.
func (w *listWalker) each(ctx context.Context, set *nodeSet,
	fn func(nodes []layout.NodeID, l *listfile.Lists) error) error {
	for nodes := range set.chunks(chunkNodes) {
		if err := w.chunk(ctx, nodes, fn); err != nil {
			return fmt.Errorf("partition: lists: %w", err)
		}
	}
	return nil
}

func (w *listWalker) chunk(ctx context.Context, nodes []layout.NodeID,
	fn func(nodes []layout.NodeID, l *listfile.Lists) error) error {
	w.deg = mem.Resize(w.deg, len(nodes))
	if err := w.ses.Degrees(ctx, nodes, w.deg); err != nil {
		return err
	}
	for i := 0; i < len(nodes); {
		end, entries := i, uint64(0)
		for end < len(nodes) && (end == i || entries+uint64(w.deg[end]) <= entriesMost) {
			entries += uint64(w.deg[end])
			end++
		}
		for from := uint64(0); from == 0 || from < entries; from += entriesMost {
			l, err := w.read(ctx, nodes[i:end], from, entries)
			if err == nil {
				err = fn(nodes[i:end], l)
			}
			if err != nil {
				return err
			}
		}
		i = end
	}
	return nil
}

// read reads the lists of nodes, or a piece of a single list that is longer than entriesMost.
func (w *listWalker) read(ctx context.Context, nodes []layout.NodeID, from, entries uint64) (
	*listfile.Lists, error) {
	if entries <= entriesMost {
		return w.ses.Lists(ctx, nodes)
	}
	return w.ses.ListPart(ctx, nodes[0], uint32(from), uint32(min(from+entriesMost, entries)))
}
