package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"gdb/layout/ingest/input"
)

// OnBad says what becomes of a bad line.
type OnBad int

const (
	Skips    OnBad = iota // it is skipped, if the options allow
	Restarts              // the same, but an id that is no integer is ErrNotInteger
	Fails                 // it is an error: lines are counted, so none may be left out
)

// Each streams a table and deals with its bad lines.
func (s *Opener) Each(ctx context.Context, t *Table, mode OnBad, spec input.Spec,
	fn func(*input.Batch) error) error {
	spec.Format, spec.Width, spec.Names = t.Format, t.Width, t.Names
	spec.NaN, spec.Missing = s.AllowNaN, s.Missing
	for _, file := range t.files {
		var r batches
		var err error
		if t.Columnar() {
			r, err = openColumns(s, t, file, spec)
		} else {
			r, err = input.OpenText(s.FS, file, spec)
		}
		if err != nil {
			return input.Missing(file, err)
		}
		if err := errors.Join(s.eachOf(ctx, r, mode, fn), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// batches is a stream of rows, in batches that are valid until the next.
type batches interface {
	Next(ctx context.Context) (*input.Batch, error)
	Close() error
}

// eachOf streams one file.
func (s *Opener) eachOf(ctx context.Context, r batches, mode OnBad,
	fn func(*input.Batch) error) error {
	for {
		b, err := r.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range b.Bad {
			bad := &b.Bad[i]
			switch {
			case mode == Fails:
				return BadLine(b, bad)
			case bad.NotInteger && mode == Restarts && s.SkipBad == 0:
				return fmt.Errorf("%w: %w", ErrNotInteger, BadLine(b, bad))
			}
			if err := s.Bad.skip(b, bad); err != nil {
				return err
			}
		}
		if b.Rows > 0 {
			if err := fn(b); err != nil {
				return err
			}
		}
	}
}

// BadLines counts and reports the bad lines that are skipped.
type BadLines struct {
	Max, Count int64
	seen       map[string]int64 // the last line reported, by file
	Notes      io.Writer
}

// Reset forgets what was skipped.
func (b *BadLines) Reset() { b.Count, b.seen = 0, nil }

// skip reports a bad line, or returns it as the error if there are too many. A file is read more
// than once and always has the same bad lines, in order.
func (b *BadLines) skip(of *input.Batch, bad *input.Bad) error {
	file := of.File
	if last, seen := b.seen[file]; seen && bad.Line <= last {
		return nil
	}
	err := BadLine(of, bad)
	if b.Count == b.Max {
		if bad.Do == "" {
			err.Do = "--skip-bad N passes over N such lines"
		}
		return err
	}
	if b.seen == nil {
		b.seen = map[string]int64{}
	}
	b.seen[file] = bad.Line
	b.Count++
	if b.Notes == nil {
		return nil
	}
	if _, werr := fmt.Fprintln(b.Notes, "skipped "+err.Error()); werr != nil {
		return fmt.Errorf("ingest: write a note: %w", werr)
	}
	return nil
}

// BadLine returns the error of a row that could not be read.
func BadLine(of *input.Batch, bad *input.Bad) *input.Error {
	return &input.Error{Where: fmt.Sprintf("%s %s %d", of.File, of.Unit, bad.Line),
		What: bad.What, Do: bad.Do}
}

// errSeen ends the reading of a table whose rest is not needed.
var errSeen = errors.New("enough was seen")

// Among returns which of some words stand in a column of the first rows, at least as many as rows
// says, and whether these are all rows. Bad lines are passed over: they are reported when the table
// is read.
func (s *Opener) Among(ctx context.Context, t *Table, col int, words []string, rows int) (
	known map[string]bool, all bool, err error) {
	wanted := map[string]bool{}
	for _, w := range words {
		wanted[w] = true
	}
	known, looked := map[string]bool{}, 0
	quiet := *s
	quiet.Bad = BadLines{Max: math.MaxInt64}
	spec := input.Spec{Columns: []input.Column{{Field: col, Kind: input.Text}}}
	err = quiet.Each(ctx, t, Skips, spec, func(b *input.Batch) error {
		for _, v := range b.Columns[0].Texts {
			if wanted[string(v)] {
				known[string(v)] = true
			}
		}
		if looked += b.Rows; looked >= rows {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return known, false, nil
	}
	return known, true, err
}
