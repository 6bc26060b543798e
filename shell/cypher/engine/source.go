// Package engine runs MATCH of openCypher over vectors of nodes, on several threads: hops are joins
// over lists in memory, cycles are closed by intersecting lists, and what is only counted is
// counted without being listed. It takes the clauses that it can run from the front of a statement,
// and leaves the others to package plain, whose answers it must give.
package engine

import (
	"context"

	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// Want names lists: of a direction, of edges of some types, or of all if there are none.
type Want struct {
	Dir   ast.Direction
	Types []string
}

// Source is a graph as the engine reads it. Its nodes are 0 … Nodes-1. Other methods than those of
// value.Entities may be called from several goroutines.
type Source interface {
	value.Entities
	// Nodes returns how many nodes there are.
	Nodes() uint64
	// Undirected says that each edge is in the lists of both its ends, which are all the same
	// relationship.
	Undirected() bool
	// Labeled returns the nodes that have all of some labels; false if it cannot tell.
	Labeled(labels []string) (Set, bool)
	// Types returns the types of which edges may be that have one of some types, or any if names is
	// empty, and lead from nodes of one set to nodes of another. Different ones have no edge in
	// common.
	Types(names []string, from, to Set) []string
	// Unique reports whether no two nodes of a set have the same value as a property, and none has
	// null.
	Unique(key string, of Set) bool
	// Ends returns the nodes from which edges of some types may lead, and those to which.
	Ends(types []string) (from, to Set)
	// Outline returns what is known of lists without reading them, which have the edges of some
	// types, or of all if types is empty; nil if Read cannot read them.
	Outline(dir ast.Direction, types []string) *adjacency.Outline
	// InMemory says whether a statement that follows about this many lists should have all that it
	// may want in memory.
	InMemory(wants []Want, lists float64) bool
	// Lists returns lists in memory. They are nil if there is no room for them.
	Lists(ctx context.Context, dir ast.Direction, types []string) (*adjacency.Lists, error)
	// Holds returns what gives up the lists that Lists returns from now on: a statement holds them
	// until it ends otherwise.
	Holds() (release func())
	// Read reads the lists of some nodes, which ascend, from where they are kept. If the lists of
	// several nodes take more memory than room, in bytes, it returns a *mem.LimitError.
	Read(ctx context.Context, w Want, nodes []uint32, into *adjacency.Lists, room int64) error
	// ReadRange reads the lists of the first nodes of a range: as many as take about room bytes,
	// and at least one. Grow has counted their memory.
	ReadRange(ctx context.Context, w Want, of Range, room int64) (*adjacency.Lists, error)
	// Free returns how much memory statements may still take, in bytes.
	Free() int64
	// Rel returns a relationship.
	Rel(e vector.Edge) value.Rel
	// Property writes a property of nodes or relationships; false if that is to be read one by one.
	Property(ctx context.Context, of *vector.Vector, key string, out *vector.Vector) (bool, error)
	// Find returns the nodes that may have a value as a property, in order; false if it would have
	// to look at all.
	Find(ctx context.Context, labels []string, key string, v any) ([]uint32, bool, error)
	// Threads returns on how many threads a statement may run.
	Threads() int
	// Grow counts memory that is held until the statement ends. Any goroutine may call it.
	Grow(bytes int64) error
}
