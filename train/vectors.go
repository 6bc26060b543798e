package train

import (
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
	"gdb/train/embedding"
	"gdb/train/plan"
	"gdb/train/setting"
)

// learnedVectors describes the vectors of nodes that a run learns; nil if it learns none.
func learnedVectors(c *Config, m *kv.Meta, training bool) *embedding.Config {
	if c.NodeEmbedding == 0 {
		return nil
	}
	return &embedding.Config{Nodes: m.Nodes, Dim: c.NodeEmbedding, Features: setting.FeatureDim(m),
		Training: training, State: stateNames(c.Optimizer), Threads: c.Threads}
}

// closeVectors frees vectors, if there are any.
func closeVectors(v *embedding.Table) error {
	if v == nil {
		return nil
	}
	return v.Close()
}

// inputOf returns what a model computes a batch from.
func inputOf(v *embedding.Table, b *sample.Batch) ([]float32, error) {
	if v == nil {
		return b.X, nil
	}
	return v.Input(b.Dense.NodeIDs, b.X)
}

// swapVectors exchanges the vectors of nodes with those of the best evaluation.
func (t *trainer) swapVectors() {
	if t.vectors != nil {
		t.vectors.SwapBest()
	}
}

// writeVectors returns a function that writes the file of the vectors of nodes into the directory
// of a checkpoint; nil if no vectors are learned.
func (t *trainer) writeVectors() func(dir string) error {
	if t.vectors == nil {
		return nil
	}
	return func(dir string) error {
		return t.vectors.Write(t.Dir, dir, t.pos.Steps, t.pos.HasBest)
	}
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

// checkFeatureFlags returns an error for settings that make no sense for a store without features.
func checkFeatureFlags(c *Config, m *kv.Meta) error {
	if len(m.Features) > 0 {
		return nil
	}
	for _, f := range []struct {
		set  bool
		flag string
		what string
	}{{c.Cache != "auto" && c.Cache != "none", "--cache " + c.Cache, "cache"},
		{c.FeatureCache > 0, "--feature-cache", "cache"},
		{c.Superbatch > 0, "--superbatch", "cache"},
		{c.Normalize == setting.NormalizeRow, "--normalize row", "scale"}} {
		if f.set {
			return fmt.Errorf("train: the store has no features, so there is nothing to %s: leave "+
				"%s out", f.what, f.flag)
		}
	}
	return nil
}
