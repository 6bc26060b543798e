package topology

import (
	"context"

	"gdb/internal/mem"
	"gdb/layout/listfile"
)

// loading decodes a whole file to the arrays of a resident reader, on several goroutines.
type loading[P offset] struct {
	*resident[P]
	f     *listfile.File
	nodes uint64   // number of nodes that have an offset
	total uint64   // number of edges so far
	at    []uint64 // number of edges before each block of a run
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
		l.ptr[i] = P(l.total)
	}
	return nil
}

// run decodes consecutive blocks.
func (l *loading[P]) run(run []listfile.Placed) error {
	l.at = mem.Resize(l.at, len(run))
	for i := range run {
		l.at[i] = l.total
		if l.total += uint64(run[i].Entries); l.total > l.edges {
			return l.f.Damage(-1, 0, "file has more than the store's %d edges", l.edges)
		}
	}
	err := listfile.Parts(len(run), func(part, first, end int) error {
		p := &l.parts[part]
		p.packer = l.packed.packer(l.at[first])
		for i := first; i < end; i++ {
			if err := l.block(&run[i], l.at[i], p); err != nil {
				n := run[i].Number()
				return l.f.Damage(n, listfile.BlockOffset(n, l.f.BlockBytes), "%v", err)
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

// block decodes a block. at is the number of entries before it.
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
