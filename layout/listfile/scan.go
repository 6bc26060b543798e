package listfile

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
)

// emptyRun bounds the empty lists that a scan passes in one call.
const emptyRun = 1 << 16

// Scan calls fn with consecutive ranges of lists, in node order, reading the file in large
// sequential batches; first is the node of l's first list. Every node is in a range, also nodes
// without neighbors. A list may come in parts: if cont is true, the first list of l goes on with
// the last list of the call before. l is valid during the call. It takes two read buffers of 4 MiB.
func Scan(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
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
			n := k.Number()
			return f.Damage(n, BlockOffset(n, f.BlockBytes), "%v", err)
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
	return scanEmpty(&lists, next, f.Nodes-next, fn)
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
	for i := range k.Slots {
		p, err := s.partAt(k, i, ends)
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
			n := k.Number()
			return f.Damage(n, BlockOffset(n, f.BlockBytes), "%v", err)
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
