// Package value holds what openCypher expressions give: their equality, order and text.
//
// A value is nil for null, bool, int64, float64, string, List, Map, Node, Rel, Path or a Temporal.
package value

import (
	"strings"

	"gdb/shell/cypher/temporal"
)

// List is a list of values.
type List []any

// Map is a map of values.
type Map map[string]any

// Entities tells of nodes and relationships what their values do not hold.
type Entities interface {
	// Labels returns the labels of a node.
	Labels(node int64) ([]string, error)
	// NodeProps returns the properties of a node, without those that are null.
	NodeProps(node int64) (Map, error)
	// NodeProp returns one property of a node, or nil.
	NodeProp(node int64, key string) (any, error)
	// RelProp returns one property of a relationship, or nil.
	RelProp(r Rel, key string) (any, error)
	// RelProps returns the properties of a relationship, without those that are null.
	RelProps(r Rel) (Map, error)
}

// Node is a node of a graph. Two are the same if their numbers are.
type Node struct {
	ID int64
	G  Entities
}

// Rel is a relationship. Two are the same if their ends, types and numbers are.
type Rel struct {
	ID, From, To int64
	Type         string
	G            Entities
}

// RelKey is what tells relationships apart.
type RelKey struct {
	ID, From, To int64
	Type         string
}

// Key returns what tells the relationship from others.
func (r Rel) Key() RelKey { return RelKey{r.ID, r.From, r.To, r.Type} }

// Path is a walk: Rels[i] joins Nodes[i] and Nodes[i+1], in either direction.
type Path struct {
	Nodes []Node
	Rels  []Rel
}

// Temporal is a date, a time or a duration.
type Temporal = temporal.Value

// Kind returns the name of the type of a value, for messages.
func Kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case List:
		return "a list"
	case Map:
		return "a map"
	case Node:
		return "a node"
	case Rel:
		return "a relationship"
	case Path:
		return "a path"
	case Temporal:
		return "a " + strings.ToLower(v.Kind())
	}
	return "no value"
}
