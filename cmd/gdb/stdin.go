package main

import (
	"errors"
	"fmt"
	"io"

	"gdb/cmd/gdb/cli"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// stdinName is the source that stands for standard input.
const stdinName = "-"

// inputFS has the copy of standard input as a file of the name that messages have for it.
type inputFS struct {
	vfs.FS
	copied string
}

func (i inputFS) real(name string) string {
	if name == source.StandardInput {
		return i.copied
	}
	return name
}

func (i inputFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return i.FS.Open(i.real(name), opts...)
}

func (i inputFS) Stat(name string) (vfs.FileInfo, error) { return i.FS.Stat(i.real(name)) }

func (i inputFS) Unwrap() vfs.FS { return i.FS }

// spoolInput copies standard input, where it is the source of edges, to a file beside the store:
// sources are read more than once. fs has the file, and remove removes it.
func (a *app) spoolInput(opt *ingest.Options) (fs vfs.FS, remove func() error, err error) {
	given := opt.Edges == stdinName
	for _, s := range opt.Sources {
		given = given || s == stdinName
	}
	switch {
	case !given:
		return a.FS, func() error { return nil }, nil
	case len(opt.Sources) > 1 || opt.Resume || opt.DryRun || a.In == nil:
		return nil, nil, cli.Usage(errors.New("ingest: - is standard input: it is the only " +
			"source, and is neither resumed nor looked at by --dry-run; write it to a file for " +
			"these"))
	}
	file := opt.Out + ".stdin"
	if err := a.copyInput(file); err != nil {
		return nil, nil, errors.Join(err, a.removeFile(file))
	}
	opt.Sources, opt.Edges = nil, source.StandardInput
	return inputFS{a.FS, file}, func() error { return a.removeFile(file) }, nil
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
