// Package topology reads the neighbor lists of any nodes: from memory (resident), by blocks through
// a cache (paged), or in one pass through the file for many nodes (Windows). A frontier is the
// nodes whose lists a session reads together; a session belongs to one goroutine.
package topology

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/neighborcache"
)

// Reader reads the neighbor lists of one direction. A resident reader has all lists in memory, in
// one of the forms; a paged one reads blocks through a cache. All give the same answers. Any
// goroutine may use a Reader; a Session is for one.
type Reader interface {
	// Nodes and Edges return the number of lists and of their entries.
	Nodes() uint64
	Edges() uint64
	// NewSession returns a session for one goroutine. The caller calls Release.
	NewSession() Session
	Stats() Stats
	Close() error
}

// Session reads lists for one goroutine, a whole frontier at a time.
type Session interface {
	// Degrees writes the length of each node's list to deg (len(nodes)), and remembers where the
	// lists are for Gather. The paged reader reads all missing blocks in one batch. nodes must not
	// change until the last Gather for them is done.
	Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error
	// Gather writes entries of the lists of the last Degrees: those of node i at positions
	// pos[off[i]:off[i+1]], each below its degree, to out[off[i]:off[i+1]].
	Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error
	// Lists returns the whole lists of nodes with their attributes, valid until the next call.
	// Degrees must be called again before the next Gather.
	Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error)
	// Release gives cached blocks back. The session must not be used afterwards.
	Release()
}

// PartReader is a Session that can read a list in parts, so that the list of a hub need not be in
// memory as a whole. Sessions of the paged reader are.
type PartReader interface {
	Session
	// ListPart returns entries from … to-1 of a node's list, as Lists does.
	ListPart(ctx context.Context, node layout.NodeID, from, to uint32) (*listfile.Lists, error)
}

// ListsMost bounds what EachList reads at once.
type ListsMost struct {
	Nodes   int
	Entries uint64
}

// EachList calls fn with the lists of nodes, in order and as many at once as the bounds allow,
// until fn returns false. A list of more entries comes in parts, in several calls with its node
// alone, if the session is a PartReader, else as a whole.
func EachList(ctx context.Context, s Session, nodes []layout.NodeID, most ListsMost,
	fn func(nodes []layout.NodeID, l *listfile.Lists) (more bool, err error)) error {
	deg := make([]uint32, min(most.Nodes, len(nodes)))
	for len(nodes) > 0 {
		some := nodes[:min(len(nodes), most.Nodes)]
		nodes = nodes[len(some):]
		if err := s.Degrees(ctx, some, deg[:len(some)]); err != nil {
			return err
		}
		for i := 0; i < len(some); {
			end, entries := i+1, uint64(deg[i])
			for end < len(some) && entries+uint64(deg[end]) <= most.Entries {
				entries += uint64(deg[end])
				end++
			}
			more, err := someLists(ctx, s, some[i:end], entries, most.Entries, fn)
			if err != nil || !more {
				return err
			}
			i = end
		}
	}
	return nil
}

// Scans reports whether EachInRange reads lists of t from the file, in its order.
func Scans(t Reader) bool {
	t, _ = ByList(t)
	_, ok := t.(*paged)
	return ok
}

