package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/shell"
	"gdb/shell/cypher/value"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/result"
	"gdb/train"
	"gdb/train/nearest"
	"gdb/train/runs/vectors"

	"github.com/spf13/cobra"
)

// shellFlags are what the command line says about a shell.
type shellFlags struct {
	statements []string
	params     []string
	file       string
	mode       string
	keepGoing  bool
	noHistory  bool
}

func (a *app) shellCommand() *cobra.Command {
	var flags shellFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "shell STORE [-c STATEMENT]... [-f FILE]",
		Short: "Ask a store questions",
		Long: `Ask a store questions. Statements come from -c (repeatable), from a file (-f),
or from standard input, and end with a semicolon; .help lists them. Results go
to standard output: a box on a terminal, CSV in a pipe. What is typed is kept
in gdb/shell_history of $XDG_STATE_HOME; a line that begins with a space is
not.`,
		Example: `  gdb shell cora.gdb -c "NEIGHBORS 42"
  gdb shell cora.gdb -c "SAMPLE 42,7 FANOUT 10,5 SHOW layers" --mode json
  gdb shell cora.gdb -c 'MATCH (a {id: $x})-->(b) RETURN b.id' --param x=42
  echo "STATS GRAPH; DEGREES IN TOP 5;" | gdb shell cora.gdb`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && cmd.Flags().Changed("mode") {
				return cli.Usage(errors.New("shell: --json is --mode json: give one of them"))
			}
			if asJSON {
				flags.mode = "json"
			}
			return a.shell(cmd.Context(), args[0], flags)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.statements, "command", "c", nil, "statement to run; repeatable")
	f.StringArrayVar(&flags.params, "param", nil,
		"value of $NAME in statements of openCypher, as NAME=JSON; repeatable")
	f.StringVarP(&flags.file, "file", "f", "", "file of statements to run")
	f.StringVar(&flags.mode, "mode", "auto",
		"form of results: "+message.OneOf(result.Modes))
	f.BoolVar(&asJSON, "json", false, "the same as --mode json")
	f.BoolVar(&flags.keepGoing, "keep-going", false,
		"run on after a failed statement, and say how many failed; the exit code is then 1")
	f.BoolVar(&flags.noHistory, "no-history", false, "neither read nor keep what is typed")
	return cmd
}

func (a *app) shell(ctx context.Context, dir string, flags shellFlags) (err error) {
	opt := shell.Options{Statements: flags.statements, In: a.In, Out: a.Out, Err: a.Err,
		InTTY: a.InTTY, OutTTY: a.OutTTY, ErrTTY: a.ErrTTY, Mode: flags.mode,
		OutColor: a.colored(a.OutTTY), ErrColor: a.colored(a.ErrTTY), Width: a.width,
		KeepGoing: flags.keepGoing, Memory: a.Memory, Threads: a.Threads, Seed: a.Seed,
		Quiet: a.Quiet, Vectors: graph.VectorsBy(vectors.Open),
		Nearest: graph.NearestBy(nearest.Open), Predict: train.PredictNodes}
	if err := shell.CheckMode(flags.mode); err != nil {
		return cli.Usage(err)
	}
	if opt.Params, err = paramsOf(flags.params); err != nil {
		return cli.Usage(err)
	}
	if flags.file != "" && len(flags.statements) > 0 {
		return cli.Usage(errors.New("shell: -c and -f exclude each other"))
	}
	if flags.file != "" {
		if opt.Script, err = readScript(flags.file); err != nil {
			return err
		}
	}
	if opt.Store, err = a.Open(ctx, dir); err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	if opt.Dev, err = blockdev.Open(blockdev.Options{}); err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	if a.InTTY && len(opt.Statements) == 0 && opt.Script == "" {
		var stop func()
		ctx, stop = a.converse(ctx, &opt, flags.noHistory)
		defer stop()
	}
	err = shell.Run(ctx, opt)
	if errors.Is(err, shell.ErrAborted) {
		return err // a statement may still read: the end of the process closes the device
	}
	return a.shellError(cli.FirstError(err, opt.Dev.Close()))
}

// converse prepares a session that is typed: Ctrl-C ends statements, not the session.
func (a *app) converse(ctx context.Context, opt *shell.Options, noHistory bool) (context.Context,
	func()) {
	presses := make(chan os.Signal, 8)
	signal.Notify(presses, os.Interrupt)
	opt.Interrupts = presses
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	if a.OutTTY && a.ErrTTY && os.Getenv("TERM") != "dumb" {
		opt.Terminal = cli.NewTerminal(a.In, a.Err)
	}
	opt.Edit, opt.Page = a.editText, a.page
	if h := cli.NewHistory(); !noHistory && h != nil {
		opt.History = h
	}
	return ctx, func() { stop(); signal.Stop(presses) }
}

// paramsOf reads values of --param.
func paramsOf(flags []string) (map[string]any, error) {
	params := map[string]any{}
	for _, flag := range flags {
		name, text, ok := strings.Cut(flag, "=")
		v, err := value.FromJSON([]byte(text))
		switch _, twice := params[name]; {
		case !ok || name == "":
			return nil, fmt.Errorf("shell: --param %s: want NAME=VALUE, as in x=5", flag)
		case err != nil:
			return nil, fmt.Errorf("shell: --param %s: the value is not JSON: %w; text stands in "+
				`quotes: --param '%s="%s"'`, flag, err, name, text)
		case twice:
			return nil, fmt.Errorf("shell: --param %s: %s has a value", flag, name)
		}
		params[name] = v
	}
	return params, nil
}

// readScript reads a file of statements; an empty one is a mistake.
func readScript(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", cli.Usage(fmt.Errorf("shell: -f: %w", err))
	}
	text, err := shell.ReadScript(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("shell: -f %s: %w", file, err)
	}
	if text == "" {
		return "", cli.Usage(fmt.Errorf("shell: -f %s: the file is empty", file))
	}
	return text, nil
}

// shellError prints a syntax error as it is, with its caret on a line of its own.
func (a *app) shellError(err error) error {
	var syntax *lang.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	fmt.Fprintf(a.Err, "%v\n", syntax)
	return cli.Reported{Code: exitUsage}
}
