// Package steps is what the steps of an ingest work with: a journal of what is done, temporary
// files, and memory for sorting. A step writes files, makes them durable, and is then recorded
// with what it found out, so that a killed ingest goes on after the last step that was. Steps
// number nodes (IDSet, NumberTable), types of edges (EdgeTypes) and classes of labels (ClassTable),
// and write the files of a store's id dictionary (DictionaryWriter).
package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// folders are those below the temporary directory: runs holds what is sorted, and the others what
// will be renamed to the folders of the same name in the store.
var folders = []string{"runs", "topology", "edges", "features", "labels", "ids", "columns"}

// Work is the state of an ingest under way.
type Work struct {
	FS      vfs.FS
	Out     string // the store's directory
	Dir     string // for temporary files, below it
	Journal *Journal
	Memory  Memory
	Budget  *mem.Budget // of all buffers
	// Report is told how far a phase is; nil for nobody.
	Report   func(phase string, done, total int64, unit string)
	RunBlock int // bytes of a block of sorted runs; 0 is the default

	keep, drop []string // files that the step under way adds and uses up
}

// Do does a step, or takes its result from the journal. What it keeps must be durable when do
// returns.
func Do[T any](ctx context.Context, w *Work, name string,
	do func(ctx context.Context, out *T) error) (*T, error) {
	out := new(T)
	done, err := w.Journal.Result(name, out)
	if err != nil || done {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.keep, w.drop = nil, nil
	if err := do(ctx, out); err != nil {
		return nil, err
	}
	return out, w.finish(name, out)
}

// finish records a step that is done.
func (w *Work) finish(name string, out any) error {
	for _, d := range folders {
		if err := SyncDir(w.FS, w.Path(d)); err != nil {
			return err
		}
	}
	refs := make([]FileRef, 0, len(w.keep))
	for _, path := range w.keep {
		info, err := w.FS.Stat(w.Path(path))
		if err != nil {
			return fmt.Errorf("ingest: step %s: %w", name, err)
		}
		refs = append(refs, FileRef{Path: path, Size: info.Size()})
	}
	if err := w.Journal.Finish(name, out, refs, w.drop); err != nil {
		return err
	}
	return w.Sweep()
}

// Path returns the place of a file below the temporary directory.
func (w *Work) Path(rel string) string { return w.FS.PathJoin(w.Dir, rel) }

// KeepRuns marks runs as needed by later steps.
func (w *Work) KeepRuns(runs []extsort.Run) {
	for _, r := range runs {
		w.keep = append(w.keep, r.Name)
	}
}

// DropRuns marks runs as used up when the step is done.
func (w *Work) DropRuns(runs []extsort.Run) {
	for _, r := range runs {
		w.drop = append(w.drop, r.Name)
	}
}

// KeepFiles marks files of the store that is to be.
func (w *Work) KeepFiles(files ...kv.FileMeta) {
	for _, f := range files {
		w.keep = append(w.keep, f.Path)
	}
}

// DropFiles marks files that leave the temporary directory with the step.
func (w *Work) DropFiles(files []kv.FileMeta) {
	for _, f := range files {
		w.drop = append(w.drop, f.Path)
	}
}

// MakeDirs makes the folders, durably.
func (w *Work) MakeDirs() error {
	for _, d := range folders {
		if err := w.FS.MkdirAll(w.Path(d), 0o755); err != nil {
			return fmt.Errorf("ingest: make %s: %w", w.Path(d), err)
		}
	}
	for _, d := range []string{w.Dir, w.FS.PathDir(w.Dir), w.Out, w.FS.PathDir(w.Out)} {
		if err := SyncDir(w.FS, d); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes every file that no later step needs.
func (w *Work) Sweep() error {
	for _, d := range folders {
		names, err := w.FS.List(w.Path(d))
		if err != nil {
			return fmt.Errorf("ingest: list %s: %w", w.Path(d), err)
		}
		for _, name := range names {
			rel := d + "/" + name
			same := func(f FileRef) bool { return f.Path == rel }
			if slices.ContainsFunc(w.Journal.Live, same) {
				continue
			}
			if err := w.FS.Remove(w.Path(rel)); err != nil {
				return fmt.Errorf("ingest: remove %s: %w", w.Path(rel), err)
			}
		}
	}
	return nil
}

// VerifyLive checks that all files that the journal lists are there, whole.
func (w *Work) VerifyLive() error {
	for _, f := range w.Journal.Live {
		info, err := w.FS.Stat(w.Path(f.Path))
		if err != nil && oserror.IsNotExist(err) { // killed while files were put in place
			info, err = w.FS.Stat(w.FS.PathJoin(w.Out, f.Path))
		}
		if err != nil {
			return fmt.Errorf("ingest: resume: %w; delete %s and start again", err, w.Out)
		}
		if info.Size() != f.Size {
			return fmt.Errorf("ingest: resume: %s has %d bytes, want %d; delete %s and start again",
				w.Path(f.Path), info.Size(), f.Size, w.Out)
		}
	}
	return nil
}

// Progress reports.
func (w *Work) Progress(phase string, done, total uint64, unit string) {
	if w.Report != nil {
		w.Report(phase, int64(done), int64(total), unit)
	}
}

// Sorter returns options for a sorter of records of width words, or of entries if it is 0.
func (w *Work) Sorter(name string, width int, memory int64) extsort.Options {
	return extsort.Options{FS: w.FS, Dir: w.Dir, Prefix: "runs/" + name, Width: width,
		Memory: memory, Budget: w.Budget, BlockBytes: w.RunBlock}
}

// NewRun starts a run of entries.
func (w *Work) NewRun(name string) (*extsort.RunWriter, error) {
	opt := w.Sorter(name, 0, 0)
	return extsort.NewRunWriter(opt, opt.Prefix+".run")
}

// WriteRun writes the run of entries that fill gives.
func (w *Work) WriteRun(name string, fill func(w *extsort.RunWriter) error) (extsort.Run, error) {
	opt := w.Sorter(name, 0, 0)
	return extsort.WriteRun(opt, opt.Prefix+".run", fill)
}

// EachEntry calls fn with all entries of runs in order.
func EachEntry(ctx context.Context, opt extsort.Options, runs []extsort.Run,
	fn func(e extsort.Entry) error) error {
	entries, err := extsort.OpenEntries(ctx, opt, runs)
	if err != nil {
		return err
	}
	for {
		e, ok, err := entries.Next(ctx)
		if err == nil && ok {
			err = fn(e)
		}
		if err != nil || !ok {
			return errors.Join(err, entries.Close())
		}
	}
}

// SyncDir makes the names in a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	if err := files.SyncDir(fs, dir); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	return nil
}

const (
	// ProcessBytes is what the process takes besides the buffers planned here: the runtime, the
	// source readers' and store writers' buffers, the garbage collector's slack. Measured at
	// 40 to 55 MiB on the R-MAT graph of docs/ingest.md.
	ProcessBytes = 64 << 20
	// BufferBytesMin is the least for sort arenas and buffers with which all steps work.
	BufferBytesMin = 32 << 20
	// LeastBytes is the least bound of a process that ingests.
	LeastBytes = ProcessBytes + BufferBytesMin
)

// Memory divides --memory among the parts of each step. Under a memory cgroup the page cache
// counts as well; a good part of the bound is left to it, since dirty pages that must be written
// before an arena can grow would stop the work.
type Memory struct {
	Total   int64
	Sort    int64 // the arena of the sorter that is filled
	Strings int64 // the arena of the id sorter that is filled beside it
	Table   int64 // or the table of text ids
	Merge   int64 // block buffers of a merge
	IDs     int64 // the set of integer ids
	Counts  int64 // out-degree counters
	Scatter int64 // a bucket of feature rows
}

// PlanMemory divides total bytes; half of what is available if it is 0.
func PlanMemory(total int64) (Memory, error) {
	if total == 0 {
		total = mem.Available() / 2
	}
	if total < LeastBytes {
		return Memory{}, input.Usage("--memory %s is too small, the least is %s",
			mem.FormatSize(total), mem.FormatSize(LeastBytes))
	}
	rest := total - ProcessBytes
	return Memory{Total: total,
		Sort:    rest * 40 / 100,
		Strings: rest * 25 / 100,
		Table:   rest * 35 / 100,
		Merge:   rest * 20 / 100,
		IDs:     rest * 10 / 100,
		Counts:  rest * 15 / 100,
		Scatter: rest * 45 / 100,
	}, nil
}

// IDLimit returns the number of integer ids whose set fits; larger ids take the way of sorting.
func (m Memory) IDLimit() uint64 { return uint64(m.IDs) * 7 }
