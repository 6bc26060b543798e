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
)

// The index of a topology file is its header (page 0), pages of 4 KiB with where each block begins,
// in block order, and a last page with the counts:
//
//	0        4                                            4096
//	+--------+--------------------------------------------+
//	| crc32c | first node, position of blocks 511(p-1)+1 … |   zeros after the last
//	+--------+--------------------------------------------+
//
//	0        4        8       16       24
//	+--------+--------+-------+--------+-------+
//	| crc32c | "GTND" | edges | blocks | zeros |
//	+--------+--------+-------+--------+-------+
//
// First node and position locate the block's first entry: its node, and its position in that node's
// list, both u32. Files of the former layout have first nodes only, 1023 a page; there, positions
// follow from the size of blocks.
//
// The checksum is codec.BlockSum of the index's kind, the store, the page number and what follows
// it. In memory, the index takes 8 bytes per block.
const (
	IndexEnd      = "GTND"
	IndexPerPage  = (layout.PageBytes - 4) / 8
	formerPerPage = (layout.PageBytes - 4) / 4
	indexKeyBytes = 8 // memory per block, in bytes
)

// IndexPerPage returns how many blocks a page of the index describes.
func (f *Fields) IndexPerPage() int64 {
	if f.Version == formerLayout {
		return formerPerPage
	}
	return IndexPerPage
}

// IndexEntry returns what a page of the index says of its block number i: the first node, and the
// position in its list, which is 0 in pages of the former layout.
func (f *Fields) IndexEntry(page []byte, i int64) (first, start uint32) {
	le := binary.LittleEndian
	if f.Version == formerLayout {
		return le.Uint32(page[4+4*i:]), 0
	}
	return le.Uint32(page[4+8*i:]), le.Uint32(page[8+8*i:])
}

// indexWriter writes the index of a file of lists.
type indexWriter struct {
	*layout.PageWriter
	blocks uint64
}

func (w *indexWriter) add(first layout.NodeID, start uint32) error {
	if w.blocks == 1<<32-1 {
		return fmt.Errorf("layout: write %s: more than %d blocks; choose a larger block", w.Path,
			w.blocks)
	}
	w.blocks++
	return w.Add(uint32(first), start)
}

func (w *indexWriter) finish(rel string, edges uint64) (kv.FileMeta, error) {
	end := codec.Enc{B: []byte(IndexEnd)}
	end.U64(edges)
	end.U64(w.blocks)
	err := errors.Join(w.EndPage(nil), w.EndPage(end.B))
	m, err2 := w.FinishPages(rel)
	return m, errors.Join(err, err2)
}

// Index is an index in memory, and what it says of its topology file. The owner calls Free.
type Index struct {
	Fields
	Shape  Shape
	Edges  uint64
	Blocks int64
	arena  *mem.Arena
	// Keys says where each block begins, the first one at 0: Key of its first node and of the
	// position in that node's list. Keys ascend.
	Keys []uint64
}

// Key returns a position in a list as one number, which sorts by node, then by position.
func Key(v layout.NodeID, pos uint32) uint64 { return uint64(v)<<32 | uint64(pos) }

// First returns the first node of a block, counted from 0.
func (ix *Index) First(block int) layout.NodeID { return layout.NodeID(ix.Keys[block] >> 32) }

// Run returns how many blocks up to block last, which has some of a node's list, have some of it.
func (ix *Index) Run(v layout.NodeID, last int) int {
	n := 1
	for last-n >= 0 && ix.Keys[last-n+1] > Key(v, 0) && ix.First(last-n+1) == v {
		n++
	}
	return n
}

// IndexBytes returns the memory of an index of this number of blocks, in bytes.
func IndexBytes(blocks int64) int64 { return indexKeyBytes * blocks }

// Free gives the memory back.
func (ix *Index) Free() error { return ix.arena.Free() }

// Bytes returns the memory held, in bytes.
func (ix *Index) Bytes() int64 { return IndexBytes(ix.Blocks) }

// pages returns how many pages describe the blocks.
func (ix *Index) pages() int64 {
	n := ix.IndexPerPage()
	return (ix.Blocks + n - 1) / n
}

