package layout

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"gdb/blockdev"
	"gdb/internal/mem"
)

// emptyRun is how many empty lists one call of a scan gives at most.
const emptyRun = 1 << 16

// ScanTopology calls fn with consecutive ranges of lists, in node order, reading the file in
// large sequential batches: first is the node of l's first list. Every node is in a range, those
// without neighbors too. Lists of a hub may come in several calls with the same first (cont is
// true from the second on). l is valid during the call. Memory: two read buffers of 4 MiB.
func (s *Store) ScanTopology(ctx context.Context, dev blockdev.Device, dir Direction,
	fn func(first NodeID, cont bool, l *Lists) error) (err error) {
	f, err := s.openLists(ctx, dev, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.file.Close()) }()
	var lists Lists
	next, edges := uint64(0), uint64(0)
	err = f.each(ctx, func(k *block, gap uint64, cont bool) error {
		if err := scanEmpty(&lists, next, gap, fn); err != nil {
			return err
		}
		if err := f.shape.decode(k, &lists); err != nil {
			n := k.number()
			return f.damage(n, blockOffset(n, f.blockBytes), "%v", err)
		}
		next = uint64(k.first) + uint64(k.slots)
		edges += uint64(k.entries)
		return fn(k.first, cont, &lists)
	})
	if err != nil {
		return err
	}
	if edges != s.meta.Edges {
		return f.damage(-1, 0, "file has %d edges, the store %d", edges, s.meta.Edges)
	}
	return scanEmpty(&lists, next, f.nodes-next, fn)
}

// scanEmpty gives n empty lists from node first on.
func scanEmpty(l *Lists, first, n uint64, fn func(NodeID, bool, *Lists) error) error {
	for ; n > 0; n -= min(n, emptyRun) {
		run := min(n, emptyRun)
		*l = Lists{Off: mem.Resize(l.Off, int(run)+1), Types: l.Types, Weights: l.Weights,
			Times: l.Times}
		clear(l.Off)
		l.Types, l.Weights, l.Times = l.Types[:0], l.Weights[:0], l.Times[:0]
		if err := fn(NodeID(first), false, l); err != nil {
			return err
		}
		first += run
	}
	return nil
}

// decode writes all lists of a block to l, whose slices it reuses; Nbrs aliases the block.
func (s *blockShape) decode(k *block, l *Lists) error {
	l.Off = mem.Resize(l.Off, int(k.slots)+1)
	l.Off[0], l.Off[1] = 0, uint64(k.entries)
	if !k.hub {
		prev := uint32(0)
		for i := range k.slots {
			end := s.end(k.b, i)
			if end < prev || end > k.entries {
				_, _, err := s.list(k, i)
				return err
			}
			prev = end
			l.Off[i+1] = uint64(end)
		}
	}
	n := int(k.entries)
	l.Nbrs = mem.View[NodeID](k.b[k.ids : k.ids+n*idBytes])
	s.sizeAttributes(l, n)
	s.attributesOf(k, 0, n, l, 0)
	return nil
}

// attributesOf copies types, weights and times of entries from … to-1 of a block to l, from index
// at on; l was sized for them.
func (s *blockShape) attributesOf(k *block, from, to int, l *Lists, at uint64) {
	le := binary.LittleEndian
	if s.types {
		b, out := k.b[s.typesOff(k)+from*typeBytes:], l.Types[at:]
		for i := range out[:to-from] {
			out[i] = le.Uint16(b[i*typeBytes:])
		}
	}
	if s.weights {
		s.weightsOf(k, from, l.Weights[at:][:to-from])
	}
	if s.times {
		b, out := k.b[s.timesOff(k)+from*timeBytes:], l.Times[at:]
		for i := range out[:to-from] {
			out[i] = int64(le.Uint64(b[i*timeBytes:]))
		}
	}
}

// weightsOf copies weights of a block, from entry from on, to fill out. They are not aligned where
// edges have types.
func (s *blockShape) weightsOf(k *block, from int, out []float32) {
	b := k.b[s.weightsOff(k)+from*weightBytes:][:len(out)*weightBytes]
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[i*weightBytes:]))
	}
}

// sizeAttributes gives l room for n types, weights and times, as the file has them.
func (s *blockShape) sizeAttributes(l *Lists, n int) {
	if s.types {
		l.Types = mem.Resize(l.Types, n)
	}
	if s.weights {
		l.Weights = mem.Resize(l.Weights, n)
	}
	if s.times {
		l.Times = mem.Resize(l.Times, n)
	}
}
