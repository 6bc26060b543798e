package main

import (
	"fmt"
	"slices"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train"
	"gdb/train/link"
	"gdb/train/model"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// trainFlags are the flags of a command that trains, or plans a training.
type trainFlags struct {
	// line has the settings. What was given on the command line wins over --from, and --from over
	// the defaults.
	line        *setting.Line
	task        string
	from        string
	tensorboard string
	json        bool
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

// bindRun adds the flags of commands that train, or plan, as a run is trained.
func (t *trainFlags) bindRun(f *pflag.FlagSet, of setting.Commands) {
	t.bind(f, of)
	f.StringVar(&t.tensorboard, "tensorboard", "", tensorboardHelp)
	f.StringVar(&t.from, "from", "", "run.json to take the settings from")
	f.StringVar(&t.task, "task", setting.TaskNames[0],
		"what is predicted: "+message.OneOf(setting.TaskNames)+" (gdb help link)")
}

const tensorboardHelp = "directory for event files of TensorBoard"

// trainsLink reports whether links are trained: by --task, or since the run that is resumed does.
func (a *app) trainsLink(cmd *cobra.Command, t *trainFlags, dir string) (bool, error) {
	switch {
	case !slices.Contains(setting.TaskNames, t.task):
		return false, cli.Usage(fmt.Errorf("%s: --task %q: want %s", cmd.Name(), t.task,
			message.OneOf(setting.TaskNames)))
	case t.task == setting.TaskNames[1]:
		return true, nil
	case t.line.Resume() != "":
		st, err := layout.Open(cmd.Context(), a.FS, dir)
		return err == nil && runs.PredictsLinks(st, t.line.Resume()), nil
	}
	return false, nil
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

// node completes the settings of a training of nodes.
func (t *trainFlags) node(a *app, f *pflag.FlagSet) (train.Config, error) {
	base := setting.Default()
	if t.from != "" {
		file, err := readFrom(a, t.from)
		if err != nil {
			return base, err
		}
		if err := file.node(&base); err != nil {
			return base, err
		}
		base.Run = ""
	}
	c, err := t.line.Node(base)
	if err != nil {
		return c, cli.Usage(err)
	}
	a.process(f, &c.Identity, &c.Process, false)
	c.Profiles = cli.ProfilesDir()
	if err := model.Of(&c).Validate(); err != nil {
		return c, cli.Usage(err)
	}
	return c, nil
}

// resumedNode returns the settings of a run of nodes to go on with.
func (t *trainFlags) resumedNode(a *app, f *pflag.FlagSet, st *layout.Store) (train.Config, error) {
	c, err := resumed(t.line, func(run string) (train.Config, error) {
		return runs.Load(st, run)
	}, t.line.OnNode)
	a.process(f, &c.Identity, &c.Process, true)
	return c, err
}

// link completes the settings of a training of links, which are not checked.
func (t *trainFlags) link(a *app, f *pflag.FlagSet) (c link.Config, err error) {
	base, err := t.line.Recipe()
	if err == nil && t.from != "" {
		file, err := readFrom(a, t.from)
		if err != nil {
			return c, err
		}
		if err := file.link(&base); err != nil {
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

// resumedLink returns the settings of a run of links to go on with.
func (t *trainFlags) resumedLink(a *app, f *pflag.FlagSet, st *layout.Store) (link.Config, error) {
	c, err := resumed(t.line, func(run string) (link.Config, error) {
		file, err := runs.Open(st, run).ReadLink()
		if err != nil {
			return link.Config{}, err
		}
		return *file.Link, nil
	}, t.line.OnLink)
	a.process(f, &c.Identity, &c.Process, true)
	return c, err
}
