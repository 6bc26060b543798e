package keys

import (
	"context"
	"errors"
)

// Named is a source whose types are ranges, and whose nodes are known before its edges are read:
// the ends of edges are rows of their types, and no two nodes have the same id. So no id is looked
// up, and none is sorted but for the dictionary.
type Named interface {
	Source
	// Count returns the number of nodes of a type.
	Count(typ int) uint64
	// Names calls fn with the ids of the nodes of a type, as TYPE:ID, in the order of its rows.
	Names(ctx context.Context, typ int, fn func(external []byte) error) error
}

// Firsts returns the first node of each type of a source, and behind them the number of all nodes.
func Firsts(src Named, types int) []uint64 {
	first := make([]uint64, 1, types+1)
	for typ := range types {
		first = append(first, first[typ]+src.Count(typ))
	}
	return first
}

// errFound ends the reading of names.
var errFound = errors.New("the name was found")

// NameOf returns the id of a row of a type. It is slow.
func NameOf(ctx context.Context, src Named, typ int, row uint64) (name string, ok bool) {
	err := src.Names(ctx, typ, func(external []byte) error {
		if row == 0 {
			name = string(external)
			return errFound
		}
		row--
		return nil
	})
	return name, errors.Is(err, errFound)
}
