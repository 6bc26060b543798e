package sample

import (
	"errors"
	"fmt"

	"gdb/internal/rng"
)

// orderDomain keeps the keys of epoch orders apart from those of draws.
const orderDomain = 0x6f72646572 // "order"

// Order is the shuffled order of the training nodes in one epoch, cut into batches. It is computed,
// not stored: any batch can be had without the others, so a run can resume anywhere.
type Order struct {
	train []NodeID
	perm  rng.Permutation
	epoch uint64
	size  int
	ends  []uint64 // in train, of batches that differ in size; nil where all but the last have size
	parts uint64   // of a batch
	plain bool     // as train stands
}

// EpochOrder returns the order of train in an epoch, which depends on (seed, epoch, len(train))
// alone. Every node comes once; the last batch may be short. train must not change while the order
// is in use.
func EpochOrder(train []NodeID, seed, epoch uint64, batchSize int) (*Order, error) {
	if len(train) == 0 {
		return nil, errors.New("sample: no training nodes: choose another split")
	}
	if batchSize < 1 {
		return nil, fmt.Errorf("sample: batch size %d: give a positive number", batchSize)
	}
	perm := rng.NewPermutation(uint64(len(train)), rng.Key(orderDomain, seed, epoch))
	return &Order{train: train, perm: perm, epoch: epoch, size: batchSize, parts: 1}, nil
}

// InOrder returns the order in which nodes stand in all, as batches of an epoch.
func InOrder(all []NodeID, epoch uint64, batchSize int) (*Order, error) {
	o, err := EpochOrder(all, 0, epoch, batchSize)
	if err == nil {
		o.plain = true
	}
	return o, err
}

// InParts returns the order in which nodes stand in all, as batches of an epoch that have these
// numbers of nodes: none of 0, and together those of all.
func InParts(all []NodeID, epoch uint64, sizes []uint32) (*Order, error) {
	o, err := InOrder(all, epoch, 1)
	if err != nil {
		return nil, err
	}
	sum := uint64(0)
	for i, n := range sizes {
		if sum += uint64(n); n == 0 {
			return nil, fmt.Errorf("sample: batch %d has no seeds", i)
		}
		o.ends = append(o.ends, sum)
	}
	if sum != uint64(len(all)) {
		return nil, fmt.Errorf("sample: batches of %d seeds in all, and %d seeds", sum, len(all))
	}
	return o, nil
}

// Epoch returns the epoch of this order, counted from 0.
func (o *Order) Epoch() uint64 { return o.epoch }

// Split returns the order in which each batch is as many batches as parts says, of its seeds in
// their order, whose numbers differ by one at most: those of the last batch may have none.
func (o *Order) Split(parts int) *Order {
	split := *o
	split.parts *= uint64(max(1, parts))
	return &split
}

// Batches returns the number of batches.
func (o *Order) Batches() uint64 {
	if o.ends != nil {
		return uint64(len(o.ends)) * o.parts
	}
	return (uint64(len(o.train)) + uint64(o.size) - 1) / uint64(o.size) * o.parts
}

// Seeds appends the seeds of batch i, which is below Batches, to dst. It takes about 20 ns per
// seed.
func (o *Order) Seeds(i uint64, dst []NodeID) []NodeID {
	whole, size := o.part(i / o.parts)
	part := i % o.parts
	for k := whole + part*size/o.parts; k < whole+(part+1)*size/o.parts; k++ {
		if o.plain {
			dst = append(dst, o.train[k])
			continue
		}
		dst = append(dst, o.train[o.perm.At(k)])
	}
	return dst
}

// part returns the place of the first seed of a batch that is not split, and its seeds.
func (o *Order) part(i uint64) (first, size uint64) {
	if o.ends == nil {
		first = i * uint64(o.size)
		return first, min(uint64(o.size), uint64(len(o.train))-first)
	}
	if i > 0 {
		first = o.ends[i-1]
	}
	return first, o.ends[i] - first
}
