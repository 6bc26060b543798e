package train

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/loader"
	"gdb/train/columns"
	"gdb/train/setting"
)

// withColumns returns the store that a training reads whose features are made of columns: the same
// store with a file in prep/ for its features, which is made if it does not exist. c gets the
// encoders, unless it has those of a run. note is told what was chosen and done.
func withColumns(ctx context.Context, store *layout.Store, dev blockdev.Device, c *Config,
	note func(string)) (*layout.Store, error) {
	m := store.Meta()
	if err := c.ResolveFeatures(m); err != nil || c.Features != setting.FeaturesColumns {
		return store, err
	}
	budget := mem.NewProcessBudget(c.Memory)
	if c.Encoders == nil {
		splits, err := loader.LoadSplits(ctx, store, []string{"train"}, c.Split, budget)
		if err == nil {
			err = splits[0].Err
		}
		if err != nil {
			return nil, err
		}
		c.Encoders, err = columns.Fit(ctx, store, dev, splits[0].Set, budget)
		if err != nil {
			return nil, fmt.Errorf("train: measure columns: %w", err)
		}
		for i := range c.Encoders.Types {
			note(c.Encoders.Types[i].String())
		}
	}
	encoded, err := c.Encoders.Open(ctx, store, dev, budget)
	if err != nil {
		return nil, fmt.Errorf("train: make features of columns: %w", err)
	}
	return encoded, nil
}
