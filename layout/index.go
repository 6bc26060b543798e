package layout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The index of a topology file is its header (page 0), pages of 4 KiB with the first node of each
// block, in block order (the blocks of a hub have one first node), and a last page with the counts:
//
//	0        4                                   4096
//	+--------+-----------------------------------+
//	| crc32c | first node of blocks 1023(p-1)+1 … |   zeros after the last
//	+--------+-----------------------------------+
//
//	0        4        8       16       24
//	+--------+--------+-------+--------+-------+
//	| crc32c | "GTND" | edges | blocks | zeros |
//	+--------+--------+-------+--------+-------+
//
// The checksum is codec.BlockSum of the index's kind, the store, the page number and what follows
// it. In memory the index takes 4 bytes per block.
const (
	indexEnd     = "GTND"
	indexPerPage = (pageBytes - 4) / 4
)

type indexWriter struct {
	file   *fileWriter
	kind   string
	uuid   kv.UUID
	blocks uint64
	page   []byte
	pages  uint64
}

func newIndexWriter(fs vfs.FS, path, kind string, uuid kv.UUID,
	fields []byte) (*indexWriter, error) {
	f, err := createFile(fs, path)
	if err != nil {
		return nil, err
	}
	w := &indexWriter{file: f, kind: kind, uuid: uuid, page: make([]byte, 4, pageBytes)}
	if err := f.write(codec.Header{Kind: kind, UUID: uuid, Fields: fields}.Encode()); err != nil {
		return nil, errors.Join(err, f.abort())
	}
	return w, nil
}

func (w *indexWriter) add(first NodeID) error {
	if w.blocks == 1<<32-1 {
		return fmt.Errorf("layout: write %s: more than %d blocks; choose a larger block",
			w.file.path, w.blocks)
	}
	w.page = binary.LittleEndian.AppendUint32(w.page, uint32(first))
	w.blocks++
	if len(w.page) == pageBytes {
		return w.endPage()
	}
	return nil
}

func (w *indexWriter) endPage() error {
	n := len(w.page)
	w.page = w.page[:pageBytes]
	clear(w.page[n:])
	w.pages++
	sum := codec.BlockSum(w.kind, w.uuid, w.pages, w.page[4:])
	binary.LittleEndian.PutUint32(w.page, sum)
	err := w.file.write(w.page)
	w.page = w.page[:4]
	return err
}

func (w *indexWriter) finish(rel string, edges uint64) (kv.FileMeta, error) {
	var err error
	if len(w.page) > 4 {
		err = w.endPage()
	}
	w.page = append(w.page, indexEnd...)
	w.page = binary.LittleEndian.AppendUint64(w.page, edges)
	w.page = binary.LittleEndian.AppendUint64(w.page, w.blocks)
	err = errors.Join(err, w.endPage())
	m, err2 := w.file.finish(rel, w.kind)
	return m, errors.Join(err, err2)
}

// topologyIndex is an index in memory, and what it says of its topology file.
type topologyIndex struct {
	topologyFields
	shape  blockShape
	edges  uint64
	blocks int64
	arena  *mem.Arena
	first  []uint32 // first node of each block; that of block b is first[b-1]
}

// indexPages is how many pages the entries of so many blocks take.
func indexPages(blocks int64) int64 { return (blocks + indexPerPage - 1) / indexPerPage }

func (ix *topologyIndex) free() error { return ix.arena.Free() }

// bytes is the memory held.
func (ix *topologyIndex) bytes() int64 { return ix.blocks * 4 }

// decodeIndexEnd decodes the last page of an index, after its checksum was verified.
func decodeIndexEnd(page []byte) (edges, blocks uint64, err error) {
	d := codec.NewDec(page)
	d.U32()
	if magic := string(d.Bytes(4)); magic != indexEnd {
		return 0, 0, fmt.Errorf("magic of the last page is %q, want %q", magic, indexEnd)
	}
	edges, blocks = d.U64(), d.U64()
	if blocks > 1<<32-1 || edges > blocks<<20 {
		return 0, 0, fmt.Errorf("%d edges in %d blocks are too many", edges, blocks)
	}
	return edges, blocks, d.Err()
}

// verifyPage checks a page of 4 KiB that begins with its checksum.
func verifyPage(kind string, uuid kv.UUID, n int64, page []byte) error {
	want := binary.LittleEndian.Uint32(page)
	if got := codec.BlockSum(kind, uuid, uint64(n), page[4:]); got != want {
		return fmt.Errorf("checksum is %08x, its bytes give %08x", want, got)
	}
	return nil
}

