package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/train/columns"
	"gdb/train/exact"
	"gdb/train/setting"
	"gdb/train/task"
)

// unseenNodes computes what a run predicts of nodes that the graph does not have.
type unseenNodes struct {
	trained *trained // with the graph and the features on disk
	states  []*exact.Table
	mu      sync.Mutex // held while something is computed
}

// UnseenNode is a node that the graph does not have.
type UnseenNode struct {
	// Type is the number of its type in a typed store; 0 in others.
	Type int
	// Features is its row, as a source of the store would have it, or, of a run whose features are
	// made of columns, as Predictor.Columns encodes it.
	Features []float32
	// Neighbors are the nodes of the graph that have an edge to it, and Unseen the numbers of those
	// of the same call.
	Neighbors []layout.NodeID
	Unseen    []int
	// Relations are the types of the edges of Neighbors, and of those of Unseen behind them; nil if
	// edges have no types, or the model does not read them.
	Relations []uint32
	// Calibrated asks for probabilities by the run's temperature.
	Calibrated bool
}

// whyNoUnseen says why a run does not predict nodes that the graph does not have; nil if it does.
func (t *trained) whyNoUnseen() error {
	c := &t.cfg
	switch {
	case c.EvalMode == setting.EvalSampled:
		return errors.New("its evaluation is sampled, and new nodes are computed exactly")
	case c.Precompute:
		return errors.New("it was trained with --precompute")
	case c.Timed():
		return errors.New("it goes by times")
	case t.in.Rows != nil && t.in.Rows.Meta().DType == rowfile.Sparse:
		return errors.New("the features of the store are sparse")
	}
	if how := t.in.Meta.Rescaled(); how != "" && t.in.Rows != nil &&
		c.Features != setting.FeaturesColumns {
		return fmt.Errorf("the features of the store were scaled when it was made (%s), and rows "+
			"that are given are not: take %s predict --nodes FILE", how, message.Program)
	}
	if typ := t.labeledType(); typ >= 0 && c.Features == setting.FeaturesColumns {
		if _, err := c.Encoders.NewRow(t.in.Meta, typ); err != nil {
			return err
		}
	}
	return exact.CheckUnseen(t.inference(t.in, &scratch{}))
}

// labeledType returns the number of the type whose nodes have labels; -1 if all may have.
func (t *trained) labeledType() int {
	m := t.in.Meta
	return slices.IndexFunc(m.NodeTypes, func(of kv.NodeTypeMeta) bool {
		return m.Typed() && m.Labels != nil && of.Name == m.Labels.OfType
	})
}

// unseenRoom returns an error if the memory is too small to predict new nodes.
func unseenRoom(t *trained) error {
	need := int64(exact.Bytes + exact.HeapBytes)
	if free := t.in.Budget.Limit() - t.in.Budget.Used(); free < need {
		return fmt.Errorf("its part of the memory is %s, and it takes %s: raise --memory",
			mem.FormatSize(free), mem.FormatSize(need))
	}
	return nil
}

// PredictsUnseen returns nil if the run predicts nodes that the graph does not have, else why not.
func (p *Predictor) PredictsUnseen() error { return p.whyNot }

// Features returns how many values the row of a new node of a type has, if the run predicts any.
func (p *Predictor) Features(typ int) int {
	if s := p.unseen.trained.in.Rows.Meta().Sections; s != nil {
		return s[typ].Dim
	}
	return p.unseen.trained.in.Rows.Width()
}

// OfColumns reports whether the run's features are made of columns of tables, so that rows of new
// nodes are what Columns encodes.
func (p *Predictor) OfColumns() bool {
	return p.unseen.trained.cfg.Features == setting.FeaturesColumns
}

// Columns returns what encodes rows of new nodes of a type, of a run whose features are made of
// columns.
func (p *Predictor) Columns(typ int) (*columns.Row, error) {
	t := p.unseen.trained
	return t.cfg.Encoders.NewRow(t.in.Meta, typ)
}

// ReadsRelations reports whether the run reads the types of edges.
func (p *Predictor) ReadsRelations() bool {
	return p.unseen.trained.model.Spec().Extras().EdgeTypes
}

