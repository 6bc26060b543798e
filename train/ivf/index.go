package ivf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"gdb/compute/kernel"
	"gdb/compute/kernel/pq"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

// Index is an open index. It may be used from any goroutine.
type Index struct {
	shape
	file   *layout.File
	uuid   kv.UUID
	tree   *tree
	book   *pq.Book
	starts []uint32 // the first group of codes of each list, and their number
	pool   *kernel.Pool
	blocks *blockCache
	memory mem.Account
	free   chan *search // what searches compute with; nil for one that was not used yet
}

const (
	// searchesMost is how many searches go on at a time; others wait.
	searchesMost = 8
	// framesLeast is how many blocks a search holds at a time, at least.
	framesLeast = 4
)

// Open opens the file of an index. Tables are read to memory; blocks of codes are read when they
// are searched, and cacheBytes of them are kept.
func Open(ctx context.Context, at Place, budget *mem.Budget, cacheBytes int64) (*Index, error) {
	file, err := at.Store.OpenFile(at.Dev, at.Path)
	if err != nil {
		return nil, err
	}
	x := &Index{file: file, uuid: at.Store.Meta().UUID, pool: kernel.NewPool(1),
		memory: mem.NewAccount(budget, "an index of vectors"),
		free:   make(chan *search, searchesMost)}
	for range searchesMost {
		x.free <- nil
	}
	if err := x.open(ctx, at.Of, budget, cacheBytes); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// open reads the header and the tables.
func (x *Index) open(ctx context.Context, of string, budget *mem.Budget, cacheBytes int64) error {
	h, err := x.file.ReadHeader(ctx, Kind, x.uuid)
	if err != nil {
		return err
	}
	if x.shape, err = decodeFields(h.Fields); err != nil {
		return x.file.Damage(0, 0, "header: %v", err)
	}
	if x.Of != of {
		return x.file.Damage(0, 0, "it is of %s, want %s", x.Of, of)
	}
	if err := x.file.CheckSize(x.fileBytes()); err != nil {
		return err
	}
	if err := x.memory.Add(4 * (x.words() + int64(x.Lists+x.Groups))); err != nil {
		return err
	}
	if err := x.readTables(ctx); err != nil {
		return err
	}
	frames := min(max(cacheBytes/blockBytes, searchesMost*framesLeast), max(1, x.shape.blocks()))
	x.blocks, err = newBlockCache(x, frames, budget)
	return err
}

// readTables reads and checks the tables.
func (x *Index) readTables(ctx context.Context) error {
	words := make([]uint32, 0, x.words())
	err := x.file.EachPage(ctx, Kind, x.uuid, x.firstBlock()/layout.PageBytes,
		func(_ int64, page []byte) error {
			for at := 4; at < len(page) && int64(len(words)) < x.words(); at += 4 {
				words = append(words, binary.LittleEndian.Uint32(page[at:]))
			}
			return ctx.Err()
		})
	if err != nil {
		return err
	}
	take := func(n int) (part []uint32) {
		part, words = words[:n], words[n:]
		return part
	}
	floats := func(n int) []float32 { return mem.View[float32](mem.BytesOf(take(n))) }
	t := &tree{dim: x.Dim, groups: floats(x.Groups * x.Dim), first: take(x.Groups + 1),
		lists: floats(x.Lists * x.Dim)}
	t.finish()
	x.tree = t
	if x.book, err = pq.NewBook(x.Shape, floats(x.Values())); err != nil {
		return x.file.Damage(0, 0, "%v", err)
	}
	x.starts = take(x.Lists + 1)
	if !ascends(t.first, uint32(x.Lists)) || !ascends(x.starts, uint32(x.CodeGroups)) {
		return x.file.Damage(-1, codec.HeaderBytes, "its lists do not follow one another")
	}
	return nil
}

// ascends reports whether numbers rise from 0 to last.
func ascends(numbers []uint32, last uint32) bool {
	before := uint32(0)
	for _, n := range numbers {
		if n < before {
			return false
		}
		before = n
	}
	return numbers[0] == 0 && before == last
}

// Close closes the file and gives the memory back. No search may be under way.
func (x *Index) Close() error {
	err := x.file.Close()
	if x.blocks != nil {
		err = errors.Join(err, x.blocks.Free())
	}
	x.memory.Release()
	return err
}

// Closeness returns the way in which vectors are compared.
func (x *Index) Closeness() string { return x.By }

// Check reads and verifies all blocks, and that each vector is of one of the nodes, 0 to nodes-1,
// and in one list.
func (x *Index) Check(ctx context.Context, nodes uint64) error {
	seen := make([]uint64, (nodes+63)/64)
	group, list, count := uint64(0), 0, uint64(0)
	return x.file.Stream(ctx, x.firstBlock(), x.fileBytes(), blockBytes,
		func(off int64, data []byte) error {
			for ; len(data) > 0; off, data = off+blockBytes, data[blockBytes:] {
				number := (off - x.firstBlock()) / blockBytes
				if err := x.verify(number, data[:blockBytes]); err != nil {
					return err
				}
				for i := 0; i < x.perBlock() && group < x.CodeGroups; i++ {
					for int(x.starts[list+1]) <= int(group) {
						list++
					}
					n, err := x.checkGroup(x.group(data, i), seen)
					if err != nil {
						return x.file.Damage(number, off, "list %d: %v", list, err)
					}
					count += uint64(n)
					group++
				}
			}
			if group == x.CodeGroups && count != x.Vectors {
				return x.file.Damage(-1, off, "it has %d vectors, want %d", count, x.Vectors)
			}
			return ctx.Err()
		})
}

// checkGroup marks the vectors of a group as seen, and returns their number.
func (x *Index) checkGroup(g group, seen []uint64) (count int, err error) {
	for e, bias := range g.bias {
		if math.IsInf(float64(bias), -1) {
			continue
		}
		v := uint64(g.nodes[e])
		if v/64 >= uint64(len(seen)) || seen[v/64]>>(v%64)&1 == 1 {
			return 0, fmt.Errorf("node %d is in it twice, or there is no such node", v)
		}
		seen[v/64] |= 1 << (v % 64)
		count++
	}
	return count, nil
}

// verify checks a block.
func (x *Index) verify(number int64, block []byte) error {
	want := binary.LittleEndian.Uint32(block)
	if got := codec.BlockSum(Kind, x.uuid, uint64(number), block[4:]); got != want {
		return x.file.Damage(number, x.firstBlock()+number*blockBytes,
			"checksum is %08x, its bytes give %08x", want, got)
	}
	return nil
}

// group is a group of codes in a block.
type group struct {
	bytes []byte
	bias  []float32
	nodes []uint32
	sums  []uint32 // nil without
}

// group returns a group of a block.
func (x *Index) group(block []byte, i int) group {
	b := block[blockHead+i*x.stride():][:x.stride()]
	words := b[x.GroupBytes():]
	g := group{bytes: b, bias: mem.View[float32](words[:4*pq.Group]),
		nodes: mem.View[uint32](words[4*pq.Group : 8*pq.Group])}
	if x.Sums {
		g.sums = mem.View[uint32](words[8*pq.Group : 12*pq.Group])
	}
	return g
}
