package main

import (
	"errors"
	"fmt"
	"io"

	"gdb/cmd/gdb/cli"
	"gdb/layout/ingest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// stdinName is the source that stands for standard input.
const stdinName = "-"

// spoolInput copies standard input, where it is the source of edges, to a file beside the store:
// sources are read more than once. remove removes the file.
func (a *app) spoolInput(opt *ingest.Options) (remove func() error, err error) {
	none := func() error { return nil }
	given := opt.Edges == stdinName
	for _, s := range opt.Sources {
		given = given || s == stdinName
	}
	switch {
	case !given:
		return none, nil
	case len(opt.Sources) > 1 || opt.Resume || opt.DryRun || a.In == nil:
		return nil, cli.Usage(errors.New("ingest: - is standard input: it is the only source, " +
			"and is neither resumed nor looked at by --dry-run; write it to a file for these"))
	}
	file := opt.Out + ".stdin.csv"
	if err := a.copyInput(file); err != nil {
		return nil, errors.Join(err, a.removeFile(file))
	}
	opt.Sources, opt.Edges = nil, file
	return func() error { return a.removeFile(file) }, nil
}

func (a *app) copyInput(file string) (err error) {
	f, err := a.FS.Create(file, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("ingest: keep standard input: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, a.In); err != nil {
		return fmt.Errorf("ingest: keep standard input in %s: %w", file, err)
	}
	return nil
}

func (a *app) removeFile(file string) error {
	if err := a.FS.Remove(file); err != nil {
		return fmt.Errorf("ingest: remove the copy of standard input: %w", err)
	}
	return nil
}
