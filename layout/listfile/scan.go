package listfile

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
)

// emptyRun is how many empty lists one call of a scan gives at most.
const emptyRun = 1 << 16

// Scan calls fn with consecutive ranges of lists, in node order, reading the file in
// large sequential batches: first is the node of l's first list. Every node is in a range, those
// without neighbors too. Lists of a hub may come in several calls with the same first (cont is
// true from the second on). l is valid during the call. Memory: two read buffers of 4 MiB.
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

// scanEmpty gives n empty lists from node first on.
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

// Decode writes all lists of a block to l, whose slices it reuses; Nbrs aliases the block.
func (s *Shape) Decode(k *Block, l *Lists) error {
	l.Off = mem.Resize(l.Off, int(k.Slots)+1)
	l.Off[0], l.Off[1] = 0, uint64(k.Entries)
	if !k.Hub {
		prev := uint32(0)
		for i := range k.Slots {
			end := s.end(k.Bytes, i)
			if end < prev || end > k.Entries {
				_, _, err := s.List(k, i)
				return err
			}
			prev = end
			l.Off[i+1] = uint64(end)
		}
	}
	n := int(k.Entries)
	l.Nbrs = mem.View[layout.NodeID](k.Bytes[k.IDsAt : k.IDsAt+n*IDBytes])
	s.SizeAttributes(l, n)
	s.CopyAttributes(k, 0, n, l, 0)
	return nil
}

// CopyAttributes copies types, weights and times of entries from … to-1 of a block to l, from index
// at on; l was sized for them.
func (s *Shape) CopyAttributes(k *Block, from, to int, l *Lists, at uint64) {
	le := binary.LittleEndian
	if s.Types {
		b, out := k.Bytes[s.typesOff(k)+from*TypeBytes:], l.Types[at:]
		for i := range out[:to-from] {
			out[i] = le.Uint16(b[i*TypeBytes:])
		}
	}
	if s.Weights {
		s.CopyWeights(k, from, l.Weights[at:][:to-from])
	}
	if s.Times {
		s.CopyTimes(k, from, l.Times[at:][:to-from])
	}
}

// CopyWeights copies weights of a block, from entry from on, to fill out. They are not aligned
// where
// edges have types.
func (s *Shape) CopyWeights(k *Block, from int, out []float32) {
	b := k.Bytes[s.weightsOff(k)+from*WeightBytes:][:len(out)*WeightBytes]
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[i*WeightBytes:]))
	}
}

// CopyTimes copies times of a block, from entry from on, to fill out. They are not aligned either.
func (s *Shape) CopyTimes(k *Block, from int, out []int64) {
	b := k.Bytes[s.timesOff(k)+from*TimeBytes:][:len(out)*TimeBytes]
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[i*TimeBytes:]))
	}
}

// Weight is that of an entry of a block.
func (s *Shape) Weight(k *Block, entry uint32) float32 {
	b := k.Bytes[s.weightsOff(k)+int(entry)*WeightBytes:]
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// Type is the number of the type of an entry of a block.
func (s *Shape) Type(k *Block, entry uint32) uint32 {
	return uint32(binary.LittleEndian.Uint16(k.Bytes[s.typesOff(k)+int(entry)*TypeBytes:]))
}

// SizeAttributes gives l room for n types, weights and times, as the file has them.
func (s *Shape) SizeAttributes(l *Lists, n int) {
	if s.Types {
		l.Types = mem.Resize(l.Types, n)
	}
	if s.Weights {
		l.Weights = mem.Resize(l.Weights, n)
	}
	if s.Times {
		l.Times = mem.Resize(l.Times, n)
	}
}
