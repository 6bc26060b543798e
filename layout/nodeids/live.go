package nodeids

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// live is the dictionary of a store that was appended to: that of the base, and one for each level,
// which has the nodes that the level added. The indexes of all are in memory, as ids.Open says; an
// id that the base lacks is looked up in one level after the other.
type live struct {
	parts []ids.Dictionary
	ends  []uint64 // parts[i] has the nodes before ends[i]

	deleted *roaring.Bitmap // nodes to which no id leads; nil for none
}

// ErrDeleted is wrapped, beside kv.ErrNotFound, by the error of an id whose node was deleted.
var ErrDeleted = errors.New("the node was deleted")

// openLive opens the dictionaries of a store with levels. If ids are dense, no level has one.
func openLive(ctx context.Context, s *layout.Store, dev blockdev.Device, budget *mem.Budget) (
	ids.Dictionary, error) {
	m := s.Meta()
	d := &live{}
	var err error
	if d.deleted, err = s.Deleted(ctx); err != nil {
		return nil, err
	}
	if m.IDs.Kind == kv.IDsDense {
		rows, err := ids.Open(ctx, dev, s.FS(), s.Dir(), m)
		d.parts, d.ends = []ids.Dictionary{rows}, []uint64{m.Nodes}
		return d, err
	}
	base, err := Open(ctx, s.Base(), dev, budget)
	if err != nil {
		return nil, err
	}
	d.parts, d.ends = []ids.Dictionary{base}, []uint64{s.Base().Meta().Nodes}
	for _, l := range s.Levels() {
		if l.Of.Nodes == 0 {
			continue
		}
		if l.Held != nil {
			d.parts, d.ends = append(d.parts, newHeld(l.Held.Names)), append(d.ends,
				l.First+l.Of.Nodes)
			continue
		}
		part, err := ids.Open(ctx, dev, s.FS(), l.Dir(), l.Meta().InDictionary())
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.parts, d.ends = append(d.parts, part), append(d.ends, l.First+l.Of.Nodes)
	}
	return d, nil
}

// held is the dictionary of the nodes that small commits added, in memory: some 50 bytes for each.
type held struct {
	names []string
	nodes map[string]kv.NodeID
}

func newHeld(names []string) *held {
	h := &held{names, make(map[string]kv.NodeID, len(names))}
	for i, name := range names {
		h.nodes[name] = kv.NodeID(i)
	}
	return h
}

// Internal finds an id.
func (h *held) Internal(_ context.Context, external string) (kv.NodeID, error) {
	v, found := h.nodes[external]
	if !found {
		return 0, notFound(external)
	}
	return v, nil
}

// External appends the ids of nodes, all of which are among names.
func (h *held) External(_ context.Context, nodes []kv.NodeID, dst []string) ([]string, error) {
	for _, v := range nodes {
		dst = append(dst, h.names[v])
	}
	return dst, nil
}

// Close does nothing.
func (h *held) Close() error { return nil }

// first returns the first node of a part.
func (d *live) first(part int) uint64 {
	if part == 0 {
		return 0
	}
	return d.ends[part-1]
}

// Internal asks one part after the other.
func (d *live) Internal(ctx context.Context, external string) (kv.NodeID, error) {
	for i, part := range d.parts {
		v, err := part.Internal(ctx, external)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		v += kv.NodeID(d.first(i))
		if err == nil && d.deleted != nil && d.deleted.Contains(uint32(v)) {
			return 0, fmt.Errorf("%w: %w", notFound(external), ErrDeleted)
		}
		return v, err
	}
	return 0, notFound(external)
}

// InternalMany asks one part after the other for the ids that those before lack.
func (d *live) InternalMany(ctx context.Context, external []string, nodes []int64) error {
	some, at := external, []uint32(nil) // at is the place of each of some; nil: their own
	found := nodes
	for i, part := range d.parts {
		if len(some) == 0 {
			break
		}
		if i > 0 {
			found = make([]int64, len(some))
		}
		if err := ids.InternalMany(ctx, part, some, found); err != nil {
			return err
		}
		var left []string
		var leftAt []uint32
		for k, v := range found {
			place := uint32(k)
			if at != nil {
				place = at[k]
			}
			if v < 0 {
				left, leftAt = append(left, some[k]), append(leftAt, place)
				continue
			}
			v += int64(d.first(i))
			if nodes[place] = v; d.deleted != nil && d.deleted.Contains(uint32(v)) {
				nodes[place] = ids.Deleted
			}
		}
		some, at = left, leftAt
	}
	for _, place := range at {
		nodes[place] = ids.None
	}
	return nil
}

// External asks each part for its nodes.
func (d *live) External(ctx context.Context, nodes []kv.NodeID, dst []string) ([]string, error) {
	base := len(dst)
	dst = append(dst, make([]string, len(nodes))...)
	var some []kv.NodeID
	var at []int
	var names []string
	left := len(nodes)
	for i, part := range d.parts {
		some, at = some[:0], at[:0]
		for k, v := range nodes {
			if uint64(v) >= d.first(i) && uint64(v) < d.ends[i] {
				some, at = append(some, v-kv.NodeID(d.first(i))), append(at, k)
			}
		}
		if len(some) == 0 {
			continue
		}
		var err error
		if names, err = part.External(ctx, some, names[:0]); err != nil {
			return dst[:base], err
		}
		for k, name := range names {
			dst[base+at[k]] = name
		}
		left -= len(some)
	}
	if left > 0 {
		return dst[:base], fmt.Errorf("kv: %d of %d nodes: %w: the store has %d nodes", left,
			len(nodes), kv.ErrNotFound, d.ends[len(d.ends)-1])
	}
	return dst, nil
}

// BlocksRead returns the number of blocks that lookups have read so far.
func (d *live) BlocksRead() (n uint64) {
	for _, part := range d.parts {
		if of, ok := part.(ids.Stats); ok {
			n += of.BlocksRead()
		}
	}
	return n
}

// IndexBytes returns the memory of all indexes.
func (d *live) IndexBytes() (n int64) {
	for _, part := range d.parts {
		if of, ok := part.(ids.Stats); ok {
			n += of.IndexBytes()
		}
	}
	return n
}

// Cache caches blocks of the base.
func (d *live) Cache(bytes int64, budget *mem.Budget) error {
	if of, ok := d.parts[0].(ids.Cacher); ok {
		return of.Cache(bytes, budget)
	}
	return nil
}

// CacheStats returns those of the base.
func (d *live) CacheStats() ids.CacheStats {
	if of, ok := d.parts[0].(ids.Cacher); ok {
		return of.CacheStats()
	}
	return ids.CacheStats{}
}

// Close closes all parts.
func (d *live) Close() (err error) {
	for _, part := range d.parts {
		err = errors.Join(err, part.Close())
	}
	return err
}
