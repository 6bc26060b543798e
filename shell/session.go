// Package shell is the interactive shell and runs scripts of statements: it reads items, statements
// or session commands that begin with a dot, from a terminal, a file or a pipe, and runs them on a
// store. Results go to Out, everything else to Err.
package shell

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/result"
	"gdb/shell/words"

	"github.com/dustin/go-humanize"
)

// Options configure a shell.
type Options struct {
	Store *layout.Store
	// Dev reads the store; the caller closes it after Run.
	Dev blockdev.Device
	// Statements run first, in order. Without Statements and Script, the session reads In.
	Statements []string
	// Params are the values of $NAME in statements of openCypher.
	Params map[string]any
	// Script is the text of a file of statements.
	Script string
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	// InTTY, OutTTY and ErrTTY say which streams are terminals. Results are written as a box only
	// on a terminal, and prompts and the timing line only there.
	InTTY, OutTTY, ErrTTY bool
	// OutColor and ErrColor allow color in results and in messages.
	OutColor, ErrColor bool
	// Width returns the columns of the terminal, 0 if it is unknown. It may be nil.
	Width func() int
	// Vectors opens what runs have learned, for NEAREST and SCORE. If it is nil, these statements
	// are errors.
	Vectors graph.OpenVectors
	// Nearest opens vectors with their indexes, for NEAREST; nil compares with all.
	Nearest graph.OpenNearest
	// Predict predicts with runs, for gdb.predict; nil makes that an error.
	Predict graph.Predict
	// Terminal is used for editing if statements come from In; if it is nil, the terminal's own
	// editing is used.
	Terminal Terminal
	// History keeps what was typed, for later sessions; nil for none.
	History History
	// Interrupts delivers Ctrl-C, which ends the running statement but not the session. If it is
	// nil, only the context ends statements.
	Interrupts <-chan os.Signal
	// Edit lets the user edit a text in a program of their choice; nil for none.
	Edit func(ctx context.Context, text string) (string, error)
	// Page returns a writer that shows its text a screen at a time, until it is closed; nil for
	// none.
	Page func(ctx context.Context) (io.WriteCloser, error)
	// Mode is one of result.Modes; "" is auto.
	Mode string
	// KeepGoing goes on after a failed statement and counts the failures.
	KeepGoing bool
	// Memory bounds the memory of the process, in bytes; 0 sets no bound.
	Memory int64
	// Threads is how many goroutines a statement computes on; 0 is as many as processors.
	Threads int
	// Seed is the seed of statements that name none.
	Seed uint64
	// Quiet leaves out the prompts and the timing line.
	Quiet bool
}

// FailedError says how many statements failed with KeepGoing; their messages were written to Err.
type FailedError struct {
	Failed int
	// Damage is the first failure that shows a damaged store; it may be nil.
	Damage error
}

// Error says how many statements failed.
func (e *FailedError) Error() string {
	if e.Failed == 1 {
		return "shell: 1 statement failed"
	}
	return fmt.Sprintf("shell: %d statements failed", e.Failed)
}

// Unwrap returns the damage, because it matters more than other failures.
func (e *FailedError) Unwrap() error { return e.Damage }

// CheckMode returns an error if a mode is not one of result.Modes.
func CheckMode(mode string) error {
	if slices.Contains(result.Modes, mode) {
		return nil
	}
	return fmt.Errorf("shell: unknown mode %s: want %s%s", words.Quoted(mode),
		strings.Join(result.Modes, ", "),
		words.Near(mode, result.Modes))
}

// session is one run of the shell over one store.
type session struct {
	Options
	engine *graph.Graph
	// talks says that items come from a terminal, one by one: a failed item does not end the
	// session.
	talks   bool
	depth   int // how many scripts of .read are nested now
	rows    int // the rows that a box shows
	timing  bool
	bail    bool   // the first failure ends a script
	once    string // the file that the next result goes to
	last    string // the last statement
	pager   string // auto, on or off
	editor  lineEditor
	draft   string // what the next input begins with
	typed   []string
	pressed []time.Time // when Ctrl-C was pressed last
	// leaving receives the error of a statement that was cancelled and did not end at once; nil if
	// there is no such statement.
	leaving <-chan error
	failed  FailedError
	warned  map[string]bool // the notes that were written already
}

// graph opens a store for the statements of the session.
func (o *Options) graph(st *layout.Store) *graph.Graph {
	g := graph.ForProcess(st, o.Dev, o.Memory)
	if o.Threads > 0 {
		g.Threads = o.Threads
	}
	g.OpenVectors, g.OpenNearest, g.Predict = o.Vectors, o.Nearest, o.Predict
	return g
}

