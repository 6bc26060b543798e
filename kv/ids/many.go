package ids

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"gdb/blockdev"
	"gdb/kv"
)

// What InternalMany gives in the place of a node.
const (
	None    = -1 // no node has the id
	Deleted = -2 // the node that had it was deleted
)

// Many is implemented by a Dictionary that finds many ids faster together than one by one.
type Many interface {
	// InternalMany sets nodes[i] to the node of external[i], to None or to Deleted.
	InternalMany(ctx context.Context, external []string, nodes []int64) error
}

// InternalMany does what Many says, with any dictionary. Of ids whose node was deleted a dictionary
// that does not implement Many knows nothing more than that they are not found. It takes 24 bytes
// of memory for each id beside the slices.
func InternalMany(ctx context.Context, d Dictionary, external []string, nodes []int64) error {
	if m, ok := d.(Many); ok {
		return m.InternalMany(ctx, external, nodes)
	}
	for i, id := range external {
		v, err := d.Internal(ctx, id)
		switch {
		case err == nil:
			nodes[i] = int64(v)
		case errors.Is(err, kv.ErrNotFound):
			nodes[i] = None
		default:
			return err
		}
	}
	return ctx.Err()
}

// InternalMany looks the ids up in the order of their hashes, as the file has them: it reads each
// block once, and neighboring blocks together.
func (d *dictionary) InternalMany(ctx context.Context, external []string, nodes []int64) error {
	return d.forward.lookupMany(ctx, external, nodes)
}

// hashed is an id that is looked up, by its place among others.
type hashed struct {
	hash uint64
	at   uint32
}

func (w *forwardFile) lookupMany(ctx context.Context, external []string, nodes []int64) error {
	order := make([]hashed, len(external))
	for i, id := range external {
		order[i] = hashed{Hash(w.seed, []byte(id)), uint32(i)}
	}
	return w.lookupHashed(ctx, order, external, nodes)
}

// lookupHashed looks ids up in the order of their hashes, which it sorts.
func (w *forwardFile) lookupHashed(ctx context.Context, order []hashed, external []string,
	nodes []int64) error {
	slices.SortFunc(order, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
	buf := blockdev.AlignedBuffer(min(readBlocks, len(w.first)) * BlockBytes)
	next := 0 // the first block that begins at the hash of order[0], or after it
	for len(order) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		blocks, n, err := w.group(ctx, order, external, nodes, &next)
		if err == nil {
			err = w.fill(ctx, blocks, buf, order[:n], external, nodes)
		}
		if err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// group returns the blocks of the file that may have the next ids of order, at most readBlocks, and
// how many ids these are. Ids whose hash begins a block may be in several, and are looked up by
// themselves.
//
//lint:parameters what is looked up, where the answers go, and how far it is
func (w *forwardFile) group(ctx context.Context, order []hashed, external []string,
	nodes []int64, next *int) (blocks []uint64, n int, err error) {
	for ; n < len(order); n++ {
		h := order[n]
		for *next < len(w.first) && w.first[*next] < h.hash {
			*next++
		}
		if *next < len(w.first) && w.first[*next] == h.hash {
			v, err := w.lookupHash(ctx, h.hash, external[h.at])
			if nodes[h.at] = int64(v); errors.Is(err, kv.ErrNotFound) {
				nodes[h.at] = None
			} else if err != nil {
				return nil, 0, err
			}
			continue
		}
		block := uint64(*next) // data block next-1 is block next of the file
		if block == 0 {
			nodes[h.at] = None
			continue
		}
		if len(blocks) > 0 && blocks[len(blocks)-1] == block {
			continue
		}
		if len(blocks) == readBlocks {
			break
		}
		blocks = append(blocks, block)
	}
	return blocks, n, nil
}

// fill reads blocks into buf, and looks the ids of order up that are in one of them.
//
//lint:parameters what is looked up, where it is read to, and where the answers go
func (w *forwardFile) fill(ctx context.Context, blocks []uint64, buf []byte, order []hashed,
	external []string, nodes []int64) error {
	if len(blocks) == 0 {
		return nil
	}
	places := make([]int, len(blocks))
	for i := range places {
		places[i] = i
	}
	w.f.reads.Add(uint64(len(blocks)))
	if err := w.f.readAt(ctx, blocks, buf, places); err != nil {
		return err
	}
	for k, number := range blocks {
		block, err := decodeForward(buf[k*BlockBytes : (k+1)*BlockBytes])
		if err != nil {
			return damagedBlock(ForwardPath, number, "%v", err)
		}
		for ; len(order) > 0; order = order[1:] {
			h := order[0]
			if int(number) < len(w.first) && h.hash >= w.first[number] {
				break
			}
			if h.hash <= w.first[number-1] {
				continue // it was looked up by itself, or begins before all blocks
			}
			v, found := block.find(h.hash, external[h.at])
			switch {
			case !found:
				nodes[h.at] = None
			case uint64(v) >= w.nodes:
				return damagedBlock(ForwardPath, number, "id %.100q leads to node %d of %d",
					external[h.at], v, w.nodes)
			default:
				nodes[h.at] = int64(v)
			}
		}
	}
	return nil
}
