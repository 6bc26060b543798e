package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/tables"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/exact"
	"gdb/train/export"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// PredictConfig says what to predict.
type PredictConfig struct {
	Limits
	// Run is the run whose best weights predict.
	Run string
	// Split is train, val, test, or a stored set by its whole name; "" is every node, of a typed
	// store every node of the type that has labels, and of a run of edges every edge.
	Split string
	// NewSince names a snapshot, as layout.OpenAt takes it: only nodes that came later are
	// predicted, of no split. "" is for all.
	NewSince string
	// Probabilities asks for the probability of each class in addition.
	Probabilities bool
	// Calibrated has them be by the temperature that Calibrate fitted.
	Calibrated bool
	// Out is the file to write, in the format of its extension: see export.Table. Its columns are
	// id, or src and dst of a run of edges, prediction and, with Probabilities, p:LABEL for each
	// class.
	Out string
}

// Predict computes the predictions for the nodes of a split, or for all nodes, exactly and in
// bounded memory, and writes them under the user's own ids and labels.
func Predict(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c PredictConfig) (err error) {
	if err := export.CheckPath("predictions", c.Out); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	o := opening{calibrated: c.Calibrated, run: c.Run,
		split: c.Split, limits: c.Limits, withIDs: true, labeledType: true}
	if c.NewSince != "" {
		if o.nodes, err = newNodes(ctx, store, c.NewSince); err != nil {
			return fmt.Errorf("train: predict what is new since %s: %w", c.NewSince, err)
		}
	}
	t, err := openTrained(ctx, store, dev, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.checkCalibrated(c.Calibrated); err != nil {
		return err
	}
	p, err := t.in.task.Predictions(c.Probabilities, filepath.Ext(c.Out) == ".npy")
	if err != nil {
		return fmt.Errorf("train: predict: %w", err)
	}
	table, err := export.CreateTable(ctx, export.TableSpec{FS: store.FS(), Path: c.Out,
		Nodes: t.set, Meta: t.in.Meta, Names: t.ids, Columns: p.Columns(), Ends: t.in.ends()})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer func() { err = errors.Join(err, table.Abort()) }()
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	err = t.each(ctx, func(nodes []sample.NodeID, logits []float32) error {
		if err := task.CheckOutput(nodes, logits); err != nil {
			return err
		}
		n := t.in.task.Outputs()
		return table.Rows(ctx, nodes, func(i int, row tables.Writer) {
			p.Write(row, logits[i*n:(i+1)*n])
		})
	})
	if err == nil {
		err = table.Commit()
	}
	if err != nil {
		return fmt.Errorf("train: predict with run %s: %w", c.Run, err)
	}
	return nil
}

// PredictsLater returns nil if a run predicts nodes that came after it was trained, else why not.
func PredictsLater(store *layout.Store, run string) error {
	c, err := runs.Load(store, run)
	switch {
	case err != nil:
		return err
	case c.OfEdges():
		return fmt.Errorf("run %s predicts edges, and not nodes", run)
	case c.NodeEmbedding > 0:
		return fmt.Errorf("run %s learned a vector for each node (--node-embedding), and has none "+
			"for new ones: train a run without", run)
	case !store.Meta().Typed() && slices.ContainsFunc(c.EdgeFeatures, isColumn):
		return fmt.Errorf("run %s reads columns of edges (--edge-features), which edges of new "+
			"nodes get in stores of several types alone so far", run)
	}
	return nil
}

// isColumn reports whether an edge feature is a column of a table.
func isColumn(name string) bool {
	return name != loader.EdgeDegree && name != loader.EdgeWeight
}

// newNodes returns the nodes that came after a snapshot, and were not deleted since.
func newNodes(ctx context.Context, store *layout.Store, since string) (*roaring.Bitmap, error) {
	if store.Meta().Typed() {
		return newOfTypes(ctx, store, since)
	}
	first, err := store.NodesAt(ctx, since)
	if err != nil {
		return nil, err
	}
	nodes, err := nodesFrom(ctx, store, first)
	if err == nil && nodes.IsEmpty() {
		return nil, fmt.Errorf("no node came after it: the store had %d nodes then, and snapshot "+
			"%d has no other", first, store.Meta().Snapshot)
	}
	return nodes, err
}

// newOfTypes returns the nodes of a typed store that came after a snapshot: in each type, those
// behind the ones that it had. Where one type has labels it returns the nodes of that alone.
func newOfTypes(ctx context.Context, store *layout.Store, since string) (*roaring.Bitmap, error) {
	counts, err := store.TypesAt(ctx, since)
	if err != nil {
		return nil, err
	}
	nodes := roaring.New()
	m, of := store.Meta(), ""
	if m.Labels != nil {
		of = m.Labels.OfType
	}
	for i, t := range m.NodeTypes {
		if of == "" || of == t.Name {
			nodes.AddRange(t.First+min(counts[i], t.Nodes), t.First+t.Nodes)
		}
	}
	if nodes.IsEmpty() {
		what := strings.TrimSuffix("node of type "+of, " of type ")
		return nil, fmt.Errorf("no %s came after it, up to snapshot %d", what, m.Snapshot)
	}
	return nodes, nil
}

// nodesFrom returns the nodes from a number on, without those that were deleted.
func nodesFrom(ctx context.Context, store *layout.Store, first uint64) (*roaring.Bitmap, error) {
	m, nodes := store.Meta(), roaring.New()
	nodes.AddRange(first, max(first, m.Nodes))
	if m.Deleted == "" {
		return nodes, nil
	}
	deleted, err := store.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	nodes.AndNot(deleted)
	return nodes, nil
}

// ends returns what tells the ends of the edges that are seeds; nil where nodes are.
func (in *inputs) ends() func(edge sample.NodeID) (src, dst sample.NodeID) {
	if in.edges == nil {
		return nil
	}
	return in.edges.Ends
}

// each calls emit with the outputs of the nodes to predict, ascending: computed over whole lists,
// or from batches where the model has no other way, or seeds have times.
func (t *trained) each(ctx context.Context, emit exact.Emit) error {
	e := t.evaluator(predictJob)
	if t.cfg.EvalMode == setting.EvalSampled {
		return e.eachSampled(ctx, t.set, func(ids []sample.NodeID) (*sample.Order, error) {
			return sample.InOrder(ids, sampledEpoch, t.cfg.PartSeeds())
		}, emit)
	}
	f := t.inference(t.in, e.scratch)
	f.Hidden = t.hidden
	return f.Run(ctx, t.set, emit)
}
