package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/loader"
	"gdb/train/columns"
	"gdb/train/setting"

	"github.com/RoaringBitmap/roaring/v2"
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
		train, err := trainOf(ctx, store, dev, c, budget)
		if err != nil {
			return nil, err
		}
		c.Encoders, err = columns.Fit(ctx, store, dev, train, budget)
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

// trainOf returns the nodes that are trained on, by the store's split or by their times.
func trainOf(ctx context.Context, store *layout.Store, dev blockdev.Device, c *Config,
	budget *mem.Budget) (train *roaring.Bitmap, err error) {
	in := &inputs{Source: loader.NewSource(store, dev, budget)}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := in.openTimes(ctx, c); err != nil {
		return nil, err
	}
	splits, err := in.loadSets(ctx, c, []string{"train"}, c.Split)
	if err != nil {
		return nil, err
	}
	return splits[0].Set, splits[0].Err
}
