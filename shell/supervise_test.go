package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gdb/blockdev/devtest"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestProgress holds when progress is shown: after two seconds on a terminal, over one line that is
// cleared; every ten seconds elsewhere; never when quiet.
func TestProgress(t *testing.T) {
	run := func(tty, quiet bool, at ...time.Duration) string {
		var notes bytes.Buffer
		w := &watcher{w: &notes, tty: tty, off: quiet, head: "CHECK", dev: mustDevice(t),
			started: time.Unix(100, 0), last: time.Unix(100, 0)}
		w.progress(25, 100)
		for _, d := range at {
			w.tick(w.started.Add(d))
		}
		w.hush()
		w.tick(w.started.Add(time.Hour)) // hushed on a terminal, so that it is not in the result
		return notes.String()
	}
	if got := run(true, false, time.Second, 1999*time.Millisecond); got != "" {
		t.Errorf("soon: %q", got)
	}
	want := "CHECK 3 s, 0 blocks, 0 B read, 0 B/s, 25 %, 9 s left"
	got := run(true, false, 3*time.Second)
	if clear := "\r" + strings.Repeat(" ", len(want)) + "\r"; got != "\r"+want+clear {
		t.Errorf("on a terminal: %q", got)
	}
	if got := run(false, false, 3*time.Second, 9*time.Second, 10*time.Second, 11*time.Second,
		20*time.Second); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "CHECK 10 s") {
		t.Errorf("in a pipe: %q", got)
	}
	if got := run(true, true, time.Minute) + run(false, true, time.Minute); got != "" {
		t.Errorf("quiet: %q", got)
	}
}

