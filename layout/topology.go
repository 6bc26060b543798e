package layout

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
)

// Topology gives the neighbor lists of one direction. Two readers stand behind it: resident
// (decoded into arrays) and paged (blocks through a cache). Both give equal answers. It may be used
// from any goroutine; sessions may not.
type Topology interface {
	// Nodes and Edges count the lists and their entries.
	Nodes() uint64
	Edges() uint64
	// NewSession returns a reader for one goroutine.
	NewSession() Session
	Stats() TopologyStats
	Close() error
}

// Session reads lists for one goroutine, a whole frontier at a time.
type Session interface {
	// Degrees writes the length of each node's list to deg (len(nodes)), and remembers where the
	// lists are for Gather. The paged reader reads all blocks it misses in one batch. nodes must
	// not change until the last Gather for them is done.
	Degrees(ctx context.Context, nodes []NodeID, deg []uint32) error
	// Gather writes list entries of the nodes that Degrees was called with last: those of node i
	// at positions pos[off[i]:off[i+1]], each below its degree, to out[off[i]:off[i+1]].
	Gather(ctx context.Context, off, pos []uint32, out []NodeID) error
	// Lists returns the whole lists of nodes with what runs parallel to them; valid until the
	// next call.
	Lists(ctx context.Context, nodes []NodeID) (*Lists, error)
	// Release gives cached blocks back; the session is not used afterwards.
	Release()
}

// Lists holds the neighbor lists of some nodes. The list of node i is
// Nbrs[Off[i]:Off[i+1]], sorted by id; Types, Weights and Times are parallel to Nbrs, or nil.
type Lists struct {
	Off     []uint64
	Nbrs    []NodeID
	Types   []uint16
	Weights []float32
	Times   []int64
}

// TopologyStats counts what a topology reader did.
type TopologyStats struct {
	Kind       string // resident or paged
	Bytes      int64  // memory held
	Hits       uint64 // blocks found in the cache
	Misses     uint64 // blocks read
	BlocksRead uint64
	BytesRead  uint64
}

// TopologyOptions choose the reader.
type TopologyOptions struct {
	// Resident decodes all lists into arrays: 4 bytes per edge, 4 or 8 per node.
	Resident bool
	// CacheBytes is the block cache of the paged reader. Default 64 MiB.
	CacheBytes int64
	// Budget counts the memory; nil for none.
	Budget *mem.Budget
}

// Topology opens the lists of one direction.
func (s *Store) Topology(ctx context.Context, dev blockdev.Device, dir Direction,
	opt TopologyOptions) (Topology, error) {
	panic("BUG: layout: Topology is missing")
}

// ResidentBytes is the memory that the resident reader of this store takes.
func (s *Store) ResidentBytes(dir Direction) int64 {
	panic("BUG: layout: ResidentBytes is missing")
}

// ScanTopology calls fn with consecutive ranges of lists, in node order, reading the file in
// large sequential batches: first is the node of l's first list. Lists of a hub may come in
// several calls with the same first (cont is true from the second on). Memory: two read buffers.
func (s *Store) ScanTopology(ctx context.Context, dev blockdev.Device, dir Direction,
	fn func(first NodeID, cont bool, l *Lists) error) error {
	panic("BUG: layout: ScanTopology is missing")
}
