package parts

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

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
