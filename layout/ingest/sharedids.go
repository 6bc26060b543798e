package ingest

import (
	"fmt"
	"strconv"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// sharedRows is how many ids of the table of nodes are looked for among the edges.
const sharedRows = 1 << 16

// sharedWatch finds out whether any id of the table of nodes is an end of an edge. If none is, the
// wrong column was read as the ids. It holds the keys of the first ids until one is found.
type sharedWatch struct {
	keys  map[uint64]struct{}
	rows  uint64 // of the table
	file  string
	first string // the first id
	found bool
}

// nodes takes ids of the table, and their keys.
func (w *sharedWatch) nodes(c *source.IDChunk, keys []uint64) {
	if w.keys == nil && len(keys) > 0 {
		w.keys, w.file = map[uint64]struct{}{}, c.File
		if c.Ints != nil {
			w.first = strconv.FormatUint(c.Ints[0], 10)
		} else {
			w.first = string(c.Text[0])
		}
	}
	w.rows += uint64(len(keys))
	for _, k := range keys {
		if len(w.keys) == sharedRows {
			return
		}
		w.keys[k] = struct{}{}
	}
}

// edges takes the keys of the ends of edges.
func (w *sharedWatch) edges(src, dst []uint64) {
	if w.keys == nil || w.found {
		return
	}
	for i, k := range src {
		_, isSrc := w.keys[k]
		_, isDst := w.keys[dst[i]]
		if isSrc || isDst {
			w.found, w.keys = true, map[uint64]struct{}{}
			return
		}
	}
}

// check is an error if no id of the table is an end of an edge, or if the table is larger than what
// was looked at, a note. Sources whose ids are not read from a column, such as a part of a store,
// may have nodes that no edge touches.
func (w *sharedWatch) check(p *pipeline) error {
	if w.keys == nil || w.found {
		return nil
	}
	column := ""
	for _, c := range p.info.Columns {
		if c.File == w.file && c.Role == "node id" {
			column = c.Name
		}
	}
	if column == "" {
		return nil
	}
	if w.rows > sharedRows {
		p.note("%s: none of its first %d ids, such as %q, is in the edges", w.file, sharedRows,
			w.first)
		return nil
	}
	return &input.Error{Where: w.file,
		What: fmt.Sprintf("none of its %d ids, such as %q, is in the edges; they were read from "+
			"the column %s", w.rows, w.first, column),
		Do: "name the column of the ids with --id-col"}
}
