package live

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gdb/layout"
	"gdb/layout/ingest/steps"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Sweep removes what no snapshot of the store in dir needs that is the last one, or that a name, a
// run or a reader keeps: see layout.Needed. While a commit or compaction is under way it does
// nothing, since that sweeps too.
func Sweep(ctx context.Context, fs vfs.FS, dir string) error {
	w, err := begin(ctx, fs, dir)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(w.sweep(ctx), w.close())
}

// sweepKilled sweeps if a commit or compaction was killed, which leaves its folder.
func (w *work) sweepKilled(ctx context.Context) error {
	_, err := w.fs.Stat(w.path())
	if oserror.IsNotExist(err) {
		return nil
	}
	return w.sweep(ctx)
}

// sweep removes what no snapshot needs, and the folder of the work last, once all else is durable:
// while that folder stands, the next commit sweeps.
func (w *work) sweep(ctx context.Context) error {
	if err := w.sweepUnneeded(ctx); err != nil {
		return err
	}
	levels := w.store.Path(layout.LevelsDir)
	if _, err := w.fs.Stat(levels); err == nil {
		if err := steps.SyncDir(w.fs, levels); err != nil {
			return err
		}
	}
	if err := steps.SyncDir(w.fs, w.store.Dir()); err != nil {
		return err
	}
	return removeAll(w.fs, w.path())
}

// sweepUnneeded removes what no snapshot needs. It makes the catalog forget snapshots before their
// files go.
func (w *work) sweepUnneeded(ctx context.Context) error {
	h, err := w.store.History(ctx)
	if err != nil {
		return err
	}
	need, err := layout.Needed(w.store, h)
	if err != nil || need.All {
		return err
	}
	if len(need.Forget) > 0 {
		if err := w.store.Catalog().Forget(ctx, need.Forget); err != nil {
			return err
		}
	}
	return errors.Join(w.sweepLevels(need), w.sweepOwn(need))
}

// sweepLevels removes folders of bases and levels.
func (w *work) sweepLevels(need layout.Needs) error {
	names, err := w.fs.List(w.store.Path(layout.LevelsDir))
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	for _, name := range names {
		path := layout.LevelsDir + "/" + name
		number, isCommit := layout.CommitNumber(name)
		if !slices.Contains(need.Folders, path) &&
			!(isCommit && slices.Contains(need.Commits, number)) {
			if err := removeAll(w.fs, w.store.Path(path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepOwn removes the files of the base in the store's own folder, and what was made of snapshots
// that are gone.
func (w *work) sweepOwn(need layout.Needs) error {
	names, err := w.fs.List(w.store.Dir())
	if err != nil {
		return err
	}
	ofBase := []string{"topology", "edges", "columns", "features", "labels", "ids"}
	for _, name := range names {
		made := name == layout.PrepDir || strings.HasPrefix(name, layout.PrepDir+"-")
		if made && !slices.Contains(need.Prep, name) ||
			slices.Contains(ofBase, name) && !slices.Contains(need.Folders, "") {
			if err := removeAll(w.fs, w.fs.PathJoin(w.store.Dir(), name)); err != nil {
				return err
			}
		}
	}
	return nil
}