// loadIndex reads and verifies the index of a direction.
func (s *Store) loadIndex(ctx context.Context, dev blockdev.Device, dir Direction,
	budget *mem.Budget) (ix *topologyIndex, err error) {
	_, path := TopologyPaths(dir)
	f, err := s.open(dev, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.file.Close()) }()
	buf, err := mem.NewArena(nil, "index pages", readChunk)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	l := indexLoader{f: f, kind: indexKind(dir), uuid: s.meta.UUID, buf: buf.Bytes()}
	return l.load(ctx, budget)
}

type indexLoader struct {
	f    *source
	kind string
	uuid kv.UUID
	buf  []byte
}

func (l *indexLoader) load(ctx context.Context, budget *mem.Budget) (*topologyIndex, error) {
	ix, err := l.describe(ctx)
	if err != nil {
		return nil, err
	}
	if ix.arena, err = mem.NewArena(budget, "topology index", ix.bytes()); err != nil {
		return nil, err
	}
	ix.first = mem.View[uint32](ix.arena.Bytes())
	if err := l.pages(ctx, ix); err != nil {
		return nil, errors.Join(err, ix.free())
	}
	return ix, nil
}

// describe reads the header and the last page: an index without its entries.
func (l *indexLoader) describe(ctx context.Context) (*topologyIndex, error) {
	h, err := l.f.header(ctx, l.kind, l.uuid, l.buf)
	if err != nil {
		return nil, err
	}
	ix := &topologyIndex{}
	if ix.topologyFields, err = decodeTopologyFields(h.Fields); err != nil {
		return nil, l.f.damage(0, 0, "header: %v", err)
	}
	if ix.shape, err = ix.topologyFields.shape(); err != nil {
		return nil, l.f.damage(0, 0, "header: %v", err)
	}
	return ix, l.end(ctx, ix)
}

// end reads the counts from the last page.
func (l *indexLoader) end(ctx context.Context, ix *topologyIndex) error {
	size := l.f.file.Size()
	last := size/pageBytes - 1
	if last < 1 || size%pageBytes != 0 {
		return l.f.damage(-1, 0, "file is %d bytes long, not header and whole pages", size)
	}
	page, off := l.buf[:pageBytes], last*pageBytes
	if err := l.f.read(ctx, off, page); err != nil {
		return fmt.Errorf("layout: read the last page of %s: %w", l.f.path, err)
	}
	err := verifyPage(l.kind, l.uuid, last, page)
	if err == nil {
		var blocks uint64
		ix.edges, blocks, err = decodeIndexEnd(page)
		ix.blocks = int64(blocks)
	}
	if err == nil && indexPages(ix.blocks) != last-1 {
		err = fmt.Errorf("%d blocks need %d pages, there are %d", ix.blocks,
			indexPages(ix.blocks), last-1)
	}
	if err != nil {
		return l.f.damage(last, off, "%v", err)
	}
	return nil
}

// pages reads and verifies the entries, and that they ascend and are nodes: a search relies on
// it.
func (l *indexLoader) pages(ctx context.Context, ix *topologyIndex) error {
	pages, prev := indexPages(ix.blocks), uint32(0)
	for p := int64(0); p < pages; p += readChunk / pageBytes {
		n := min(pages-p, readChunk/pageBytes)
		buf := l.buf[:n*pageBytes]
		if err := l.f.read(ctx, codec.HeaderBytes+p*pageBytes, buf); err != nil {
			return fmt.Errorf("layout: read %s: %w", l.f.path, err)
		}
		for i := range n {
			page, number := buf[i*pageBytes:][:pageBytes], p+i+1
			off := number * pageBytes
			if err := verifyPage(l.kind, l.uuid, number, page); err != nil {
				return l.f.damage(number, off, "%v", err)
			}
			to := ix.first[(p+i)*indexPerPage:]
			to = to[:min(len(to), indexPerPage)]
			for k := range to {
				v := binary.LittleEndian.Uint32(page[4+4*k:])
				if v < prev || uint64(v) >= ix.nodes {
					return l.f.damage(number, off, "first node %d after %d of %d nodes", v, prev,
						ix.nodes)
				}
				to[k], prev = v, v
			}
		}
	}
	return nil
}
