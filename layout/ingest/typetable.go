package ingest

import (
	"fmt"
	"strconv"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// typeTable numbers edge types: as the source lists them, else in order of first appearance;
// numbers without names are named by themselves.
type typeTable struct {
	names  []string
	listed bool
	byName map[string]uint16
}

func newTypeTable(info *source.Info) *typeTable {
	t := &typeTable{names: info.EdgeTypes, listed: len(info.EdgeTypes) > 0,
		byName: map[string]uint16{}}
	for i, name := range info.EdgeTypes {
		t.byName[name] = uint16(i)
	}
	return t
}

// number returns the type of edge i of a chunk.
func (t *typeTable) number(c *source.EdgeChunk, i int) (uint16, error) {
	if c.TypeText != nil {
		return t.named(c, i)
	}
	n := c.TypeInt[i]
	if int(n) < len(t.names) {
		return uint16(n), nil
	}
	if t.listed || n >= source.EdgeTypesMost {
		limit := source.EdgeTypesMost
		if t.listed {
			limit = len(t.names)
		}
		return 0, &input.Error{Where: c.Position(i),
			What: fmt.Sprintf("edge type %d is out of range", n),
			Do:   fmt.Sprintf("types are numbers from 0 to %d", limit-1)}
	}
	for len(t.names) <= int(n) {
		t.names = append(t.names, strconv.Itoa(len(t.names)))
	}
	return uint16(n), nil
}

func (t *typeTable) named(c *source.EdgeChunk, i int) (uint16, error) {
	if n, ok := t.byName[string(c.TypeText[i])]; ok {
		return n, nil
	}
	name := string(c.TypeText[i])
	if t.listed || len(t.names) == source.EdgeTypesMost {
		e := &input.Error{Where: c.Position(i), What: fmt.Sprintf("edge type %q is new", name),
			Do: "a store has at most 65536 edge types"}
		if t.listed {
			e.Do = "the source lists its types, and this is none of them"
		}
		return 0, e
	}
	n := uint16(len(t.names))
	t.names, t.byName[name] = append(t.names, name), n
	return n, nil
}
