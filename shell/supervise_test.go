package shell

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
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
