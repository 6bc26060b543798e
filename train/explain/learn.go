// Package explain finds what a prediction of a node depends on: which edges of its neighborhood and
// which columns of the features. It has no graph and no model, but a Net that computes both ways.
//
// Learn is GNNExplainer (Ying and others, "GNNExplainer: Generating Explanations for Graph Neural
// Networks", 2019): masks between 0 and 1 of edges and columns, with which the prediction keeps
// most of its probability, while they are small and near 0 or 1. Gradients are gradients times
// inputs: by how much an output would change, to first order, if an edge, a value or a row were
// zero.
package explain

import (
	"context"
	"math"
)

// Net computes the outputs of one node from the rows of its neighborhood, with a mask.
type Net interface {
	// Outputs computes the outputs with a mask of entries, one number for each entry of lists, and
	// rows of features, which it does not change. They are valid until the next call.
	Outputs(mask, rows []float32) ([]float32, error)
	// Gradients returns the gradients of the mask and of the rows for the last Outputs, given that
	// of the outputs. They are valid until the next call.
	Gradients(outputs []float32) (mask, rows []float32, err error)
}

// Input says what masks are of.
type Input struct {
	// Edge is the number of the edge that each entry belongs to, below Edges: both directions of an
	// undirected edge have one mask.
	Edge  []int32
	Edges int
	// Rows are the features, of Width values for each node, of which the first Wide are columns,
	// from number First on, below Columns: rows of different types have columns of their own.
	Rows        []float32
	Width       int
	First, Wide []int32
	Columns     int
}

// Objective returns the loss of outputs, which Learn lowers, and writes its gradient.
type Objective func(outputs, gradient []float32) float64

// Masks are what Learn finds: a number from 0 to 1 for each edge and column.
type Masks struct{ Edges, Columns []float64 }

// The constants of the objective, as the authors' program has them (explainer/explain.py of
// gnn-model-explainer) and PyTorch Geometric after it: the weights of the size of the mask of
// edges, a sum, and of its entropy, a mean; and of the same of columns, both means.
const (
	edgeSize, edgeEntropy     = 0.005, 1.0
	columnSize, columnEntropy = 1.0, 0.1
)

// Steps is how many steps of Adam are taken, and stepRate their rate, as in the authors' program.
// Masks begin at 0.5, where entropy has no slope, so that nothing is drawn. Entropy counts from the
// middle on, and wholly at the end: before, it would settle each edge by its first few steps
// (bench/explain.py finds fewer planted edges then).
const (
	Steps    = 300
	stepRate = 0.1
)

// Learn finds masks. It takes as many steps as Steps says, each as long as one of a training.
func Learn(ctx context.Context, net Net, in *Input, loss Objective) (Masks, error) {
	l := &learner{in: in, net: net, loss: loss,
		edges:   newMask(in.Edges, edgeSize, edgeEntropy),
		columns: newMask(in.Columns, columnSize/float64(max(1, in.Columns)), columnEntropy),
		mask:    make([]float32, len(in.Edge)), rows: make([]float32, len(in.Rows))}
	for step := range Steps {
		if err := ctx.Err(); err != nil {
			return Masks{}, err
		}
		if err := l.step(step + 1); err != nil {
			return Masks{}, err
		}
	}
	l.edges.open()
	l.columns.open()
	return Masks{l.edges.values, l.columns.values}, nil
}

// learner is the state of Learn.
type learner struct {
	net            Net
	in             *Input
	loss           Objective
	edges, columns *mask
	mask, rows     []float32 // of the entries; masked
}

// step lowers the objective once.
func (l *learner) step(number int) error {
	l.edges.open()
	l.columns.open()
	for i, e := range l.in.Edge {
		l.mask[i] = float32(l.edges.values[e])
	}
	l.in.each(func(i, column int) {
		l.rows[i] = l.in.Rows[i] * float32(l.columns.values[column])
	})
	outputs, err := l.net.Outputs(l.mask, l.rows)
	if err != nil {
		return err
	}
	gradient := make([]float32, len(outputs))
	l.loss(outputs, gradient)
	ofMask, ofRows, err := l.net.Gradients(gradient)
	if err != nil {
		return err
	}
	for i, g := range ofMask {
		l.edges.gradient[l.in.Edge[i]] += float64(g)
	}
	l.in.each(func(i, column int) {
		l.columns.gradient[column] += float64(ofRows[i]) * float64(l.in.Rows[i])
	})
	l.edges.step(number)
	l.columns.step(number)
	return nil
}

