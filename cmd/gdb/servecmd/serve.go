// Package servecmd has the commands that answer others: gdb serve, gdb mcp and gdb ui.
package servecmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/bug"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/serve"
	"gdb/serve/web"
	"gdb/train/runs"

	"github.com/spf13/cobra"
)

// command is what the command line says about a server.
type command struct {
	*cli.App
	version   string
	socket    string
	http      string
	tokenFile string
	runs      []string
	untilIdle bool
	follow    time.Duration
	io        string
}

// Serve returns gdb serve.
func Serve(a *cli.App, version string) *cobra.Command {
	c := &command{App: a, version: version}
	cmd := &cobra.Command{
		Use:   "serve STORE [--socket PATH] [--http ADDR] [flags]",
		Short: "Give batches and predictions to other programs",
		Long: `Answer other programs, at a Unix socket, over HTTP, or both.

At a socket: sample batches and gather their features for programs on this
machine, such as PyTorch, which read them where they are: in memory that both
map. The Python package gdbgraph starts such a server by itself, see
docs/python.md. Several programs share one server, its caches and its memory.
With one seed, a server and gdb train make the same batches. A file PATH.lock
beside the socket keeps a second server away.

Over HTTP: predict nodes of the store and new ones, score edges, list
neighbors, run statements, see docs/serving.md. Runs are opened before it
listens. Only this machine is answered, unless there is a token: in the first
line of --token-file, or in GDB_HTTP_TOKEN.

With both, each has half of the memory. Ctrl-C and SIGTERM end the server, with
exit code 130, when requests in flight are answered.`,
		Example: `  gdb serve cora.gdb --socket /run/user/1000/cora.sock --memory 2GiB
  gdb serve cora.gdb --http localhost:8080 --run r0001`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.serve(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&c.socket, "socket", "", "path of the Unix socket to listen at")
	f.StringVar(&c.http, "http", "", "address to answer HTTP at: HOST:PORT")
	c.bind(cmd)
	c.bindToken(cmd)
	c.bindFollow(cmd)
	f.BoolVar(&c.untilIdle, "until-idle", false,
		"end with the last program that is connected to the socket")
	return cmd
}

// MCP returns gdb mcp.
func MCP(a *cli.App, version string) *cobra.Command {
	c := &command{App: a, version: version}
	cmd := &cobra.Command{
		Use:   "mcp STORE [flags]",
		Short: "Answer a language model's tools about a store",
		Long: `Answer a client of the Model Context Protocol over standard input and output.
The tools predict, score, nearest, neighbors, query and info answer as the
endpoints of gdb serve --http do, and only read. See docs/serving.md.`,
		Example: `  gdb mcp cora.gdb --run r0001`,
		Args:    cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, args[0], func(st *layout.Store, dev blockdev.Device) error {
				s, err := c.open(cmd, st, dev, a.Memory)
				if err != nil {
					return err
				}
				err = s.ServeTools(cmd.Context(), a.In, a.Out)
				return cli.FirstError(err, s.Close())
			})
		},
	}
	c.bind(cmd)
	return cmd
}

// bind adds the flags that both commands have.
func (c *command) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&c.runs, "run", nil, "run that answers; repeatable (default: the best)")
	f.StringVar(&c.io, "io", "auto", cli.HelpOf("io"))
}

// bindToken adds the flag of a server over HTTP.
func (c *command) bindToken(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.tokenFile, "token-file", "",
		"file whose first line is the token that HTTP requests show")
}

// bindFollow adds the flag of a server over HTTP that follows its store.
func (c *command) bindFollow(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&c.follow, "follow", 0, "answer over HTTP by newer snapshots of the "+
		"store, which is looked at this often, such as 10s (0: by the one at the start)")
}

// with opens a store and its device for do.
func (c *command) with(cmd *cobra.Command, dir string,
	do func(st *layout.Store, dev blockdev.Device) error) (err error) {
	st, dev, err := c.OpenStore(cmd.Context(), dir, c.io)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Running, err)
	}
	return do(st, dev)
}

func (c *command) serve(cmd *cobra.Command, dir string) error {
	token, err := c.check(cmd)
	if err != nil {
		return err
	}
	return c.with(cmd, dir, func(st *layout.Store, dev blockdev.Device) error {
		memory := c.Memory
		if c.socket != "" && c.http != "" {
			memory /= 2
		}
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		var ends []chan error
		begin := func(serve func() error) {
			end := make(chan error, 1)
			ends = append(ends, end)
			go func() {
				defer bug.Catch()
				defer cancel() // when one ends, all do
				end <- serve()
			}()
		}
		if c.http != "" {
			s, err := c.open(cmd, st, dev, memory)
			if err != nil {
				return err
			}
			defer func() { c.noteError(s.Close()) }()
			l, err := net.Listen("tcp", c.http)
			if err != nil {
				return fmt.Errorf("serve: --http %s: %w", c.http, err)
			}
			c.say("answering for %s at http://%s", dir, l.Addr())
			h := web.HTTP{Service: s, Token: token, Follow: c.followed(dir)}
			begin(func() error { return h.Serve(ctx, l) })
		}
		if c.socket != "" {
			l, err := serve.Listen(c.socket)
			if err != nil {
				cancel()
				return cli.FirstError(err, firstOf(ends))
			}
			c.say("serving %s at %s", dir, c.socket)
			begin(func() error {
				return serve.New(serve.Options{Store: st, Device: dev, Memory: memory,
					Threads: c.Threads, Profiles: cli.ProfilesDir(), Version: c.version,
					UntilIdle: c.untilIdle, Notes: c.Note}).Serve(ctx, l)
			})
		}
		return firstOf(ends)
	})
}

