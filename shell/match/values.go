package match

import (
	"context"

	"gdb/layout"
	"gdb/shell/lang"
	"gdb/shell/words"
)

// propKind says where a property of a node or an edge comes from.
type propKind uint8

const (
	propCarried propKind = iota // in the match itself
	propName                    // from the id dictionary
	propLabel
	propFeature
)

// kindOf returns where the property of an expression comes from.
func kindOf(e *lang.MatchExpr) propKind {
	switch {
	case e.OfEdge || e.Prop == "":
		return propCarried
	case e.Prop == "id":
		return propName
	case e.Prop == "label":
		return propLabel
	}
	return propFeature
}

// matchValues holds properties of a batch of matches.
type matchValues struct {
	cells   map[[2]string][]words.Cell // by variable and property
	classes map[string][][]int         // by variable; nil for a node without a label
}

func newMatchValues() *matchValues {
	return &matchValues{map[[2]string][]words.Cell{}, map[string][][]int{}}
}

// of returns the value of an expression for a row.
func (v *matchValues) of(e *lang.MatchExpr, row int) words.Cell {
	if e.Literal != nil {
		return *e.Literal
	}
	return v.cells[[2]string{e.Name, e.Prop}][row]
}

// load loads the values of an expression for all rows.
func (o *matchOutput) load(ctx context.Context, vals *matchValues, rows []matchRow,
	e *lang.MatchExpr) (err error) {
	key := [2]string{e.Name, e.Prop}
	if vals.cells[key] != nil || e.Prop == "" {
		return nil
	}
	if edge, ok := o.edges[e.Name]; ok {
		vals.cells[key] = o.edgeValues(rows, edge, e.Prop)
		return nil
	}
	vals.cells[key], err = o.nodeValues(ctx, o.nodesOf(rows, e), e)
	return err
}

// nodesOf returns the nodes that a variable stands for, one for each row.
func (o *matchOutput) nodesOf(rows []matchRow, e *lang.MatchExpr) []layout.NodeID {
	nodes := make([]layout.NodeID, len(rows))
	for i := range rows {
		nodes[i] = rows[i].nodes[o.places[e.Name]]
	}
	return nodes
}

// loadWhere loads the values that the conditions compare, for all rows.
func (o *matchOutput) loadWhere(ctx context.Context, vals *matchValues,
	rows []matchRow) (err error) {
	eachComparison(o.m.p.where, func(c *comparison) {
		switch {
		case err != nil || c.by == byNode:
		case c.by == byClass:
			err = o.loadClasses(ctx, vals, rows, c.left)
		default:
			if err = o.load(ctx, vals, rows, c.left); err == nil {
				err = o.load(ctx, vals, rows, c.right)
			}
		}
	})
	return err
}

// loadClasses loads the classes of the nodes of a variable.
func (o *matchOutput) loadClasses(ctx context.Context, vals *matchValues, rows []matchRow,
	e *lang.MatchExpr) error {
	if vals.classes[e.Name] != nil {
		return nil
	}
	nodes, l := o.nodesOf(rows, e), o.m.p.labels
	all := make([][]int, len(nodes))
	vals.classes[e.Name] = all
	return l.Each(ctx, nodes, func(i int, row []byte) (err error) {
		all[i], err = l.Classes(nodes[i], row, []int{})
		return err
	})
}

func (o *matchOutput) edgeValues(rows []matchRow, edge int, prop string) []words.Cell {
	out := make([]words.Cell, len(rows))
	for i := range rows {
		switch e := rows[i].edges[edge]; prop {
		case "type":
			out[i] = words.Of(o.m.x.Graph.Meta().EdgeTypes[e.edgeType])
		case "weight":
			out[i] = words.Of(e.weight)
		default:
			out[i] = words.Of(e.time)
		}
	}
	return out
}

func (o *matchOutput) nodeValues(ctx context.Context, nodes []layout.NodeID,
	e *lang.MatchExpr) ([]words.Cell, error) {
	p, out := o.m.p, make([]words.Cell, len(nodes))
	switch kindOf(e) {
	case propName:
		names, err := p.names.Of(ctx, nodes)
		for i, name := range names {
			out[i] = words.Of(name)
		}
		return out, err
	case propLabel:
		return out, p.labels.Each(ctx, nodes, func(i int, row []byte) error {
			label, err := p.labels.Text(nodes[i], row)
			out[i] = words.Of(label)
			return err
		})
	}
	column := o.m.columns[e.Prop]
	at := 0
	return out, p.features.Each(ctx, nodes, func(part []layout.NodeID, data []float32) error {
		dim := len(data) / len(part)
		for i := range part {
			out[at] = words.Of(data[i*dim+column])
			at++
		}
		return nil
	})
}
