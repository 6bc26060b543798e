package layout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/blockcache"
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
	// next call. Degrees is called again before the next Gather.
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

// PartReader is a Session that can read a list in parts, so that the list of a hub need not be in
// memory at once. The sessions of the paged reader are.
type PartReader interface {
	Session
	// ListPart returns entries from … to-1 of a node's list, as Lists does.
	ListPart(ctx context.Context, node NodeID, from, to uint32) (*Lists, error)
}

// WeightReader is a Session that can read the weights of edges. The sessions of both readers are;
// of a resident one if TopologyOptions.Weights asked for them.
type WeightReader interface {
	Session
	// Weights calls fn with the weights of the lists of the nodes that Degrees was called with
	// last: w are those of the entries of nodes[i]'s list from position from on, and valid during
	// the call. A long list comes in parts, in its order, other lists maybe between them; lists
	// come in any order, empty ones not at all. An error of fn ends it and is returned. The error
	// wraps ErrNoWeights if edges have none.
	Weights(ctx context.Context, fn func(i int, from uint32, w []float32) error) error
}

// ErrNoWeights says that the edges of a store have no weights.
var ErrNoWeights = errors.New("the edges have no weights: ingest a source that has them")

// TopologyStats counts what a topology reader did.
type TopologyStats struct {
	Kind       string // resident or paged
	Bytes      int64  // memory held
	Hits       uint64 // blocks found in the cache
	Misses     uint64 // blocks read
	BlocksRead uint64
	BytesRead  uint64
	Neighbors  NeighborStats
}

// NeighborStats tell what the neighbor cache of a paged reader holds and did.
type NeighborStats struct {
	Requests  uint64 // lists asked for to sample from
	Hits      uint64 // of these, lists that were in the cache: no block was read for them
	Bytes     int64  // memory held, part of TopologyStats.Bytes
	Lists     uint64 // lists held, the empty ones too
	Entries   uint64 // neighbors in them
	ListBytes uint64 // what they take, without the index
	Made      bool   // by this reader, not loaded from prep
	Note      string // for the user: an earlier cache was damaged, or this one could not be kept
}

// Ratio is how much smaller the lists are than entries of 4 bytes; 0 of no entries.
func (s *NeighborStats) Ratio() float64 {
	if s.ListBytes == 0 {
		return 0
	}
	return float64(s.Entries) * idBytes / float64(s.ListBytes)
}

// TopologyOptions choose the reader.
type TopologyOptions struct {
	// Resident decodes all lists into arrays: 4 bytes per edge, 4 or 8 per node.
	Resident bool
	// Weights makes the resident reader hold the weights of edges too, another 4 bytes per edge.
	// The paged reader has them in its blocks.
	Weights bool
	// CacheBytes is the block cache of the paged reader. Default 64 MiB.
	CacheBytes int64
	// NeighborBytes is the neighbor cache of the paged reader, beside the block cache; 0 is none.
	// It is chosen and read in two scans of all lists, and kept in prep for later readers with the
	// same size. Choosing takes 6 bytes a node; with less in Budget, more scans.
	NeighborBytes int64
	// NeighborsRaw keeps the lists of the neighbor cache as they are, to see what compression is
	// worth.
	NeighborsRaw bool
	// Budget counts the memory; nil for none.
	Budget *mem.Budget
}

// topologyCache is the default of CacheBytes.
const topologyCache = 64 << 20

// Topology opens the lists of one direction.
func (s *Store) Topology(ctx context.Context, dev blockdev.Device, dir Direction,
	opt TopologyOptions) (Topology, error) {
	if !slices.Contains(s.meta.Directions, dir.String()) {
		return nil, fmt.Errorf("layout: this store has no %s-lists; ingest with --direction both",
			dir)
	}
	if opt.CacheBytes == 0 {
		opt.CacheBytes = topologyCache
	}
	if opt.Weights && !s.meta.Weighted {
		return nil, fmt.Errorf("layout: open %s-lists: %w", dir, ErrNoWeights)
	}
	switch {
	case !opt.Resident:
		return s.openPaged(ctx, dev, dir, opt)
	case s.meta.Edges < 1<<32:
		return loadResident[uint32](ctx, s, dev, dir, opt)
	default:
		return loadResident[uint64](ctx, s, dev, dir, opt)
	}
}

// ResidentBytes is the memory that the resident reader of this store takes: 4 bytes per edge, 4
// per node (8 from 2^32 edges on), and if edges have types, weights or times, what the paged
// reader behind Lists takes. TopologyOptions.Weights adds 4 bytes per edge.
func (s *Store) ResidentBytes(dir Direction) int64 {
	ptr := int64(4)
	if s.meta.Edges >= 1<<32 {
		ptr = 8
	}
	n := ptr*int64(s.meta.Nodes+1) + idBytes*int64(s.meta.Edges)
	if s.attributes() {
		n += s.PagedBytes(dir, attributeCache)
	}
	return n
}

// attributes says whether edges have a type, a weight or a time.
func (s *Store) attributes() bool {
	return len(s.meta.EdgeTypes) > 0 || s.meta.Weighted || s.meta.Timestamped
}

// PagedBytes is the memory that the paged reader of this store takes with a cache of cacheBytes (0
// is the default): the cache with its tables, and 4 bytes per block for the index. Each session
// whose frontier needs more blocks than the cache has room for takes another 512 KiB.
func (s *Store) PagedBytes(dir Direction, cacheBytes int64) int64 {
	if cacheBytes == 0 {
		cacheBytes = topologyCache
	}
	path, _ := TopologyPaths(dir)
	blockBytes, index := int64(max(s.meta.BlockBytes, blockMin)), int64(0)
	for _, f := range s.meta.Files {
		if f.Path == path {
			index = f.Size / blockBytes * 4
		}
	}
	return index + max(cacheBytes/blockBytes, 1)*(blockBytes+blockcache.FrameBytes)
}
