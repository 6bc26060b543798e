package store

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/shell/cypher/vector"
	"gdb/shell/exec"
	"gdb/shell/graph"
)

// Labels and features are files of rows, one a node. What follows makes columns in memory of them.

// rowsRead bounds the bytes of rows that are read at once.
const rowsRead = 1 << 20

// labelColumn returns the labels of the nodes of a type in memory; nil if they do not fit, or too
// few of them are wanted.
func (s *source) labelColumn(ctx context.Context, of kv.NodeTypeMeta,
	wanted int) (*resident, error) {
	name := "labels " + of.Name
	if s.few(name, wanted, of.Nodes) {
		return nil, nil
	}
	v, err := s.keep(name, func(grow func(int64) error) (any, error) {
		return s.readLabels(ctx, of, grow)
	})
	c, _ := v.(*resident)
	return c, err
}

func (s *source) readLabels(ctx context.Context, of kv.NodeTypeMeta,
	grow func(int64) error) (any, error) {
	b, err := newRowBuilder(of.Nodes, s.meta.Labels.Kind == "target", grow)
	if err != nil {
		return nil, err
	}
	labels := exec.LabelsOf(s.g)
	err = eachNode(of, s.meta.Labels.Rows.RowBytes, func(nodes []layout.NodeID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return labels.Each(ctx, nodes, func(i int, row []byte) error {
			v, err := labels.Text(nodes[i], row)
			if err != nil {
				return err
			}
			return b.add(v)
		})
	})
	if err != nil {
		return nil, err
	}
	return b.column(), nil
}

// featureColumn returns a column of features in memory, which is read with whole rows; nil if it
// does not fit, or too few of it are wanted.
func (s *source) featureColumn(ctx context.Context, m kv.RowsMeta, at, wanted int) (*resident,
	error) {
	name := fmt.Sprintf("feature %d of %s", at, m.Path)
	if s.few(name, wanted, s.meta.Nodes) {
		return nil, nil
	}
	v, err := s.keep(name, func(grow func(int64) error) (any, error) {
		if err := grow(8 * int64(s.meta.Nodes)); err != nil {
			return nil, err
		}
		rows, err := s.g.Rows(ctx, m)
		if err != nil {
			return nil, err
		}
		out := &resident{kind: vector.Float, floats: make([]float64, 0, s.meta.Nodes)}
		var buf []float32
		err = eachNode(kv.NodeTypeMeta{Nodes: s.meta.Nodes}, 4*m.Dim,
			func(nodes []layout.NodeID) error {
				if buf == nil {
					buf = make([]float32, len(nodes)*m.Dim)
				}
				if err := rows.Gather(ctx, nodes, nil, buf[:len(nodes)*m.Dim]); err != nil {
					return err
				}
				for i := range nodes {
					out.floats = append(out.floats, float64(buf[i*m.Dim+at]))
				}
				return nil
			})
		return out, err
	})
	c, _ := v.(*resident)
	return c, err
}

// eachNode calls fn with the nodes of a type in order, as many at once as have rowsRead bytes.
func eachNode(of kv.NodeTypeMeta, rowBytes int, fn func(nodes []layout.NodeID) error) error {
	most := uint64(max(1, min(graph.NodeBatch, rowsRead/rowBytes)))
	nodes := make([]layout.NodeID, 0, most)
	for v := uint64(0); v < of.Nodes; v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < min(v+most, of.Nodes); u++ {
			nodes = append(nodes, layout.NodeID(of.First+u))
		}
		if err := fn(nodes); err != nil {
			return err
		}
	}
	return nil
}

// rowBuilder makes a column of texts or of numbers, of which some may be null.
type rowBuilder struct {
	out  *resident
	text strings.Builder
	grow func(int64) error
	rows uint64
	null bool
}

func newRowBuilder(rows uint64, numbers bool, grow func(int64) error) (*rowBuilder, error) {
	b := &rowBuilder{out: &resident{kind: vector.String}, grow: grow}
	each := int64(4)
	if numbers {
		b.out.kind, each = vector.Float, 8
	}
	if err := grow(each*int64(rows) + int64(rows)/8 + 8); err != nil {
		return nil, err
	}
	b.out.valid = make([]uint64, rows/64+1)
	if numbers {
		b.out.floats = make([]float64, 0, rows)
	} else {
		b.out.off = append(make([]uint32, 0, rows+1), 0)
	}
	return b, nil
}

// add adds a row: a string, a float32, or nil.
func (b *rowBuilder) add(v any) error {
	number := 0.0
	switch v := v.(type) {
	case nil:
		b.null = true
	case float32:
		number = float64(v)
	case string:
		had := b.text.Cap()
		b.text.WriteString(v)
		if err := b.grow(int64(b.text.Cap() - had)); err != nil {
			return err
		}
	}
	if v != nil {
		b.out.valid[b.rows>>6] |= 1 << (b.rows & 63)
	}
	b.rows++
	if b.out.kind == vector.Float {
		b.out.floats = append(b.out.floats, number)
	} else {
		b.out.off = append(b.out.off, uint32(b.text.Len()))
	}
	return nil
}

// column returns the column; nil if its text is too long for one.
func (b *rowBuilder) column() any {
	if b.text.Len() > math.MaxUint32 {
		return nil
	}
	b.out.text = b.text.String()
	if !b.null {
		b.out.valid = nil
	}
	return b.out
}
