package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/searchcmd"
	"gdb/layout"
	"gdb/train/run"
	"gdb/train/search"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// search trains trials of a space of settings. base has the settings that all of them share.
func (r *request) search(ctx context.Context, st *layout.Store, dev blockdev.Device,
	base job) error {
	f := r.flags
	if f.line.Resume() != "" || f.tensorboard != "" {
		return cli.Usage(errors.New("train: --search has runs of its own: leave --resume and " +
			"--tensorboard out"))
	}
	space, trials, err := f.search.Parse(r.app.Seed)
	if err != nil {
		return err
	}
	for _, d := range space {
		if f.line.Given(d.Name) {
			return cli.Usage(fmt.Errorf("train: --%s is searched: leave it out", d.Name))
		}
	}
	schedule := base.schedule(st.Meta())
	for i, t := range trials {
		if _, err := r.trial(t, schedule, "t", ""); err != nil {
			return fmt.Errorf("train: trial %d (%s): %w", i+1, t, err)
		}
	}
	name := f.line.Run()
	if name == "" {
		all, err := st.Catalog().Runs(ctx)
		if err != nil {
			return err
		}
		name = searchcmd.NextName(all)
	}
	return (&searchcmd.Search{App: &r.app.App, Store: st, Space: space, Trials: trials, Name: name,
		Schedule: schedule, JSON: f.json, Again: r.again(name),
		Next: func(run string) (next []string) {
			for _, line := range base.next(run, st.Meta()) {
				next = append(next, r.app.commandLine(line))
			}
			return next
		},
		Same: func(t search.Trial, run string) error {
			j, err := r.goingOn(st, t, schedule, run)
			if err == nil {
				err = j.same(st)
			}
			return err
		},
		TrainRun: func(ctx context.Context, t search.Trial, name string, goesOn bool,
			obs func(run.Event)) error {
			j, err := r.trial(t, schedule, name, "")
			if goesOn {
				j, err = r.goingOn(st, t, schedule, name)
			}
			if err == nil {
				_, err = j.train(ctx, st, dev, obs)
			}
			return err
		}}).Do(ctx)
}

// goingOn returns the training that goes on with the run of a trial.
func (r *request) goingOn(st *layout.Store, t search.Trial, s setting.Schedule,
	run string) (job, error) {
	j, err := r.trial(t, s, run, run)
	if err == nil {
		err = j.goOn(st)
	}
	return j, err
}

// trial returns the training of a trial under the name of its run, or of that which goes on.
func (r *request) trial(t search.Trial, s setting.Schedule, name, resume string) (job, error) {
	flags := *r.flags
	flags.line = flags.line.Clone()
	values := append(search.Trial{{Name: "epochs", Text: strconv.Itoa(s.Epochs)},
		{Name: "patience", Text: strconv.Itoa(s.Patience)}, {Name: "run", Text: name}}, t...)
	if resume != "" {
		values = append(values, search.Value{Name: "resume", Text: resume})
	}
	for _, v := range values {
		if err := flags.line.Value(setting.Find(v.Name)).Set(v.Text); err != nil {
			return nil, cli.Usage(fmt.Errorf("--%s %s: %w", v.Name, v.Text, err))
		}
	}
	of := *r
	of.flags = &flags
	return of.job()
}

// again returns the command that goes on with a search.
func (r *request) again(name string) string {
	args := []string{"train", r.store}
	r.cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "run" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return r.app.commandLine(append(args, "--run="+name))
}
