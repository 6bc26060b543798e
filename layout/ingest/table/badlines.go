package table

import (
	"fmt"
	"io"

	"gdb/layout/ingest/input"
)

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

// BadLine is the error of a row that could not be read.
func BadLine(of *input.Batch, bad *input.Bad) *input.Error {
	return &input.Error{Where: fmt.Sprintf("%s %s %d", of.File, of.Unit, bad.Line),
		What: bad.What, Do: bad.Do}
}
