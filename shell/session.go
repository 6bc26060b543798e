// Package shell answers questions about a store: statements of a small language, from one registry
// that the parser and the help read. Data goes to Out, everything else to Err.
package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"

	"github.com/dustin/go-humanize"
)

// Options configure a shell.
type Options struct {
	Store *layout.Store
	// Dev reads the store; the caller closes it after Run.
	Dev blockdev.Device
	// Statements run first, in order; with none, and no Script, statements come from In.
	Statements []string
	// Script is the text of a file of statements.
	Script string
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	// InTTY, OutTTY and ErrTTY tell which streams are terminals: results go to a box on one, and
	// prompts and the timing line only to one.
	InTTY, OutTTY, ErrTTY bool
	// Mode is one of Modes; "" is auto.
	Mode string
	// KeepGoing runs on after a failed statement and counts the failures.
	KeepGoing bool
	// Memory bounds caches, in bytes.
	Memory int64
	// Seed is that of statements that do not name one.
	Seed uint64
	// Quiet leaves the prompts and the timing line out.
	Quiet bool
}

// FailedError says how many statements failed with KeepGoing; their messages were written to Err.
// It wraps the first failure.
type FailedError struct {
	Failed int
	// First is the first failure.
	First error
}

// Error counts the failures.
func (e *FailedError) Error() string { return fmt.Sprintf("shell: %d statements failed", e.Failed) }

// Unwrap returns the first failure.
func (e *FailedError) Unwrap() error { return e.First }

// CheckMode reports a mode that is not one of Modes.
func CheckMode(mode string) error {
	if slices.Contains(Modes, mode) {
		return nil
	}
	return fmt.Errorf("shell: unknown mode %q: want %s%s", mode, strings.Join(Modes, ", "),
		near(mode, Modes))
}

// session is one shell over one store.
type session struct {
	Options
	engine *engine
	failed int
	first  error
}

// Run executes the statements of opt. A mistake in a statement is a *SyntaxError; the first error
// ends the run unless KeepGoing is set.
func Run(ctx context.Context, opt Options) (err error) {
	if opt.Mode == "" || opt.Mode == "auto" {
		opt.Mode = "csv"
		if opt.OutTTY {
			opt.Mode = "box"
		}
	}
	if !slices.Contains(Modes, opt.Mode) {
		return CheckMode(opt.Mode)
	}
	s := &session{Options: opt, engine: newEngine(opt.Store, opt.Dev, opt.Memory)}
	defer func() { err = errors.Join(err, s.engine.close()) }()
	switch {
	case len(opt.Statements) > 0:
		for _, text := range opt.Statements {
			if err := s.runText(ctx, text, true); err != nil {
				return err
			}
		}
	case opt.Script != "":
		err = s.runText(ctx, opt.Script, true)
	default:
		err = s.runReader(ctx)
	}
	if err == nil && s.failed > 0 {
		return &FailedError{Failed: s.failed, First: s.first}
	}
	return err
}

// runText runs the statements of text. whole says that the last one may lack its semicolon.
func (s *session) runText(ctx context.Context, text string, whole bool) error {
	stmts, rest := splitStatements(blankComments(text))
	if whole && strings.TrimSpace(rest) != "" {
		stmts = append(stmts, rest)
	}
	for _, stmt := range stmts {
		if strings.TrimSpace(strings.TrimSuffix(stmt, ";")) == "" {
			continue
		}
		if err := s.runOne(ctx, strings.TrimSpace(stmt)); err != nil {
			return err
		}
	}
	return nil
}

// runReader runs statements as they come, each when its semicolon is read.
func (s *session) runReader(ctx context.Context) error {
	in := bufio.NewReader(s.In)
	pending := ""
	for {
		s.prompt(pending)
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("shell: read statements: %w", err)
		}
		pending += line
		_, rest := splitStatements(blankComments(pending))
		if e := s.runText(ctx, pending[:len(pending)-len(rest)], false); e != nil {
			return e
		}
		pending = rest
		if err != nil {
			return s.runText(ctx, pending, true)
		}
	}
}