// each calls fn with the place of each value of the rows, and its column.
func (in *Input) each(fn func(i, column int)) {
	for node, first := range in.First {
		for j := range int(in.Wide[node]) {
			fn(node*in.Width+j, int(first)+j)
		}
	}
}

// mask is what is learned of edges, or of columns.
type mask struct {
	logits, values, gradient []float64 // of values, which are the sigmoids of logits
	first, second            []float64 // moments of Adam
	size, entropy            float64   // weights of the sum, and of the mean entropy
}

func newMask(n int, size, entropy float64) *mask {
	m := &mask{size: size, entropy: entropy}
	for _, x := range []*[]float64{&m.logits, &m.values, &m.gradient, &m.first, &m.second} {
		*x = make([]float64, n)
	}
	return m
}

// open computes the values, and forgets gradients.
func (m *mask) open() {
	clear(m.gradient)
	for i, x := range m.logits {
		m.values[i] = 1 / (1 + math.Exp(-x))
	}
}

// step adds the gradients of the size and of the entropy, and takes a step of Adam (Kingma and Ba,
// "Adam", algorithm 1, with its constants).
func (m *mask) step(number int) {
	const keepFirst, keepSecond, least = 0.9, 0.999, 1e-8
	unbiasFirst := 1 - math.Pow(keepFirst, float64(number))
	unbiasSecond := 1 - math.Pow(keepSecond, float64(number))
	entropy := m.entropy * max(0, 2*float64(number)/Steps-1) / float64(max(1, len(m.values)))
	for i, v := range m.values {
		// The entropy is -v log v - (1-v) log(1-v): its slope is minus the logit.
		g := m.gradient[i] + m.size - entropy*m.logits[i]
		g *= v * (1 - v)
		m.first[i] = keepFirst*m.first[i] + (1-keepFirst)*g
		m.second[i] = keepSecond*m.second[i] + (1-keepSecond)*g*g
		m.logits[i] -= stepRate * m.first[i] / unbiasFirst /
			(math.Sqrt(m.second[i]/unbiasSecond) + least)
	}
}

// Gradients are gradients of an output times inputs, of all that masks are of and of the rows of
// nodes.
type Gradients struct{ Edges, Columns, Nodes []float64 }

// TimesInput computes the gradients of an output, of which slope writes the gradient, with nothing
// masked.
func TimesInput(net Net, in *Input, slope func(outputs, gradient []float32)) (g Gradients,
	err error) {
	mask := make([]float32, len(in.Edge))
	for i := range mask {
		mask[i] = 1
	}
	outputs, err := net.Outputs(mask, in.Rows)
	if err != nil {
		return g, err
	}
	gradient := make([]float32, len(outputs))
	slope(outputs, gradient)
	ofMask, ofRows, err := net.Gradients(gradient)
	if err != nil {
		return g, err
	}
	g = Gradients{make([]float64, in.Edges), make([]float64, in.Columns),
		make([]float64, len(in.First))}
	for i, v := range ofMask {
		g.Edges[in.Edge[i]] += float64(v)
	}
	in.each(func(i, column int) {
		v := float64(ofRows[i]) * float64(in.Rows[i])
		g.Columns[column] += v
		g.Nodes[i/in.Width] += v
	})
	return g, nil
}

// OnlyEdges returns a mask of entries that leaves out all but some edges, or with without these.
func (in *Input) OnlyEdges(edges []int, without bool) []float32 {
	keep := kept(in.Edges, edges, without)
	mask := make([]float32, len(in.Edge))
	for i, e := range in.Edge {
		mask[i] = keep[e]
	}
	return mask
}

// OnlyColumns returns the rows with zeros in all but some columns, or with without in these.
func (in *Input) OnlyColumns(columns []int, without bool) []float32 {
	keep := kept(in.Columns, columns, without)
	rows := make([]float32, len(in.Rows))
	in.each(func(i, column int) { rows[i] = in.Rows[i] * keep[column] })
	return rows
}

// kept returns 1 for what stays, and 0 for the rest.
func kept(n int, some []int, without bool) []float32 {
	keep := make([]float32, n)
	for i := range keep {
		if without {
			keep[i] = 1
		}
	}
	for _, k := range some {
		keep[k] = 1 - keep[k]
	}
	return keep
}
