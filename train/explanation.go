package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/message"
	"gdb/sample"
	"gdb/train/explain"
	"gdb/train/task"
)

// Explanation says what a prediction of a node depends on.
type Explanation struct {
	Run  string `json:"run"`
	Node string `json:"node"`
	// Outcome is what the run predicts, and Class what is explained: the probability of a class;
	// "" where a number is predicted.
	Outcome
	Class string `json:"class,omitempty"`
	// Neighbors is "all", or "sampled" where the whole neighborhood did not fit in memory.
	// NodeCount, EdgeCount and ColumnCount are what was looked at; the lists have the top of each.
	Neighbors   string           `json:"neighbors"`
	NodeCount   int              `json:"node_count"`
	EdgeCount   int              `json:"edge_count"`
	ColumnCount int              `json:"column_count"`
	Edges       []ExplainedEdge  `json:"edges"`
	Columns     []ExplainedInput `json:"columns"`
	Nodes       []ExplainedInput `json:"nodes"`
	// What is predicted from the listed edges alone, and without them, and the same of the columns.
	OnlyEdges      Outcome `json:"only_edges"`
	WithoutEdges   Outcome `json:"without_edges"`
	OnlyColumns    Outcome `json:"only_columns"`
	WithoutColumns Outcome `json:"without_columns"`
}

// Outcome is a prediction. Confidence is the probability of the class that is explained; nil where
// a number is predicted.
type Outcome struct {
	Prediction any      `json:"prediction"`
	Confidence *float64 `json:"confidence,omitempty"`
}

// ExplainedEdge is an edge by which a message comes to Dst. Hops and SrcHops are how far Dst and
// Src are from the node that is explained. Mask is what was learned, from 0 to 1, and Gradient by
// how much the output changes with the message, to first order: see package explain.
type ExplainedEdge struct {
	Src      string  `json:"src"`
	Dst      string  `json:"dst"`
	Relation string  `json:"relation,omitempty"`
	Hops     int     `json:"hops"`
	SrcHops  int     `json:"src_hops"`
	Mask     float64 `json:"mask"`
	Gradient float64 `json:"gradient"`
	src, dst sample.NodeID
}

// ExplainedInput is a column, or a node, of which no mask is learned: Gradient is the gradient of
// the output times the input, summed up over nodes, or over columns.
type ExplainedInput struct {
	Name     string   `json:"name"`
	Hops     *int     `json:"hops,omitempty"` // of a node
	Mask     *float64 `json:"mask,omitempty"` // of a column
	Gradient float64  `json:"gradient"`
	node     sample.NodeID
}

// outcome is what is explained of outputs.
type outcome struct {
	class string
	index int // of the output
	loss  explain.Objective
	// read says what outputs mean.
	read func(outputs []float32) Outcome
}

// slope writes the gradient of the output that is explained.
func (o *outcome) slope(_, gradient []float32) { gradient[o.index] = 1 }

// outcomeOf returns what is explained: a class by its name, or what is predicted.
func (n *neighborhood) outcomeOf(class string) (*outcome, error) {
	outputs, err := n.Outputs(ones(len(n.in.Edge)), n.in.Rows)
	if err != nil {
		return nil, err
	}
	if err := task.CheckOutput(n.batch.Seeds, outputs); err != nil {
		return nil, err
	}
	if n.model.GradMask().Rows == 0 { // the model reads no neighbors
		n.in.Edge, n.in.Edges, n.entry = nil, 0, nil
	}
	c, ok := n.trained.in.task.(*task.Classes)
	if !ok {
		return n.number(class, outputs[0])
	}
	p, err := c.Predictions(true, false)
	if err != nil {
		return nil, err
	}
	o := &outcome{class: class}
	o.read = func(outputs []float32) Outcome {
		var row predictedRow
		p.Write(&row, outputs)
		confidence := float64(row.rest[o.index])
		return Outcome{row.prediction, &confidence}
	}
	var row predictedRow
	p.Write(&row, outputs)
	if name, _ := row.prediction.(string); class == "" && !c.Multi {
		o.class = name
	} else if class == "" {
		o.class = c.Names[slices.Index(row.rest, slices.Max(row.rest))]
	}
	if o.index = slices.Index(c.Names, o.class); o.index < 0 {
		return nil, fmt.Errorf("--class %s: there is no such class: want %s", class,
			message.OneOf(c.Names))
	}
	o.loss = func(outputs, gradient []float32) float64 {
		return c.Surprise(o.index, outputs, gradient)
	}
	return o, nil
}

