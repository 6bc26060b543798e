package listfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

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
	IndexEnd     = "GTND"
	IndexPerPage = (layout.PageBytes - 4) / 4
)

type indexWriter struct {
	file   *layout.FileWriter
	kind   string
	uuid   kv.UUID
	blocks uint64
	page   []byte
	pages  uint64
}

func newIndexWriter(fs vfs.FS, path, kind string, uuid kv.UUID,
	fields []byte) (*indexWriter, error) {
	f, err := layout.CreateFile(fs, path)
	if err != nil {
		return nil, err
	}
	w := &indexWriter{file: f, kind: kind, uuid: uuid, page: make([]byte, 4, layout.PageBytes)}
	if err := f.Write(codec.Header{Kind: kind, UUID: uuid, Fields: fields}.Encode()); err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	return w, nil
}

func (w *indexWriter) add(first layout.NodeID) error {
	if w.blocks == 1<<32-1 {
		return fmt.Errorf("layout: write %s: more than %d blocks; choose a larger block",
			w.file.Path, w.blocks)
	}
	w.page = binary.LittleEndian.AppendUint32(w.page, uint32(first))
	w.blocks++
	if len(w.page) == layout.PageBytes {
		return w.endPage()
	}
	return nil
}

func (w *indexWriter) endPage() error {
	n := len(w.page)
	w.page = w.page[:layout.PageBytes]
	clear(w.page[n:])
	w.pages++
	sum := codec.BlockSum(w.kind, w.uuid, w.pages, w.page[4:])
	binary.LittleEndian.PutUint32(w.page, sum)
	err := w.file.Write(w.page)
	w.page = w.page[:4]
	return err
}

func (w *indexWriter) finish(rel string, edges uint64) (kv.FileMeta, error) {
	var err error
	if len(w.page) > 4 {
		err = w.endPage()
	}
	w.page = append(w.page, IndexEnd...)
	w.page = binary.LittleEndian.AppendUint64(w.page, edges)
	w.page = binary.LittleEndian.AppendUint64(w.page, w.blocks)
	err = errors.Join(err, w.endPage())
	m, err2 := w.file.Finish(rel, w.kind)
	return m, errors.Join(err, err2)
}

// Index is an index in memory, and what it says of its topology file.
type Index struct {
	Fields
	Shape  Shape
	Edges  uint64
	Blocks int64
	arena  *mem.Arena
	First  []uint32 // first node of each block; that of block b is First[b-1]
}

// indexPages is how many pages the entries of so many blocks take.
func indexPages(blocks int64) int64 { return (blocks + IndexPerPage - 1) / IndexPerPage }

// Free gives the memory back.
func (ix *Index) Free() error { return ix.arena.Free() }

// Bytes is the memory held.
func (ix *Index) Bytes() int64 { return ix.Blocks * 4 }

// DecodeIndexEnd decodes the last page of an index, after its checksum was verified.
func DecodeIndexEnd(page []byte) (edges, blocks uint64, err error) {
	d := codec.NewDec(page)
	d.U32()
	if magic := string(d.Bytes(4)); magic != IndexEnd {
		return 0, 0, fmt.Errorf("magic of the last page is %q, want %q", magic, IndexEnd)
	}
	edges, blocks = d.U64(), d.U64()
	if blocks > 1<<32-1 || edges > blocks<<20 {
		return 0, 0, fmt.Errorf("%d edges in %d blocks are too many", edges, blocks)
	}
	return edges, blocks, d.Err()
}

// LoadIndex reads and verifies the index of a direction.
func LoadIndex(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	budget *mem.Budget) (ix *Index, err error) {
	_, path := layout.TopologyPaths(dir)
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf, err := mem.NewArena(nil, "index pages", layout.ReadChunk)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	l := indexLoader{f: f, kind: layout.IndexKind(dir), uuid: s.Meta().UUID, buf: buf.Bytes()}
	return l.load(ctx, budget)
}

// DescribeIndex reads the header and the last page of an opened index: one without its entries. buf
// is aligned and has room for a page.
func DescribeIndex(ctx context.Context, f *layout.File, dir layout.Direction, uuid kv.UUID,
	buf []byte) (*Index, error) {
	l := indexLoader{f: f, kind: layout.IndexKind(dir), uuid: uuid, buf: buf}
	return l.describe(ctx)
}

