// Package ids is the dictionary of a store. It maps external ids of nodes, as users know them, to
// node ids and back, by two files of sorted blocks: ids/forward.ids leads from external ids to
// nodes, and ids/reverse.ids leads back.
package ids

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Dictionary maps between external ids and node ids. It may be used from any goroutine.
type Dictionary interface {
	// Internal returns the node of an external id, or an error that wraps ErrNotFound and names it.
	Internal(ctx context.Context, external string) (kv.NodeID, error)
	// External appends the external id of each node to dst. It returns ErrNotFound for a node out
	// of range.
	External(ctx context.Context, nodes []kv.NodeID, dst []string) ([]string, error)
	Close() error
}

// Stats is implemented by a Dictionary that reads files.
type Stats interface {
	// BlocksRead returns the number of dictionary blocks that lookups have read so far.
	BlocksRead() uint64
	// IndexBytes returns the memory that the index of both files takes.
	IndexBytes() int64
}

// Cacher is implemented by a Dictionary that reads files.
type Cacher interface {
	// Cache makes External keep blocks that it has read, in at most bytes of memory, which budget
	// counts. It is called once, before the first lookup. Without it no blocks are kept.
	Cache(bytes int64, budget *mem.Budget) error
	// CacheStats returns how many blocks External has asked for.
	CacheStats() CacheStats
}

// CacheStats counts the blocks that External found in the cache, and the blocks that it read.
type CacheStats struct {
	Hits, Misses uint64
	Bytes        int64 // the size of the cache
}

// Open opens the id dictionary of a store. It reads no file if ids are dense. Otherwise the index
// of both files is kept in memory: 8 bytes for each forward block and 4 for each reverse block,
// about 0.06 bytes for each node with ids of 10 bytes.
func Open(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string,
	m *kv.Meta) (Dictionary, error) {
	switch m.IDs.Kind {
	case kv.IDsDense:
		return denseIDs{nodes: m.Nodes}, nil
	case kv.IDsInteger, kv.IDsString:
	default:
		return nil, fmt.Errorf("kv: open ids: %w: kind of ids %q", kv.ErrFormat, m.IDs.Kind)
	}
	forward, err := openForward(ctx, dev, fs, dir, m)
	if err != nil {
		return nil, err
	}
	reverse, err := openReverse(ctx, dev, fs, dir, m)
	if err != nil {
		return nil, errors.Join(err, forward.f.file.Close())
	}
	return &dictionary{forward: forward, reverse: reverse}, nil
}

// denseIDs is the dictionary of a store whose external ids are its node ids.
type denseIDs struct{ nodes uint64 }

// Internal accepts only canonical decimal numbers and not "007", so that each node has one name.
func (d denseIDs) Internal(_ context.Context, external string) (kv.NodeID, error) {
	v, err := strconv.ParseUint(external, 10, 64)
	if err != nil || v >= d.nodes || strconv.FormatUint(v, 10) != external {
		return 0, fmt.Errorf("kv: id %.100q: %w: ids are 0 to %d", external, kv.ErrNotFound,
			max(d.nodes, 1)-1)
	}
	return kv.NodeID(v), nil
}

// External formats the numbers.
func (d denseIDs) External(ctx context.Context, nodes []kv.NodeID, dst []string) ([]string, error) {
	if err := checkRange(nodes, d.nodes); err != nil {
		return dst, err
	}
	for i, id := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return dst[:len(dst)-i], ctx.Err()
		}
		dst = append(dst, strconv.FormatUint(uint64(id), 10))
	}
	return dst, nil
}

// Close does nothing.
func (denseIDs) Close() error { return nil }

// checkRange fails if one of nodes is not below count.
func checkRange(nodes []kv.NodeID, count uint64) error {
	for _, id := range nodes {
		if uint64(id) >= count {
			return fmt.Errorf("kv: node %d: %w: the store has %d nodes", id, kv.ErrNotFound, count)
		}
	}
	return nil
}

// dictionary is the Dictionary of a store whose ids are not dense: a pair of files.
type dictionary struct {
	forward *forwardFile
	reverse *reverseFile
}

// Internal looks the id up in the forward file.
func (d *dictionary) Internal(ctx context.Context, external string) (kv.NodeID, error) {
	return d.forward.lookup(ctx, external)
}

// External looks the nodes up in the reverse file.
func (d *dictionary) External(ctx context.Context, nodes []kv.NodeID,
	dst []string) ([]string, error) {
	return d.reverse.lookup(ctx, nodes, dst)
}

// BlocksRead implements Stats.
func (d *dictionary) BlocksRead() uint64 {
	return d.forward.f.reads.Load() + d.reverse.f.reads.Load()
}

// IndexBytes implements Stats.
func (d *dictionary) IndexBytes() int64 {
	return 8*int64(cap(d.forward.first)) + 4*int64(cap(d.reverse.first))
}

// Close closes both files.
func (d *dictionary) Close() error {
	err := errors.Join(d.forward.f.file.Close(), d.reverse.f.file.Close(), d.reverse.cache.free())
	if err != nil {
		return fmt.Errorf("kv: close ids: %w", err)
	}
	return nil
}