// errQuit ends a session without an error.
var errQuit = errors.New("shell: quit")

// errStopped drops the rest of an input after a cancelled statement, which was reported before.
var errStopped = errors.New("shell: stopped")

// Run runs the statements of opt. A mistake in a statement is a *SyntaxError. The first error ends
// the run unless KeepGoing is set.
func Run(ctx context.Context, opt Options) (err error) {
	opt.Mode = cmp.Or(opt.Mode, "auto")
	if err := CheckMode(opt.Mode); err != nil {
		return err
	}
	fromIn := len(opt.Statements) == 0 && opt.Script == ""
	s := &session{Options: opt, engine: opt.graph(opt.Store),
		talks: fromIn && opt.InTTY, rows: result.BoxRows, timing: !opt.Quiet, bail: !opt.KeepGoing,
		pager: "auto"}
	defer func() {
		for s.leaving != nil && !errors.Is(err, ErrAborted) {
			if e := s.awaitLeft(ctx); errors.Is(e, ErrAborted) {
				err = e
			}
		}
		if !errors.Is(err, ErrAborted) { // otherwise a statement still uses the engine
			err = errors.Join(err, s.engine.Close())
		}
	}()
	if fromIn {
		err = s.converse(ctx)
	} else {
		err = s.runTexts(ctx, slices.Concat(opt.Statements, []string{opt.Script}))
	}
	if errors.Is(err, errQuit) {
		err = nil
	}
	if err == nil && s.failed.Failed > 0 {
		return &s.failed
	}
	return err
}