// DecodeIndexEnd decodes the last page of an index, after its checksum was verified.
func DecodeIndexEnd(page []byte) (edges, blocks uint64, err error) {
	d := codec.NewDec(page)
	d.U32()
	if magic := string(d.Bytes(4)); magic != IndexEnd {
		return 0, 0, fmt.Errorf("magic of the last page is %q, want %q", magic, IndexEnd)
	}
	edges, blocks = d.U64(), d.U64()
	if blocks > 1<<32-1 || edges > blocks*8*blockMax {
		return 0, 0, fmt.Errorf("%d edges in %d blocks are too many", edges, blocks)
	}
	return edges, blocks, d.Err()
}

// LoadIndex reads and verifies the index of a direction. The caller calls Free.
func LoadIndex(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	budget *mem.Budget) (ix *Index, err error) {
	_, path := layout.TopologyPaths(dir)
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if ix, err = DescribeIndex(ctx, f, dir, s.Meta().UUID); err != nil {
		return nil, err
	}
	if ix.arena, err = mem.NewArena(budget, "topology index", ix.Bytes()); err != nil {
		return nil, err
	}
	ix.Keys = mem.View[uint64](ix.arena.Bytes())[:ix.Blocks]
	per := ix.IndexPerPage()
	err = f.EachPage(ctx, layout.IndexKind(dir), s.Meta().UUID, ix.pages()+1,
		func(n int64, page []byte) error {
			return ix.take(page, (n-1)*per, min(per, ix.Blocks-(n-1)*per))
		})
	if err != nil {
		return nil, errors.Join(err, ix.Free())
	}
	return ix, nil
}

// DescribeIndex reads the header and the last page of an opened index, and returns it without its
// keys.
func DescribeIndex(ctx context.Context, f *layout.File, dir layout.Direction, uuid kv.UUID) (
	ix *Index, err error) {
	kind := layout.IndexKind(dir)
	ix = &Index{}
	if ix.Fields, ix.Shape, err = readFields(ctx, f, kind, uuid); err != nil {
		return nil, err
	}
	last := f.Size()/layout.PageBytes - 1
	if last < 1 || f.Size()%layout.PageBytes != 0 {
		return nil, f.Damage(-1, 0, "file is %d bytes long, not header and whole pages", f.Size())
	}
	page, err := f.ReadPage(ctx, kind, uuid, last)
	if err != nil {
		return nil, err
	}
	edges, blocks, err := DecodeIndexEnd(page)
	ix.Edges, ix.Blocks = edges, int64(blocks)
	if err == nil && ix.pages() != last-1 {
		err = fmt.Errorf("%d blocks need %d pages, there are %d", ix.Blocks, ix.pages(), last-1)
	}
	if err != nil {
		return nil, f.Damage(last, last*layout.PageBytes, "%v", err)
	}
	return ix, nil
}

// take reads the entries of n blocks, from block number from on, counted from 0, and checks that
// they ascend and are nodes, as searches require.
func (ix *Index) take(page []byte, from, n int64) error {
	for k := range n {
		v, start := ix.IndexEntry(page, k)
		key, at, prev := Key(layout.NodeID(v), start), from+k, uint64(0)
		if at > 0 {
			prev = ix.Keys[at-1]
			if ix.Version == formerLayout && uint32(prev>>32) == v {
				// All blocks of a long list but the last are full.
				key = prev + uint64(ix.Shape.raw.hubCapacity)
			}
		}
		if at > 0 && key <= prev || key>>32 != uint64(v) || uint64(v) >= ix.Lists {
			return fmt.Errorf("first node %d at %d after %d of %d nodes", v, start, prev>>32,
				ix.Lists)
		}
		ix.Keys[at] = key
	}
	return nil
}

// Upper returns how many of the ascending a are not above v. It gallops, since in a sorted
// frontier the answer is near the front.
func Upper(a []uint64, v uint64) int { return upper(a, 1, v) }

// upper does what Upper does, for every words-th word of a, from the first on.
func upper(a []uint64, words int, v uint64) int {
	n := len(a) / words
	lo, step := 0, 1
	for lo+step <= n && a[words*(lo+step-1)] <= v {
		lo += step
		step *= 2
	}
	hi := min(lo+step, n+1) - 1
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); a[words*m] <= v {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
