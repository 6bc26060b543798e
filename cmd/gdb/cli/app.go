// Package cli is what the commands of gdb share: the values of global flags, the streams that they
// write to, the terminal and what was typed there, bars of progress and notes, what shells propose,
// the words of errors, the pages of help that are about no command, and how stores are opened.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/train"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Streams are where a command reads and writes, and which of them is a terminal.
type Streams struct {
	In             io.Reader
	Out, Err       io.Writer
	InTTY          bool
	OutTTY, ErrTTY bool
}

// StdStreams returns the streams of the process.
func StdStreams() Streams {
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: tty(os.Stdin), OutTTY: tty(os.Stdout), ErrTTY: tty(os.Stderr)}
}

// App holds the global flags and what every command needs.
type App struct {
	Streams
	FS vfs.FS

	MemoryFlag string
	Memory     int64 // bytes, after SetMemory
	Threads    int
	Seed       uint64
	Quiet      bool
	Verbose    bool
	Running    string // the name of the command
	Log        string // text or json
	Color      string
	At         string // the snapshot that is read: see layout.OpenAt

	opened  []*layout.Store   // CloseStores closes them, and the devices
	devices []blockdev.Device // that OpenStore opened
}

// leastGoHeap keeps the garbage collector from running all the time under small bounds.
const leastGoHeap = 48 << 20

// SetMemory resolves --memory and holds the Go heap to a quarter of it: large buffers live in
// arenas outside the heap, and are counted by their owners.
func (a *App) SetMemory() error {
	a.Memory = mem.Available() / 2
	if a.MemoryFlag != "" {
		n, err := mem.ParseSize(a.MemoryFlag)
		if err != nil {
			return Usage(fmt.Errorf("--memory: %w", err))
		}
		a.Memory = n
	}
	if a.Memory <= 0 {
		return Usage(errors.New("--memory: the machine's memory is unknown; say how much to use"))
	}
	debug.SetMemoryLimit(max(a.Memory/4, leastGoHeap))
	mem.Govern() // training sets the limit as it plans
	return nil
}

// Note tells the user what went wrong and did no harm.
func (a *App) Note(text string) {
	if !a.Quiet {
		fmt.Fprintf(a.Err, "note: %s\n", text)
	}
}

// Limits returns the limits of evaluation and prediction.
func (a *App) Limits() train.Limits {
	return train.Limits{Memory: a.Memory, Threads: a.Threads, Notes: a.Note}
}

// Progress returns what tells how far work is.
func (a *App) Progress() *Bar {
	return newBar(a.Err, a.ErrTTY && a.Log == "text", a.Log == "json", a.Quiet)
}

// NotePlots says what was drawn.
func (a *App) NotePlots(paths []string) {
	if !a.Quiet && len(paths) > 0 {
		fmt.Fprintf(a.Err, "plots: %s\n", strings.Join(paths, ", "))
	}
}

// PrintJSON prints a value as an indented JSON object.
func (a *App) PrintJSON(v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s\n", b)
	return err
}

// PrintLine prints a value as JSON on a line.
func (a *App) PrintLine(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s\n", b)
	return err
}

// MayWrite fails if a file is there that would be overwritten, its directory is not, or is a
// store's.
func (a *App) MayWrite(file string, force bool) error {
	if err := layout.CheckOutside(a.FS, file); err != nil {
		return Usage(err)
	}
	if _, err := a.FS.Stat(file); err == nil && !force {
		return fmt.Errorf("%s is there already: --force overwrites it", file)
	}
	dir := a.FS.PathDir(file)
	if _, err := a.FS.Stat(dir); err != nil {
		return fmt.Errorf("%s: there is no directory %s: make it first", file, dir)
	}
	return nil
}

// OpenStore opens a store, and the device that its files are read through as --io says. CloseStores
// closes both.
func (a *App) OpenStore(ctx context.Context, dir, io string) (*layout.Store, blockdev.Device,
	error) {
	st, err := a.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	dev, err := OpenDevice(io)
	if err == nil {
		a.devices = append(a.devices, dev)
	}
	return st, dev, err
}

// OpenRun opens a store as of the snapshot of a run, and a device. If no run is asked for, it is
// the best one, whose name is written to run. CloseStores closes both.
func (a *App) OpenRun(cmd *cobra.Command, dir string, run *string) (*layout.Store, blockdev.Device,
	error) {
	st, dev, err := a.OpenStore(cmd.Context(), dir, string(blockdev.Auto))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cmd.Name(), err)
	}
	if *run, err = a.Chosen(cmd, st, *run); err != nil {
		return nil, nil, err
	}
	st, err = a.AtRun(cmd.Context(), st, *run)
	return st, dev, err
}

// OpenDevice opens a device by the value of --io.
func OpenDevice(io string) (blockdev.Device, error) {
	if b := blockdev.Backend(io); slices.Contains(blockdev.Backends(), b) {
		return blockdev.Open(blockdev.Options{Backend: b})
	}
	return nil, Usage(fmt.Errorf("--io %q: want %s", io, message.OneOf(BackendNames())))
}

// BackendNames returns the values of --io.
func BackendNames() (names []string) {
	for _, b := range blockdev.Backends() {
		names = append(names, string(b))
	}
	return names
}

// Chosen returns the run that is asked for, or the best one, which it tells. The error of one that
// is damaged comes before any about flags, since it cannot be told what the run predicts.
func (a *App) Chosen(cmd *cobra.Command, st *layout.Store, run string) (string, error) {
	if run != "" {
		return run, runs.Damaged(st, run)
	}
	best, err := runs.Best(cmd.Context(), st)
	if errors.Is(err, runs.ErrNone) {
		return "", Usage(fmt.Errorf("%w: %s train %s", err, message.Program,
			cmd.Flags().Arg(0)))
	}
	if err != nil {
		return "", err
	}
	if !a.Quiet {
		a.Note(fmt.Sprintf("run %s, the best on val (%s %s); --run chooses another", best.Name,
			best.Metric, runs.Figure(best.Best, 4)))
	}
	return best.Name, nil
}
