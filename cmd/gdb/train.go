package main

import (
	"cmp"
	"errors"
	"fmt"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/searchcmd"
	"gdb/internal/message"
	"gdb/train/run"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) trainCommand() *cobra.Command {
	t := &trainFlags{}
	cmd := &cobra.Command{
		Use: "train STORE", Short: "Train a graph neural network on a store",
		Long: `Train a graph neural network for node classification on the store's train
split; the best weights on val are kept, and tested on test. With --task link
it learns vectors that score edges, of the splits of the edges. Everything of a
run is in STORE/runs/NAME. Ctrl-C finishes the step at hand, writes a
checkpoint and prints the command that resumes.`,
		Example: `  gdb train cora.gdb --fanout 10,10 --hidden 64 --epochs 60 --patience 20
  gdb train big.gdb --memory 4GiB --batch 1000 --run big1
  gdb train big.gdb --resume big1
  gdb train cora.gdb --search 'hidden=16,64,256;lr=1e-3..1e-1' --trials 20`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("trials") && t.search.Space == "" {
				return cli.Usage(errors.New("train: --trials is of --search: give both"))
			}
			return (&request{app: a, cmd: cmd, flags: t, store: args[0]}).do()
		},
	}
	t.bindRun(cmd.Flags(), setting.Train)
	cmd.Flags().StringVar(&t.search.Space, "search", "", searchcmd.SpaceHelp)
	cmd.Flags().IntVar(&t.search.Trials, "trials", 20, searchcmd.TrialsHelp)
	return cmd
}

// bindRun adds the flags of commands that train, or plan, as a run is trained.
func (t *trainFlags) bindRun(f *pflag.FlagSet, of setting.Commands) {
	t.bind(f, of)
	f.StringVar(&t.tensorboard, "tensorboard", "", tensorboardHelp)
	f.StringVar(&t.from, "from", "", "run.json to take the settings from")
	f.StringVar(&t.task, "task", tasks[0].name,
		"what is predicted: "+message.OneOf(taskNames())+" (gdb help link)")
}

// tasks are all kinds of run; the first is the default.
var tasks = []task{nodeTask, edgeTask, linkTask}

// taskNames are the values of --task.
func taskNames() (names []string) {
	for _, t := range tasks {
		names = append(names, t.name)
	}
	return names
}

// job completes the settings: of the task that --task names, or that the run has which goes on.
func (r *request) job() (j job, err error) {
	line := r.flags.line
	if r.from, err = r.app.FromFlags(r.flags.from, line, r.open); err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if t.name != r.flags.task {
			continue
		}
		if was := cmp.Or(line.Resume(), line.FromRun()); t.name == tasks[0].name && was != "" {
			st, err := r.open()
			if err != nil {
				return nil, err
			}
			for _, other := range tasks[1:] {
				if other.owns(st, was) {
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
	st, err := r.open()
	if err != nil {
		return err
	}
	dev, err := cli.OpenDevice(j.io())
	if err != nil {
		return fmt.Errorf("%s: %w", r.cmd.Name(), err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	if run := r.flags.line.Resume(); run != "" {
		if err := r.app.NoAt(run); err != nil {
			return err
		}
		if st, err = r.app.AtRun(ctx, st, run); err != nil {
			return err
		}
	}
	if r.plans {
		return j.plan(ctx, st, dev)
	}
	if r.flags.line.Resume() != "" {
		if err := j.goOn(st); err != nil {
			return err
		}
	}
	if r.flags.search.Space != "" {
		return r.search(ctx, st, dev, j)
	}
	return r.app.observe(r.flags, r.store, func(obs func(run.Event)) (*cli.Finished, error) {
		return j.train(ctx, st, dev, obs)
	})
}
