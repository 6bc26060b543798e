package main

import (
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/train"
	"gdb/train/link"
	"gdb/train/model"
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
  gdb train big.gdb --resume big1`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return (&request{app: a, cmd: cmd, flags: t, store: args[0]}).do()
		},
	}
	t.bindRun(cmd.Flags(), setting.Train)
	return cmd
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
	f.StringVar(&t.task, "task", tasks[0].name,
		"what is predicted: "+message.OneOf(taskNames())+" (gdb help link)")
}

const tensorboardHelp = "directory for event files of TensorBoard"

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