// number returns that a number is explained: the objective keeps it where it is.
func (n *neighborhood) number(class string, predicted float32) (*outcome, error) {
	if class != "" {
		return nil, errors.New("--class: the run predicts numbers, which have no classes: leave " +
			"it out")
	}
	p, err := n.trained.in.task.Predictions(false, false)
	return &outcome{loss: func(outputs, gradient []float32) float64 {
		d := outputs[0] - predicted
		gradient[0] = 2 * d
		return float64(d * d)
	}, read: func(outputs []float32) Outcome {
		var row predictedRow
		p.Write(&row, outputs)
		return Outcome{Prediction: row.prediction}
	}}, err
}

func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

// learn learns masks, and lists what they say.
func (n *neighborhood) learn(ctx context.Context, o *outcome, top int) (*Explanation, error) {
	masks, err := explain.Learn(ctx, n, &n.in, o.loss)
	if err != nil {
		return nil, err
	}
	g, err := explain.TimesInput(n, &n.in, o.slope)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Class: o.class, NodeCount: len(n.batch.Dense.NodeIDs),
		EdgeCount: n.in.Edges, ColumnCount: n.in.Columns}
	edges := ranked(masks.Edges, g.Edges, top)
	for _, k := range edges {
		e.Edges = append(e.Edges, n.edge(k, masks.Edges[k], g.Edges[k]))
	}
	columns := ranked(masks.Columns, g.Columns, top)
	for _, k := range columns {
		e.Columns = append(e.Columns, ExplainedInput{Name: n.columns[k],
			Mask: &masks.Columns[k], Gradient: g.Columns[k]})
	}
	for _, k := range ranked(make([]float64, len(g.Nodes)), g.Nodes, top) {
		hops := n.hops(uint32(k))
		e.Nodes = append(e.Nodes, ExplainedInput{Hops: &hops, Gradient: g.Nodes[k],
			node: n.batch.Dense.NodeIDs[k]})
	}
	return e, n.compare(o, e, edges, columns)
}

// ranked returns the first of all, by their masks and then by the sizes of their gradients. Masks
// that differ by less than a hundredth are the same.
func ranked(masks, gradients []float64, top int) []int {
	all := make([]int, len(masks))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(math.Round(100*masks[b]), math.Round(100*masks[a])),
			cmp.Compare(math.Abs(gradients[b]), math.Abs(gradients[a])))
	})
	return all[:min(top, len(all))]
}

// hops returns how far a node of the batch is from the one that is explained.
func (n *neighborhood) hops(at uint32) int {
	d := &n.batch.Dense
	delta := 0
	for delta < d.Layers() && at >= d.NodeIDOffsets[delta+1] {
		delta++
	}
	return d.Layers() - delta
}

func (n *neighborhood) edge(k int, mask, gradient float64) ExplainedEdge {
	d, at := &n.batch.Dense, n.entry[k]
	e := ExplainedEdge{Hops: n.hops(n.owner[at]), SrcHops: n.hops(d.ReprMap[at]), Mask: mask,
		Gradient: gradient,
		src:      d.NodeIDs[d.ReprMap[at]], dst: d.NodeIDs[n.owner[at]]}
	if len(d.Types) > 0 {
		e.Relation = n.trained.in.Meta.EdgeTypes[d.Types[at]]
	}
	return e
}

// compare computes what is predicted with all, with only what is listed, and without it.
func (n *neighborhood) compare(o *outcome, e *Explanation, edges, columns []int) error {
	all := ones(len(n.in.Edge))
	for _, what := range []struct {
		to             *Outcome
		edges, columns []int
		without        bool
	}{{to: &e.Outcome}, {&e.OnlyEdges, edges, nil, false}, {&e.WithoutEdges, edges, nil, true},
		{&e.OnlyColumns, nil, columns, false}, {&e.WithoutColumns, nil, columns, true}} {
		mask, rows := all, n.in.Rows
		if what.edges != nil {
			mask = n.in.OnlyEdges(what.edges, what.without)
		}
		if what.columns != nil {
			rows = n.in.OnlyColumns(what.columns, what.without)
		}
		outputs, err := n.Outputs(mask, rows)
		if err != nil {
			return err
		}
		*what.to = o.read(outputs)
	}
	return nil
}

// name gives nodes their ids.
func (n *neighborhood) name(ctx context.Context, e *Explanation) error {
	var nodes []sample.NodeID
	for _, x := range e.Edges {
		nodes = append(nodes, x.src, x.dst)
	}
	for _, x := range e.Nodes {
		nodes = append(nodes, x.node)
	}
	names, err := n.ids.External(ctx, nodes, nil)
	if err != nil {
		return err
	}
	for i := range e.Edges {
		e.Edges[i].Src, e.Edges[i].Dst = names[2*i], names[2*i+1]
	}
	for i := range e.Nodes {
		e.Nodes[i].Name = names[2*len(e.Edges)+i]
	}
	return nil
}
