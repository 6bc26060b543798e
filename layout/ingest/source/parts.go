package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdb/internal/npy"
	"gdb/internal/spelling"
	"gdb/layout/ingest/text"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// chunkRows is how many edges, ids or labels a chunk holds at most.
const chunkRows = 1 << 16

// parts is a Source put together from streams of any format. A stream that is nil is empty.
type parts struct {
	fs       vfs.FS
	opt      *Options
	info     Info
	bad      badLines
	edges    func(context.Context, func(*EdgeChunk) error) error
	nodes    func(context.Context, func(*IDChunk) error) error
	features map[string]func(context.Context, func(*RowChunk) error) error
	labels   func(context.Context, func(*LabelChunk) error) error
	splits   []func(context.Context, func(*SplitChunk) error) error
	closers  []io.Closer

	nodesFrom string     // the file that told Info.Nodes
	labelled  *nodeTable // where the labels are, if they are text
}

func newParts(fs vfs.FS, opt *Options, format string) *parts {
	return &parts{fs: fs, opt: opt, info: Info{Format: format},
		features: map[string]func(context.Context, func(*RowChunk) error) error{},
		bad:      badLines{max: opt.SkipBad, notes: opt.Notes}}
}

// Info tells what was found.
func (s *parts) Info() *Info { return &s.info }

// Edges streams the edges.
func (s *parts) Edges(ctx context.Context, fn func(*EdgeChunk) error) error {
	return badInput(s.edges(ctx, fn))
}

// Nodes streams the ids of the node table, if there is one.
func (s *parts) Nodes(ctx context.Context, fn func(*IDChunk) error) error {
	if s.nodes == nil {
		return nil
	}
	return badInput(s.nodes(ctx, fn))
}

// Features streams the rows of the features called name.
func (s *parts) Features(ctx context.Context, name string, fn func(*RowChunk) error) error {
	stream := s.features[name]
	if stream == nil {
		return fmt.Errorf("ingest: there are no features %q", name)
	}
	return badInput(stream(ctx, fn))
}

// Labels streams the labels, if there are any.
func (s *parts) Labels(ctx context.Context, fn func(*LabelChunk) error) error {
	if s.labels == nil {
		return nil
	}
	return badInput(s.labels(ctx, fn))
}

// Splits streams the members of the splits. Chunks of the splits of one file alternate.
func (s *parts) Splits(ctx context.Context, fn func(*SplitChunk) error) error {
	for _, stream := range s.splits {
		if err := stream(ctx, fn); err != nil {
			return badInput(err)
		}
	}
	return nil
}

// Close closes what the source holds open: archives.
func (s *parts) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// ForceText reads ids as text from now on.
func (s *parts) ForceText() {
	s.info.TextIDs = true
	s.bad.reset()
}

// SkippedLines is the number of bad lines that were skipped so far, each counted once however
// often its file was read.
func (s *parts) SkippedLines() int64 { return s.bad.count }

// note keeps a line for the user.
func (s *parts) note(format string, args ...any) {
	s.info.Notes = append(s.info.Notes, fmt.Sprintf(format, args...))
}

// badInput turns what the readers of files say is wrong into a BadInputError.
func badInput(err error) error {
	var n *npy.FormatError
	var t *text.Error
	var b *BadInputError
	switch {
	case err == nil || errors.As(err, &b):
		return err
	case errors.As(err, &n):
		return &BadInputError{Where: n.File, What: n.What, Do: n.Do}
	case errors.As(err, &t):
		return &BadInputError{Where: t.Where(), What: t.What, Do: t.Do}
	}
	return err
}

// use counts a file, or so many bytes of it, among those that will be read.
func (s *parts) use(path string, bytes int64) {
	if !slices.Contains(s.info.Paths, path) {
		s.info.Paths = append(s.info.Paths, path)
	}
	s.info.Bytes += bytes
}

// missing is the error for a file that is not there.
func missing(path string, err error) error {
	if oserror.IsNotExist(err) {
		return &BadInputError{Where: path, What: "there is no such file"}
	}
	return badInput(err)
}

// setNodes takes the number of nodes that a file tells; all that tell one must agree.
func (s *parts) setNodes(file string, n int64) error {
	switch {
	case s.nodesFrom == "":
		s.info.Nodes, s.nodesFrom = uint64(n), file
	case s.info.Nodes != uint64(n):
		return wrong(file, "arrays have one row for each node",
			"there are %d nodes here, but %d in %s", n, s.info.Nodes, s.nodesFrom)
	}
	return nil
}

// outOfRange is the error for a number that is no node; signed says that the source's integers are.
func (s *parts) outOfRange(where, what string, id uint64, signed bool) error {
	if signed && int64(id) < 0 {
		return wrong(where, "ids begin at 0", "%s %d is negative", what, int64(id))
	}
	return wrong(where, fmt.Sprintf("there are %d nodes, by %s", s.info.Nodes, s.nodesFrom),
		"%s %d is out of range", what, id)
}

// wrong is a BadInputError; do may be empty.
func wrong(where, do, format string, args ...any) error {
	return &BadInputError{Where: where, What: fmt.Sprintf(format, args...), Do: do}
}

// badLines counts and reports the bad lines that are skipped.
type badLines struct {
	max, count int64
	seen       map[string]int64 // the last line reported, by file
	notes      io.Writer
}

func (b *badLines) reset() { b.count, b.seen = 0, nil }

// skip reports a bad line, or returns it as the error if there are too many. A file is read more
// than once and always has the same bad lines, in order.
func (b *badLines) skip(file string, bad *text.Bad) error {
	if bad.Line <= b.seen[file] {
		return nil
	}
	err := badLine(file, bad)
	if b.count == b.max {
		return err
	}
	if b.seen == nil {
		b.seen = map[string]int64{}
	}
	b.seen[file] = bad.Line
	b.count++
	if b.notes == nil {
		return nil
	}
	if _, werr := fmt.Fprintln(b.notes, "skipped "+err.Error()); werr != nil {
		return fmt.Errorf("ingest: write a note: %w", werr)
	}
	return nil
}

func badLine(file string, bad *text.Bad) error {
	return &BadInputError{Where: fmt.Sprintf("%s line %d", file, bad.Line), What: bad.What,
		Do: bad.Do}
}

// nearest returns the word of list that word may be a misspelling of, or "".
func nearest(word string, list []string) string {
	best, least := "", 1+len(word)/3
	for _, w := range list {
		if d := spelling.Distance(strings.ToLower(word), strings.ToLower(w)); d <= least {
			best, least = w, d-1
		}
	}
	return best
}
