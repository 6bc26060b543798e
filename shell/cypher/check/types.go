package check

import "strings"

// kind is what is known of the type of an expression; a list is "list of " its elements' kind.
type kind string

const (
	unknown kind = "" // any, or null
	boolean kind = "a boolean"
	integer kind = "an integer"
	float   kind = "a float"
	text    kind = "a string"
	mapping kind = "a map"
	node    kind = "a node"
	rel     kind = "a relationship"
	path    kind = "a path"
	listOf  kind = "list of "
)

// scope holds the types of variables.
type scope map[string]kind

func (k kind) isList() bool { return strings.HasPrefix(string(k), string(listOf)) }

// element returns the type of the elements of a list.
func (k kind) element() kind {
	e, _ := strings.CutPrefix(string(k), string(listOf))
	if !k.isList() {
		return unknown
	}
	return kind(e)
}

func (k kind) text() string {
	if k.isList() {
		return "a list"
	}
	return string(k)
}

// results are the types of functions, where they do not depend on arguments.
var results = map[string]kind{"count": integer, "size": integer, "length": integer, "id": integer,
	"tointeger": integer, "tofloat": float, "tostring": text, "toboolean": boolean, "type": text,
	"labels": listOf + text, "keys": listOf + text, "nodes": listOf + node,
	"relationships": listOf + rel,
	"range":         listOf + integer, "collect": listOf, "exists": boolean, "properties": mapping,
	"startnode": node, "endnode": node, "split": listOf + text, "rand": float}

// scalar reports whether values of a type have no parts.
func (k kind) scalar() bool {
	return k == boolean || k == integer || k == float || k == text
}

// refuses are functions with the types that they do not take.
var refuses = map[string]func(kind) bool{
	"labels":     func(k kind) bool { return k != node },
	"type":       func(k kind) bool { return k != rel },
	"length":     func(k kind) bool { return k != path },
	"nodes":      func(k kind) bool { return k != path },
	"size":       func(k kind) bool { return !k.isList() && k != text && k != mapping },
	"properties": func(k kind) bool { return k.scalar() || k.isList() || k == path },
	"keys":       func(k kind) bool { return k.scalar() || k.isList() || k == path },
}