type indexLoader struct {
	f    *layout.File
	kind string
	uuid kv.UUID
	buf  []byte
}

func (l *indexLoader) load(ctx context.Context, budget *mem.Budget) (*Index, error) {
	ix, err := l.describe(ctx)
	if err != nil {
		return nil, err
	}
	if ix.arena, err = mem.NewArena(budget, "topology index", ix.Bytes()); err != nil {
		return nil, err
	}
	ix.First = mem.View[uint32](ix.arena.Bytes())
	if err := l.pages(ctx, ix); err != nil {
		return nil, errors.Join(err, ix.Free())
	}
	return ix, nil
}

// describe reads the header and the last page: an index without its entries.
func (l *indexLoader) describe(ctx context.Context) (*Index, error) {
	h, err := l.f.ReadHeader(ctx, l.kind, l.uuid, l.buf)
	if err != nil {
		return nil, err
	}
	ix := &Index{}
	if ix.Fields, err = DecodeFields(h.Fields); err != nil {
		return nil, l.f.Damage(0, 0, "header: %v", err)
	}
	if ix.Shape, err = ix.Fields.Shape(); err != nil {
		return nil, l.f.Damage(0, 0, "header: %v", err)
	}
	return ix, l.end(ctx, ix)
}

// end reads the counts from the last page.
func (l *indexLoader) end(ctx context.Context, ix *Index) error {
	size := l.f.Size()
	last := size/layout.PageBytes - 1
	if last < 1 || size%layout.PageBytes != 0 {
		return l.f.Damage(-1, 0, "file is %d bytes long, not header and whole pages", size)
	}
	page, off := l.buf[:layout.PageBytes], last*layout.PageBytes
	if err := l.f.Read(ctx, off, page); err != nil {
		return fmt.Errorf("layout: read the last page of %s: %w", l.f.Path, err)
	}
	err := layout.VerifyPage(l.kind, l.uuid, last, page)
	if err == nil {
		var blocks uint64
		ix.Edges, blocks, err = DecodeIndexEnd(page)
		ix.Blocks = int64(blocks)
	}
	if err == nil && indexPages(ix.Blocks) != last-1 {
		err = fmt.Errorf("%d blocks need %d pages, there are %d", ix.Blocks,
			indexPages(ix.Blocks), last-1)
	}
	if err != nil {
		return l.f.Damage(last, off, "%v", err)
	}
	return nil
}

// pages reads and verifies the entries, and that they ascend and are nodes: a search relies on
// it.
func (l *indexLoader) pages(ctx context.Context, ix *Index) error {
	pages, prev := indexPages(ix.Blocks), uint32(0)
	for p := int64(0); p < pages; p += layout.ReadChunk / layout.PageBytes {
		n := min(pages-p, layout.ReadChunk/layout.PageBytes)
		buf := l.buf[:n*layout.PageBytes]
		if err := l.f.Read(ctx, codec.HeaderBytes+p*layout.PageBytes, buf); err != nil {
			return fmt.Errorf("layout: read %s: %w", l.f.Path, err)
		}
		for i := range n {
			page, number := buf[i*layout.PageBytes:][:layout.PageBytes], p+i+1
			off := number * layout.PageBytes
			if err := layout.VerifyPage(l.kind, l.uuid, number, page); err != nil {
				return l.f.Damage(number, off, "%v", err)
			}
			to := ix.First[(p+i)*IndexPerPage:]
			to = to[:min(len(to), IndexPerPage)]
			for k := range to {
				v := binary.LittleEndian.Uint32(page[4+4*k:])
				if v < prev || uint64(v) >= ix.Nodes {
					return l.f.Damage(number, off, "first node %d after %d of %d nodes", v, prev,
						ix.Nodes)
				}
				to[k], prev = v, v
			}
		}
	}
	return nil
}

// Upper returns how many of the ascending a are not above v. It gallops, since in a sorted
// frontier the answer is near the front.
func Upper(a []uint32, v uint32) int {
	lo, step := 0, 1
	for lo+step <= len(a) && a[lo+step-1] <= v {
		lo += step
		step *= 2
	}
	hi := min(lo+step, len(a)+1) - 1
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); a[m] <= v {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