// EachInRange calls fn with the lists of the nodes from … to-1, in order and without attributes. A
// paged reader reads them past its caches, in large sequential reads, and leaves out empty lists.
// first is the node of the first list of l, which goes on with the last list of the call before if
// cont is true. l is valid during the call.
func EachInRange(ctx context.Context, t Reader, from, to layout.NodeID,
	fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error {
	if lists, numbers := ByList(t); numbers != nil {
		j := listfile.NewRangeJoiner(numbers, fn)
		return EachInRange(ctx, lists, layout.NodeID(numbers.Begin(uint64(from))),
			layout.NodeID(numbers.Begin(uint64(to))), j.Add)
	}
	if p, ok := t.(*paged); ok {
		return p.f.ScanRange(ctx, p.ix, from, to, fn)
	}
	s := t.NewSession()
	defer s.Release()
	nodes := make([]layout.NodeID, 0, rangeLists)
	for v := from; v < to; v += layout.NodeID(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < to && len(nodes) < rangeLists; u++ {
			nodes = append(nodes, u)
		}
		l, err := s.Lists(ctx, nodes)
		if err != nil {
			return err
		}
		if err := fn(v, false, l); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// rangeLists is how many lists in memory EachInRange passes on together.
const rangeLists = 1 << 10

// someLists calls fn with lists of these many entries: once, or with parts of one that has more
// than most.
func someLists(ctx context.Context, s Session, nodes []layout.NodeID, entries, most uint64,
	fn func(nodes []layout.NodeID, l *listfile.Lists) (more bool, err error)) (bool, error) {
	parts, ok := s.(PartReader)
	if entries <= most || !ok {
		l, err := s.Lists(ctx, nodes)
		if err != nil {
			return false, err
		}
		return fn(nodes, l)
	}
	for from := uint64(0); from < entries; from += most {
		l, err := parts.ListPart(ctx, nodes[0], uint32(from), uint32(min(from+most, entries)))
		if err != nil {
			return false, err
		}
		if more, err := fn(nodes, l); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// Stats counts what a topology reader did.
type Stats struct {
	Kind       string // resident or paged
	Bytes      int64  // memory held
	Hits       uint64 // blocks found in the cache
	Misses     uint64 // blocks read
	BlocksRead uint64
	BytesRead  uint64
	Neighbors  neighborcache.Stats
}

// Options say how lists are opened.
type Options struct {
	// Resident holds all lists in memory, in this Form. Otherwise the reader is paged.
	Resident bool
	Form     Form
	// Weights makes the resident reader hold the weights of edges too, another 4 bytes per edge.
	// The paged reader has attributes in its blocks.
	Weights bool
	// Types makes the resident reader hold the types of edges, another 2 bytes per edge.
	Types bool
	// Times makes the resident reader hold the times of edges, another 8 bytes per edge.
	Times bool
	// CacheBytes is the size of the paged reader's block cache. Default 64 MiB.
	CacheBytes int64
	// NeighborBytes is the size of the paged reader's neighbor cache, besides the block cache; 0
	// for none. It is chosen and read in two scans of all lists, and kept in prep for later readers
	// with the same size. Choosing takes 6 bytes of memory per node, or more scans if Budget has
	// less.
	NeighborBytes int64
	// NeighborsRaw stores the lists of the neighbor cache uncompressed, to measure what compression
	// is worth.
	NeighborsRaw bool
	// PassBytes is the memory for batches that are drawn together beside the paged reader, windows
	// included: see Windows. Open does not take it. With 0, each batch is drawn by itself.
	PassBytes int64
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// topologyCache is the default of CacheBytes.
const topologyCache = 64 << 20

// Open opens the lists of one direction. The caller calls Close.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (Reader, error) {
	if !slices.Contains(s.Meta().Directions, dir.String()) {
		return nil, fmt.Errorf("layout: this store has no %s-lists; ingest with --direction both",
			dir)
	}
	opt.CacheBytes = cmp.Or(opt.CacheBytes, topologyCache)
	if opt.Weights && !s.Meta().Weighted {
		return nil, fmt.Errorf("layout: open %s-lists: %w", dir, ErrNoWeights)
	}
	if opt.Types && len(s.Meta().EdgeTypes) == 0 {
		return nil, fmt.Errorf("layout: open %s-lists: %w", dir, ErrNoTypes)
	}
	if opt.Times && !s.Meta().Timestamped {
		return nil, fmt.Errorf("layout: open %s-lists: %w", dir, ErrNoTimes)
	}
	opt.Types = opt.Types && !s.Meta().Typed() // the list says it
	r, err := openMany(ctx, s, dev, dir, opt)
	if err != nil {
		return nil, err
	}
	return join(r, layout.ListsOf(s.Meta(), dir), opt.Budget), nil
}

// openMany opens the reader of single lists, of base and levels.
func openMany(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (Reader, error) {
	switch {
	case len(s.Levels()) == 0:
	case !opt.Resident:
		return openLive(ctx, s, dev, dir, opt)
	case opt.Form == Compact && s.Base().Meta().Coded:
		return openRecoded(ctx, s, dev, dir, opt)
	case opt.Form == Compact: // which fails
	case mergedMeta(s).Edges < 1<<32:
		return openMerged[uint32](ctx, s, dev, dir, opt)
	default:
		return openMerged[uint64](ctx, s, dev, dir, opt)
	}
	return openLists(ctx, s, dev, dir, opt)
}

// openLists opens the reader of the single lists of a base.
func openLists(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (Reader, error) {
	switch {
	case !opt.Resident:
		p, err := openPaged(ctx, s, dev, dir, opt)
		if err != nil {
			return nil, err // and no Reader that holds a nil *paged
		}
		return p, nil
	case opt.Form == Compact && !s.Meta().Coded:
		return nil, fmt.Errorf("layout: the lists of this store are of the former layout, which "+
			"has no form %s: ingest its source again, or hold them in the form %s", Compact, Plain)
	case opt.Form == Compact:
		return loadCompact(ctx, s, dev, dir, opt)
	case s.Meta().Edges < 1<<32:
		return loadResident[uint32](ctx, s, dev, dir, opt, s.Meta())
	default:
		return loadResident[uint64](ctx, s, dev, dir, opt, s.Meta())
	}
}

// ResidentBytes returns the memory that a resident reader of this store takes in a form. If edges
// have attributes, plain and packed lists include the paged reader behind Lists; AttributeBytes
// comes on top. The lists of levels count too, although they are merged with those of the base and
// then freed, but for plain and packed ones of edges with attributes.
func ResidentBytes(s *layout.Store, dir layout.Direction, form Form) int64 {
	levels := len(s.Levels()) > 0
	if levels && form == Compact {
		return addedBytes(s, dir) + recodedBytes(s, dir)
	}
	m := s.Meta()
	if form == Compact {
		f := listfile.FieldsOf(m, dir)
		blockBytes := int64(max(m.BlockBytes, listfile.BlockMin))
		blocks := (FileBytes(s, dir) - codec.HeaderBytes) / blockBytes
		return mem.ArenaBytes(listfile.HeldBytes(blocks, &f))
	}
	added := int64(0)
	if levels {
		m, added = mergedMeta(s), addedBytes(s, dir)
	}
	ptr := int64(4)
	if m.Edges >= 1<<32 {
		ptr = 8
	}
	lists := layout.CountLists(m, dir)
	n := ptr*int64(lists+1) + listfile.IDBytes*int64(m.Edges)
	if form == Packed {
		n = ptr*int64(lists+1) + packedBytes(m.Edges, m.Nodes)
	}
	if len(m.EdgeTypes) > 0 && !m.Typed() || m.Weighted || m.Timestamped {
		n += PagedBytes(s.Base(), dir, attributeCache)
	}
	return n + added
}

// FileBytes returns the size of the file of lists of a direction, in bytes.
func FileBytes(s *layout.Store, dir layout.Direction) int64 {
	path, _ := layout.TopologyPaths(dir)
	f, _ := s.Base().Meta().File(path)
	for _, l := range s.Lists() {
		f.Size += FileBytes(l.Store, dir)
	}
	return f.Size
}

// PagedBytes returns the memory that the paged reader of this store takes with a cache of
// cacheBytes (0 for the default): the cache with its tables, and 8 bytes per block for the index.
// Each session whose frontier needs more blocks than fit in the cache takes another 512 KiB.
func PagedBytes(s *layout.Store, dir layout.Direction, cacheBytes int64) int64 {
	if len(s.Levels()) > 0 {
		return addedBytes(s, dir) + PagedBytes(s.Base(), dir, cacheBytes)
	}
	cacheBytes = cmp.Or(cacheBytes, topologyCache)
	blockBytes := int64(max(s.Meta().BlockBytes, listfile.BlockMin))
	index := listfile.IndexBytes(FileBytes(s, dir) / blockBytes)
	return index + max(cacheBytes/blockBytes, 1)*(blockBytes+mem.FrameBytes)
}

// Form is how a resident reader holds lists in memory.
type Form string

// The forms, from the fastest to the smallest. All give the same answers.
const (
	// Plain lists are arrays: 4 bytes per edge, and 4 per node, 8 if there are 2^32 edges or more.
	// The zero value means plain too.
	Plain Form = "plain"
	// Packed ids take as many bits as the largest id needs, such as 3 bytes for 16 million nodes;
	// nodes take as much as in plain lists.
	Packed Form = "packed"
	// Compact lists are the blocks of the file as they are: about 2 bytes per edge, and about 1 per
	// node for where lists begin. Types, weights and times are in the blocks. An entry is decoded
	// when it is drawn.
	Compact Form = "compact"
)

// FormBytes is a form and the memory that a resident reader takes in it.
type FormBytes struct {
	Form  Form
	Bytes int64
}

// Forms returns the forms that a store's lists can have, from the fastest to the smallest, with
// their memory for the options. A form that is not smaller than a faster one is left out.
func Forms(s *layout.Store, dir layout.Direction, opt Options) (all []FormBytes) {
	for _, form := range []Form{Plain, Packed, Compact} {
		n := ResidentBytes(s, dir, form)
		if form != Compact {
			n += AttributeBytes(s, opt)
		}
		smaller := len(all) == 0 || n < all[len(all)-1].Bytes
		if smaller && (form != Compact || s.Meta().Coded) {
			all = append(all, FormBytes{form, n})
		}
	}
	return all
}
