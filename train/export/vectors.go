package export

import (
	"context"
	"errors"

	"gdb/internal/tables"
	"gdb/kv"
)

// Vectors gives access to the vectors of all nodes.
type Vectors interface {
	// Dim returns the number of values in a vector.
	Dim() int
	// Each calls fn with the vectors of all nodes in ascending order, several consecutive nodes at
	// a time. rows is (n, Dim), for the nodes from first on, and valid during the call.
	Each(ctx context.Context, fn func(first int, rows []float32) error) error
}

// WriteVectors writes a table with the vectors of all nodes, or of s.Nodes; s has the columns of no
// table yet.
func WriteVectors(ctx context.Context, s TableSpec, src Vectors) (err error) {
	if err := CheckPath("vectors", s.Path); err != nil {
		return err
	}
	dim := src.Dim()
	s.Columns = []tables.Column{{Name: "vector", Kind: tables.Vector, Width: dim}}
	t, err := CreateTable(ctx, s)
	if err != nil {
		return err
	}
	var nodes []kv.NodeID
	err = src.Each(ctx, func(first int, rows []float32) error {
		nodes = nodes[:0]
		for i := range len(rows) / dim {
			if v := kv.NodeID(first + i); s.Nodes == nil || s.Nodes.Contains(uint32(v)) {
				nodes = append(nodes, v)
			}
		}
		return t.Rows(ctx, nodes, func(i int, row tables.Writer) {
			row.Vector(rows[(int(nodes[i])-first)*dim:][:dim])
		})
	})
	if err == nil {
		err = t.Commit()
	}
	return errors.Join(err, t.Abort())
}
