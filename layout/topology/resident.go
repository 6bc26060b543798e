package topology

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
)

// attributeCache is the size in bytes of the block cache behind Lists, in a resident reader whose
// edges have attributes: these are read when asked for, since uniform sampling does not use them.
const attributeCache = 1 << 20

// offset is a position in the array of all neighbors: 32 bits while they suffice.
type offset interface{ uint32 | uint64 }

// resident holds all lists in two arrays: the list of node v is nbrs[ptr[v]:ptr[v+1]], or the same
// entries of packed.
type resident[P offset] struct {
	ptr    []P
	nbrs   []layout.NodeID // nil if ids are packed
	packed packedIDs
	weight []float32 // parallel to nbrs; nil if not held
	types  []uint16  // like weight
	times  []int64   // like weight
	arenas [5]*mem.Arena
	edges  uint64
	kinds  int    // number of edge types
	attrs  Reader // reads Lists if edges have attributes; else nil
}

// loadResident loads the lists of a store to the ends of arrays with room for the nodes and entries
// of m.
//
//lint:parameters Open's, and the room
func loadResident[P offset](ctx context.Context, s *layout.Store, dev blockdev.Device,
	dir layout.Direction, opt Options, m *kv.Meta) (t Reader, err error) {
	f, err := listfile.Open(ctx, s, dev, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &resident[P]{edges: s.Meta().Edges, kinds: len(s.Meta().EdgeTypes)}
	if err = r.allocate(m, f.Lists+m.Nodes-s.Meta().Nodes, opt); err == nil {
		stop := r.arenas[1].Populate()
		err = (&loading[P]{resident: r, f: f, room: m.Edges - r.edges}).load(ctx)
		stop()
	}
	if err == nil && f.Shape.HasAttributes() {
		opt.CacheBytes, opt.NeighborBytes = attributeCache, 0
		var p *paged
		if p, err = openPaged(ctx, s, dev, dir, opt); err == nil {
			r.attrs = p
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// allocate makes room for lists, and the entries and ids of m.
func (r *resident[P]) allocate(m *kv.Meta, lists uint64, opt Options) (err error) {
	hold := func(i int, what string, bytes int64) []byte {
		if err == nil {
			r.arenas[i], err = mem.NewArena(opt.Budget, what, bytes)
		}
		if err != nil {
			return nil
		}
		return r.arenas[i].Bytes()
	}
	width, edges := int64(unsafe.Sizeof(P(0))), int64(m.Edges)
	r.ptr = mem.View[P](hold(0, "resident topology offsets", int64(lists+1)*width))
	size := edges * listfile.IDBytes
	if opt.Form == Packed {
		size = packedBytes(m.Edges, m.Nodes)
	}
	ids := hold(1, "resident topology", size)
	if opt.Form == Packed {
		r.packed = packedIDs{b: ids, width: idBits(m.Nodes)}
	} else {
		r.nbrs = mem.View[layout.NodeID](ids)
	}
	if opt.Weights {
		r.weight = mem.View[float32](hold(2, "resident edge weights", edges*listfile.WeightBytes))
	}
	if opt.Types {
		r.types = mem.View[uint16](hold(3, "resident edge types", edges*listfile.TypeBytes))
	}
	if opt.Times {
		r.times = mem.View[int64](hold(4, "resident edge times", edges*listfile.TimeBytes))
	}
	return err
}

// loadAttributes copies the attributes that are held from a block, whose first entry is number at
// of the file.
func (r *resident[P]) loadAttributes(f *listfile.File, k *listfile.Block, at uint64) error {
	if r.weight != nil {
		f.Shape.CopyWeights(k, 0, r.weight[at:][:k.Entries])
	}
	if r.times != nil {
		f.Shape.CopyTimes(k, 0, r.times[at:][:k.Entries])
	}
	if r.types == nil {
		return nil
	}
	for i := range k.Entries {
		t := f.Shape.Type(k, i)
		if int(t) >= r.kinds {
			return fmt.Errorf("block has an edge of type %d of %d", t, r.kinds)
		}
		r.types[at+uint64(i)] = uint16(t)
	}
	return nil
}

// Nodes returns the number of lists.
func (r *resident[P]) Nodes() uint64 { return uint64(len(r.ptr)) - 1 }

// Edges returns the number of entries.
func (r *resident[P]) Edges() uint64 { return r.edges }

// NewSession returns a session for one goroutine.
func (r *resident[P]) NewSession() Session { return &residentSession[P]{r: r} }

// Stats returns the memory held, and the counters of the reader behind Lists.
func (r *resident[P]) Stats() Stats {
	st := Stats{Kind: "resident",
		Bytes: int64(len(r.arenas[1].Bytes()) + len(mem.BytesOf(r.weight)) +
			len(mem.BytesOf(r.types)) + len(mem.BytesOf(r.times)) + len(r.arenas[0].Bytes()))}
	if r.attrs != nil {
		a := r.attrs.Stats()
		st.Bytes += a.Bytes
		st.Hits, st.Misses = a.Hits, a.Misses
		st.BlocksRead, st.BytesRead = a.BlocksRead, a.BytesRead
	}
	return st
}

// Close frees the arrays.
func (r *resident[P]) Close() (err error) {
	if r.attrs != nil {
		err = r.attrs.Close()
		r.attrs = nil
	}
	for _, a := range r.arenas {
		if a != nil {
			err = errors.Join(err, a.Free())
		}
	}
	r.ptr, r.nbrs, r.packed, r.weight, r.types, r.times = nil, nil, packedIDs{}, nil, nil, nil
	return err
}

type residentSession[P offset] struct {
	r     *resident[P]
	nodes []layout.NodeID // of the last Degrees
	start []P             // where each of their lists begins
	lists listfile.Lists
	attrs Session

	packed *packedGatherer
}

// Degrees finds the lists of nodes, and writes their lengths to deg.
func (s *residentSession[P]) Degrees(ctx context.Context, nodes []layout.NodeID,
	deg []uint32) error {
	s.nodes, s.start = nodes, mem.Resize(s.start, len(nodes))
	ptr, start := s.r.ptr, s.start
	deg = deg[:len(nodes)]
	for i, v := range nodes {
		if int(v) >= len(ptr)-1 {
			return layout.OutOfRange(v, s.r.Nodes())
		}
		from := ptr[v]
		start[i] = from
		deg[i] = uint32(ptr[int(v)+1] - from)
	}
	return ctx.Err()
}

// Gather copies entries of the lists to out.
func (s *residentSession[P]) Gather(ctx context.Context, off, pos []uint32,
	out []layout.NodeID) error {
	nbrs := s.r.nbrs
	if nbrs == nil {
		if s.packed == nil {
			s.packed = &packedGatherer{ids: &s.r.packed}
		}
		gatherPacked(s.packed, s.start, off, pos, out)
		return ctx.Err()
	}
	for i, at := range s.start {
		lo, hi := off[i], off[i+1]
		p, o := pos[lo:hi], out[lo:hi]
		o = o[:len(p)]
		for j, x := range p {
			o[j] = nbrs[at+P(x)]
		}
	}
	return ctx.Err()
}

// Lists copies the whole lists of nodes. If edges have attributes, it reads them from disk.
func (s *residentSession[P]) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists,
	error) {
	if s.r.attrs != nil {
		if s.attrs == nil {
			s.attrs = s.r.attrs.NewSession()
		}
		return s.attrs.Lists(ctx, nodes)
	}
	l := &s.lists
	l.Off = append(l.Off[:0], 0)
	l.Nbrs = l.Nbrs[:0]
	for _, v := range nodes {
		if uint64(v) >= s.r.Nodes() {
			return nil, layout.OutOfRange(v, s.r.Nodes())
		}
		l.Nbrs = s.r.appendList(l.Nbrs, s.r.ptr[v], s.r.ptr[int(v)+1])
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return l, ctx.Err()
}

// appendList appends the entries from … to-1 of the arrays.
func (r *resident[P]) appendList(list []layout.NodeID, from, to P) []layout.NodeID {
	if r.nbrs != nil {
		return append(list, r.nbrs[from:to]...)
	}
	for ; from < to; from++ {
		list = append(list, r.packed.at(uint64(from)))
	}
	return list
}

// Release ends the session.
func (s *residentSession[P]) Release() {
	if s.attrs != nil {
		s.attrs.Release()
		s.attrs = nil
	}
}

// loading decodes a whole file to the arrays of a resident reader, on several goroutines.
type loading[P offset] struct {
	*resident[P]
	f     *listfile.File
	nodes uint64   // number of nodes that have an offset
	room  uint64   // entries before the first in the arrays
	total uint64   // number of edges so far
	at    []uint64 // where the entries of each block of a run go
	parts []loadingPart
}

// loadingPart is the scratch memory of one goroutine.
type loadingPart struct {
	lists  listfile.Lists
	packer packer
}

// load decodes the file.
func (l *loading[P]) load(ctx context.Context) error {
	l.parts = make([]loadingPart, listfile.Loaders())
	err := l.f.EachRun(ctx, l.run)
	if err == nil && l.total != l.edges {
		err = l.f.Damage(-1, 0, "file has %d edges, the store %d", l.total, l.edges)
	}
	if err != nil {
		return err
	}
	for i := l.nodes; i < uint64(len(l.ptr)); i++ {
		l.ptr[i] = P(l.room + l.total)
	}
	return nil
}

// run decodes consecutive blocks.
func (l *loading[P]) run(run []listfile.Placed) error {
	l.at = mem.Resize(l.at, len(run))
	for i := range run {
		l.at[i] = l.room + l.total
		if l.total += uint64(run[i].Entries); l.total > l.edges {
			return l.f.Damage(-1, 0, "file has more than the store's %d edges", l.edges)
		}
	}
	err := listfile.Parts(len(run), func(part, first, end int) error {
		p := &l.parts[part]
		p.packer = l.packed.packer(l.at[first])
		for i := first; i < end; i++ {
			if err := l.block(&run[i], l.at[i], p); err != nil {
				return l.f.DamageBlock(run[i].Number(), err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if l.nbrs == nil {
		for i := range min(len(l.parts), len(run)) {
			l.parts[i].packer.finish()
		}
	}
	last := &run[len(run)-1]
	l.nodes = uint64(last.First) + uint64(last.Slots)
	return nil
}

// block decodes a block, whose entries go to place at of the arrays.
func (l *loading[P]) block(k *listfile.Placed, at uint64, p *loadingPart) error {
	if l.nbrs != nil {
		p.lists.Nbrs = l.nbrs[at : at+uint64(k.Entries) : at+uint64(k.Entries)]
	}
	if err := l.f.Shape.DecodeIDs(&k.Block, &p.lists); err != nil {
		return err
	}
	if l.nbrs == nil {
		p.packer.put(p.lists.Nbrs)
	}
	if err := l.loadAttributes(l.f, &k.Block, at); err != nil {
		return err
	}
	ptr := l.ptr[uint64(k.First)-k.Gap:]
	for i := range ptr[:k.Gap] {
		ptr[i] = P(at)
	}
	ptr = ptr[k.Gap:]
	for i := range int(k.Slots) {
		if i > 0 || !k.Cont { // else its first list began in a block before
			ptr[i] = P(at + p.lists.Off[i])
		}
	}
	return nil
}
