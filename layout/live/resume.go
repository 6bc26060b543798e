package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/unfinished"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrStopped says that a commit was stopped, and that what it has made waits for Options.Resume.
var ErrStopped = errors.New("stopped, and can go on")

// recordPath is the record of the commit under way, below the folder of the work. Small commits
// have none.
const recordPath = "append.json"

// checkKilled fails if a commit is to go on that was not killed here, and notes what was removed of
// one that was.
func (a *appending) checkKilled() error {
	m := a.store.Meta()
	switch {
	case a.opt.Resume && a.killed == nil:
		return a.errNoneKilled()
	case a.killed != nil && !a.opt.Resume && a.killed.Snapshot == m.Snapshot && a.opt.Notes != nil:
		// A note that cannot be written must not end the commit.
		_, _ = fmt.Fprintf(a.opt.Notes, "a commit of %s was stopped before: what it had made is "+
			"removed, since --resume is not given\n", strings.Join(a.killed.Paths(), ", "))
	}
	return nil
}

func (a *appending) errNoneKilled() error {
	return input.Usage("--resume: no commit to %s was stopped: its last is snapshot %d; leave "+
		"--resume out to add the files", a.store.Dir(), a.store.Meta().Snapshot)
}

// claim records of which files the commit is made, or compares them with the record of the one that
// goes on. done is not nil if that was whole already.
func (a *appending) claim(info *source.Info) (done *Added, err error) {
	if a.batch != nil || slices.Contains(info.Paths, source.StandardInput) {
		if a.opt.Resume {
			return nil, input.Usage("--resume: standard input cannot be read again")
		}
		return nil, nil
	}
	now := &unfinished.Record{Snapshot: a.store.Meta().Snapshot}
	now.Options, now.Sources, err = ingest.Fingerprint(a.fs, info, a.opt, "")
	if err != nil {
		return nil, err
	}
	if !a.opt.Resume {
		a.recorded = true
		return nil, now.Write(a.fs, a.path(recordPath))
	}
	isWhole := now.Snapshot > a.killed.Snapshot
	switch err := a.killed.CheckSame(now); {
	case err != nil && isWhole:
		return nil, a.errNoneKilled()
	case err != nil:
		return nil, err // what was made waits for the right files
	}
	if a.recorded = true; isWhole {
		a.opt.Resume = false
		return &Added{LevelMeta: kv.LevelMeta{Snapshot: now.Snapshot}, Before: true},
			removeAll(a.fs, a.path("level"))
	}
	if !a.meta.Typed() && (len(info.Features) > 0 || info.Labels != nil || len(info.Splits) > 0) {
		a.opt.Resume = false // values of nodes are read anew
		return nil, errors.Join(removeAll(a.fs, a.path("read")), removeAll(a.fs, a.path("level")),
			removeAll(a.fs, a.path("base")))
	}
	return nil, nil
}

// waits reports whether what a commit made that failed is kept: it was stopped, or the disk is
// full.
func (a *appending) waits(stopped bool, err error) bool {
	return a.recorded && (stopped || vfs.IsNoSpaceError(err))
}

// settledPath is where a level or base is, below the folder of the work, that a killed commit had
// moved to its place.
const settledPath = "settled"

// takeBack moves what a killed commit had moved to its place, before the catalog listed it, to the
// folder of the work: the commit goes on with it.
func (w *work) takeBack() error {
	next := w.store.Meta().Snapshot + 1
	from, to := w.store.Path(fmt.Sprintf("%s/%d", layout.LevelsDir, next)), w.path(settledPath)
	if w.killed.Snapshot >= next || !w.isThere(from) || w.isThere(to) {
		return nil
	}
	if err := w.fs.Rename(from, to); err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return nil
}

// goOnWith has an ingest that goes on find what takeBack has moved.
func (w *work) goOnWith(opt *ingest.Options) error {
	from := w.path(settledPath)
	if !opt.Resume || !w.isThere(from) || w.isThere(opt.Out) {
		return nil
	}
	if err := w.fs.Rename(from, opt.Out); err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return nil
}

// isThere reports whether there is a file or folder at a path.
func (w *work) isThere(path string) bool {
	_, err := w.fs.Stat(path)
	return err == nil
}
