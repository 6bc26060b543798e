package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gdb/internal/atomicfile"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/ingest/edgecodec"
	"gdb/layout/ingest/edgesplit"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/journal"
	"gdb/layout/ingest/made"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// subdirs are the folders below tmp/ingest: runs holds what is sorted, and the others what will
// be renamed to the folders of the same name in the store.
var subdirs = []string{"runs", "topology", "edges", "features", "labels", "ids"}

// pipeline is one ingest. Its work is a sequence of steps; each writes files below tmp/ingest,
// makes them durable, and is then recorded in the journal with what it found out.
type pipeline struct {
	fs     vfs.FS
	src    source.Source
	info   *source.Info
	opt    Options
	tmp    string // OUT/tmp/ingest
	j      *journal.Journal
	memory memoryPlan
	budget *mem.Budget
	codec  edgecodec.Codec
	draw   *edgesplit.Draw // of the edges' splits; nil for none
	// hash is ids.Hash, or a weaker one in tests.
	hash func(seed uint64, external []byte) uint64
	// random gives the identity of the store, and nothing else.
	random io.Reader

	runBlock   int      // bytes, of runs; 0 is the default
	hashSeed   uint64   // of the scan that comes next
	keep, drop []string // files that the step under way adds and uses up
}

// step does a step, or takes its result from the journal. What it keeps must be durable when do
// returns.
func step[T any](ctx context.Context, p *pipeline, name string,
	do func(ctx context.Context, out *T) error) (*T, error) {
	out := new(T)
	done, err := p.j.Result(name, out)
	if err != nil || done {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.keep, p.drop = nil, nil
	if err := do(ctx, out); err != nil {
		return nil, err
	}
	if err := p.syncDirs(); err != nil {
		return nil, err
	}
	refs := make([]journal.FileRef, 0, len(p.keep))
	for _, path := range p.keep {
		info, err := p.fs.Stat(p.path(path))
		if err != nil {
			return nil, fmt.Errorf("ingest: step %s: %w", name, err)
		}
		refs = append(refs, journal.FileRef{Path: path, Size: info.Size()})
	}
	if err := p.j.Finish(name, out, refs, p.drop); err != nil {
		return nil, err
	}
	return out, p.sweep()
}

// path is the place of a file below tmp/ingest.
func (p *pipeline) path(rel string) string { return p.fs.PathJoin(p.tmp, rel) }

// keepRuns marks runs as needed by later steps.
func (p *pipeline) keepRuns(runs []extsort.Run) {
	for _, r := range runs {
		p.keep = append(p.keep, r.Name)
	}
}

// dropRuns marks runs as used up when the step is done.
func (p *pipeline) dropRuns(runs []extsort.Run) {
	for _, r := range runs {
		p.drop = append(p.drop, r.Name)
	}
}

// keepFiles marks files of the store that is to be.
func (p *pipeline) keepFiles(files ...kv.FileMeta) {
	for _, f := range files {
		p.keep = append(p.keep, f.Path)
	}
}

func (p *pipeline) syncDirs() error {
	for _, d := range subdirs {
		if err := syncDir(p.fs, p.path(d)); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes every file that no later step needs.
func (p *pipeline) sweep() error {
	for _, d := range subdirs {
		names, err := p.fs.List(p.path(d))
		if err != nil {
			return fmt.Errorf("ingest: list %s: %w", p.path(d), err)
		}
		for _, name := range names {
			rel := d + "/" + name
			same := func(f journal.FileRef) bool { return f.Path == rel }
			if slices.ContainsFunc(p.j.Live, same) {
				continue
			}
			if err := p.fs.Remove(p.path(rel)); err != nil {
				return fmt.Errorf("ingest: remove %s: %w", p.path(rel), err)
			}
		}
	}
	return nil
}

// verifyLive says whether all files that the journal lists are there, whole.
func (p *pipeline) verifyLive() error {
	for _, f := range p.j.Live {
		info, err := p.fs.Stat(p.path(f.Path))
		if isNotExist(err) { // killed while files were put in place
			info, err = p.fs.Stat(p.fs.PathJoin(p.opt.Out, f.Path))
		}
		if err != nil {
			return fmt.Errorf("ingest: resume: %w; delete %s and start again", err, p.opt.Out)
		}
		if info.Size() != f.Size {
			return fmt.Errorf("ingest: resume: %s has %d bytes, want %d; delete %s and start again",
				p.path(f.Path), info.Size(), f.Size, p.opt.Out)
		}
	}
	return nil
}

func (p *pipeline) progress(phase string, done, total uint64, unit string) {
	if p.opt.Progress != nil {
		p.opt.Progress(phase, int64(done), int64(total), unit)
	}
}

// sorter returns options for a sorter of records of width words, or of entries.
func (p *pipeline) sorter(name string, width int, memory int64) extsort.Options {
	return extsort.Options{FS: p.fs, Dir: p.tmp, Prefix: "runs/" + name, Width: width,
		Memory: memory, Budget: p.budget, BlockBytes: p.runBlock}
}

// newRun starts a run of entries.
func (p *pipeline) newRun(name string) (*extsort.RunWriter, error) {
	opt := p.sorter(name, 0, 0)
	return extsort.NewRunWriter(opt, opt.Prefix+".run")
}

// all runs the steps of the ingest, but for the last: the store's coming into being.
func (p *pipeline) all(ctx context.Context) (*results, error) {
	r := &results{}
	var err error
	if r.scan, err = p.scan(ctx); err != nil {
		return nil, err
	}
	m, err := p.number(ctx, r)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(p.attachAll(ctx, r, m), m.free())
}

// attachAll runs the steps that need node numbers. Those that may meet bad input come first, so
// that it is found before the long work.
func (p *pipeline) attachAll(ctx context.Context, r *results, m *nodeMap) (err error) {
	if err := p.checkMade(m); err != nil {
		return err
	}
	if r.labels, err = p.labels(ctx, m); err != nil {
		return err
	}
	if r.splits, err = p.splits(ctx, m); err != nil {
		return err
	}
	for i := range p.info.Features {
		f, err := p.features(ctx, m, i)
		if err != nil {
			return err
		}
		r.features = append(r.features, f)
	}
	if r.topology, err = p.topology(ctx, r.scan, m); err != nil {
		return err
	}
	if err := p.edgeSplits(ctx, r, m); err != nil {
		return err
	}
	if made.Is(p.opt.Features) {
		f, err := p.madeFeatures(ctx, m, r.topology)
		if err != nil {
			return err
		}
		r.features = append(r.features, f)
	}
	r.out, err = p.outTopology(ctx, r.topology, m)
	return err
}

// results is what the steps found out, for the catalog.
type results struct {
	scan     *scanResult
	ids      *idsResult
	labels   *labelsResult
	splits   *splitsResult
	features []*featuresResult
	topology *topologyResult
	divided  edgesplit.Result
	out      *topologyResult
}

// syncDir makes the names in a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	if err := atomicfile.SyncDir(fs, dir); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	return nil
}
