package ingest

import (
	"encoding/json"
	"fmt"
	"gdb/layout/ingest/steps"
	"slices"
)

// fingerprint describes what decides the bytes of the store: the options, but for those that only
// say how to get there, and the state of the source files.
func (p *pipeline) fingerprint() (options string, sources []steps.SourceFile, err error) {
	opt := p.opt
	opt.Out = "" // the directory may be called otherwise, or moved
	opt.Memory, opt.Threads, opt.Resume, opt.DryRun, opt.Version = 0, 0, false, false, ""
	opt.Progress, opt.Notes, opt.Found = nil, nil, nil
	b, err := json.Marshal(struct {
		Options
		Progress, Notes, Found struct{} // hide what JSON cannot hold
	}{Options: opt})
	if err != nil {
		return "", nil, fmt.Errorf("ingest: describe the options: %w", err)
	}
	for _, path := range p.info.Paths {
		info, err := p.FS.Stat(path)
		if err != nil {
			return "", nil, fmt.Errorf("ingest: %w", err)
		}
		sources = append(sources, steps.SourceFile{Path: path, Size: info.Size(),
			Modified: info.ModTime().UTC()})
	}
	return string(b), sources, nil
}

// checkSame refuses to resume another ingest than the one that was interrupted.
func (p *pipeline) checkSame() error {
	options, sources, err := p.fingerprint()
	if err != nil {
		return err
	}
	if options != p.Journal.Options {
		return fmt.Errorf("ingest: resume %s: the options differ; give those of the first time, "+
			"or delete the directory and start again: %w", p.Out, ErrChanged)
	}
	same := slices.EqualFunc(sources, p.Journal.Sources, func(a, b steps.SourceFile) bool {
		return a.Path == b.Path && a.Size == b.Size && a.Modified.Equal(b.Modified)
	})
	if !same {
		return fmt.Errorf("ingest: resume %s: the source files changed since; delete the "+
			"directory and start again: %w", p.Out, ErrChanged)
	}
	return nil
}
