package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/layout/rowfile"
	"gdb/shell/graph"
	"gdb/shell/result"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// labelReader reads what the nodes of a store are labeled.
type labelReader struct {
	meta    *kv.LabelsMeta
	rows    *rowfile.Reader
	labeled *roaring.Bitmap // of multi-labels: the nodes that have labels, be they none
	batch   int             // nodes whose labels are read at once
	buf     []byte
	x       *execution
}

var errNoLabels = errors.New("this store holds no labels")

func (x *execution) labels(ctx context.Context) (*labelReader, error) {
	e := x.engine
	l := e.Meta().Labels
	if l == nil {
		return nil, errNoLabels
	}
	r := &labelReader{x: x, meta: l, batch: max(1, min(graph.NodeBatch,
		featureBytes/l.Rows.RowBytes))}
	r.buf = make([]byte, r.batch*l.Rows.RowBytes)
	var err error
	if l.Kind == "multi" {
		if r.labeled, err = e.Store.Split(ctx, "labeled"); err != nil {
			return nil, err
		}
	}
	r.rows, err = e.Rows(ctx, l.Rows)
	return r, err
}

// each calls fn with each node's place in nodes and the bytes of its label.
func (r *labelReader) each(ctx context.Context, nodes []layout.NodeID,
	fn func(i int, row []byte) error) error {
	width := r.meta.Rows.RowBytes
	for done := 0; done < len(nodes); {
		part := nodes[done:min(len(nodes), done+r.batch)]
		inner, leave := r.x.enter(ctx, "labels")
		err := r.rows.GatherRaw(inner, part, nil, r.buf[:len(part)*width])
		leave()
		if err != nil {
			return err
		}
		r.x.emit("labels", len(part), len(part)*width)
		for i := range part {
			if err := fn(done+i, r.buf[i*width:(i+1)*width]); err != nil {
				return err
			}
		}
		done += len(part)
	}
	return nil
}

// classes appends the classes of a node; none is nil. A class that is not is damage.
func (r *labelReader) classes(v layout.NodeID, row []byte, out []int) ([]int, error) {
	l := r.meta
	if l.Kind == "multi" {
		if !r.labeled.Contains(uint32(v)) {
			return nil, nil
		}
		for c := range l.Classes {
			if row[c/8]>>(c%8)&1 != 0 {
				out = append(out, c)
			}
		}
		return out, nil
	}
	c := int(mem.View[int32](row)[0])
	if c >= len(l.Classes) {
		return nil, fmt.Errorf("%s: %w: node #%d has class %d of %d; run gdb check --full",
			l.Rows.Path, kv.ErrDamaged, v, c, len(l.Classes))
	}
	if c < 0 {
		return nil, nil
	}
	return append(out, c), nil
}

// text is the user's label: a class, classes joined by ';', a number, or nil.
func (r *labelReader) text(v layout.NodeID, row []byte) (any, error) {
	if r.meta.Kind == "target" {
		if y := mem.View[float32](row)[0]; y == y {
			return y, nil
		}
		return nil, nil
	}
	classes, err := r.classes(v, row, []int{})
	if classes == nil || err != nil {
		return nil, err
	}
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = r.meta.Classes[c]
	}
	return strings.Join(names, ";"), nil
}

func planLabels(x *execution) (*operator, error) {
	l := x.engine.Meta().Labels
	switch {
	case l == nil:
		return nil, errNoLabels
	case x.Has("COUNTS") && l.Kind == "target":
		return nil, errors.New("COUNTS wants classes; the labels of this store are numbers")
	}
	nodes, err := x.opNodes("nodes", x.Operand.Nodes)
	if err != nil {
		return nil, err
	}
	rows := newOperator("labels", l.Rows.Path, nodes.rows,
		estimator{x.engine.Meta()}.rowReads(l.Rows, nodes.rows), nodes)
	if x.Has("COUNTS") {
		return newOperator("count by class", "", float64(len(l.Classes)), 0, rows), nil
	}
	return x.opNames(rows), nil
}

func runLabels(ctx context.Context, x *execution) error {
	nodes, err := x.resolve(ctx, "nodes", x.Operand.Nodes)
	if err != nil {
		return err
	}
	r, err := x.labels(ctx)
	if err != nil {
		return err
	}
	if x.Has("COUNTS") {
		return x.labelCounts(ctx, r, nodes)
	}
	x.header("node", "label")
	return x.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		return r.each(ctx, part, func(i int, row []byte) error {
			label, err := r.text(part[i], row)
			if err != nil {
				return err
			}
			return x.row(names[i], label)
		})
	})
}

// labelCounts shows how many nodes have each class, most first. Memory: 8 bytes per class.
func (x *execution) labelCounts(ctx context.Context, r *labelReader, nodes []layout.NodeID) error {
	nodesOf := make([]uint64, len(r.meta.Classes)+1) // the last: without a label
	var classes []int
	err := r.each(ctx, nodes, func(i int, row []byte) (err error) {
		classes, err = r.classes(nodes[i], row, append(classes[:0], 0)[:0])
		if classes == nil {
			nodesOf[len(nodesOf)-1]++
		}
		for _, c := range classes {
			nodesOf[c]++
		}
		return err
	})
	if err != nil {
		return err
	}
	order := make([]int, 0, len(nodesOf))
	for c, n := range nodesOf {
		if n > 0 {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(nodesOf[b], nodesOf[a]) })
	x.header("label", "nodes")
	for _, c := range order {
		var label any
		if c < len(r.meta.Classes) {
			label = r.meta.Classes[c]
		}
		if err := x.row(label, result.Count(nodesOf[c])); err != nil {
			return err
		}
	}
	return nil
}
