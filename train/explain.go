package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/model"
	"gdb/train/setting"
)

// ExplainConfig says what to explain.
type ExplainConfig struct {
	Limits
	Run  string
	Node string // by its id
	// Class is the class whose probability is explained; "" is the one that is predicted or, of
	// several classes a node, the most probable one.
	Class string
	// Top is how many edges, columns and neighbors an Explanation lists.
	Top int
}

// Explain finds out which edges, columns and neighbors a run's prediction of a node depends on. It
// reads the node's whole neighborhood, as deep as the model is, or where that does not fit in
// memory one that is drawn as the run draws batches: a note says so.
func Explain(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c ExplainConfig) (*Explanation, error) {
	e, err := explainWith(ctx, store, dev, c, true)
	var full *mem.LimitError
	if errors.As(err, &full) {
		if c.Notes != nil {
			c.Notes(fmt.Sprintf("the whole neighborhood of %s does not fit in --memory: its "+
				"neighbors are drawn as run %s draws them", c.Node, c.Run))
		}
		e, err = explainWith(ctx, store, dev, c, false)
	}
	if err != nil {
		return nil, fmt.Errorf("train: explain node %s with run %s: %w", c.Node, c.Run, err)
	}
	return e, nil
}

// explainWith explains with whole lists of neighbors, or with lists that are drawn.
func explainWith(ctx context.Context, store *layout.Store, dev blockdev.Device, c ExplainConfig,
	whole bool) (e *Explanation, err error) {
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, mode: setting.EvalSampled,
		limits: c.Limits, withIDs: true, light: true, explains: true, whole: whole})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	node, err := t.labeledNode(ctx, c.Node)
	if err != nil {
		return nil, err
	}
	if err := t.in.OpenFeatures(ctx, loader.Cache{Policy: "none",
		Threads: t.cfg.Threads}); err != nil {
		return nil, err
	}
	order, err := sample.InOrder([]sample.NodeID{node}, sampledEpoch, 1)
	if err != nil {
		return nil, err
	}
	fanout, _ := model.Of(&t.cfg).Sampled()
	pipe, err := loader.Open(ctx, t.in.Source, loader.Config{Batch: 1, Fanout: fanout,
		ByRelation: t.in.byRelation, Seed: t.cfg.Seed, Workers: 1, PassWorkers: 1, Ready: 1},
		order, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pipe.Close()) }()
	b, err := pipe.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return t.explain(ctx, b, &c, whole)
}

// labeledNode finds a node that the run predicts.
func (t *trained) labeledNode(ctx context.Context, id string) (sample.NodeID, error) {
	node, err := t.ids.Internal(ctx, id)
	if err != nil {
		return 0, err
	}
	of := t.in.Meta.Labels.OfType
	if of != "" && !nodesOfType(t.in.Meta, of).Contains(uint32(node)) {
		return 0, fmt.Errorf("the run predicts nodes of type %s, and this one is of another", of)
	}
	return node, nil
}

// explain explains the prediction of the seed of a batch.
func (t *trained) explain(ctx context.Context, b *sample.Batch, c *ExplainConfig,
	whole bool) (*Explanation, error) {
	n, err := newNeighborhood(t, b)
	if err != nil {
		return nil, err
	}
	defer n.held.Release()
	o, err := n.outcomeOf(c.Class)
	if err != nil {
		return nil, err
	}
	e, err := n.learn(ctx, o, c.Top)
	if err != nil {
		return nil, err
	}
	e.Run, e.Node, e.Neighbors = c.Run, c.Node, "all"
	if !whole {
		e.Neighbors = "sampled"
	}
	return e, n.name(ctx, e)
}