// prompt is written on a terminal only.
func (s *session) prompt(pending string) {
	if !s.InTTY || !s.ErrTTY || s.Quiet {
		return
	}
	if strings.TrimSpace(pending) == "" {
		fmt.Fprint(s.Err, "gdb> ")
		return
	}
	fmt.Fprint(s.Err, "...> ")
}

// runOne parses and runs one statement. Interactive sessions and KeepGoing survive its failure;
// a cancelled context ends every session.
func (s *session) runOne(ctx context.Context, src string) error {
	err := s.execute(ctx, src)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !s.KeepGoing && !s.InTTY {
		return err
	}
	fmt.Fprintf(s.Err, "%v\n", err)
	if s.KeepGoing {
		s.failed++
		if s.first == nil {
			s.first = err
		}
	}
	return nil
}

// outBytes is how much of a result is written at once.
const outBytes = 64 << 10

func (s *session) execute(ctx context.Context, src string) error {
	p, err := parse(src)
	if err != nil {
		return err
	}
	start, before := time.Now(), s.cost()
	out := bufio.NewWriterSize(s.Out, outBytes)
	x := &execution{parsed: p, engine: s.engine, render: newRenderer(s.Mode, out),
		alive: ctx.Err, defaultSeed: s.Seed}
	if err = p.st.run(ctx, x); err == nil {
		err = x.footer()
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return statementError(p, err)
	}
	s.timing(x, time.Since(start), before)
	return nil
}

// cost is what the session has read so far.
type cost struct{ reads, bytes, hits uint64 }

func (s *session) cost() cost {
	d := s.Dev.Stats()
	c := cost{reads: d.Reads, bytes: d.Bytes}
	for _, t := range s.engine.topo {
		c.hits += t.Stats().Hits
	}
	return c
}

// timing writes the line that says what the statement cost, on a terminal only.
func (s *session) timing(x *execution, took time.Duration, before cost) {
	if s.Quiet || !s.ErrTTY {
		return
	}
	fmt.Fprintln(s.Err, timingLine(x.rows, took, before, s.cost()))
}

func timingLine(rows uint64, took time.Duration, before, after cost) string {
	hits, n := after.hits-before.hits, func(v uint64) string { return humanize.Comma(int64(v)) }
	return fmt.Sprintf("%s rows, %.1f ms, %s blocks (%s cached), %s read", n(rows),
		float64(took.Microseconds())/1000, n(hits+after.reads-before.reads), n(hits),
		mem.FormatSize(int64(after.bytes-before.bytes)))
}

// statementError says which statement failed; syntax errors already point at the place.
func statementError(p *parsed, err error) error {
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		return err
	}
	return fmt.Errorf("shell: %s: %w", p.st.head, err)
}

// execution is one running statement: its arguments, the store, and where rows go.
type execution struct {
	*parsed
	engine      *engine
	render      renderer
	defaultSeed uint64
	alive       func() error // the error of a cancelled statement

	cols  []string
	begun bool
	rows  uint64
}

// header names the columns. They are written with the first row, or at the end: a statement that
// fails before has written nothing.
func (x *execution) header(cols ...string) { x.cols = cols }

// row adds a row; there is one value for each column. It fails once the statement is cancelled.
func (x *execution) row(vals ...any) error {
	if err := x.begin(); err != nil {
		return err
	}
	x.rows++
	return x.render.Row(vals)
}

func (x *execution) begin() error {
	if err := x.alive(); err != nil || x.begun {
		return err
	}
	x.begun = true
	return x.render.Header(x.cols)
}

// footer ends the result.
func (x *execution) footer() error {
	if err := x.begin(); err != nil {
		return err
	}
	return x.render.Footer()
}
