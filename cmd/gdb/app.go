package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"gdb/cmd/gdb/progress"
	"gdb/internal/mem"
	"gdb/internal/program"
	"gdb/internal/spelling"
	"gdb/internal/wrap"
	"gdb/train"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// version is gdb's own version; it stands in every store and run that this binary writes.
const version = "0.1.0"

// nameOf is the name of a program without its folder.
func nameOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if name == "" || name == "." {
		return "gdb"
	}
	return name
}

// streams are where a command reads and writes, and which of them is a terminal.
type streams struct {
	in             io.Reader
	out, err       io.Writer
	inTTY          bool
	outTTY, errTTY bool
}

func stdStreams() streams {
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTTY: tty(os.Stdin), outTTY: tty(os.Stdout), errTTY: tty(os.Stderr)}
}

// The values of flags that all commands have; the first of each is the default.
var (
	logForms = []string{"text", "json"}
	colors   = []string{"auto", "always", "never"}
)

// app holds the global flags and what every command needs.
type app struct {
	streams
	fs vfs.FS

	memoryFlag string
	memory     int64 // bytes, after setup
	threads    int
	seed       uint64
	quiet      bool
	verbose    bool
	running    string // the name of the command
	log        string
	color      string
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s, fs: vfs.Default}
	if logForm(args) == "json" {
		a.err = progress.NewNotes(a.err)
	}
	root := a.rootCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.complete(root) // cobra keeps what is registered as long as the process lives
	}
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		a.printError(err)
	}
	return exitCode(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: program.Name,
		Short: "Store graphs that do not fit in memory, and train graph neural networks " +
			"on them",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
		Args:          noCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.setup(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.memoryFlag, "memory", "",
		"bound of the process's memory, such as 4GiB "+
			"(default: half of what is allowed here)")
	f.IntVar(&a.threads, "threads", runtime.NumCPU(), "compute workers")
	f.Uint64Var(&a.seed, "seed", 1, "seed of every random choice")
	f.BoolVar(&a.quiet, "quiet", false, "no progress and no notes")
	f.BoolVar(&a.verbose, "verbose", false, "tell what the engine does, and the chain of an error")
	f.StringVar(&a.log, "log", logForms[0],
		"form of progress and notes on stderr: "+oneOf(logForms))
	f.StringVar(&a.color, "color", colors[0], "color: "+oneOf(colors))
	root.SetFlagErrorFunc(wrongFlag)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(a.demoCommand(), a.ingestCommand(), a.splitCommand(), a.infoCommand(),
		a.checkCommand(), a.planCommand(), a.trainCommand(), a.runsCommand(), a.reportCommand(),
		a.evalCommand(),
		a.predictCommand(), a.shellCommand(), a.benchCommand(), a.versionCommand())
	root.AddCommand(helpTopics()...)
	root.SetUsageTemplate(usageTemplate(root))
	addHelp(root)
	callByName(root)
	return root
}

// noCommand refuses a word that is no command, and says which was probably meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	for _, meant := range cmd.SuggestionsFor(args[0]) {
		return usage(fmt.Errorf("%w; did you mean %s?", err, meant))
	}
	return usage(fmt.Errorf("%w; %s --help lists the commands", err, cmd.CommandPath()))
}

// wrongFlag says which flag was probably meant where there is none of that name.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usage(err)
	}
	name := unknown.GetSpecifiedName()
	best, least := "", 1+len(name)/3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := spelling.Distance(name, f.Name); d <= least && !f.Hidden {
			best, least = f.Name, d-1
		}
	})
	if best != "" {
		return usage(fmt.Errorf("%w; did you mean --%s?", err, best))
	}
	return usage(fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath()))
}

// setup fills flags from GDB_* variables where the command line says nothing, and applies the
// global ones.
func (a *app) setup(cmd *cobra.Command) error {
	var err error
	a.running = cmd.Name()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "GDB_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		given := f.Changed
		for _, now := range f.Annotations[aliasOf] {
			given = given || cmd.Flags().Changed(now)
		}
		if v, ok := os.LookupEnv(name); ok && !given && err == nil {
			if e := cmd.Flags().Set(f.Name, v); e != nil {
				err = usage(fmt.Errorf("environment %s=%q: %w", name, v, e))
			}
		}
	})
	if err != nil {
		return err
	}
	if !slices.Contains(logForms, a.log) {
		return usage(fmt.Errorf("--log %q: want %s", a.log, oneOf(logForms)))
	}
	if !slices.Contains(colors, a.color) {
		return usage(fmt.Errorf("--color %q: want %s", a.color, oneOf(colors)))
	}
	if a.threads < 1 {
		return usage(fmt.Errorf("--threads %d: want at least 1", a.threads))
	}
	if a.errTTY && a.log == "text" && a.running != "shell" { // which edits lines itself
		a.err = wrap.NewWriter(a.err, program.Name)
	}
	return a.setMemory()
}

// leastGoHeap keeps the garbage collector from running all the time under small bounds.
const leastGoHeap = 48 << 20

// setMemory resolves --memory and holds the Go heap to a quarter of it: large buffers live in
// arenas outside the heap, and are counted by their owners.
func (a *app) setMemory() error {
	a.memory = mem.Available() / 2
	if a.memoryFlag != "" {
		n, err := mem.ParseSize(a.memoryFlag)
		if err != nil {
			return usage(fmt.Errorf("--memory: %w", err))
		}
		a.memory = n
	}
	if a.memory <= 0 {
		return usage(errors.New("--memory: the machine's memory is unknown; say how much to use"))
	}
	debug.SetMemoryLimit(max(a.memory/4, leastGoHeap))
	mem.Govern() // training sets the limit as it plans
	return nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.out, "gdb %s %s %s/%s\n", version, runtime.Version(),
				runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// exactArgs is cobra.ExactArgs with our usage error.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			_, name, _ := strings.Cut(cmd.CommandPath(), " ")
			return usage(fmt.Errorf("%s takes %s, got %d: %s", name, plural(n, "argument"),
				len(args), cmd.UseLine()))
		}
		return nil
	}
}

// note tells the user what went wrong and did no harm.
func (a *app) note(text string) {
	if !a.quiet {
		fmt.Fprintf(a.err, "note: %s\n", text)
	}
}

// limits are those of evaluation and prediction.
func (a *app) limits() train.Limits {
	return train.Limits{Memory: a.memory, Threads: a.threads, Notes: a.note}
}

// progress returns what tells how far work is.
func (a *app) progress() *progress.Bar {
	return progress.New(a.err, a.errTTY && a.log == "text", a.log == "json", a.quiet)
}
