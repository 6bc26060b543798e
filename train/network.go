package train

import (
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
	"gdb/train/devicecache"
	"gdb/train/embedding"
	"gdb/train/model"
	"gdb/train/optimize"
	"gdb/train/plan"
	"gdb/train/setting"
)

// network computes the outputs of nodes: a model on a backend, and the vectors of nodes that the
// model reads behind their features. It may be used by one goroutine.
type network struct {
	be      backend.Backend
	model   *model.Model
	vectors *embedding.Table // nil if none are learned
}

// forward computes the outputs of the seeds of a batch. step says what for; forward adds to it
// where the rows of the batch are, with rows, nil where a device has none.
func (n *network) forward(b *sample.Batch, step model.Step,
	rows devicecache.Input) (y backend.Tensor, err error) {
	x := b.X
	step.Nodes = b.Dense.NodeIDs
	step.Prepared, _ = b.Prepared.(*program.Prepared)
	step.ReadTable(n.be, b)
	if n.vectors != nil {
		if x, err = n.vectors.Input(b.Dense.NodeIDs, b.X); err != nil {
			return y, err
		}
	}
	if rows != nil {
		if step.Input, err = rows(b); err != nil {
			return y, err
		}
	}
	return n.model.Forward(&b.Dense.Lists, x, step)
}

// logits predicts the seeds of a batch, in the memory of out if that is large enough. rows is as in
// forward.
func (n *network) logits(b *sample.Batch, out []float32,
	rows devicecache.Input) ([]float32, error) {
	if err := n.be.Begin(); err != nil {
		return nil, err
	}
	y, err := n.forward(b, model.Step{}, rows)
	if err != nil {
		return nil, err
	}
	out = mem.Resized(out, y.Len())
	n.be.Read(out, y)
	return out, n.be.Err()
}

// weights returns a copy of the weights.
func (n *network) weights() ([]float32, error) {
	w := make([]float32, n.model.Params().Total)
	n.be.Read(w, n.model.Params().W)
	if err := n.be.Err(); err != nil {
		return nil, fmt.Errorf("train: read the weights: %w", err)
	}
	return w, nil
}

// trim gives the memory of steps back.
func (n *network) trim() error {
	err := n.be.Trim()
	if n.vectors != nil {
		err = errors.Join(err, n.vectors.Trim())
	}
	return err
}

// learnedVectors describes the vectors of nodes that a run learns; nil if it learns none.
func learnedVectors(c *Config, m *kv.Meta, training bool) *embedding.Config {
	if c.NodeEmbedding == 0 {
		return nil
	}
	return &embedding.Config{Nodes: m.Nodes, Dim: c.NodeEmbedding, Features: setting.FeatureDim(m),
		Training: training, State: optimize.StateNames(c.Optimizer), Threads: c.Threads,
		Repeats: c.Timed()}
}

// explained adds to an error about too little memory how much of it the vectors of nodes take.
func explained(err error, learned *embedding.Config) error {
	var small *plan.TooSmallError
	if learned == nil || !errors.As(err, &small) {
		return err
	}
	return fmt.Errorf("%w; of that the vectors of %d nodes take %s (--node-embedding %d), which "+
		"must fit in memory, as they cannot be kept on disk yet: lower it too", err, learned.Nodes,
		mem.FormatSize(learned.Bytes()), learned.Dim)
}
