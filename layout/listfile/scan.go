package listfile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// emptyRun bounds the empty lists that a scan passes in one call.
const emptyRun = 1 << 16

// Scan calls fn with consecutive ranges of lists, in node order, reading the file in large
// sequential batches; first is the node of l's first list. Every node is in a range, also nodes
// without neighbors. A list may come in parts: if cont is true, the first list of l goes on with
// the last list of the call before. In a typed store it is all lists of a node, one after the
// other. l is valid during the call. It takes two read buffers of 4 MiB.
func Scan(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	fn func(first layout.NodeID, cont bool, l *Lists) error) (err error) {
	j := NewJoiner(layout.ListsOf(s.Meta(), dir), fn)
	return errors.Join(ScanLists(ctx, s, dev, dir, j.Add), j.Finish())
}

// ScanLists does what Scan does, with each list of a typed store by itself: first is the number of
// a list, and entries have no types.
func ScanLists(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	fn func(first layout.NodeID, cont bool, l *Lists) error) (err error) {
	f, err := Open(ctx, s, dev, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var lists Lists
	next, edges := uint64(0), uint64(0)
	err = f.Each(ctx, func(k *Block, gap uint64, cont bool) error {
		if err := scanEmpty(&lists, next, gap, fn); err != nil {
			return err
		}
		if err := f.Shape.Decode(k, &lists); err != nil {
			return f.DamageBlock(k.Number(), err)
		}
		next = uint64(k.First) + uint64(k.Slots)
		edges += uint64(k.Entries)
		return fn(k.First, cont, &lists)
	})
	if err != nil {
		return err
	}
	if edges != s.Meta().Edges {
		return f.Damage(-1, 0, "file has %d edges, the store %d", edges, s.Meta().Edges)
	}
	return scanEmpty(&lists, next, f.Lists-next, fn)
}

// blocksTogether is how many blocks a goroutine of ScanTogether decodes at a time.
const blocksTogether = 64

// ScanTogether does what Scan does, with blocks verified and decoded on Loaders goroutines: for
// passes that do little with an entry. It takes what EachRun takes, and the lists of 64 blocks a
// goroutine.
func ScanTogether(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	fn func(first layout.NodeID, cont bool, l *Lists) error) (err error) {
	f, err := Open(ctx, s, dev, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	j := NewJoiner(f.Numbers, fn)
	lists := make([]Lists, blocksTogether*Loaders())
	var empty Lists
	next, edges := uint64(0), uint64(0)
	err = f.EachRun(ctx, func(run []Placed) error {
		for some := range slices.Chunk(run, len(lists)) {
			if err := f.decodeAll(some, lists); err != nil {
				return err
			}
			for i := range some {
				k := &some[i]
				if err := scanEmpty(&empty, next, k.Gap, j.Add); err != nil {
					return err
				}
				next, edges = uint64(k.First)+uint64(k.Slots), edges+uint64(k.Entries)
				if err := j.Add(k.First, k.Cont, &lists[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil && edges != s.Meta().Edges {
		err = f.Damage(-1, 0, "file has %d edges, the store %d", edges, s.Meta().Edges)
	}
	if err == nil {
		err = scanEmpty(&empty, next, f.Lists-next, j.Add)
	}
	if err == nil {
		err = j.Finish()
	}
	return err
}

// decodeAll decodes blocks on Loaders goroutines.
func (l *File) decodeAll(blocks []Placed, out []Lists) error {
	return Parts(len(blocks), func(_, first, end int) error {
		for i := first; i < end; i++ {
			if err := l.Shape.Decode(&blocks[i].Block, &out[i]); err != nil {
				return l.DamageBlock(blocks[i].Number(), err)
			}
		}
		return nil
	})
}

// ScanRange calls fn with the lists from … to-1 that are not empty, in order and
// without attributes, reading their blocks in large sequential batches. first is the node of l's
// first list, and cont is as in Scan. It takes what Scan takes.
func (l *File) ScanRange(ctx context.Context, ix *Index, from, to layout.NodeID,
	fn func(first layout.NodeID, cont bool, l *Lists) error) error {
	begin := max(0, Upper(ix.Keys, Key(from, 0))-1)
	end := len(ix.Keys)
	if to < layout.NodeID(l.Lists) && to > 0 {
		end = Upper(ix.Keys, Key(to, 0)-1)
	}
	var all, some Lists
	return l.blocks(ctx, int64(begin)+1, int64(end)+1, Order{Lost: true},
		func(k *Block, _ uint64, _ bool) error {
			first := max(from, k.First)
			last := min(to, k.First+layout.NodeID(k.Slots))
			if first >= last {
				return nil
			}
			if err := l.Shape.DecodeIDs(k, &all); err != nil {
				return l.DamageBlock(k.Number(), err)
			}
			some.Off, some.Nbrs = all.Off[first-k.First:last-k.First+1], all.Nbrs
			return fn(first, first == k.First && k.Start > 0, &some)
		})
}

// scanEmpty calls fn with n empty lists, from node first on.
func scanEmpty(l *Lists, first, n uint64, fn func(layout.NodeID, bool, *Lists) error) error {
	for ; n > 0; n -= min(n, emptyRun) {
		run := min(n, emptyRun)
		*l = Lists{Off: mem.Resize(l.Off, int(run)+1), Types: l.Types, Weights: l.Weights,
			Times: l.Times}
		clear(l.Off)
		l.Types, l.Weights, l.Times = l.Types[:0], l.Weights[:0], l.Times[:0]
		if err := fn(layout.NodeID(first), false, l); err != nil {
			return err
		}
		first += run
	}
	return nil
}

// Decode writes all lists of a block to l, whose slices it reuses, and checks them.
func (s *Shape) Decode(k *Block, l *Lists) error {
	if err := s.DecodeIDs(k, l); err != nil {
		return err
	}
	n := int(k.Entries)
	s.SizeAttributes(l, n)
	s.CopyAttributes(k, 0, n, l, 0)
	return nil
}

// DecodeIDs does what Decode does, without types, weights and times.
func (s *Shape) DecodeIDs(k *Block, l *Lists) error {
	l.Off = mem.Resize(l.Off, int(k.Slots)+1)
	l.Nbrs = mem.Resize(l.Nbrs, int(k.Entries))
	off, ids := l.Off, l.Nbrs
	off[0] = 0
	ends, err := k.decodeEnds(l)
	if err != nil {
		return err
	}
	if k.raw == nil {
		err = s.decodeCoded(k, ends, off, mem.View[uint32](mem.BytesOf(ids)))
	} else {
		err = s.decodeRaw(k, off, ids)
	}
	if err != nil {
		return err
	}
	if end := off[k.Slots]; end != uint64(k.Entries) {
		return fmt.Errorf("%w has %d of its %d entries", ErrBlock, end, k.Entries)
	}
	return nil
}

// decodeEnds returns where the lists of a coded block end, in units.
func (k *Block) decodeEnds(l *Lists) ([]uint32, error) {
	if k.raw != nil {
		return nil, nil
	}
	l.ends = mem.Resize(l.ends, int(k.Slots))
	if err := k.ends.Decode(k.Bytes, l.ends); err != nil {
		return nil, fmt.Errorf("%w ends: %w", ErrBlock, err)
	}
	return l.ends, nil
}

// decodeCoded decodes the lists of a coded block to ids, and where they end to off, given their
// ends in units.
func (s *Shape) decodeCoded(k *Block, ends []uint32, off []uint64, ids []uint32) error {
	var list listcode.List
	at, from, most := uint64(0), uint32(0), (k.bound-k.listsAt)/unitBits
	for i, to := range ends {
		if from > to || uint64(to) > most {
			return fmt.Errorf("%w: list of node %d is units %d to %d", ErrBlock,
				uint64(k.First)+uint64(i), from, to)
		}
		if from < to {
			err := k.coding.ParseTo(&list, k.Bytes, k.listsAt+unitBits*uint64(from),
				k.listsAt+unitBits*uint64(to))
			end := at + uint64(list.Count)
			if err == nil && end > uint64(len(ids)) {
				return fmt.Errorf("%w has more than its %d entries", ErrBlock, k.Entries)
			}
			if err == nil {
				err = list.Decode(k.Bytes, ids[at:end])
			}
			if err == nil && uint64(ids[end-1]) >= s.nodes {
				err = fmt.Errorf("neighbor %d of %d nodes", ids[end-1], s.nodes)
			}
			if err != nil {
				return fmt.Errorf("%w: list of node %d: %w", ErrBlock, uint64(k.First)+uint64(i),
					err)
			}
			at = end
		}
		off[i+1], from = at, to
	}
	return nil
}

// decodeRaw copies the lists of a block of the former layout.
func (s *Shape) decodeRaw(k *Block, off []uint64, ids []layout.NodeID) error {
	for i := range k.Slots {
		p, err := s.Part(k, i)
		if err != nil {
			return err
		}
		at := off[i]
		if off[i+1] = at + uint64(p.Count); off[i+1] > uint64(k.Entries) {
			return fmt.Errorf("%w has more than its %d entries", ErrBlock, k.Entries)
		}
		if err := p.Decode(s, ids[at:off[i+1]]); err != nil {
			return fmt.Errorf("list of node %d: %w", uint64(k.First)+uint64(i), err)
		}
	}
	return nil
}

// partAt does what Part does, given the decoded ends of all lists, and leaves Entry 0.
func (s *Shape) partAt(k *Block, slot uint32, ends []uint32) (Part, error) {
	if ends == nil {
		return s.Part(k, slot)
	}
	from, to := uint32(0), ends[slot]
	if slot > 0 {
		from = ends[slot-1]
	}
	return k.coded(slot, from, to)
}

// someBytes is how much ScanSome reads together, in bytes.
const someBytes = 1 << 20

// ScanSome calls fn with the lists of about one in every blocks, spread over the file, for
// estimates. Parts of lists that are in other blocks are missing. l is valid during the call. It
// takes two read buffers of 1 MiB.
func ScanSome(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	every int, fn func(l *Lists) error) (err error) {
	f, err := Open(ctx, s, dev, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	run := max(1, someBytes/int64(f.BlockBytes))
	var lists Lists
	some := func(k *Block, _ uint64, _ bool) error {
		if err := f.Shape.DecodeIDs(k, &lists); err != nil {
			return f.DamageBlock(k.Number(), err)
		}
		return fn(&lists)
	}
	for n := int64(1); n <= f.Blocks; n += run * int64(every) {
		// The blocks before are not known.
		err := f.blocks(ctx, n, min(n+run, f.Blocks+1), Order{Lost: true}, some)
		if err != nil {
			return err
		}
	}
	return nil
}

// Placed is a block, and how its lists follow those before it in the file.
type Placed struct {
	Block
	Gap  uint64 // number of nodes without neighbors before it
	Cont bool   // its first list goes on with the last list before it
}

// loadersMost bounds the goroutines that verify and decode blocks: a few keep up with a disk.
const loadersMost = 8

// Loaders returns how many goroutines verify and decode blocks that were read.
func Loaders() int { return min(runtime.NumCPU(), loadersMost) }

// Parts calls work with consecutive parts of [0, n), numbered from 0, on Loaders goroutines, and
// returns when all are done. It returns the error of the first part that has one.
func Parts(n int, work func(part, first, end int) error) error {
	parts := max(1, min(Loaders(), n))
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() {
			defer bug.Catch()
			errs[p] = work(p, n*p/parts, n*(p+1)/parts)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// EachRun calls fn with all blocks, verified and in order, as many at a time as are read together.
// Loaders goroutines verify them. A run is valid during the call. It takes two read buffers of 4
// MiB, and 300 bytes for each block of one.
func (l *File) EachRun(ctx context.Context, fn func(run []Placed) error) error {
	from, unit := BlockOffset(1, l.BlockBytes), int64(l.BlockBytes)
	var order Order
	var all []Placed
	return l.Stream(ctx, from, BlockOffset(l.Blocks+1, l.BlockBytes), l.BlockBytes,
		func(off int64, data []byte) error {
			first, n := 1+(off-from)/unit, len(data)/int(unit)
			if len(all) < n {
				all = make([]Placed, n)
			}
			run := all[:n]
			err := Parts(n, func(_, begin, end int) error {
				for i := begin; i < end; i++ {
					at := int64(i) * unit
					k, err := l.verified(first+int64(i), data[at:at+unit:at+unit])
					if err != nil {
						return l.DamageBlock(first+int64(i), err)
					}
					run[i].Block = k
				}
				return nil
			})
			if err != nil {
				return err
			}
			for i := range run {
				k := &run[i]
				if k.Gap, k.Cont, err = l.place(&k.Block, &order); err != nil {
					return l.DamageBlock(first+int64(i), err)
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return fn(run)
		})
}
