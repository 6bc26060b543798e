package servecmd

import (
	"fmt"
	"net"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/layout"
	"gdb/serve/ui"
	"gdb/serve/web"

	"github.com/spf13/cobra"
)

// UI returns gdb ui.
func UI(a *cli.App, version string) *cobra.Command {
	c := &command{App: a, version: version}
	cmd := &cobra.Command{
		Use:   "ui STORE [--addr HOST:PORT] [flags]",
		Short: "Show a store, its runs and statements in a browser",
		Long: `Serve pages for a browser: what the store holds, its runs with their reports,
several of them compared, a box for statements of the shell and openCypher that
only read, and the neighborhood of a node as a picture. Nothing is loaded from a
network, and nothing is changed. The endpoints of gdb serve --http answer too,
with the same limits of memory, time and rows: see docs/serving.md. With
--follow 10s pages show what was committed since the start.

Only this machine is answered, unless there is a token: in the first line of
--token-file, or in GDB_HTTP_TOKEN. The browser asks for it: it is the password
of any user. Ctrl-C ends the server, with exit code 130.`,
		Example: `  gdb ui cora.gdb
  gdb ui cora.gdb --addr localhost:9000 --run r0001`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.serveUI(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&c.http, "addr", "127.0.0.1:7654", "address to listen at: HOST:PORT")
	f.StringArrayVar(&c.runs, "run", nil,
		"run that NEAREST, SCORE and gdb.predict ask; repeatable (default: none)")
	f.StringVar(&c.io, "io", "auto", cli.HelpOf("io"))
	c.bindToken(cmd)
	c.bindFollow(cmd)
	return cmd
}

// serveUI serves pages until the command is interrupted.
func (c *command) serveUI(cmd *cobra.Command, dir string) error {
	if err := c.checkFollow(); err != nil {
		return err
	}
	token, err := c.tokenFor("--addr", c.http)
	if err != nil {
		return err
	}
	return c.with(cmd, dir, func(st *layout.Store, dev blockdev.Device) error {
		s, err := c.openRuns(cmd, st, dev, c.Memory, c.runs)
		if err != nil {
			return err
		}
		defer func() { c.noteError(s.Close()) }()
		l, err := net.Listen("tcp", c.http)
		if err != nil {
			return fmt.Errorf("ui: --addr %s: %w", c.http, err)
		}
		c.say("%s is at http://%s/ for a browser; Ctrl-C ends it", dir, l.Addr())
		h := web.HTTP{Service: s, Token: token, Pages: ui.Pages(), Follow: c.followed(dir)}
		return h.Serve(cmd.Context(), l)
	})
}
