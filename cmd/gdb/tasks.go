package main

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/searchcmd"
	"gdb/kv"
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

// request is what a command that trains or plans was given.
type request struct {
	app   *app
	cmd   *cobra.Command
	flags *trainFlags
	store string
	plans bool      // nothing is trained
	from  *cli.From // what --from or --from-run takes settings from; nil for nothing

	opened *layout.Store // what open returns; nil before its first call
}

// open opens the store, once.
func (r *request) open() (*layout.Store, error) {
	if r.opened != nil {
		return r.opened, nil
	}
	st, err := r.app.Open(r.cmd.Context(), r.store)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.cmd.Name(), err)
	}
	r.opened = st
	return st, nil
}

// job is a training, or the plan of one, whose settings are known.
type job interface {
	// io says how files are read: --io.
	io() string
	// goOn completes the settings of a run that goes on.
	goOn(st *layout.Store) error
	train(ctx context.Context, st *layout.Store, dev blockdev.Device,
		obs func(run.Event)) (*cli.Finished, error)
	// same returns an error if the run that goes on was begun with other settings.
	same(st *layout.Store) error
	// shares reports whether it reads and draws the same as another, whatever they train.
	shares(other job) bool
	// schedule returns how long a run trains, with auto resolved.
	schedule(m *kv.Meta) setting.Schedule
	// next returns commands that use a run.
	next(run string, m *kv.Meta) [][]string
	// plan prints the plan.
	plan(ctx context.Context, st *layout.Store, dev blockdev.Device) error
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

// trainFlags are the flags of a command that trains, or plans a training.
type trainFlags struct {
	// line has the settings. What was given on the command line wins over --from, and --from over
	// the defaults.
	line        *setting.Line
	task        string
	from        string
	tensorboard string
	json        bool
	search      searchcmd.Flags
	ops         bool // of plan: the operations of a step
}

// bind adds the settings that a command has, which start from their defaults or from others:
// NAME=VALUE.
func (t *trainFlags) bind(f *pflag.FlagSet, of setting.Commands, start ...string) {
	t.line = setting.NewLine()
	t.line.Start(start...)
	for _, r := range setting.Rows {
		if !r.In(of) {
			continue
		}
		flag := f.VarPF(t.line.Value(r), r.Name, "", cli.HelpOf(r.Name))
		if flag.Value.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
		if r.TellsDefault() {
			flag.DefValue = ""
		}
		if r.Alias != "" {
			cli.Alias(f, r.Alias, r.Name)
		}
	}
	f.BoolVar(&t.json, "json", false, "print one JSON object a line")
}

const tensorboardHelp = "directory for event files of TensorBoard"
