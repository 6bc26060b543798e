package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Programs are those of the user that a session starts.
type Programs struct {
	In       io.Reader
	Out, Err io.Writer
}

// firstSet is the first environment variable that is set, or what to use without.
func firstSet(without string, names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return without
}

// command is a program with its arguments as a variable gives them, split at spaces.
func (p *Programs) command(ctx context.Context, line string, more ...string) *exec.Cmd {
	args := append(strings.Fields(line), more...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, p.Out, p.Err
	return cmd
}

// Edit lets the user edit a text.
func (p *Programs) Edit(ctx context.Context, text string) (edited string, err error) {
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
	if err := p.command(ctx, line, f.Name()).Run(); err != nil {
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

// Page starts the pager: what is written to it is shown until it is closed.
func (p *Programs) Page(ctx context.Context) (io.WriteCloser, error) {
	cmd := p.command(ctx, firstSet("less -FRSX", "GDB_PAGER", "PAGER"))
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &pagerPipe{in, cmd}, cmd.Start()
}
