package query

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"gdb/layout"
	"gdb/shell/exec"
	"gdb/shell/words"
)

// labels runs LABELS: it shows the labels of nodes, or how many nodes have each label.
type labels struct {
	x     *exec.Execution
	nodes *exec.Find
	rows  *exec.Labels
	names exec.Names // not used with COUNTS
}

func planLabels(x *exec.Execution) (*exec.Plan, error) {
	m := x.Graph.Meta().Labels
	switch {
	case m == nil:
		return nil, exec.ErrNoLabels
	case x.Has("COUNTS") && m.Kind == "target":
		return nil, errors.New("COUNTS wants classes; the labels of this store are numbers")
	}
	l := &labels{x: x}
	var err error
	if l.nodes, err = x.Find("nodes", x.Operand.Nodes); err != nil {
		return nil, err
	}
	if l.rows, err = x.Labels(l.nodes.Operator); err != nil {
		return nil, err
	}
	if x.Has("COUNTS") {
		return &exec.Plan{Run: l.runCounts, Root: x.Operator("count by class", "",
			float64(len(m.Classes)), 0, l.rows.Operator)}, nil
	}
	l.names = x.Names(l.rows.Operator)
	return &exec.Plan{Root: l.names.Operator, Run: l.run}, nil
}

// run shows the label of each node.
func (l *labels) run(ctx context.Context) error {
	nodes, err := l.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	l.x.Header("node", "label")
	return l.names.InBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		return l.rows.Each(ctx, part, func(i int, row []byte) error {
			label, err := l.rows.Text(part[i], row)
			if err != nil {
				return err
			}
			l.x.Row(names[i], label)
			return l.x.Err()
		})
	})
}

// runCounts shows how many nodes have each class, the most frequent first. It takes 8 bytes for
// each class.
func (l *labels) runCounts(ctx context.Context) error {
	nodes, err := l.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	names := l.rows.Meta.Classes
	nodesOf := make([]uint64, len(names)+1) // the last counts nodes without a label
	var classes []int
	err = l.rows.Each(ctx, nodes, func(i int, row []byte) (err error) {
		classes, err = l.rows.Classes(nodes[i], row, append(classes[:0], 0)[:0])
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
	l.x.Header("label", "nodes")
	for _, c := range order {
		var label any
		if c < len(names) {
			label = names[c]
		}
		l.x.Row(label, words.Count(nodesOf[c]))
	}
	return nil
}
