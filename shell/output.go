package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"gdb/shell/result"
)

// output is the place to which the result of one statement goes.
type output struct {
	io.Writer
	mode   string
	screen bool // whether it is a terminal
	// finish ends the output; ok says whether the result is complete.
	finish func(ok bool) error
}

// output opens the place of the next result: the file of .once, the pager, or standard output.
func (s *session) output(ctx context.Context) (output, error) {
	name := s.once
	s.once = ""
	switch {
	case name != "":
		return s.fileOutput(ctx, name)
	case s.talks && s.OutTTY && s.Terminal != nil && s.Page != nil && s.pager != "off":
		return s.pagedOutput(ctx), nil
	}
	return output{s.Out, s.mode(), s.OutTTY, func(bool) error { return nil }}, nil
}

// fileOutput writes to a file that appears under its name when it is complete.
func (s *session) fileOutput(ctx context.Context, name string) (output, error) {
	f, err := result.CreateFile(s.Store.FS(), name)
	if err != nil {
		return output{}, fmt.Errorf("shell: .once %w", err)
	}
	return output{f, s.fileMode(name), false, func(ok bool) error {
		end := f.Abort
		if ok {
			end = func() error { return f.CommitContext(ctx) }
		}
		if err := end(); err != nil {
			return fmt.Errorf("shell: .once %s: %w", name, err)
		}
		return nil
	}}, nil
}

// pagedOutput shows results that are longer than the screen with the pager.
func (s *session) pagedOutput(ctx context.Context) output {
	_, lines := s.Terminal.Size()
	p := &pager{out: s.Out, room: lines - 2, start: func() (io.WriteCloser, error) {
		return s.Page(ctx)
	}}
	if s.pager == "on" {
		p.room = 0
	}
	return output{p, s.mode(), true, func(bool) error { return p.finish() }}
}

// errPagerClosed ends a statement whose pager the user has left.
var errPagerClosed = errors.New("shell: the pager was closed")

// pager keeps output that fits on the screen, and passes longer output to a program.
type pager struct {
	out   io.Writer
	room  int // in lines
	start func() (io.WriteCloser, error)

	kept  []byte
	lines int
	to    io.WriteCloser
}

// Write keeps the bytes, or passes them on.
func (p *pager) Write(b []byte) (int, error) {
	if p.to == nil {
		p.kept = append(p.kept, b...)
		if p.lines += bytes.Count(b, []byte("\n")); p.lines <= p.room {
			return len(b), nil
		}
		to, err := p.start()
		if err != nil {
			return 0, fmt.Errorf("shell: start the pager: %w; .pager off does without", err)
		}
		p.to = to
		if _, err := p.to.Write(p.kept); err != nil {
			return 0, errPagerClosed
		}
		p.kept = nil
		return len(b), nil
	}
	if _, err := p.to.Write(b); err != nil {
		return 0, errPagerClosed
	}
	return len(b), nil
}

// finish writes the output that was kept, or waits until the user leaves the pager.
func (p *pager) finish() error {
	if p.to == nil {
		_, err := p.out.Write(p.kept)
		return err
	}
	return p.to.Close()
}

// fileMode returns the output mode for a file: the mode of its extension, or without an extension
// the mode of the session. A file gets no box unless the user asked for one, since a box leaves
// rows out.
func (s *session) fileMode(name string) string {
	ext := strings.TrimPrefix(path.Ext(name), ".")
	if ext != "auto" && slices.Contains(result.Modes, ext) {
		return ext
	}
	if s.Mode == "auto" {
		return "csv"
	}
	return s.Mode
}
