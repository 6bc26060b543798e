package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// firstSet returns the first environment variable that is set, or what to use without.
func firstSet(without string, names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return without
}

// command returns a program with its arguments as a variable gives them, split at spaces.
func (a *app) command(ctx context.Context, line string, more ...string) *exec.Cmd {
	args := append(strings.Fields(line), more...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	return cmd
}

// editText lets the user edit a text.
func (a *app) editText(ctx context.Context, text string) (edited string, err error) {
	f, err := os.CreateTemp("", "gdb-*.gdbq")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = io.WriteString(f, text+"\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	line := firstSet("vi", "VISUAL", "EDITOR")
	if err := a.command(ctx, line, f.Name()).Run(); err != nil {
		return "", fmt.Errorf("%s: %w; $EDITOR chooses another", line, err)
	}
	b, err := os.ReadFile(f.Name())
	return string(b), err
}

// pagerPipe writes to a pager; Close waits until the user leaves it.
type pagerPipe struct {
	io.WriteCloser
	cmd *exec.Cmd
}

// Close ends the text. How the pager was left does not matter.
func (p *pagerPipe) Close() error {
	err := p.WriteCloser.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	var left *exec.ExitError
	if e := p.cmd.Wait(); !errors.As(e, &left) {
		err = errors.Join(err, e)
	}
	return err
}

// page starts the pager.
func (a *app) page(ctx context.Context) (io.WriteCloser, error) {
	cmd := a.command(ctx, firstSet("less -FRSX", "GDB_PAGER", "PAGER"))
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &pagerPipe{in, cmd}, cmd.Start()
}