func (s *session) runTexts(ctx context.Context, texts []string) error {
	for _, text := range texts {
		if err := s.runText(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// runText runs the items of text. The last one may lack its end.
func (s *session) runText(ctx context.Context, text string) error {
	for {
		item, rest, _ := nextItem(text)
		if item == "" {
			return nil
		}
		if err := s.runItem(ctx, item); err != nil {
			return err
		}
		if len(s.pressed) > 0 {
			return errStopped // Ctrl-C came as the statement ended, so the rest is not run
		}
		text = rest
	}
}

// converse runs items as they come, each as soon as its end was read.
func (s *session) converse(ctx context.Context) error {
	s.editor = s.newEditor()
	for {
		draft := s.draft
		s.draft = ""
		text, err := s.editor.Read(ctx, draft)
		switch {
		case errors.Is(err, errInterrupted):
			if s.pressedThrice() {
				return ErrAborted
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("shell: read statements: %w", err)
		}
		s.remember(text)
		s.forgetInterrupts()
		if e := s.runText(ctx, text); e != nil && !errors.Is(e, errStopped) || err != nil {
			return e
		}
	}
}

// newEditor returns an editor on the terminal, or one that reads lines if that is not possible.
func (s *session) newEditor() lineEditor {
	if s.Terminal == nil {
		var prompts io.Writer
		if s.talks && s.ErrTTY && !s.Quiet {
			prompts = s.Err
		}
		return newPipeEditor(s.In, prompts)
	}
	e := &ttyEditor{term: s.Terminal, history: s.History, complete: s.candidates}
	if s.ErrColor {
		e.paint = highlighter()
	}
	if s.History != nil {
		texts, err := s.History.Load()
		if err != nil {
			fmt.Fprintf(s.Err, "shell: history: %v\n", err)
		}
		e.texts = texts
		s.typed = slices.Clone(texts)
	}
	return e
}

// remember adds what was typed to the history, unless it begins with a space.
func (s *session) remember(text string) {
	if !s.talks || strings.HasPrefix(text, " ") || strings.TrimSpace(text) == "" {
		return
	}
	s.typed = append(s.typed, strings.TrimSpace(text))
	if err := s.editor.AddHistory(text); err != nil {
		fmt.Fprintf(s.Err, "shell: history: %v\n", err)
	}
}

// runItem runs one statement or session command. A session on a terminal goes on after a failure,
// and so does a script without bail. A cancelled context ends every session.
func (s *session) runItem(ctx context.Context, item string) error {
	err := s.awaitLeft(ctx)
	switch {
	case err != nil:
	case strings.HasPrefix(item, "."):
		err = s.dot(ctx, item)
	default:
		s.last = item
		err = s.execute(ctx, item)
	}
	atPrompt, cancelled := s.talks && s.depth == 0, errors.Is(err, context.Canceled)
	over := errors.Is(err, errQuit) || errors.Is(err, ErrAborted) || errors.Is(err, errStopped)
	if err == nil || ctx.Err() != nil || over || !atPrompt && (s.bail || cancelled) {
		return err
	}
	if cancelled {
		_, err = fmt.Fprintln(s.Err, "\n"+s.complaint(err)) // the terminal shows ^C before it
		return errors.Join(err, errStopped)
	}
	fmt.Fprintln(s.Err, s.complaint(err))
	if !s.talks {
		s.failed.Failed++
		if s.failed.Damage == nil && damaged(err) {
			s.failed.Damage = err
		}
	}
	return nil
}

// complaint returns the message of an error. Its first part stands out on a terminal.
func (s *session) complaint(err error) string {
	what, where, more := strings.Cut(message.Plain(err.Error()), "\n")
	if more {
		where = "\n" + where
	}
	if s.ErrTTY {
		what = message.Wrap(what)
	}
	if !s.ErrColor {
		return what + where
	}
	return words.Dressed(what, words.StyleRed) + where
}

// damaged reports whether an error shows a damaged store.
func damaged(err error) bool {
	return errors.Is(err, layout.ErrCorrupt) || errors.Is(err, kv.ErrDamaged) ||
		errors.Is(err, codec.ErrChecksum)
}

// outBytes is how many bytes of a result are written at once.
const outBytes = 64 << 10

func (s *session) execute(ctx context.Context, src string) error {
	p, err := query.Parse(src)
	if err != nil {
		return err
	}
	to, err := s.output(ctx)
	if err != nil {
		return err
	}
	start, before := time.Now(), s.cost()
	var x *exec.Execution
	err = s.supervise(ctx, p.Statement.Head, func(ctx context.Context, w *watcher) error {
		out := bufio.NewWriterSize(w.over(to.Writer, to.screen), outBytes)
		x = query.New(ctx, s.engine, p, s.Seed, result.NewRenderer(to.mode, out, s.box()))
		x.Progress, x.Params = w.progress, s.Params
		err := x.Run(ctx)
		if e := out.Flush(); err == nil {
			err = e
		}
		return err
	})
	took := time.Since(start)
	if errors.Is(err, ErrAborted) {
		return err
	}
	if e := to.finish(err == nil); err == nil || errors.Is(err, errPagerClosed) {
		err = e
	}
	if err != nil {
		return failed(p, err)
	}
	s.warn(x.Warnings())
	s.timed(x, took, before)
	return nil
}

// warn writes notes about a result. A script gets each note only once.
func (s *session) warn(notes []string) {
	for _, n := range notes {
		if s.Quiet || !s.talks && s.warned[n] {
			continue
		}
		if s.warned == nil {
			s.warned = map[string]bool{}
		}
		s.warned[n] = true
		fmt.Fprintln(s.Err, "note: "+message.Plain(n))
	}
}

// failed adds to an error which statement failed, unless the statement was cancelled.
func failed(p *lang.Parsed, err error) error {
	var cancelled *cancelledError
	if errors.As(err, &cancelled) {
		return err
	}
	return exec.Failed(p, err)
}

// mode returns the output mode: auto is box on a terminal and csv elsewhere.
func (s *session) mode() string {
	switch {
	case s.Mode != "auto":
		return s.Mode
	case s.OutTTY:
		return "box"
	}
	return "csv"
}

func (s *session) box() result.Box {
	box := result.Box{Rows: s.rows, Color: s.OutColor,
		More: "every other --mode is complete", Wide: "every other --mode is complete"}
	if s.talks {
		box.More, box.Wide = ".last for all", ".mode line, then .last for all"
	}
	if s.Width != nil {
		box.Width = s.Width()
	}
	return box
}

// cost counts what the session has read so far.
type cost struct{ reads, bytes, hits uint64 }

func (s *session) cost() cost {
	d := s.Dev.Stats()
	c := cost{reads: d.Reads, bytes: d.Bytes}
	c.hits = s.engine.Hits()
	return c
}

// timed writes a line that says what the statement cost. It writes only to a terminal.
func (s *session) timed(x *exec.Execution, took time.Duration, before cost) {
	if !s.timing || !s.ErrTTY {
		return
	}
	fmt.Fprintln(s.Err, timingLine(x.Rows, took, before, s.cost()))
}

func timingLine(rows uint64, took time.Duration, before, after cost) string {
	hits, n := after.hits-before.hits, func(v uint64) string { return humanize.Comma(int64(v)) }
	plural := func(v uint64, what string) string {
		if v != 1 {
			what += "s"
		}
		return n(v) + " " + what
	}
	return fmt.Sprintf("%s, %.1f ms, %s (%s cached), %s read", plural(rows, "row"),
		float64(took.Microseconds())/1000, plural(hits+after.reads-before.reads, "block"), n(hits),
		mem.FormatSize(int64(after.bytes-before.bytes)))
}
