package main

import (
	"context"
	"errors"
	"fmt"

	"gdb/cmd/gdb/cli"
	"gdb/serve"

	"github.com/spf13/cobra"
)

// serveFlags are what the command line says about a server.
type serveFlags struct {
	socket    string
	untilIdle bool
	io        string
}

func (a *app) serveCommand() *cobra.Command {
	flags := serveFlags{io: "auto"}
	cmd := &cobra.Command{
		Use:   "serve STORE --socket PATH [flags]",
		Short: "Give batches to other programs, such as PyTorch",
		Long: `Sample batches and gather their features for other programs on this machine,
which ask for them over a Unix socket and read them where they are: in memory
that both map. The Python package gdbgraph starts such a server by itself, see
docs/python.md. Several programs share one server, its caches and its memory.
The batches are those of train with the same seed. Ctrl-C ends it, with exit
code 130. A file PATH.lock beside the socket keeps a second server away.`,
		Example: `  gdb serve cora.gdb --socket /run/user/1000/cora.sock --memory 2GiB`,
		Args:    cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.serve(cmd.Context(), args[0], flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.socket, "socket", "", "path of the Unix socket to listen at")
	f.BoolVar(&flags.untilIdle, "until-idle", false, "end with the last program that is connected")
	f.StringVar(&flags.io, "io", flags.io, cli.HelpOf("io"))
	return cmd
}

func (a *app) serve(ctx context.Context, dir string, flags serveFlags) (err error) {
	if flags.socket == "" {
		return cli.Usage(errors.New("serve: --socket is missing: say where to listen"))
	}
	st, dev, err := a.OpenStore(ctx, dir, flags.io)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer func() { err = cli.FirstError(err, dev.Close()) }()
	l, err := serve.Listen(flags.socket)
	if err != nil {
		return err
	}
	if !a.Quiet {
		fmt.Fprintf(a.Err, "serving %s at %s\n", dir, flags.socket)
	}
	return serve.New(serve.Options{Store: st, Device: dev, Memory: a.Memory, Threads: a.Threads,
		Profiles: cli.ProfilesDir(),
		Version:  version, UntilIdle: flags.untilIdle, Notes: a.Note}).Serve(ctx, l)
}