// PredictUnseen returns what the run predicts of nodes that the graph lacks, in their order:
// to the bit what it would predict if they were the last nodes of the graph, in a typed store the
// last of their types, with these edges to them and none from them to others. It predicts nothing,
// which is a Prediction without a value, of nodes of types whose nodes have no labels. Calls wait
// for each other.
func (p *Predictor) PredictUnseen(ctx context.Context, nodes []UnseenNode) ([]Prediction, error) {
	if p.whyNot != nil {
		return nil, fmt.Errorf("run %s does not predict new nodes: %w", p.run, p.whyNot)
	}
	f := p.unseen
	f.mu.Lock()
	defer f.mu.Unlock()
	entries := 0
	for i := range nodes {
		if nodes[i].Calibrated && p.mu.calibrated == nil {
			return nil, p.CheckCalibrated()
		}
		entries += len(nodes[i].Neighbors) + len(nodes[i].Unseen)
	}
	widest := 0
	for _, d := range f.trained.model.Dims() {
		widest = max(widest, d)
	}
	bytes := exact.UnseenBytes(len(nodes), entries, widest) + exact.HeapBytes
	if err := f.trained.in.Budget.Reserve("new nodes", bytes); err != nil {
		return nil, err
	}
	defer f.trained.in.Budget.Release(bytes)
	u, err := f.read(nodes, p.nodes)
	if err != nil {
		return nil, err
	}
	t := f.trained
	inference := t.inference(t.in, newScratch(t.in, t.dir, predictJob))
	logits, err := inference.RunUnseen(ctx, u, f.states)
	if err != nil {
		return nil, fmt.Errorf("train: predict new nodes with run %s: %w", p.run, err)
	}
	width, labeled := t.in.task.Outputs(), t.labeledType()
	out := make([]Prediction, len(nodes))
	for i := range out {
		if labeled >= 0 && nodes[i].Type != labeled {
			continue
		}
		row := logits[i*width : (i+1)*width]
		if err := task.CheckOutput([]sample.NodeID{sample.NodeID(i)}, row); err != nil {
			return nil, err
		}
		out[i] = p.predictionOf(row, nodes[i].Calibrated)
	}
	return out, nil
}

// read returns nodes as the model reads them.
func (f *unseenNodes) read(nodes []UnseenNode, total uint64) (*exact.Unseen, error) {
	rows, in := f.trained.in.Rows, f.trained.in
	width, wide := rows.Meta().Dim, make([]float32, rows.Width())
	u := &exact.Unseen{Rows: make([]float32, len(nodes)*width)}
	var stored []byte
	for i := range nodes {
		n := &nodes[i]
		if in.Meta.Typed() && (n.Type < 0 || n.Type >= len(in.Meta.NodeTypes)) {
			return nil, fmt.Errorf("new node %d: there is no type %d", i, n.Type)
		}
		row := n.Features
		if s := rows.Meta().Sections; s != nil && len(row) == s[n.Type].Dim { // as they are read
			clear(wide[copy(wide, row):])
			row = wide
		}
		var err error
		if stored, err = rows.Encode(stored[:0], row); err != nil {
			return nil, fmt.Errorf("new node %d: %w", i, err)
		}
		if err := rows.Decode(u.Rows[i*width:(i+1)*width], stored); err != nil {
			return nil, err
		}
		u.Types = append(u.Types, n.Type)
		list := make([]sample.NodeID, 0, len(n.Neighbors)+len(n.Unseen))
		list = append(list, n.Neighbors...)
		for _, k := range n.Unseen {
			if k < 0 || k >= len(nodes) {
				return nil, fmt.Errorf("new node %d: new neighbor %d: there are new nodes 0 to %d",
					i, k, len(nodes)-1)
			}
			list = append(list, sample.NodeID(total)+sample.NodeID(k))
		}
		relations := n.Relations
		if relations == nil {
			relations = make([]uint32, len(list))
		}
		if len(relations) != len(list) {
			return nil, fmt.Errorf("new node %d: %d types of %d edges", i, len(relations),
				len(list))
		}
		u.Lists, u.Relations = append(u.Lists, list), append(u.Relations, relations)
	}
	return u, nil
}
