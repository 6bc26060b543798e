package runs

import (
	"context"
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/layout"
	"gdb/train/task"
)

// ErrNone says that a store has no run to choose.
var ErrNone = errors.New("the store has no finished run")

// Best is the finished run with the best validation metric, among those with the metric of the
// latest one: values of different metrics do not compare.
func Best(ctx context.Context, s *layout.Store) (best kv.RunMeta, err error) {
	all, err := s.Catalog().Runs(ctx)
	if err != nil {
		return best, err
	}
	var latest kv.RunMeta
	for _, r := range all {
		if r.Status == "done" && !r.Updated.Before(latest.Updated) {
			latest = r
		}
	}
	for _, r := range all {
		if r.Status == "done" && r.Metric == latest.Metric && (best.Name == "" ||
			task.Better(r.Metric, r.Best, best.Best)) {
			best = r
		}
	}
	if best.Name == "" {
		return best, fmt.Errorf("%w: train one first", ErrNone)
	}
	return best, nil
}

// Remove deletes a run: its directory and its record. One that trains is refused.
func Remove(ctx context.Context, s *layout.Store, name string) error {
	if err := ValidName(name); err != nil {
		return err
	}
	r := Open(s, name)
	if !r.Exists() {
		return fmt.Errorf("there is no run %s%s", name, r.others())
	}
	lock, err := r.Lock()
	if err != nil {
		return err
	}
	if err := errors.Join(s.Catalog().DeleteRun(ctx, name), lock.Close()); err != nil {
		return err
	}
	if err := r.fs.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("remove run %s: %w", name, err)
	}
	return r.syncDir(r.fs.PathDir(r.dir))
}
