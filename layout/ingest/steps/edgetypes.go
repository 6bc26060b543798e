package steps

import (
	"fmt"
	"strconv"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// EdgeTypes numbers edge types: as the source lists them, else in order of first appearance;
// numbers without names are named by themselves.
type EdgeTypes struct {
	Names  []string // by number
	listed bool
	byName map[string]uint16
}

// NewEdgeTypes numbers the types of a source.
func NewEdgeTypes(info *source.Info) *EdgeTypes {
	t := &EdgeTypes{Names: info.EdgeTypes, listed: len(info.EdgeTypes) > 0,
		byName: map[string]uint16{}}
	for i, name := range info.EdgeTypes {
		t.byName[name] = uint16(i)
	}
	return t
}

// Number returns the type of edge i of a chunk.
func (t *EdgeTypes) Number(c *source.EdgeChunk, i int) (uint16, error) {
	if c.TypeText != nil {
		return t.named(c, i)
	}
	n := c.TypeInt[i]
	if int(n) < len(t.Names) {
		return uint16(n), nil
	}
	if t.listed || n >= source.EdgeTypesMost {
		limit := source.EdgeTypesMost
		if t.listed {
			limit = len(t.Names)
		}
		return 0, input.Wrong(c.Position(i), fmt.Sprintf("types are numbers from 0 to %d", limit-1),
			"edge type %d is out of range", n)
	}
	for len(t.Names) <= int(n) {
		t.Names = append(t.Names, strconv.Itoa(len(t.Names)))
	}
	return uint16(n), nil
}

func (t *EdgeTypes) named(c *source.EdgeChunk, i int) (uint16, error) {
	if n, ok := t.byName[string(c.TypeText[i])]; ok {
		return n, nil
	}
	name := string(c.TypeText[i])
	if t.listed || len(t.Names) == source.EdgeTypesMost {
		e := &input.Error{Where: c.Position(i), What: fmt.Sprintf("edge type %q is new", name),
			Do: "a store has at most 65536 edge types"}
		if t.listed {
			e.Do = "the source lists its types, and this is none of them"
		}
		return 0, e
	}
	n := uint16(len(t.Names))
	t.Names, t.byName[name] = append(t.Names, name), n
	return n, nil
}
