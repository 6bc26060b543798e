package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"gdb/cmd/gdb/benches"
	"gdb/cmd/gdb/cli"
	"gdb/cmd/gdb/indexcmd"
	"gdb/cmd/gdb/predictcmd"
	"gdb/cmd/gdb/servecmd"
	"gdb/internal/message"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version is gdb's own version; it stands in every store and run that this binary writes.
const version = "0.1.0"

// nameOf returns the name of a program without its folder.
func nameOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if name == "" || name == "." {
		return "gdb"
	}
	return name
}

// The values of flags that all commands have; the first of each is the default.
var (
	logForms = []string{"text", "json"}
	colors   = []string{"auto", "always", "never"}
)

// app has the commands.
type app struct{ cli.App }

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, s cli.Streams) int {
	a := &app{cli.App{Streams: s, FS: vfs.Default}}
	if logForm(args) == "json" {
		a.Err = cli.NewNotes(a.Err)
	}
	root := a.rootCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.complete(root) // cobra keeps what is registered as long as the process lives
	}
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	err = cli.FirstError(err, a.CloseStores())
	if err != nil {
		a.printError(err)
	}
	return exitCode(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: message.Program,
		Short: "Store graphs that do not fit in memory, and train graph neural networks " +
			"on them",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
		Args:          cli.NoCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.setup(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.MemoryFlag, "memory", "",
		"bound of the process's memory, such as 4GiB "+
			"(default: half of what is allowed here)")
	f.IntVar(&a.Threads, "threads", runtime.NumCPU(), "compute workers")
	f.Uint64Var(&a.Seed, "seed", 1, "seed of every random choice")
	f.BoolVar(&a.Quiet, "quiet", false, "no progress and no notes")
	f.BoolVar(&a.Verbose, "verbose", false, "tell what the engine does, and the chain of an error")
	f.StringVar(&a.Log, "log", logForms[0],
		"form of progress and notes on stderr: "+message.OneOf(logForms))
	f.StringVar(&a.Color, "color", colors[0], "color: "+message.OneOf(colors))
	root.SetFlagErrorFunc(wrongFlag)
	root.CompletionOptions.HiddenDefaultCmd = false
	reading := []*cobra.Command{a.infoCommand(), a.checkCommand(), a.planCommand(),
		a.trainCommand(), a.reportCommand(), a.evalCommand(),
		predictcmd.Command(&a.App, a.reading()),
		a.embedCommand(), a.explainCommand(), a.shellCommand(), servecmd.Serve(&a.App, version),
		servecmd.MCP(&a.App, version), servecmd.UI(&a.App, version), a.partitionCommand(),
		a.orderCommand(), a.exportCommand()}
	a.AtFlag(reading...)
	root.AddCommand(reading...)
	root.AddCommand(a.demoCommand(), a.ingestCommand(), a.splitCommand(), a.runsCommand(),
		a.appendCommand(), a.compactCommand(), a.snapshotsCommand(), indexcmd.Command(&a.App),
		benches.Command(&a.App, a.benchTrainCommand(), a.benchSystemCommand(),
			a.benchLinkCommand()),
		a.versionCommand())
	root.AddCommand(a.releaseCommands()...)
	root.AddCommand(helpTopics()...)
	root.SetUsageTemplate(usageTemplate(root))
	addHelp(root)
	callByName(root)
	return root
}

// otherNames are the names that flags have in other programs, with how gdb says it.
var otherNames = map[string]string{
	"layers":          "--fanout with a number for each layer, as in --fanout 10,10",
	"num-layers":      "--fanout with a number for each layer, as in --fanout 10,10",
	"num-neighbors":   "--fanout with a number for each layer, as in --fanout 10,10",
	"neighbors":       "--fanout with a number for each layer, as in --fanout 10,10",
	"learning-rate":   "--lr",
	"gpu":             "--backend cuda",
	"cuda":            "--backend cuda",
	"cpu":             "--backend cpu",
	"hidden-dim":      "--hidden",
	"hidden-size":     "--hidden",
	"hidden-channels": "--hidden",
	"batch-size":      "--batch",
	"num-epochs":      "--epochs",
	"early-stopping":  "--patience",
	"wd":              "--weight-decay",
	"num-heads":       "--heads",
	"num-workers":     "--threads",
	"workers":         "--threads",
	"sep":             "--delim",
	"separator":       "--delim",
	"delimiter":       "--delim",
	"output":          "--out",
	"target":          "--label-col",
	"target-col":      "--label-col",
	"symmetric":       "--undirected",
}

// wrongFlag says which flag was probably meant where there is none of that name.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return cli.Usage(err)
	}
	name := unknown.GetSpecifiedName()
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if hint, known := otherNames[name]; known {
		for flag := range strings.FieldsSeq(hint) {
			if now, found := strings.CutPrefix(flag, "--"); found && slices.Contains(names, now) {
				return cli.Usage(fmt.Errorf("%w; here it is %s", err, hint))
			}
		}
	}
	if setting.Find(name) != nil && cmd.Parent().Name() == "bench" { // which decides it itself
		return cli.Usage(fmt.Errorf("%s has no flag --%s", strings.TrimPrefix(cmd.CommandPath(),
			message.Program+" "), name))
	}
	if best := message.Nearest(name, names); best != "" {
		return cli.Usage(fmt.Errorf("%w; did you mean --%s?", err, best))
	}
	return cli.Usage(fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath()))
}

// setup fills flags from GDB_* variables where the command line says nothing, and applies the
// global ones.
func (a *app) setup(cmd *cobra.Command) error {
	var err error
	a.Running = cmd.Name()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "GDB_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		given := f.Changed
		for _, now := range f.Annotations[cli.AliasOf] {
			given = given || cmd.Flags().Changed(now)
		}
		if v, ok := os.LookupEnv(name); ok && !given && err == nil {
			if e := cmd.Flags().Set(f.Name, v); e != nil {
				err = cli.Usage(fmt.Errorf("environment %s=%q: %w", name, v, e))
			}
		}
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"run", "resume", "from"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return cli.Usage(fmt.Errorf("--%s is empty: name a run, or leave it out", name))
		}
	}
	if !slices.Contains(logForms, a.Log) {
		return cli.Usage(fmt.Errorf("--log %q: want %s", a.Log, message.OneOf(logForms)))
	}
	if !slices.Contains(colors, a.Color) {
		return cli.Usage(fmt.Errorf("--color %q: want %s", a.Color, message.OneOf(colors)))
	}
	if a.Threads < 1 {
		return cli.Usage(fmt.Errorf("--threads %d: want at least 1", a.Threads))
	}
	if a.ErrTTY && a.Log == "text" && a.Running != "shell" { // which edits lines itself
		a.Err = message.NewWriter(a.Err, message.Program)
	}
	return a.SetMemory()
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version and the commit", Args: cli.ExactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.Out, "gdb %s %s %s/%s%s\n", version, runtime.Version(),
				runtime.GOOS, runtime.GOARCH, commit())
			return err
		},
	}
}

// commit says which commit the program was built of, and whether files differed from it. It is
// empty where Go did not record that: with -buildvcs=false, or from sources without git.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	values := map[string]string{}
	for _, s := range info.Settings {
		values[s.Key] = s.Value
	}
	if values["vcs.revision"] == "" {
		return ""
	}
	changed := ""
	if values["vcs.modified"] == "true" {
		changed = " with changes"
	}
	return fmt.Sprintf(" commit %.12s%s", values["vcs.revision"], changed)
}
