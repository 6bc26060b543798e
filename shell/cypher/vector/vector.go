// Package vector computes openCypher expressions for many rows at once. What it cannot compute so
// it leaves to package eval, row by row, whose answers it must give.
package vector

import (
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
)

// Kind is the type of the values of a vector.
type Kind uint8

// The kinds. Any holds values of all types.
const (
	Any Kind = iota
	Int
	Float
	Bool
	String
	Date      // days since 1970
	Timestamp // microseconds since 1970, UTC
	Node
	Rel
	Path // of which only the lengths are there
)

// NoNode is a node that is null.
const NoNode = ^uint32(0)

// Edge is what tells a relationship from others: its ends, the number of its type, and its number
// among those of the same ends and type.
type Edge struct {
	From, To, Number uint32
	Type             uint16
}

// Vector is a column of values. Which field they are in depends on the kind.
type Vector struct {
	Kind Kind
	// Const says that all rows have the value 0.
	Const   bool
	Ints    []int64 // Int, Date and Timestamp
	Floats  []float64
	Tris    []value.Tri // Bool; null is value.Null
	Strings []string
	Nodes   []uint32 // NoNode is null; lengths of Path
	Edges   []Edge
	Anys    []any // nil is null
	// Null says which Ints, Floats and Strings are null; empty if none is.
	Null []bool
	// G tells of nodes, and Rel makes relationships.
	G   value.Entities
	Rel func(Edge) value.Rel
}

// Of returns a vector of one value for all rows.
func Of(v any) *Vector {
	out := &Vector{Const: true}
	switch v := v.(type) {
	case int64:
		out.Kind, out.Ints = Int, []int64{v}
	case float64:
		out.Kind, out.Floats = Float, []float64{v}
	case bool:
		out.Kind, out.Tris = Bool, []value.Tri{value.Of(v)}
	case string:
		out.Kind, out.Strings = String, []string{v}
	default:
		out.Anys = []any{v}
	}
	return out
}

// Reset empties the vector and sets its kind.
func (v *Vector) Reset(k Kind) {
	v.Kind, v.Const = k, false
	v.Ints, v.Floats, v.Tris = v.Ints[:0], v.Floats[:0], v.Tris[:0]
	v.Strings, v.Nodes, v.Anys, v.Null = v.Strings[:0], v.Nodes[:0], v.Anys[:0], v.Null[:0]
}

// place returns where the value of a row is.
func (v *Vector) place(row int) int {
	if v.Const {
		return 0
	}
	return row
}

// isNull reports whether the value at a place is null.
func (v *Vector) isNull(i int) bool {
	switch v.Kind {
	case Any:
		return v.Anys[i] == nil
	case Bool:
		return v.Tris[i] == value.Null
	case Node:
		return v.Nodes[i] == NoNode
	}
	return len(v.Null) > 0 && v.Null[i]
}

// At returns the value of a row.
func (v *Vector) At(row int) any {
	i := v.place(row)
	if v.isNull(i) {
		return nil
	}
	switch v.Kind {
	case Int:
		return v.Ints[i]
	case Float:
		return v.Floats[i]
	case Bool:
		return v.Tris[i] == value.True
	case String:
		return v.Strings[i]
	case Date:
		return temporal.FromEpochDay(v.Ints[i])
	case Timestamp:
		return temporal.FromEpochMicros(v.Ints[i])
	case Node:
		return value.Node{ID: int64(v.Nodes[i]), G: v.G}
	case Rel:
		return v.Rel(v.Edges[i])
	case Path:
		return value.Path{Rels: make([]value.Rel, v.Nodes[i])}
	}
	return v.Anys[i]
}

// HasNull reports whether a value may be null.
func (v *Vector) HasNull() bool {
	switch v.Kind {
	case Any, Bool, Node:
		return true
	}
	return len(v.Null) > 0
}

// IsNull reports whether the value of a row is null.
func (v *Vector) IsNull(row int) bool { return v.isNull(v.place(row)) }

// From returns a vector of values, which has their kind if all are integers or all are text.
func From(vals []any) *Vector {
	out := &Vector{Anys: vals}
	for i, v := range vals {
		switch v := v.(type) {
		case int64:
			out.Ints = append(out.Ints, v)
		case string:
			out.Strings = append(out.Strings, v)
		}
		if max(len(out.Ints), len(out.Strings)) <= i {
			return out
		}
	}
	switch len(vals) {
	case 0:
	case len(out.Ints):
		out.Kind = Int
	case len(out.Strings):
		out.Kind = String
	}
	return out
}
