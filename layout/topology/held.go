package topology

import (
	"context"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// BlockEntries is the number of entries in a block of Held: 2 MiB.
const BlockEntries = 1 << 19

// Held is a Reader of lists that its owner has put in memory, such as the lists between the
// partitions in memory. Entries are numbered through all blocks. Sessions stay valid while the
// owner changes the lists, but none may read meanwhile. The memory belongs to the owner.
type Held struct {
	NodeCount, EntryCount uint64
	Bytes                 int64 // for Stats
	// Place returns the number of the first entry of a node's list, and the list's length.
	Place func(v layout.NodeID) (first uint64, degree uint32, err error)
	// Blocks have BlockEntries entries each, the last one maybe fewer.
	Blocks [][]layout.NodeID
}

// Nodes returns the number of lists.
func (h *Held) Nodes() uint64 { return h.NodeCount }

// Edges returns the number of entries in memory.
func (h *Held) Edges() uint64 { return h.EntryCount }

// Stats returns the memory of the lists.
func (h *Held) Stats() Stats { return Stats{Kind: "partitions", Bytes: h.Bytes} }

// Close does nothing, since the owner frees the memory.
func (h *Held) Close() error { return nil }

// NewSession returns a session for one goroutine.
func (h *Held) NewSession() Session { return &heldSession{held: h} }

type heldSession struct {
	held  *Held
	start []uint64 // where the lists of the last Degrees begin
	lists listfile.Lists
}

// Degrees finds the lists of nodes, and writes their lengths to deg.
func (s *heldSession) Degrees(ctx context.Context, nodes []layout.NodeID,
	deg []uint32) (err error) {
	s.start = mem.Resize(s.start, len(nodes))
	for i, v := range nodes {
		if s.start[i], deg[i], err = s.held.Place(v); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Gather copies entries of the lists to out.
func (s *heldSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	blocks := s.held.Blocks
	for i, first := range s.start {
		for e := off[i]; e < off[i+1]; e++ {
			k := first + uint64(pos[e])
			out[e] = blocks[k/BlockEntries][k%BlockEntries]
		}
	}
	return ctx.Err()
}

// Lists copies the whole lists of nodes.
func (s *heldSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	l := &s.lists
	l.Off, l.Nbrs = append(l.Off[:0], 0), l.Nbrs[:0]
	for _, v := range nodes {
		first, degree, err := s.held.Place(v)
		if err != nil {
			return nil, err
		}
		for k := first; k < first+uint64(degree); k++ {
			l.Nbrs = append(l.Nbrs, s.held.Blocks[k/BlockEntries][k%BlockEntries])
		}
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return l, ctx.Err()
}

// Release does nothing, since a session holds nothing.
func (s *heldSession) Release() {}
