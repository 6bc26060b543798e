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
// statement does not end. It may still be running: what the session uses must be left open.
var ErrAborted = fmt.Errorf("shell: interrupted: %w", context.Canceled)

// cancelGrace is how long a script's statement may take to end once it is cancelled: it may be
// writing where nobody reads.
const cancelGrace = time.Second

// leaveAfter is how long a statement may take to end after a Ctrl-C. Then the prompt comes without
// it: a read that is under way ends when the disk wants.
const leaveAfter = 50 * time.Millisecond

// cancelledError is the end of a statement that was cancelled.
type cancelledError struct {
	took   time.Duration
	blocks uint64
}

// Error says what it had cost.
func (e *cancelledError) Error() string {
	return fmt.Sprintf("cancelled after %.1f s, %s blocks read", e.took.Seconds(),
		humanize.Comma(int64(e.blocks)))
}

// Unwrap is context.Canceled.
func (e *cancelledError) Unwrap() error { return context.Canceled }

// pressedThrice notes a Ctrl-C, and says whether it is the third within a second.
func (s *session) pressedThrice() bool {
	now := time.Now()
	s.pressed = append(s.pressed, now)
	n := len(s.pressed)
	return n >= 3 && now.Sub(s.pressed[n-3]) < time.Second
}

// forgetInterrupts drops the Ctrl-C that came before a statement: they were for what was before.
func (s *session) forgetInterrupts() {
	s.pressed = nil
	for len(s.Interrupts) > 0 {
		<-s.Interrupts
	}
}

// watchEvery is how often the progress of a statement is looked at.
const watchEvery = 250 * time.Millisecond

// supervise runs a statement: Ctrl-C cancels it, and what takes long shows progress.
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

// awaitLeft waits for the end of a statement that was left: it still has its memory.
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

// When progress is shown: at first, and how often where there is no terminal.
const (
	progressAfter = 2 * time.Second
	progressEvery = 10 * time.Second
)

// watcher shows what a statement has done so far: a line that is written over on a terminal, a
// line every ten seconds elsewhere.
type watcher struct {
	w           io.Writer
	tty         bool
	head        string
	dev         blockdev.Device
	started     time.Time
	before      blockdev.Stats
	done, total atomic.Int64 // bytes, if the statement knows

	mu    sync.Mutex
	off   bool
	last  time.Time
	shown int // columns of the line on the terminal

	writing sync.Mutex // held while the statement writes its result
	left    bool       // nothing more is written; guarded by writing
}

// progress is how the statement says how far it is.
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

// line is phase, rate, and the time that is left if that is known.
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

// hush clears the line: what follows is the result, or the next prompt.
func (w *watcher) hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	if w.shown > 0 {
		fmt.Fprintf(w.w, "\r%s\r", strings.Repeat(" ", w.shown))
		w.shown = 0
	}
}

// over is the writer of the statement's result. It hushes the watcher before it writes to the
// screen that both are on.
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

// leave ends what the statement shows, unless it is writing.
func (w *watcher) leave() bool {
	if !w.writing.TryLock() {
		return false
	}
	defer w.writing.Unlock()
	w.left = true
	w.hush()
	return true
}
