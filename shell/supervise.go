package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"

	"github.com/dustin/go-humanize"
)

// ErrAborted ends a session at once: after three Ctrl-C within a second, or if a cancelled
// statement does not end. That statement may still be running, so what the session uses must stay
// open.
var ErrAborted = fmt.Errorf("shell: interrupted: %w", context.Canceled)

// cancelGrace is how long a script waits for a cancelled statement to end. The statement may never
// end, because it may be writing to a reader that is gone.
const cancelGrace = time.Second

// leaveAfter is how long a statement may take to end after a Ctrl-C. After that the prompt comes
// without waiting: a read in flight ends only when the disk answers.
const leaveAfter = 50 * time.Millisecond

// cancelledError is the error of a statement that was cancelled.
type cancelledError struct {
	took   time.Duration
	blocks uint64
}

// Error says what the statement had cost.
func (e *cancelledError) Error() string {
	return fmt.Sprintf("cancelled after %.1f s, %s blocks read", e.took.Seconds(),
		humanize.Comma(int64(e.blocks)))
}

// Unwrap returns context.Canceled.
func (e *cancelledError) Unwrap() error { return context.Canceled }

// pressedThrice notes a Ctrl-C, and reports whether it is the third within a second.
func (s *session) pressedThrice() bool {
	now := time.Now()
	s.pressed = append(s.pressed, now)
	n := len(s.pressed)
	return n >= 3 && now.Sub(s.pressed[n-3]) < time.Second
}

// forgetInterrupts drops each Ctrl-C that came before a statement, since it was not meant for it.
func (s *session) forgetInterrupts() {
	s.pressed = nil
	for len(s.Interrupts) > 0 {
		<-s.Interrupts
	}
}

// watchEvery is the time between two looks at the progress of a statement.
const watchEvery = 250 * time.Millisecond

// supervise runs a statement. Ctrl-C cancels it, and a statement that takes long shows progress.
func (s *session) supervise(ctx context.Context, head string,
	run func(context.Context, *watcher) error) error {
	w := &watcher{w: s.Err, tty: s.ErrTTY, off: s.Quiet || head == "", head: head, dev: s.Dev,
		started: time.Now(), before: s.Dev.Stats()}
	w.last = w.started
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer bug.Catch()
		done <- run(inner, w)
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	cancelled := ctx.Done()
	var late, leave <-chan time.Time
	for {
		select {
		case err := <-done:
			w.hush()
			if inner.Err() != nil && errors.Is(err, context.Canceled) {
				return &cancelledError{time.Since(w.started), w.blocks()}
			}
			return err
		case now := <-tick.C:
			w.tick(now)
		case <-cancelled:
			cancelled, late = nil, time.After(cancelGrace)
		case <-late:
			return ErrAborted
		case <-leave:
			if leave = time.After(leaveAfter); w.leave() {
				s.leaving = done
				return &cancelledError{time.Since(w.started), w.blocks()}
			}
		case <-s.Interrupts:
			cancel()
			if s.pressedThrice() {
				return ErrAborted
			}
			if leave == nil {
				leave = time.After(leaveAfter)
			}
		}
	}
}

// awaitLeft waits for the end of a statement that was left running, because it still holds its
// memory.
func (s *session) awaitLeft(ctx context.Context) error {
	started, late, cancelled := time.Now(), (<-chan time.Time)(nil), ctx.Done()
	for s.leaving != nil {
		select {
		case <-s.leaving:
			s.leaving = nil
		case <-cancelled:
			cancelled, late = nil, time.After(cancelGrace)
		case <-late:
			return ErrAborted
		case <-s.Interrupts:
			if s.pressedThrice() {
				return ErrAborted
			}
			return &cancelledError{took: time.Since(started)}
		}
	}
	return nil
}

// When progress is shown: for the first time, and how often where there is no terminal.
const (
	progressAfter = 2 * time.Second
	progressEvery = 10 * time.Second
)

// watcher shows what a statement has done so far: on a terminal in one line that is written over,
// elsewhere in a new line every ten seconds.
type watcher struct {
	w           io.Writer
	tty         bool
	head        string
	dev         blockdev.Device
	started     time.Time
	before      blockdev.Stats
	done, total atomic.Int64 // in bytes, if the statement knows them

	mu    sync.Mutex
	off   bool
	last  time.Time
	shown int // columns of the line that is shown on the terminal

	writing sync.Mutex // held while the statement writes its result
	left    bool       // nothing more is written; guarded by writing
}

// progress notes how far the statement is.
func (w *watcher) progress(done, total int64) {
	w.done.Store(done)
	w.total.Store(total)
}

func (w *watcher) blocks() uint64 { return w.dev.Stats().Reads - w.before.Reads }

func (w *watcher) tick(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := now.Sub(w.started)
	if w.off || took < progressAfter || !w.tty && now.Sub(w.last) < progressEvery {
		return
	}
	w.last = now
	line := w.line(took)
	if !w.tty {
		fmt.Fprintln(w.w, line)
		return
	}
	fmt.Fprintf(w.w, "\r%s%s", line, strings.Repeat(" ", max(w.shown-len(line), 0)))
	w.shown = len(line)
}

// line returns the text of the line: the phase, the rate, and the time that is left if it is known.
func (w *watcher) line(took time.Duration) string {
	st := w.dev.Stats()
	bytes := int64(st.Bytes - w.before.Bytes)
	line := fmt.Sprintf("%s %.0f s, %s blocks, %s read, %s/s", w.head, took.Seconds(),
		humanize.Comma(int64(st.Reads-w.before.Reads)), mem.FormatSize(bytes),
		mem.FormatSize(int64(float64(bytes)/took.Seconds())))
	if done, total := w.done.Load(), w.total.Load(); done > 0 && total >= done {
		left := took.Seconds() * float64(total-done) / float64(done)
		line += fmt.Sprintf(", %.0f %%, %.0f s left", 100*float64(done)/float64(total), left)
	}
	return line
}

// hush clears the line, because the result or the next prompt follows.
func (w *watcher) hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	if w.shown > 0 {
		fmt.Fprintf(w.w, "\r%s\r", strings.Repeat(" ", w.shown))
		w.shown = 0
	}
}

// over returns the writer of the statement's result. Before it writes to a screen that the watcher
// uses too, it clears the watcher's line.
func (w *watcher) over(out io.Writer, screen bool) io.Writer {
	return &resultWriter{out, w, screen && w.tty}
}

type resultWriter struct {
	io.Writer
	watcher *watcher
	hushes  bool
}

// Write writes unless the statement was left.
func (r *resultWriter) Write(b []byte) (int, error) {
	r.watcher.writing.Lock()
	defer r.watcher.writing.Unlock()
	if r.watcher.left {
		return 0, context.Canceled
	}
	if r.hushes {
		r.watcher.hush()
	}
	return r.Writer.Write(b)
}

// leave stops the output of the statement. It returns false if the statement is writing.
func (w *watcher) leave() bool {
	if !w.writing.TryLock() {
		return false
	}
	defer w.writing.Unlock()
	w.left = true
	w.hush()
	return true
}
