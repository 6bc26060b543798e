package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/kv"
	"gdb/sample"
	"gdb/train/runs"
	"gdb/train/task"

	"github.com/dustin/go-humanize"
)

const (
	// directionLooks is the most training nodes whose in-edges are counted before a run,
	// and directionStep how many are counted at a time: a paged reader holds the blocks
	// that these need.
	directionLooks, directionStep = 4096, 256
	// loneShare sets when the user is told of training nodes without in-edges: if at least one in
	// loneShare has none.
	loneShare = 10
)

// direction finds out whether a model sees the neighbors of the nodes that it learns from. A
// model reads the edges that lead to a node; a graph that has each edge only once, in either
// direction, may have none there. It returns what the user should know; "" for nothing.
func direction(ctx context.Context, c *checked, in *inputs,
	train []sample.NodeID) (note string, err error) {
	share, known := in.Meta.ReversedShare()
	if c.alone || c.loop.Resumed || in.Meta.Undirected || known && share == 1 ||
		c.cfg.Model == "mlp" || c.cfg.OfEdges() {
		return "", nil
	}
	lone, looked, err := in.withoutInEdges(ctx, train)
	if err != nil {
		return "", fmt.Errorf("train: %w", err)
	}
	add := "--undirected adds the reverse of each edge"
	if in.Meta.Typed() {
		add = "--reverse adds to each relation its reverse"
	}
	switch {
	case lone > 0 && lone*loneShare >= looked:
		note = fmt.Sprintf("%s of %s training nodes have no in-edges, and a model reads no "+
			"others, so that it learns nothing of their neighbors: ingest with %s",
			humanize.Comma(int64(lone)), humanize.Comma(int64(looked)), add)
	case known && share < kv.ReversedUsual:
		note = fmt.Sprintf("%.0f %% of edges have their reverse, and a model reads the "+
			"in-edges of a node only: ingest with --undirected if neighbors matter both ways",
			100*share)
	}
	return note, nil
}

// withoutInEdges counts the training nodes without in-edges, among all training nodes or an even
// sample of them. A topology that takes turns with batches is opened for that; it looks at none if
// partitions of the graph are trained on.
func (in *inputs) withoutInEdges(ctx context.Context, train []sample.NodeID) (lone, looked int,
	err error) {
	release, err := in.UseGraph(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if in.Topology == nil {
		return 0, 0, nil
	}
	looked = min(len(train), directionLooks)
	nodes, degrees := make([]sample.NodeID, 0, directionStep), make([]uint32, directionStep)
	for first := 0; first < looked; first += directionStep {
		nodes = nodes[:0]
		for i := first; i < min(first+directionStep, looked); i++ {
			nodes = append(nodes, train[i*len(train)/looked])
		}
		session := in.Topology.NewSession()
		err := session.Degrees(ctx, nodes, degrees[:len(nodes)])
		session.Release()
		if err != nil {
			return 0, 0, err
		}
		for _, n := range degrees[:len(nodes)] {
			if n == 0 {
				lone++
			}
		}
	}
	return lone, looked, nil
}

// steepEpochs and steepTimes say what a steep loss is: within the first steepEpochs epochs, at
// least steepTimes the loss of guessing.
const steepEpochs, steepTimes = 5, 2

// steepLoss tells of a loss that is far above that of guessing at the beginning of a run: then the
// first steps were larger than random weights can bear, and later epochs have to repair the damage.
// It returns "" for other losses.
func steepLoss(c *Config, rec *runs.Epoch, outputs int) string {
	guess := math.Log(float64(outputs))
	if c.Loss != task.LossSoftmax || c.Warmup > 0 || rec.Epoch > steepEpochs ||
		rec.Loss < steepTimes*guess {
		return ""
	}
	return fmt.Sprintf("the loss of epoch %d was %s, where guessing has %s: first steps as large "+
		"as that cost what comes after; --warmup 20 often learns more", rec.Epoch,
		runs.Figure(rec.Loss, 3), runs.Figure(guess, 3))
}
