package typedchange

import (
	"context"
	"slices"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/typedlevel"
)

// EdgeNames tells what types and columns of edges of sources, a store of their own, are in the
// store that they are added to. Both have nodes of one type.
type EdgeNames struct {
	// Types has for each type of the sources the number that the store has it by.
	Types   []uint32
	columns []int // by column of the store: the column of the sources, or -1
	stored  []kv.TableColumn
}

// NewEdgeNames compares sources with a store, which has all types of theirs. The error names a
// column that the store lacks; Types are there then too.
func NewEdgeNames(of, into *kv.Meta) (n *EdgeNames, err error) {
	n = &EdgeNames{stored: into.EdgeColumns(0)}
	for _, t := range of.EdgeTypes {
		n.Types = append(n.Types, uint32(slices.Index(into.EdgeTypes, t)))
	}
	read := of.EdgeColumns(0)
	named := func(name string) func(c kv.TableColumn) bool {
		return func(c kv.TableColumn) bool { return c.Name == name }
	}
	for _, c := range read {
		if !slices.ContainsFunc(n.stored, named(c.Name)) {
			return n, input.Usage("the edges have a column %s, which those of the store do not "+
				"have: leave it out of the file", c.Name)
		}
	}
	for _, c := range n.stored {
		n.columns = append(n.columns, slices.IndexFunc(read, named(c.Name)))
	}
	return n, nil
}

// Edges streams edges of the sources as the store has them: local has the node of the store for
// each of the sources. Values of columns that the sources lack are null.
func (n *EdgeNames) Edges(edges typedlevel.Edges, local []uint32) typedlevel.Edges {
	return func(ctx context.Context, fn func(c *source.EdgeChunk) error) error {
		return edges(ctx, func(c *source.EdgeChunk) error {
			for i := range c.SrcInt {
				c.SrcInt[i], c.DstInt[i] = uint64(local[c.SrcInt[i]]), uint64(local[c.DstInt[i]])
			}
			for i, t := range c.TypeInt {
				c.TypeInt[i] = n.Types[t]
			}
			read := c.Columns
			c.Columns = nil
			for k, from := range n.columns {
				if from >= 0 {
					c.Columns = append(c.Columns, read[from])
				} else {
					c.Columns = append(c.Columns, typedlevel.Nulls(n.stored[k].Type, c.Len()))
				}
			}
			return fn(c)
		})
	}
}
