package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/steps"
	"gdb/layout/parts"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Compact writes the base and all levels of the store in dir anew as one, which becomes the base in
// one transaction, and returns its record. The numbers of nodes stay, and so do runs. A store
// without levels stays as it is. It is an ingest of the store: it takes the memory of one, beside
// that of the lists of the levels, and as much disk as the store until it ends. Killed, it leaves
// the store as it was.
func Compact(ctx context.Context, fs vfs.FS, dir string, opt parts.OrderOptions) (meta *kv.Meta,
	err error) {
	w, err := begin(ctx, fs, dir)
	if err != nil {
		return nil, fmt.Errorf("compact: %w", err)
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if len(w.store.Levels()) == 0 { // held commits may take away all that they add
		if err := w.flush(ctx, &ingest.Options{}); err != nil {
			return nil, fmt.Errorf("compact: %w", err)
		}
		return w.store.Meta(), w.sweep(ctx)
	}
	if err := w.flush(ctx, &ingest.Options{}); err != nil {
		return nil, fmt.Errorf("compact: %w", err)
	}
	number := w.store.Meta().Snapshot + 1
	path := fmt.Sprintf("%s/%d", layout.LevelsDir, number)
	opt.Out, opt.Memory = w.path("base"), cmp.Or(opt.Memory, mem.Available()/2)
	made, err := w.rewrite(ctx, opt)
	if n := w.store.Meta().Edges; err == nil && made.Edges != n {
		err = fmt.Errorf("%w: base and levels have %d edges, the catalog counts %d",
			layout.ErrCorrupt, made.Edges, n)
	}
	if err == nil {
		err = w.settle(opt.Out, path)
	}
	if err == nil {
		err = w.commit(ctx, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
			map[string]*roaring.Bitmap, error) {
			was := *m
			*m = *made
			m.Snapshot, m.Manifest, m.Base = was.Snapshot, was.Manifest, path
			m.Rewrites = was.Snapshot - 1
			m.Created, m.CreatedBy, m.Splits = was.Created, was.CreatedBy, was.Splits
			m.Deleted = was.Deleted
			keepRead(&m.Stats, &was)
			meta = m
			return nil, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("compact: %w", err)
	}
	return meta, w.sweep(ctx)
}

// rewrite writes base and levels as one.
func (w *work) rewrite(ctx context.Context, opt parts.OrderOptions) (made *kv.Meta, err error) {
	if w.store.Meta().Typed() {
		return w.compactTyped(ctx, opt.Out, &opt)
	}
	free, err := w.listsOf(ctx, &opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	return parts.Rewrite(ctx, w.store, w.dev, w.fs, opt)
}

// compactBytes is what a compaction takes in memory beside the process and what reads lists: what
// writes them, and sets of nodes.
const compactBytes = 32 << 20

// listsOf has the lists of base and levels merged as they are read, if that fits in memory: else
// readers of the store merge them, if that does. Lists are read when the buffers of the ingest,
// which sort other things, are free again. The caller calls free.
func (w *work) listsOf(ctx context.Context, opt *parts.OrderOptions) (free func() error,
	err error) {
	held, streams := wholeBytes(w.store)
	rest := steps.ProcessBytes + compactBytes + int64(w.store.Meta().Nodes)
	free = func() error { return nil }
	if held+streams > opt.Memory-rest {
		opt.ListsBytes = topology.ScanBytes(w.store, layout.In)
		if least := rest + steps.BufferBytesMin + opt.ListsBytes; opt.Memory < least {
			least = max(min(least, rest+held+streams), steps.LeastBytes+compactBytes)
			return free, input.Usage("--memory %s is too small to read the base and %d levels "+
				"as one, the least is %d MiB", mem.FormatSize(opt.Memory), len(w.store.Lists()),
				(least+1<<20-1)>>20)
		}
		return free, nil
	}
	all, err := whole(ctx, w)
	if err != nil {
		return free, err
	}
	opt.Lists = all.Lists
	opt.ListsBytes = min(max(held, held+streams-steps.BufferBytesMin),
		max(0, opt.Memory-steps.LeastBytes-compactBytes))
	return all.union.free, nil
}

// keepRead keeps what the sources had, which a compaction does not read, and counts of edges both
// ways, which mean nothing where reverse edges were added.
func keepRead(s *kv.GraphStats, was *kv.Meta) {
	of := &was.Stats
	s.EdgesRead, s.SkippedBadLines = of.EdgesRead, of.SkippedBadLines
	s.DroppedSelfLoops, s.DroppedDuplicates = of.DroppedSelfLoops, of.DroppedDuplicates
	if was.Undirected {
		s.SampledPairs, s.ReversedPairs, s.SampledEnds, s.SharedEnds = 0, 0, 0, 0
	}
}
