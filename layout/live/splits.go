package live

import (
	"context"
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/layout/ingest"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// PutSplits adds splits of nodes to the store in dir, and replaces those of the same names. That is
// a commit: earlier snapshots keep their splits.
func PutSplits(ctx context.Context, fs vfs.FS, dir string,
	sets map[string]*roaring.Bitmap) (err error) {
	w, err := begin(ctx, fs, dir)
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err = w.flush(ctx, &ingest.Options{}); err == nil {
		err = w.commit(ctx, func(m *kv.Meta, _ func(name string) (*roaring.Bitmap, error)) (
			map[string]*roaring.Bitmap, error) {
			m.SetSplits(sets)
			return sets, nil
		})
	}
	if err == nil {
		err = w.sweep(ctx)
	}
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	return nil
}
