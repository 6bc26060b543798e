package train

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/sample"
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
	// Features is its row, as a source of the store would have it.
	Features []float32
	// Neighbors are the nodes of the graph that have an edge to it, and Unseen the numbers of those
	// of the same call.
	Neighbors []layout.NodeID
	Unseen    []int
}

// whyNoUnseen says why a run does not predict nodes that the graph does not have; nil if it does.
func (t *trained) whyNoUnseen() error {
	c := &t.cfg
	switch {
	case c.EvalMode == setting.EvalSampled:
		return errors.New("its evaluation is sampled, and new nodes are computed exactly")
	case c.Features == setting.FeaturesColumns:
		return errors.New("its features are made of columns of tables")
	case c.Precompute:
		return errors.New("it was trained with --precompute")
	case c.Timed():
		return errors.New("it goes by times")
	case t.in.Rows != nil && t.in.Rows.Meta().DType == rowfile.Sparse:
		return errors.New("the features of the store are sparse")
	}
	return exact.CheckUnseen(t.inference(t.in, &scratch{}))
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

// Features returns how many values the row of a new node has.
func (p *Predictor) Features() int {
	if p.unseen.trained.in.Rows == nil {
		return 0
	}
	return p.unseen.trained.in.Rows.Width()
}

// PredictUnseen returns what the run predicts of nodes that the graph lacks, in their order:
// to the bit what it would predict if they were the last nodes of the graph, with these edges to
// them and none from them to others. Calls wait for each other.
func (p *Predictor) PredictUnseen(ctx context.Context, nodes []UnseenNode) ([]Prediction, error) {
	if p.whyNot != nil {
		return nil, fmt.Errorf("run %s does not predict new nodes: %w", p.run, p.whyNot)
	}
	f := p.unseen
	f.mu.Lock()
	defer f.mu.Unlock()
	entries := 0
	for i := range nodes {
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
	width := t.in.task.Outputs()
	out := make([]Prediction, len(nodes))
	for i := range out {
		row := logits[i*width : (i+1)*width]
		if err := task.CheckOutput([]sample.NodeID{sample.NodeID(i)}, row); err != nil {
			return nil, err
		}
		out[i] = p.predictionOf(row)
	}
	return out, nil
}

// read returns nodes as the model reads them.
func (f *unseenNodes) read(nodes []UnseenNode, total uint64) (*exact.Unseen, error) {
	rows := f.trained.in.Rows
	width := rows.Meta().Dim
	u := &exact.Unseen{Rows: make([]float32, len(nodes)*width)}
	var stored []byte
	for i := range nodes {
		n := &nodes[i]
		var err error
		if stored, err = rows.Encode(stored[:0], n.Features); err != nil {
			return nil, fmt.Errorf("new node %d: %w", i, err)
		}
		if err := rows.Decode(u.Rows[i*width:(i+1)*width], stored); err != nil {
			return nil, err
		}
		list := make([]sample.NodeID, 0, len(n.Neighbors)+len(n.Unseen))
		list = append(list, n.Neighbors...)
		for _, k := range n.Unseen {
			if k < 0 || k >= len(nodes) {
				return nil, fmt.Errorf("new node %d: new neighbor %d: there are new nodes 0 to %d",
					i, k, len(nodes)-1)
			}
			list = append(list, sample.NodeID(total)+sample.NodeID(k))
		}
		u.Lists = append(u.Lists, list)
	}
	return u, nil
}