// followed has newer snapshots of a store answer, if the user wants it; else it is nil.
func (c *command) followed(dir string) *web.Follow {
	if c.follow == 0 {
		return nil
	}
	return &web.Follow{Every: c.follow, Newer: c.newer(dir)}
}

// newer returns a function that opens the last snapshot of a store if it is later than a number.
func (c *command) newer(dir string) func(context.Context, uint64) (*layout.Store, error) {
	return func(ctx context.Context, than uint64) (*layout.Store, error) {
		st, err := layout.OpenLive(ctx, c.FS, dir) // takes no lock
		if err != nil || st.Meta().Snapshot <= than {
			return nil, err
		}
		return layout.OpenAt(ctx, c.FS, dir, layout.Latest)
	}
}

// firstOf waits for all servers and returns the first error.
func firstOf(ends []chan error) (err error) {
	for _, end := range ends {
		err = cli.FirstError(err, <-end)
	}
	return err
}

// say tells the user where a server is.
func (c *command) say(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
}

// noteError tells an error that comes too late to be returned.
func (c *command) noteError(err error) {
	if err != nil {
		c.Note(err.Error())
	}
}

// check checks the flags and returns the token.
func (c *command) check(cmd *cobra.Command) (token string, err error) {
	if c.socket == "" && c.http == "" {
		return "", cli.Usage(errors.New("serve: --socket and --http are missing: say where to " +
			"listen"))
	}
	if err := c.checkFollow(); err != nil {
		return "", err
	}
	if c.follow > 0 && c.socket != "" {
		return "", cli.Usage(errors.New("serve: --follow is for --http alone: programs at " +
			"--socket train on one snapshot"))
	}
	for _, name := range []string{"run", "token-file", "follow"} {
		if c.http == "" && cmd.Flags().Changed(name) {
			return "", cli.Usage(fmt.Errorf("serve: --%s is for --http, which is missing", name))
		}
	}
	if c.socket == "" && c.untilIdle {
		return "", cli.Usage(errors.New("serve: --until-idle is for --socket, which is missing"))
	}
	if c.http == "" {
		return "", nil
	}
	return c.tokenFor("--http", c.http)
}

// tokenFor returns the token of a server at an address, which a flag gives.
func (c *command) tokenFor(flag, address string) (token string, err error) {
	if token, err = c.token(); err != nil {
		return "", err
	}
	if token == "" && !web.IsLoopback(address) {
		return "", cli.Usage(fmt.Errorf("%s: %s %s can be reached from other machines: give a "+
			"token in --token-file or GDB_HTTP_TOKEN, or listen at localhost:PORT", c.Running, flag,
			address))
	}
	return token, nil
}

// checkFollow checks --follow.
func (c *command) checkFollow() error {
	switch {
	case c.follow < 0 || c.follow > 0 && c.follow < followLeast:
		return cli.Usage(fmt.Errorf("%s: --follow %v: want at least %v", c.Running, c.follow,
			followLeast))
	case c.follow > 0 && c.At != "":
		return cli.Usage(fmt.Errorf("%s: --follow goes on to newer snapshots, and --at %s names "+
			"one: give one of them", c.Running, c.At))
	}
	return nil
}

// followLeast is the least time between two looks at a store.
const followLeast = 100 * time.Millisecond

// tokenLeast is the least length of a token.
const tokenLeast = 16

// token returns the token of the file or the environment; "" for none.
func (c *command) token() (string, error) {
	text, from := os.Getenv("GDB_HTTP_TOKEN"), "GDB_HTTP_TOKEN"
	if c.tokenFile != "" {
		b, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return "", cli.Usage(fmt.Errorf("%s: --token-file: %w", c.Running, err))
		}
		text, from = string(b), "--token-file "+c.tokenFile
		if strings.TrimSpace(text) == "" {
			return "", cli.Usage(fmt.Errorf("%s: %s is empty", c.Running, from))
		}
	}
	text, _, _ = strings.Cut(text, "\n")
	text = strings.TrimSpace(text)
	if text != "" && len(text) < tokenLeast {
		return "", cli.Usage(fmt.Errorf("%s: the token of %s has %d characters: take at least "+
			"%d", c.Running, from, len(text), tokenLeast))
	}
	return text, nil
}

// open opens what answers: the runs that are named, or the best one.
func (c *command) open(cmd *cobra.Command, st *layout.Store, dev blockdev.Device,
	memory int64) (*web.Service, error) {
	names := c.runs
	if len(names) == 0 {
		best, err := runs.Best(cmd.Context(), st)
		switch {
		case errors.Is(err, runs.ErrNone):
			c.Note(fmt.Sprintf("the store has no run: nothing is predicted (%s train makes one)",
				message.Program))
		case err != nil:
			return nil, err
		default:
			c.Note(fmt.Sprintf("run %s answers, the best on val; --run chooses others", best.Name))
			names = []string{best.Name}
		}
	}
	c.say("opening %s: outputs of all nodes are computed once", st.Path())
	return c.openRuns(cmd, st, dev, memory, names)
}

// openRuns opens a store and runs.
func (c *command) openRuns(cmd *cobra.Command, st *layout.Store, dev blockdev.Device, memory int64,
	names []string) (*web.Service, error) {
	return web.Open(cmd.Context(), web.Options{Store: st, Device: dev, Memory: memory,
		Threads: c.Threads, Version: c.version, Runs: names, Follows: c.follow > 0,
		Notes: c.Note})
}
