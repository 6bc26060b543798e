//go:build unix

package cli

import (
	"errors"
	"io"
	"os"
	"time"

	"gdb/shell"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the terminal of this process. The editor writes to standard error: standard output
// is for data.
type terminal struct {
	in  *os.File
	out *os.File
}

// NewTerminal returns nil where the streams are no files, as in tests.
func NewTerminal(in io.Reader, out io.Writer) shell.Terminal {
	i, ok := in.(*os.File)
	o, ok2 := out.(*os.File)
	if !ok || !ok2 {
		return nil
	}
	return &terminal{i, o}
}

// Raw switches to raw mode.
func (t *terminal) Raw() (restore func() error, err error) {
	state, err := term.MakeRaw(int(t.in.Fd()))
	return func() error { return term.Restore(int(t.in.Fd()), state) }, err
}

// Read waits for what is typed. A terminal that has gone is the end of input.
func (t *terminal) Read(p []byte, wait time.Duration) (int, error) {
	fds := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(wait.Milliseconds()))
	if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err = t.in.Read(p)
	if errors.Is(err, unix.EIO) {
		err = io.EOF
	}
	return n, err
}

// Write writes to the terminal.
func (t *terminal) Write(p []byte) (int, error) { return t.out.Write(p) }

// Size returns 0, 0 if the terminal does not tell.
func (t *terminal) Size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}
