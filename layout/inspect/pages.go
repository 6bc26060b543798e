package inspect

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
)

// windowPages is how many pages of a companion file a check holds in memory: 256 KiB.
const windowPages = 64

// pageWindow reads pages of 4 KiB of an index, or of checksums, in ascending order. So a file is
// checked against its companion in memory that does not grow with the companion.
type pageWindow struct {
	f     *layout.File
	kind  string
	uuid  kv.UUID
	arena *mem.Arena
	first int64 // number of the first page
	pages int64
	bad   [windowPages]bool // pages with a wrong checksum, which their own check reports
}

func newPageWindow(f *layout.File, kind string, uuid kv.UUID) (*pageWindow, error) {
	arena, err := mem.NewArena(nil, "pages of "+f.Path, windowPages*layout.PageBytes)
	return &pageWindow{f: f, kind: kind, uuid: uuid, arena: arena}, err
}

// page returns a verified page of the file, or nil if the page is damaged.
func (w *pageWindow) page(ctx context.Context, n int64) ([]byte, error) {
	if n < w.first || n >= w.first+w.pages {
		if err := w.load(ctx, n); err != nil {
			return nil, err
		}
	}
	if w.bad[n-w.first] {
		return nil, nil
	}
	return w.arena.Bytes()[(n-w.first)*layout.PageBytes:][:layout.PageBytes], nil
}

// load reads the pages from n on.
func (w *pageWindow) load(ctx context.Context, n int64) error {
	w.first, w.pages = n, 0
	pages := min(windowPages, w.f.Size()/layout.PageBytes-n)
	buf := w.arena.Bytes()[:pages*layout.PageBytes]
	if err := w.f.Read(ctx, n*layout.PageBytes, buf); err != nil {
		return err
	}
	for i := range pages {
		err := layout.VerifyPage(w.kind, w.uuid, n+i, buf[i*layout.PageBytes:][:layout.PageBytes])
		w.bad[i] = err != nil
	}
	w.pages = pages
	return nil
}

func (w *pageWindow) close() error { return errors.Join(w.f.Close(), w.arena.Free()) }

// indexWindow is an index that is read together with its lists.
type indexWindow struct {
	*pageWindow
	fields listfile.Fields
	edges  uint64
	blocks int64
}

// openIndexWindow opens the index of a direction and verifies its header and last page.
func openIndexWindow(ctx context.Context, s *layout.Store, dev blockdev.Device,
	dir layout.Direction) (*indexWindow, error) {
	_, path := layout.TopologyPaths(dir)
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return nil, err
	}
	w, err := newPageWindow(f, layout.IndexKind(dir), s.Meta().UUID)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	ix, err := listfile.DescribeIndex(ctx, f, dir, w.uuid)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return &indexWindow{w, ix.Fields, ix.Edges, ix.Blocks}, nil
}

// beginOf returns where a block begins according to the index: the first node, and the position in
// its list. ok is false if the page of the index is damaged.
func (w *indexWindow) beginOf(ctx context.Context, block int64) (first layout.NodeID, start uint32,
	ok bool, err error) {
	per := w.fields.IndexPerPage()
	page, err := w.page(ctx, (block-1)/per+1)
	if page == nil {
		return 0, 0, false, err
	}
	v, start := w.fields.IndexEntry(page, (block-1)%per)
	return layout.NodeID(v), start, true, nil
}
