package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/kv/catalog"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/steps"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// RunOrdered ingests with a partitioner that reads the lists of a store: first a store in the
// temporary directory of opt.Out, from which order then writes the one in opt.Out. Both can be
// resumed. The first takes as much disk as the second, and goes when the second is there.
func RunOrdered(ctx context.Context, fs vfs.FS, opt Options,
	order func(ctx context.Context, first string) (*kv.Meta, error)) (*kv.Meta, error) {
	if opt.Partitions < 2 {
		return nil, input.Usage("--partitioner %s needs --partitions, 2 or more", opt.Partitioner)
	}
	opt.BlockBytes = cmp.Or(opt.BlockBytes, defaultBlock)
	first := opt
	first.Out = fs.PathJoin(opt.Out, layout.FirstPath)
	first.Partitioner, first.Partitions, first.Restream, first.Cluster = "", 0, 0, false
	meta, err := lookOrdered(ctx, fs, &opt, &first)
	if err != nil {
		return nil, err
	}
	if meta == nil {
		if _, err := Run(ctx, fs, first); err != nil {
			return nil, errors.Join(err, sweepOrdered(fs, opt.Out, first.Out))
		}
		if meta, err = order(ctx, first.Out); err != nil {
			return nil, err
		}
	}
	// The last act of order removes the temporary directory, unless it is killed before.
	return meta, removeAll(fs, first.Out)
}

// lookOrdered finds out whether an ingest may begin or go on in opt.Out. It returns the metadata of
// the store if that is complete but for the cleaning up.
func lookOrdered(ctx context.Context, fs vfs.FS, opt, first *Options) (*kv.Meta, error) {
	bad := func(err error) (*kv.Meta, error) {
		return nil, fmt.Errorf("ingest: %s: %w", opt.Out, err)
	}
	if stat, err := fs.Stat(opt.Out); err == nil && !stat.IsDir() {
		return bad(ErrFile)
	}
	names, err := fs.List(opt.Out)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return bad(err)
	}
	_, err = fs.Stat(first.Out)
	begun := err == nil
	meta, err := catalog.New(fs, fs.PathJoin(opt.Out, "catalog")).Meta(ctx)
	switch {
	case err == nil && opt.Resume && slices.Equal(meta.Source.Args,
		opt.orderedSource(kv.SourceMeta{Args: first.args()}).Args):
		return meta, nil
	case err == nil:
		return bad(ErrExists)
	case !errors.Is(err, kv.ErrNoStore) && !isNotExist(err):
		return bad(fmt.Errorf("%w: %w", ErrExists, err))
	case begun && !opt.Resume:
		return bad(ErrUnfinished)
	case !begun && slices.ContainsFunc(names, func(n string) bool { return n != "tmp" }):
		return bad(ErrNotEmpty)
	}
	if journal, err := steps.LoadJournal(fs, fs.PathJoin(opt.Out, layout.IngestPath)); err != nil {
		return nil, err
	} else if journal != nil && !begun {
		return bad(fmt.Errorf("%w: it had no --partitioner %s", ErrChanged, opt.Partitioner))
	}
	return nil, nil
}

// sweepOrdered removes the directories around a first store that left nothing behind.
func sweepOrdered(fs vfs.FS, out, first string) error {
	if _, err := fs.Stat(first); !isNotExist(err) {
		return err
	}
	for _, dir := range []string{fs.PathDir(first), out} {
		names, err := fs.List(dir)
		if isNotExist(err) {
			continue
		}
		if err != nil || len(names) > 0 {
			return err
		}
		if err := fs.Remove(dir); err != nil {
			return fmt.Errorf("ingest: clean up: %w", err)
		}
	}
	return nil
}

func removeAll(fs vfs.FS, dir string) error {
	if err := fs.RemoveAll(dir); err != nil && !isNotExist(err) {
		return fmt.Errorf("ingest: clean up: %w", err)
	}
	return nil
}
