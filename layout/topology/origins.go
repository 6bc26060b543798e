package topology

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
)

// Origins tell of each entry of the merged in-lists of a store with levels which of base and levels
// it is from. They take the memory of the lists of levels, and 10 bytes more for each of their
// entries. Any goroutine may use them.
type Origins struct {
	a       *added
	numbers *layout.NodeLists
}

// Origin is where an entry of a list is from.
type Origin struct {
	Level int // of Store.Lists, or -1 for the base
	// Row is the place of the entry in the list of the base, or of a level the number of the entry
	// among all that the level has of its relation, in the order of in-lists.
	Row uint64
}

// OpenOrigins reads the lists of all levels, and of the base those that levels have too. The caller
// calls Close.
func OpenOrigins(ctx context.Context, s *layout.Store, dev blockdev.Device,
	budget *mem.Budget) (o *Origins, err error) {
	a, err := loadEntries(ctx, s, dev, layout.In, budget, true)
	if err != nil {
		return nil, err
	}
	o = &Origins{a: a, numbers: layout.ListsOf(s.Meta(), layout.In)}
	base, err := openLists(ctx, s.Base(), dev, layout.In, Options{CacheBytes: scanCache,
		Budget: budget})
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if err = errors.Join(a.place(ctx, base), base.Close()); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// Of returns where entry number at of the list of a node by a relation is from; the relation counts
// only in a typed store.
func (o *Origins) Of(v layout.NodeID, relation uint16, at uint32) (Origin, error) {
	if o.numbers != nil {
		var err error
		if v, err = o.numbers.List(v, relation); err != nil {
			return Origin{}, err
		}
	}
	a, list := o.a, o.a.list(v)
	if list == none {
		return Origin{-1, uint64(at)}, nil
	}
	from, to := a.span(list)
	places := a.places[from:to]
	below := lower(places, at)
	if below < len(places) && places[below] == at {
		e := from + uint64(below)
		return Origin{int(a.levels[e]), a.rows[e]}, nil
	}
	at -= uint32(below)
	if lost := a.lostOf(list); len(lost) > 0 {
		at = kept(lost, at)
	}
	return Origin{-1, uint64(at)}, nil
}

// Close frees the memory.
func (o *Origins) Close() error { return o.a.free() }

// rowCounts count the entries of each relation of a level, or of all where there are none.
type rowCounts struct {
	numbers *layout.NodeLists
	of      map[uint16]uint64
}

func newRowCounts(l *layout.Level) *rowCounts {
	return &rowCounts{layout.ListsOf(l.Meta(), layout.In), map[uint16]uint64{}}
}

// take sets the rows of entries of a list of the level.
func (c *rowCounts) take(list layout.NodeID, rows []uint64) {
	relation := uint16(0)
	if c.numbers != nil {
		_, relation = c.numbers.Node(list)
	}
	next := c.of[relation]
	for i := range rows {
		rows[i] = next + uint64(i)
	}
	c.of[relation] = next + uint64(len(rows))
}
