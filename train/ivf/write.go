package ivf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"gdb/compute/kernel/pq"
	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/extsort"
)

// write writes the file from sorted codes, syncs it, and returns its size.
func (b *builder) write(ctx context.Context, path string, runs []extsort.Run) (size int64,
	err error) {
	groups := make([]uint32, len(b.counts)+1) // the first group of codes of each list
	for i, n := range b.counts {
		groups[i+1] = groups[i] + (n+pq.Group-1)/pq.Group
	}
	b.shape.CodeGroups = uint64(groups[len(groups)-1])
	uuid := b.Store.Meta().UUID
	pages, err := layout.CreatePages(b.Store.FS(), path, b.shape.header(uuid))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pages.Abort()) }()
	if err := b.writeTables(pages, groups); err != nil {
		return 0, err
	}
	entries, err := extsort.OpenEntries(ctx, b.fs, runs)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, entries.Close()) }()
	w := &blockWriter{shape: &b.shape, file: pages.FileWriter, uuid: uuid,
		block: make([]byte, blockBytes)}
	if err := b.writeLists(ctx, w, entries); err != nil {
		return 0, err
	}
	m, err := pages.Finish(b.Path, Kind)
	if err == nil && m.Size != b.shape.fileBytes() {
		err = fmt.Errorf("BUG: %s has %d bytes, want %d", path, m.Size, b.shape.fileBytes())
	}
	return m.Size, err
}

// writeTables writes the tables that are in memory in a search.
func (b *builder) writeTables(w *layout.PageWriter, groups []uint32) error {
	for _, values := range [][]float32{b.tree.groups, nil, b.tree.lists, b.book.Values} {
		if values == nil {
			if err := addWords(w, b.tree.first); err != nil {
				return err
			}
		}
		for _, v := range values {
			if err := w.Add(math.Float32bits(v)); err != nil {
				return err
			}
		}
	}
	if err := addWords(w, groups); err != nil {
		return err
	}
	return w.EndPage(nil)
}

func addWords(w *layout.PageWriter, words []uint32) error {
	for _, v := range words {
		if err := w.Add(v); err != nil {
			return err
		}
	}
	return nil
}

// writeLists writes all lists in groups of codes, the last one of a list filled up with entries
// that no search finds.
func (b *builder) writeLists(ctx context.Context, w *blockWriter, from *extsort.Entries) error {
	for list, count := range b.counts {
		for i := range count {
			e, ok, err := from.Next(ctx)
			if err == nil && (!ok || e.Key>>32 != uint64(list) ||
				len(e.Text) != b.shape.textBytes()) {
				err = fmt.Errorf("BUG: list %d lacks vectors", list)
			}
			if err != nil {
				return err
			}
			if i%pq.Group == 0 {
				if err := w.next(); err != nil {
					return err
				}
			}
			w.put(e, int(i%pq.Group))
		}
		if list%1024 == 0 {
			b.step("writing lists", list, len(b.counts))
		}
	}
	return w.end()
}

// blockWriter writes groups of codes in blocks.
type blockWriter struct {
	shape  *shape
	file   *layout.FileWriter
	uuid   kv.UUID
	block  []byte
	groups int    // in block
	blocks uint64 // written
	group  []byte // the last one in block
}

// next begins a group, all of whose entries are empty.
func (w *blockWriter) next() error {
	if w.groups == w.shape.perBlock() {
		if err := w.end(); err != nil {
			return err
		}
	}
	w.group = w.block[blockHead+w.groups*w.shape.stride():][:w.shape.stride()]
	w.groups++
	none := math.Float32bits(float32(math.Inf(-1)))
	for e := range pq.Group {
		binary.LittleEndian.PutUint32(w.group[w.shape.GroupBytes()+4*e:], none)
	}
	return nil
}

// put writes an entry of the last group.
func (w *blockWriter) put(e extsort.Entry, entry int) {
	code, rest := e.Text[:w.shape.CodeBytes()], e.Text[w.shape.CodeBytes():]
	w.shape.PutGroup(w.group, code, entry)
	words := w.group[w.shape.GroupBytes():]
	copy(words[4*entry:][:4], rest)
	binary.LittleEndian.PutUint32(words[4*(pq.Group+entry):], uint32(e.Key))
	if w.shape.Sums {
		copy(words[4*(2*pq.Group+entry):][:4], rest[4:])
	}
}

// end writes the block, unless it is empty.
func (w *blockWriter) end() error {
	if w.groups == 0 {
		return nil
	}
	sum := codec.BlockSum(Kind, w.uuid, w.blocks, w.block[4:])
	binary.LittleEndian.PutUint32(w.block, sum)
	err := w.file.Write(w.block)
	clear(w.block)
	w.groups = 0
	w.blocks++
	return err
}
