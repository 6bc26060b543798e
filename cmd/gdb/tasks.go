package main

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train/run"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// task is a kind of run: what gdb train trains, and gdb plan plans, for a value of --task.
type task struct {
	name string
	// owns reports whether a run of a store is of the task.
	owns func(st *layout.Store, run string) bool
	// take completes the settings that the command line has, and checks those of a training.
	take func(r *request) (job, error)
}

// tasks are all kinds of run; the first is the default.
var tasks = []task{nodeTask, linkTask}

// taskNames are the values of --task.
func taskNames() (names []string) {
	for _, t := range tasks {
		names = append(names, t.name)
	}
	return names
}

// request is what a command that trains or plans was given.
type request struct {
	app   *app
	cmd   *cobra.Command
	flags *trainFlags
	store string
	plans bool // nothing is trained
}

// job is a training, or the plan of one, whose settings are known.
type job interface {
	// io says how files are read: --io.
	io() string
	// goOn completes the settings of a run that goes on.
	goOn(st *layout.Store) error
	train(ctx context.Context, st *layout.Store, dev blockdev.Device,
		obs func(run.Event)) (*cli.Finished, error)
	// plan prints the plan.
	plan(ctx context.Context, st *layout.Store, dev blockdev.Device) error
}

// job completes the settings: of the task that --task names, or that the run has which goes on.
func (r *request) job() (job, error) {
	resume := r.flags.line.Resume()
	for _, t := range tasks {
		if t.name != r.flags.task {
			continue
		}
		if t.name == tasks[0].name && resume != "" {
			st, err := layout.Open(r.cmd.Context(), r.app.FS, r.store)
			for _, other := range tasks[1:] {
				if err == nil && other.owns(st, resume) {
					t = other
				}
			}
		}
		return t.take(r)
	}
	return nil, cli.Usage(fmt.Errorf("%s: --task %q: want %s", r.cmd.Name(), r.flags.task,
		message.OneOf(taskNames())))
}

// do opens the store and trains, or plans.
func (r *request) do() (err error) {
	j, err := r.job()
	if err != nil {
		return err
	}
	ctx := r.cmd.Context()
	st, dev, err := r.app.OpenStore(ctx, r.store, j.io())
	if err != nil {
		return fmt.Errorf("%s: %w", r.cmd.Name(), err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	if r.plans {
		return j.plan(ctx, st, dev)
	}
	if r.flags.line.Resume() != "" {
		if err := j.goOn(st); err != nil {
			return err
		}
	}
	return r.app.observe(r.flags, r.store, func(obs func(run.Event)) (*cli.Finished, error) {
		return j.train(ctx, st, dev, obs)
	})
}

// process sets what a training takes of the machine. A run that goes on has the workers and the
// seed that it began with unless others were given.
func (a *app) process(f *pflag.FlagSet, c *setting.Identity, p *setting.Process, goesOn bool) {
	c.Version, p.Memory = "gdb "+version, a.Memory
	if !goesOn || f.Changed("threads") {
		p.Threads = a.Threads
	}
	if f.Changed("seed") {
		p.Seed = a.Seed
	}
	if goesOn {
		c.Run = c.Resume
	}
}

// resumed completes the settings of a run to go on with: as it was, but for what was given.
func resumed[T any](l *setting.Line, load func(run string) (T, error),
	over func(T) (T, error)) (c T, err error) {
	run := l.Resume()
	if l.Given("run") && l.Run() != run {
		return c, cli.Usage(fmt.Errorf("train: --resume %s goes on with that run: leave --run out",
			run))
	}
	if c, err = load(run); err != nil {
		return c, err
	}
	if c, err = over(c); err != nil {
		return c, cli.Usage(err)
	}
	return c, nil
}
