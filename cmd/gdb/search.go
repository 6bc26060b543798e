package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/searchcmd"
	"gdb/layout"
	"gdb/train"
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
	var jobs []job
	for i, t := range trials {
		j, err := r.trial(t, schedule, "t", "")
		if err != nil {
			return fmt.Errorf("train: trial %d (%s): %w", i+1, t, err)
		}
		jobs = append(jobs, j)
	}
	groups := groupsOf(jobs)
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
		Groups: groups,
		Open: func(ctx context.Context, group []search.Trial) (searchcmd.Opened, error) {
			var jobs []job
			for _, t := range group {
				j, err := r.trial(t, schedule, "t", "")
				if err != nil {
					return nil, err
				}
				jobs = append(jobs, j)
			}
			return r.openTrials(ctx, st, dev, schedule, jobs)
		}}).Do(ctx)
}

// groupsOf returns, by job, the number of the first that can share what is open with it.
func groupsOf(jobs []job) (groups []int) {
	for i, j := range jobs {
		first := slices.IndexFunc(jobs[:i], j.shares)
		if first < 0 {
			first = i
		}
		groups = append(groups, first)
	}
	return groups
}

// sharedTrials trains trials of a search that share what is open.
type sharedTrials struct {
	*request
	st       *layout.Store
	dev      blockdev.Device
	schedule setting.Schedule
	together *train.Together // nil where each opens all for itself
}

// openTrials opens what the trainings of some trials share.
func (r *request) openTrials(ctx context.Context, st *layout.Store, dev blockdev.Device,
	s setting.Schedule, jobs []job) (*sharedTrials, error) {
	t := &sharedTrials{request: r, st: st, dev: dev, schedule: s}
	if len(jobs) == 1 {
		return t, nil
	}
	var all []train.Config
	for _, j := range jobs {
		all = append(all, j.(*nodeJob).cfg)
	}
	var err error
	t.together, err = train.OpenTogether(ctx, st, dev, all)
	return t, err
}

// Most is how many trials may train at the same time.
func (t *sharedTrials) Most() int {
	if t.together == nil {
		return 1
	}
	return t.together.Most()
}

// Close closes what they share.
func (t *sharedTrials) Close() error {
	if t.together == nil {
		return nil
	}
	return t.together.Close()
}

// Begin returns what trains a run of a trial.
func (t *sharedTrials) Begin() searchcmd.TrainRun {
	var beside *train.Beside
	if t.together != nil {
		beside = t.together.Begin()
	}
	return func(ctx context.Context, of search.Trial, name string, goesOn bool,
		obs func(run.Event)) error {
		j, err := t.trial(of, t.schedule, name, "")
		if goesOn {
			j, err = t.goingOn(t.st, of, t.schedule, name)
		}
		switch {
		case err != nil && beside != nil:
			beside.Leave()
		case err != nil:
		case beside != nil:
			_, err = beside.Run(ctx, j.(*nodeJob).cfg, obs)
		default:
			_, err = j.train(ctx, t.st, t.dev, obs)
		}
		return err
	}
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
