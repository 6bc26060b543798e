package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/shell/graph"

	"github.com/RoaringBitmap/roaring/v2"
)

// rowBytesMost bounds the rows that are in memory at once.
const rowBytesMost = 1 << 20

// Features is the operator that reads feature rows.
type Features struct{ *Operator }

const featuresName = "features"

// Features plans to read the rows of the nodes that in hands on.
func (x *Execution) Features(in *Operator) Features {
	f := x.Graph.Meta().Features[0]
	return Features{x.Operator(featuresName, fmt.Sprintf("%s, %d x %s", f.Path, f.Dim, f.DType),
		in.Rows, x.Estimates().RowReads(f, in.Rows), in)}
}

// Each calls fn with the rows of consecutive parts of nodes.
func (f Features) Each(ctx context.Context, nodes []layout.NodeID,
	fn func(part []layout.NodeID, data []float32) error) error {
	rows, err := f.x.Graph.Rows(ctx, f.x.Graph.Meta().Features[0])
	if err != nil {
		return err
	}
	dim := rows.Meta().Dim
	most := max(1, min(graph.NodeBatch, rowBytesMost/(4*dim)))
	buf := make([]float32, min(most, len(nodes))*dim)
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), most)]
		nodes = nodes[len(part):]
		data := buf[:len(part)*dim]
		err := f.Run(ctx, func(ctx context.Context) error {
			return rows.Gather(ctx, part, nil, data)
		})
		if err != nil {
			return err
		}
		f.Emit(len(part), len(part)*rows.Meta().RowBytes)
		if err := fn(part, data); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoLabels says that a store holds no labels.
var ErrNoLabels = errors.New("this store holds no labels")

// Labels is the operator that reads the labels of nodes.
type Labels struct {
	*Operator // nil where reads are counted by who calls
	Meta      *kv.LabelsMeta

	g       *graph.Graph
	rows    *rowfile.Reader // nil before the first use
	labeled *roaring.Bitmap // for multi-labels: the nodes with labels, even empty ones
	batch   int             // how many labels are read at once
	buf     []byte
}

// Labels adds an operator to the plan that reads the labels of the nodes that in hands on.
func (x *Execution) Labels(in *Operator) (*Labels, error) {
	l := x.Graph.Meta().Labels
	if l == nil {
		return nil, ErrNoLabels
	}
	return NewLabels(x.Operator("labels", l.Rows.Path, in.Rows,
		x.Estimates().RowReads(l.Rows, in.Rows), in)), nil
}

// NewLabels returns an operator that reads labels. The store must have labels.
func NewLabels(op *Operator) *Labels {
	l := LabelsOf(op.x.Graph)
	l.Operator = op
	return l
}

// LabelsOf returns labels without an operator, for a goroutine of its own. The store must have
// labels.
func LabelsOf(g *graph.Graph) *Labels { return &Labels{Meta: g.Meta().Labels, g: g} }

func (l *Labels) open(ctx context.Context) (err error) {
	if l.rows != nil {
		return nil
	}
	if l.Meta.Kind == "multi" {
		if l.labeled, err = l.g.Store.Split(ctx, "labeled"); err != nil {
			return err
		}
	}
	l.batch = max(1, min(graph.NodeBatch, rowBytesMost/l.Meta.Rows.RowBytes))
	l.buf = make([]byte, l.batch*l.Meta.Rows.RowBytes)
	l.rows, err = l.g.Rows(ctx, l.Meta.Rows)
	return err
}

// Each calls fn for each node with its place in nodes and the bytes of its label.
func (l *Labels) Each(ctx context.Context, nodes []layout.NodeID,
	fn func(i int, row []byte) error) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	width := l.Meta.Rows.RowBytes
	for done := 0; done < len(nodes); {
		part := nodes[done:min(len(nodes), done+l.batch)]
		read := func(ctx context.Context) error {
			return l.rows.GatherRaw(ctx, part, nil, l.buf[:len(part)*width])
		}
		if l.Operator == nil {
			if err := read(ctx); err != nil {
				return err
			}
		} else {
			if err := l.Run(ctx, read); err != nil {
				return err
			}
			l.Emit(len(part), len(part)*width)
		}
		for i := range part {
			if err := fn(done+i, l.buf[i*width:(i+1)*width]); err != nil {
				return err
			}
		}
		done += len(part)
	}
	return nil
}

// Classes appends the classes of a node to out; it returns nil if there are none. A class that the
// store does not have is damage.
func (l *Labels) Classes(v layout.NodeID, row []byte, out []int) ([]int, error) {
	m := l.Meta
	if m.Kind == "multi" {
		if !l.labeled.Contains(uint32(v)) {
			return nil, nil
		}
		for c := range m.Classes {
			if row[c/8]>>(c%8)&1 != 0 {
				out = append(out, c)
			}
		}
		return out, nil
	}
	c := int(mem.View[int32](row)[0])
	if c >= len(m.Classes) {
		return nil, fmt.Errorf("%s: %w: node #%d has class %d of %d; run %s check --full",
			m.Rows.Path, kv.ErrDamaged, v, c, len(m.Classes), message.Program)
	}
	if c < 0 {
		return nil, nil
	}
	return append(out, c), nil
}

// Text returns the label as the user wrote it: a class, classes joined by ';', a number, or nil.
func (l *Labels) Text(v layout.NodeID, row []byte) (any, error) {
	if l.Meta.Kind == "target" {
		if y := mem.View[float32](row)[0]; y == y {
			return y, nil
		}
		return nil, nil
	}
	classes, err := l.Classes(v, row, []int{})
	if classes == nil || err != nil {
		return nil, err
	}
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = l.Meta.Classes[c]
	}
	return strings.Join(names, ";"), nil
}
