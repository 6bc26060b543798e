package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/setting"
)

// LinkMetric names the metric by which runs that predict links are judged.
const LinkMetric = "mrr"

// ErrNone says that a store has no run to choose.
var ErrNone = errors.New("the store has no finished run")

// Best returns the finished run with the best validation metric, among those with the metric of the
// latest run: values of different metrics cannot be compared.
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
			setting.Better(r.Metric, r.Best, best.Best)) {
			best = r
		}
	}
	if best.Name == "" {
		return best, fmt.Errorf("%w: train one first", ErrNone)
	}
	return best, nil
}

// Damaged returns an error about the first of some runs whose settings are damaged;
// nil if none are.
func Damaged(s *layout.Store, names ...string) error {
	for _, name := range names {
		if setting.ValidName(name) != nil {
			continue
		}
		if _, err := Open(s, name).ReadAny(); errors.Is(err, layout.ErrCorrupt) ||
			errors.Is(err, files.ErrRefused) {
			return err
		}
	}
	return nil
}

// Names returns the names of runs.
func Names(all []kv.RunMeta) (names []string) {
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

// Remove deletes a run: its directory and its record, also if one of them is gone. It returns an
// error for a run that is being trained.
func Remove(ctx context.Context, s *layout.Store, name string) error {
	if err := setting.ValidName(name); err != nil {
		return err
	}
	r := Open(s, name)
	if !r.Exists() {
		all, err := s.Catalog().Runs(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(Names(all), name) {
			return fmt.Errorf("there is no run %s%s", name, r.others())
		}
		if err := r.fs.MkdirAll(r.dir, 0o755); err != nil { // for the lock
			return fmt.Errorf("remove run %s: %w", name, err)
		}
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
