package superbatch

import (
	"fmt"
	"math"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/sample"
)

// hopsMost bounds the deltas of a decoded batch.
const hopsMost = 1 << 10

// A batch is stored as two records. The first holds what planning needs: epoch, index, where each
// delta starts, and the nodes. The second holds the edges: the number of neighbors of each node
// outside the outermost delta, and for each neighbor its index among the nodes. Flags follow that
// say which of sample.Extras the batch has, and then the extras. Seeds are not stored, since they
// are the last delta. A batch takes about 9 bytes per node if nodes have two neighbors each.

// encodeNodes appends the first record of a batch.
func encodeNodes(e *codec.Enc, b *sample.Batch) {
	e.U64(b.Epoch)
	e.U64(b.Index)
	e.U32(uint32(len(b.Dense.NodeIDOffsets)))
	for _, o := range b.Dense.NodeIDOffsets {
		e.U32(o)
	}
	putArray(e, ids32(b.Dense.NodeIDs))
}

// decodeNodes decodes to b what encodeNodes wrote. It checks that b is the batch with this epoch
// and index and that its nodes are below total.
func decodeNodes(payload []byte, b *sample.Batch, epoch, index, total uint64) (err error) {
	d := codec.NewDec(payload)
	b.Epoch, b.Index = d.U64(), d.U64()
	n := d.U32()
	if d.Err() == nil && (n < 2 || n > hopsMost || b.Epoch != epoch || b.Index != index) {
		return fmt.Errorf("epoch %d, batch %d of %d deltas; want epoch %d, batch %d", b.Epoch,
			b.Index, n, epoch, index)
	}
	s := &b.Dense
	s.NodeIDOffsets = s.NodeIDOffsets[:0]
	for range min(n, hopsMost) {
		s.NodeIDOffsets = append(s.NodeIDOffsets, d.U32())
	}
	nodes, err := takeArray(d, ids32(s.NodeIDs), math.MaxInt32)
	if err != nil {
		return err
	}
	s.NodeIDs = mem.View[sample.NodeID](mem.BytesOf(nodes[:cap(nodes)]))[:len(nodes)]
	before := uint32(0)
	for _, o := range s.NodeIDOffsets {
		if o < before {
			return fmt.Errorf("deltas begin at %v", s.NodeIDOffsets)
		}
		before = o
	}
	if s.NodeIDOffsets[0] != 0 || int(before) != len(nodes) {
		return fmt.Errorf("deltas of %d nodes begin at %v", len(nodes), s.NodeIDOffsets)
	}
	for _, v := range s.NodeIDs {
		if uint64(v) >= total {
			return fmt.Errorf("node %d of %d", v, total)
		}
	}
	return nil
}

// encodeEdges appends the second record of a batch. degrees is scratch memory, which it returns.
func encodeEdges(e *codec.Enc, s *sample.Dense, degrees []uint32) []uint32 {
	degrees = degrees[:0]
	for i := range len(s.NbrOffsets) - 1 {
		degrees = append(degrees, s.NbrOffsets[i+1]-s.NbrOffsets[i])
	}
	putArray(e, degrees)
	putArray(e, s.ReprMap)
	flags, all := uint8(0), extrasOf(s)
	for i, x := range all {
		if len(x) > 0 {
			flags |= 1 << i
		}
	}
	e.U8(flags)
	for _, x := range all {
		if len(x) > 0 {
			putArray(e, x)
		}
	}
	return degrees
}

// extrasOf returns the arrays of sample.Extras: first the two with a value per node, then the two
// with a value per neighbor, then the places of neighbors, of two values each.
func extrasOf(s *sample.Dense) [5][]uint32 {
	return [5][]uint32{s.Degrees, mem.Recast[uint32](s.WeightSums),
		mem.Recast[uint32](s.Weights), s.Types, mem.Recast[uint32](s.Places)}
}

// decodeExtras decodes the extras that a batch has, and empties the others.
func decodeExtras(d *codec.Dec, s *sample.Dense) (err error) {
	flags, all := d.U8(), extrasOf(s)
	for i := range all {
		if all[i] = all[i][:0]; flags>>i&1 == 0 {
			continue
		}
		want := len(s.NodeIDs)
		switch {
		case i == 4:
			want = 2 * len(s.ReprMap)
		case i >= 2:
			want = len(s.ReprMap)
		}
		if all[i], err = takeArray(d, all[i], want); err != nil {
			return err
		}
		if len(all[i]) != want {
			return fmt.Errorf("%d values beside nodes or neighbors, want %d", len(all[i]), want)
		}
	}
	if flags>>len(all) != 0 {
		return fmt.Errorf("a batch with %x beside its edges", flags)
	}
	s.Degrees, s.WeightSums = all[0], mem.Recast[float32](all[1])
	s.Weights, s.Types = mem.Recast[float32](all[2]), all[3]
	s.Places = mem.Recast[sample.Place](all[4])
	return d.Err()
}

// decodeEdges decodes to s what encodeEdges wrote. The nodes of s must have been decoded before.
func decodeEdges(payload []byte, s *sample.Dense) (err error) {
	d := codec.NewDec(payload)
	rows := len(s.NodeIDs) - int(s.NodeIDOffsets[1])
	if s.NbrOffsets, err = takeArray(d, s.NbrOffsets, rows); err != nil {
		return err
	}
	if s.ReprMap, err = takeArray(d, s.ReprMap, math.MaxInt32); err != nil {
		return err
	}
	if err := decodeExtras(d, s); err != nil {
		return err
	}
	sum := uint64(0)
	for i, n := range s.NbrOffsets {
		s.NbrOffsets[i] = uint32(sum)
		sum += uint64(n)
	}
	if len(s.NbrOffsets) != rows || sum != uint64(len(s.ReprMap)) {
		return fmt.Errorf("%d nodes with %d neighbors; want %d with %d", len(s.NbrOffsets), sum,
			rows, len(s.ReprMap))
	}
	s.NbrOffsets = append(s.NbrOffsets, uint32(sum))
	if cap(s.Nbrs) < len(s.ReprMap) {
		s.Nbrs = make([]sample.NodeID, len(s.ReprMap), cap(s.ReprMap))
	}
	s.Nbrs = s.Nbrs[:len(s.ReprMap)]
	nodes := s.NodeIDs
	for i, r := range s.ReprMap {
		if int(r) >= len(nodes) {
			return fmt.Errorf("neighbor %d is node %d of %d", i, r, len(nodes))
		}
		s.Nbrs[i] = nodes[r]
	}
	return nil
}
