package main

import (
	"context"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/linkcmd"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/link"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// linkTask predicts edges.
var linkTask = task{name: "link", owns: runs.PredictsLinks,
	take: func(r *request) (job, error) {
		cfg, err := r.flags.link(r.app, r.cmd.Flags(), r.from)
		if err == nil && !r.plans {
			if err = link.Validate(&cfg); err != nil {
				err = cli.Usage(err)
			}
		}
		return &linkJob{r, cfg}, err
	}}

// linkJob trains for links.
type linkJob struct {
	*request
	cfg link.Config
}

func (j *linkJob) io() string { return j.flags.line.IO() }

func (j *linkJob) goOn(st *layout.Store) (err error) {
	j.cfg, err = resumed(j.flags.line, func(run string) (link.Config, error) {
		file, err := runs.Open(st, run).ReadLink()
		if err != nil {
			return link.Config{}, err
		}
		return *file.Link, nil
	}, j.flags.line.OnLink)
	j.app.process(j.cmd.Flags(), &j.cfg.Identity, &j.cfg.Process, true)
	return err
}

func (j *linkJob) train(ctx context.Context, st *layout.Store, dev blockdev.Device,
	obs func(run.Event)) (*cli.Finished, error) {
	for _, idle := range j.flags.line.Idle(&j.cfg) {
		j.app.Note("--" + idle[0] + " changes nothing without " + idle[1])
	}
	res, err := link.Run(ctx, st, dev, j.cfg, obs)
	if err != nil {
		return nil, err
	}
	return linkcmd.FinishedOf(j.store, res), nil
}

func (j *linkJob) same(st *layout.Store) error {
	was, err := runs.Open(st, j.cfg.Run).ReadLink()
	if err != nil {
		return err
	}
	return j.cfg.SameResult(was.Link)
}

// shares reports false: each run of links opens all for itself.
func (j *linkJob) shares(job) bool { return false }

func (j *linkJob) schedule(*kv.Meta) setting.Schedule { return j.cfg.Schedule }

func (j *linkJob) next(run string, _ *kv.Meta) [][]string { return linkcmd.Next(j.store, run) }

func (j *linkJob) plan(_ context.Context, st *layout.Store, _ blockdev.Device) error {
	return linkcmd.Plan(&j.app.App, st, j.cfg, j.flags.json)
}

// link completes the settings of a training of links, which are not checked.
func (t *trainFlags) link(a *app, f *pflag.FlagSet, from *cli.From) (c link.Config,
	err error) {
	base, err := t.line.Recipe()
	if err == nil && from != nil {
		if err := from.Link(&base); err != nil {
			return c, err
		}
		base.Run = ""
	}
	if err == nil {
		c, err = t.line.OnLink(base)
	}
	if err != nil {
		return c, cli.Usage(err)
	}
	a.process(f, &c.Identity, &c.Process, false)
	return c, nil
}