// TestSupervise holds what Ctrl-C does to a statement: the first cancels it, three at once end the
// session even if the statement does not hear.
func TestSupervise(t *testing.T) {
	presses := make(chan os.Signal, 8)
	s := &session{Options: Options{Dev: mustDevice(t), Err: &bytes.Buffer{}, Interrupts: presses}}
	presses <- os.Interrupt
	s.forgetInterrupts()
	err := s.supervise(t.Context(), "A", func(ctx context.Context, _ *watcher) error {
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("an old Ctrl-C: %v", err)
	}
	err = s.supervise(t.Context(), "A", func(ctx context.Context, _ *watcher) error {
		presses <- os.Interrupt
		<-ctx.Done()
		return ctx.Err()
	})
	var cancelled *cancelledError
	if !errors.As(err, &cancelled) || !errors.Is(err, context.Canceled) ||
		!strings.HasPrefix(err.Error(), "cancelled after 0.") {
		t.Errorf("Ctrl-C: %v", err)
	}
	s.pressed = nil
	deaf := make(chan struct{})
	err = s.supervise(t.Context(), "A", func(context.Context, *watcher) error {
		for range 3 {
			presses <- os.Interrupt
		}
		<-deaf
		return nil
	})
	if !errors.Is(err, ErrAborted) || !errors.Is(err, context.Canceled) {
		t.Errorf("three Ctrl-C: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Interrupts = nil
	err = s.supervise(ctx, "A", func(context.Context, *watcher) error {
		cancel()
		<-deaf
		return nil
	})
	close(deaf)
	if !errors.Is(err, ErrAborted) {
		t.Errorf("a script whose statement does not end: %v", err)
	}
}

// TestPressedAtEnd holds that a Ctrl-C that comes as a statement ends is not lost: a watch ends,
// and what follows on the line is not run.
func TestPressedAtEnd(t *testing.T) {
	presses := make(chan os.Signal, 8)
	s := &session{Options: Options{Dev: mustDevice(t), Err: &bytes.Buffer{}, Interrupts: presses}}
	press := func(context.Context, *watcher) error {
		presses <- os.Interrupt
		for len(presses) > 0 { // until it is taken
			time.Sleep(time.Millisecond)
		}
		return nil // as a statement that was done by then
	}
	rounds := 0
	err := s.watch(t.Context(), time.Microsecond, func() error {
		if rounds++; rounds > 3 {
			return errors.New("it goes on")
		}
		return s.supervise(t.Context(), "A", press)
	})
	if err != nil || rounds != 1 || s.pressed != nil {
		t.Errorf("a watch: %v after %d rounds, %d presses are left", err, rounds, len(s.pressed))
	}
	if err := s.supervise(t.Context(), "A", press); err != nil {
		t.Fatal(err)
	}
	if err := s.runText(t.Context(), ".timing on; .rows no"); !errors.Is(err, errStopped) {
		t.Errorf("a line whose first statement ended with a Ctrl-C: %v", err)
	}
}

// TestLeave: after a Ctrl-C the prompt does not wait for a statement whose reads do not end. What
// it still says is dropped, and the next statement waits for its end.
func TestLeave(t *testing.T) {
	presses, slow := make(chan os.Signal, 8), make(chan struct{})
	var notes, result bytes.Buffer
	s := &session{Options: Options{Dev: mustDevice(t), Err: &notes, Interrupts: presses}}
	ended := false
	err := s.supervise(t.Context(), "A", func(ctx context.Context, w *watcher) error {
		out := w.over(&result, true)
		if _, err := out.Write([]byte("early")); err != nil {
			return err
		}
		presses <- os.Interrupt
		<-slow
		ended = true
		_, err := out.Write([]byte("late"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a late write: %v", err)
		}
		return err
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrAborted) || s.leaving == nil {
		t.Fatalf("left with %v", err)
	}
	time.AfterFunc(10*time.Millisecond, func() { close(slow) })
	if err := s.awaitLeft(t.Context()); err != nil || !ended || s.leaving != nil {
		t.Errorf("ended %v, %v", ended, err)
	}
	if result.String() != "early" {
		t.Errorf("written: %q", result.String())
	}
}

// TestLeaveNoWriter: a statement that is writing, to a pager that waits, is not left.
func TestLeaveNoWriter(t *testing.T) {
	w := &watcher{w: &bytes.Buffer{}, dev: mustDevice(t)}
	from, to := io.Pipe()
	go func() { _, _ = w.over(to, false).Write([]byte("x")) }()
	for w.writing.TryLock() {
		w.writing.Unlock()
		time.Sleep(time.Millisecond)
	}
	if w.leave() {
		t.Error("left while it writes")
	}
	if _, err := io.ReadFull(from, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for !w.leave() {
		time.Sleep(time.Millisecond)
	}
}

// TestEndWaits: a session ends when the statement that it left has ended.
func TestEndWaits(t *testing.T) {
	ended := make(chan error, 1)
	s := &session{Options: Options{Err: &bytes.Buffer{}}, leaving: ended}
	time.AfterFunc(10*time.Millisecond, func() { ended <- context.Canceled })
	if err := s.awaitLeft(t.Context()); err != nil || s.leaving != nil {
		t.Error(err)
	}
	presses := make(chan os.Signal, 8)
	s.leaving, s.Interrupts = make(chan error), presses
	presses <- os.Interrupt
	err := s.awaitLeft(t.Context())
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrAborted) {
		t.Errorf("a Ctrl-C while it waits: %v", err)
	}
	presses <- os.Interrupt
	presses <- os.Interrupt
	for i, want := range []bool{false, true} {
		if err := s.awaitLeft(t.Context()); errors.Is(err, ErrAborted) != want {
			t.Errorf("Ctrl-C number %d: %v", i+2, err)
		}
	}
}

// heard is what a session wrote, for another goroutine to look at.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *heard) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(b)
}

func (n *heard) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// TestPromptOnSlowDisk: a session goes on while the disk holds a read of a cancelled statement; the
// next statement has its answer once the disk has given it.
func TestPromptOnSlowDisk(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", richGraph())
	held, release := make(chan struct{}), make(chan struct{})
	dev := devtest.Inject(mustDevice(t), func(name string, _ int64, _ uint64) devtest.Fault {
		if strings.Contains(name, "topology") {
			select {
			case <-held:
			default:
				close(held)
			}
			<-release
		}
		return devtest.Fault{}
	})
	presses := make(chan os.Signal, 8)
	in, typed := io.Pipe()
	var out, notes heard
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), Options{Store: store, Dev: dev, In: in, InTTY: true, Out: &out,
			Err: &notes, Mode: "csv", Interrupts: presses, Memory: 64 << 20, Quiet: true})
	}()
	say := func(text string) {
		if _, err := io.WriteString(typed, text); err != nil {
			t.Error(err)
		}
	}
	say("NEIGHBORS ada;\n")
	<-held
	presses <- os.Interrupt
	for !strings.Contains(notes.String(), "cancelled after") {
		time.Sleep(time.Millisecond)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	say("NEIGHBORS ada COUNT;\n")
	if err := typed.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "hop,") {
		t.Errorf("the second statement gave %q; notes %q", got, notes.String())
	}
}
