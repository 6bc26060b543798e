package sample

import (
	"math"

	"gdb/internal/mem"
	"gdb/internal/rng"
)

// BatchHash returns a hash over all fields of a batch, to compare batches made in different ways.
func BatchHash(b *Batch) uint64 {
	d := &b.Dense
	h := rng.Key(b.Epoch, b.Index, uint64(b.Dim))
	h = hashIDs(h, b.Seeds)
	h = hashIDs(h, d.NodeIDOffsets)
	h = hashIDs(h, d.NodeIDs)
	h = hashIDs(h, d.NbrOffsets)
	h = hashIDs(h, d.Nbrs)
	h = hashIDs(h, d.ReprMap)
	h = hashFloats(h, d.Weights)
	h = hashIDs(h, d.Types)
	h = hashIDs(h, d.Degrees)
	h = hashFloats(h, d.WeightSums)
	if len(d.Places) > 0 {
		h = hashIDs(h, mem.Recast[uint32](d.Places))
	}
	h = hashIDs(h, b.Labels)
	h = hashFloats(h, b.X)
	h = hashFloats(h, b.Multi)
	return hashFloats(h, b.Targets)
}

func hashIDs[T ~uint32 | ~int32](h uint64, s []T) uint64 {
	h = rng.Sub(h, uint64(len(s)))
	for i, v := range s {
		h = rng.Sub(h, uint64(i)<<32|uint64(uint32(v)))
	}
	return h
}

func hashFloats(h uint64, s []float32) uint64 {
	h = rng.Sub(h, uint64(len(s)))
	for i, v := range s {
		h = rng.Sub(h, uint64(i)<<32|uint64(math.Float32bits(v)))
	}
	return h
}
