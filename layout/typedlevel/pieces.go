package typedlevel

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
)

// Piece is a base or a level, whose edges are read by the nodes of the store.
type Piece struct {
	*layout.Store
	Of []uint32 // the node of the store, by node of the level; nil for a base
}

// OfPieces streams the edges of pieces, one after the other, each in the order of its in-lists.
func OfPieces(of *kv.Meta, dev blockdev.Device, budget *mem.Budget, pieces []Piece) Edges {
	return func(ctx context.Context, fn func(c *source.EdgeChunk) error) error {
		for _, p := range pieces {
			r := &pieceReader{Piece: p, meta: of, fn: fn}
			err := r.open(ctx, dev, budget)
			if err == nil {
				err = r.read(ctx, dev)
			}
			if err = errors.Join(err, r.close()); err != nil {
				return fmt.Errorf("edges of %s: %w", p.Dir(), err)
			}
		}
		return nil
	}
}

// pieceReader reads the edges of a piece.
type pieceReader struct {
	Piece
	meta      *kv.Meta // of the store
	fn        func(c *source.EdgeChunk) error
	relations []pieceRelation // those that are the reverse of no other
}

// pieceRelation are edges of a relation that wait, and the columns that they have.
type pieceRelation struct {
	table *edgetable.Table // nil if there are no columns
	row   uint64           // of the first edge that waits
	edges source.EdgeChunk
}

func (r *pieceReader) open(ctx context.Context, dev blockdev.Device, budget *mem.Budget) error {
	r.relations = make([]pieceRelation, Forward(r.meta))
	for i := range r.relations {
		of := &r.relations[i]
		of.edges.Where = source.Where{File: r.Dir(), Unit: "edge"}
		if r.Meta().EdgeTable(i) == nil {
			continue
		}
		var err error
		if of.table, err = edgetable.Open(ctx, r.Store, dev, i, budget); err != nil {
			return err
		}
		of.edges.Columns = make([]columnfile.Values, len(of.table.Columns()))
	}
	return nil
}

func (r *pieceReader) close() (err error) {
	for _, of := range r.relations {
		if of.table != nil {
			err = errors.Join(err, of.table.Close())
		}
	}
	return err
}

// node returns a node of the store by its number in the piece.
func (r *pieceReader) node(v layout.NodeID) uint64 {
	if r.Of == nil {
		return uint64(v)
	}
	return uint64(r.Of[v])
}

func (r *pieceReader) read(ctx context.Context, dev blockdev.Device) error {
	err := listfile.Scan(ctx, r.Store, dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			dst := r.node(first + layout.NodeID(i))
			for k := l.Off[i]; k < l.Off[i+1]; k++ {
				if int(l.Types[k]) >= len(r.relations) {
					continue // its reverse is read
				}
				if err := r.take(ctx, l, k, dst); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	})
	for i := range r.relations {
		if err == nil {
			err = r.flush(ctx, &r.relations[i])
		}
	}
	return err
}

// take takes entry k of lists, an edge that leads to dst.
func (r *pieceReader) take(ctx context.Context, l *listfile.Lists, k uint64, dst uint64) error {
	of := &r.relations[l.Types[k]]
	e := &of.edges
	e.SrcInt, e.DstInt = append(e.SrcInt, r.node(l.Nbrs[k])), append(e.DstInt, dst)
	e.TypeInt = append(e.TypeInt, uint32(l.Types[k]))
	if l.Weights != nil {
		e.Weight = append(e.Weight, l.Weights[k])
	}
	if l.Times != nil {
		e.Time = append(e.Time, l.Times[k])
	}
	if len(e.SrcInt) < chunk {
		return nil
	}
	return r.flush(ctx, of)
}

// flush passes the edges of a relation on that wait.
func (r *pieceReader) flush(ctx context.Context, of *pieceRelation) error {
	e := &of.edges
	n := uint64(len(e.SrcInt))
	if n == 0 {
		return nil
	}
	for k := range e.Columns {
		e.Columns[k].Reset()
		err := of.table.Scan(ctx, of.row, n, k, func(_ uint64, v *columnfile.Values) error {
			e.Columns[k].Append(v, 0, v.Rows)
			return nil
		})
		if err != nil {
			return err
		}
	}
	of.row += n
	err := r.fn(e)
	e.SrcInt, e.DstInt, e.TypeInt = e.SrcInt[:0], e.DstInt[:0], e.TypeInt[:0]
	e.Weight, e.Time = e.Weight[:0], e.Time[:0]
	return err
}
