package layout

import (
	"context"
	"encoding/binary"
	"errors"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
)

// windowPages is how many pages of a companion file a check holds: 256 KiB.
const windowPages = 64

// pageWindow reads the pages of 4 KiB of an index, or of checksums, in ascending order, so that a
// file is checked against its companion in memory that does not grow with it.
type pageWindow struct {
	f     *source
	kind  string
	uuid  kv.UUID
	arena *mem.Arena
	first int64 // page
	pages int64
	bad   [windowPages]bool // their checksums are wrong: their own check reports that
}

func newPageWindow(f *source, kind string, uuid kv.UUID) (*pageWindow, error) {
	arena, err := mem.NewArena(nil, "pages of "+f.path, windowPages*pageBytes)
	return &pageWindow{f: f, kind: kind, uuid: uuid, arena: arena}, err
}

// page returns a page that the file has, verified, or nil if it is damaged.
func (w *pageWindow) page(ctx context.Context, n int64) ([]byte, error) {
	if n < w.first || n >= w.first+w.pages {
		if err := w.load(ctx, n); err != nil {
			return nil, err
		}
	}
	if w.bad[n-w.first] {
		return nil, nil
	}
	return w.arena.Bytes()[(n-w.first)*pageBytes:][:pageBytes], nil
}

// load reads the pages from n on.
func (w *pageWindow) load(ctx context.Context, n int64) error {
	w.first, w.pages = n, 0
	pages := min(windowPages, w.f.file.Size()/pageBytes-n)
	buf := w.arena.Bytes()[:pages*pageBytes]
	if err := w.f.read(ctx, n*pageBytes, buf); err != nil {
		return err
	}
	for i := range pages {
		err := verifyPage(w.kind, w.uuid, n+i, buf[i*pageBytes:][:pageBytes])
		w.bad[i] = err != nil
	}
	w.pages = pages
	return nil
}

func (w *pageWindow) close() error { return errors.Join(w.f.file.Close(), w.arena.Free()) }

// indexWindow is an index that is read beside its lists.
type indexWindow struct {
	*pageWindow
	edges  uint64
	blocks int64
}

// openIndexWindow opens the index of a direction and verifies its header and last page.
func (s *Store) openIndexWindow(ctx context.Context, dev blockdev.Device,
	dir Direction) (*indexWindow, error) {
	_, path := TopologyPaths(dir)
	f, err := s.open(dev, path)
	if err != nil {
		return nil, err
	}
	w, err := newPageWindow(f, indexKind(dir), s.meta.UUID)
	if err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	l := indexLoader{f: f, kind: w.kind, uuid: w.uuid, buf: w.arena.Bytes()}
	ix, err := l.describe(ctx)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return &indexWindow{w, ix.edges, ix.blocks}, nil
}

// firstOf is the first node of a block that the index has; false if its page is damaged.
func (w *indexWindow) firstOf(ctx context.Context, block int64) (NodeID, bool, error) {
	page, err := w.page(ctx, (block-1)/indexPerPage+1)
	if page == nil {
		return 0, false, err
	}
	at := 4 + 4*((block-1)%indexPerPage)
	return NodeID(binary.LittleEndian.Uint32(page[at:])), true, nil
}
