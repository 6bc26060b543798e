package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// chunkRows is how many edges, ids or labels a chunk holds at most.
const chunkRows = 1 << 16

// parts is a Source put together from streams of any format. A stream that is nil is empty.
type parts struct {
	fs       vfs.FS
	dir      string // of the source; "" if files were given
	opt      *Options
	info     Info
	tables   table.Opener
	edges    func(context.Context, func(*EdgeChunk) error) error
	nodes    func(context.Context, func(*IDChunk) error) error
	features map[string]func(context.Context, func(*RowChunk) error) error
	labels   func(context.Context, func(*LabelChunk) error) error
	splits   []func(context.Context, func(*SplitChunk) error) error
	closers  []io.Closer

	nodesFrom string     // the file that told Info.Nodes
	nodesType string     // of the ids in tables of nodes; "" if they have none
	labelled  *nodeTable // where the labels are, if they are text
}

func newParts(fs vfs.FS, opt *Options, format, dir string) *parts {
	s := &parts{fs: fs, opt: opt, dir: dir, info: Info{Format: format},
		features: map[string]func(context.Context, func(*RowChunk) error) error{}}
	s.tables = table.Opener{FS: fs, Delim: opt.Delim, Comment: opt.Comment, Named: opt.named(),
		Filled: opt.Fill != "" || opt.isOfTyped(), AllowNaN: opt.AllowNaN, SkipBad: opt.SkipBad,
		Memory: opt.Memory, Note: s.note, Bad: table.BadLines{Max: opt.SkipBad, Notes: opt.Notes},
		Use: func(path string, bytes int64) {
			if !slices.Contains(s.info.Paths, path) {
				s.use(path, bytes)
			}
		}}
	if opt.NA != "" {
		s.tables.Missing = strings.Split(opt.NA, ",")
	}
	return s
}

// locate finds a file that a flag names: in the source's directory, else as it is.
func (s *parts) locate(file string) string {
	if s.dir != "" && !path.IsAbs(file) {
		if p := s.fs.PathJoin(s.dir, file); p != file {
			if _, err := s.fs.Stat(p); err == nil {
				return p
			}
		}
	}
	return file
}

// inOrder does steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Info returns what was found.
func (s *parts) Info() *Info { return &s.info }

// Edges streams the edges.
func (s *parts) Edges(ctx context.Context, fn func(*EdgeChunk) error) error {
	return input.AsError(s.edges(ctx, fn))
}

// Nodes streams the ids of the node table, if there is one.
func (s *parts) Nodes(ctx context.Context, fn func(*IDChunk) error) error {
	if s.nodes == nil {
		return nil
	}
	return input.AsError(s.nodes(ctx, fn))
}

// Features streams the rows of the features called name.
func (s *parts) Features(ctx context.Context, name string, fn func(*RowChunk) error) error {
	stream := s.features[name]
	if stream == nil {
		return fmt.Errorf("ingest: there are no features %q", name)
	}
	return input.AsError(stream(ctx, fn))
}

// Labels streams the labels, if there are any.
func (s *parts) Labels(ctx context.Context, fn func(*LabelChunk) error) error {
	if s.labels == nil {
		return nil
	}
	return input.AsError(s.labels(ctx, fn))
}

// Splits streams the members of the splits. Chunks of the splits of one file alternate.
func (s *parts) Splits(ctx context.Context, fn func(*SplitChunk) error) error {
	for _, stream := range s.splits {
		if err := stream(ctx, fn); err != nil {
			return input.AsError(err)
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
	s.tables.Bad.Reset()
}

// SkippedLines returns the number of bad lines that were skipped so far, each counted once however
// often its file was read.
func (s *parts) SkippedLines() int64 { return s.tables.Bad.Count }

// note keeps a line for the user.
func (s *parts) note(format string, args ...any) {
	s.info.Notes = append(s.info.Notes, fmt.Sprintf(format, args...))
}

// use adds bytes of a file to what will be read.
func (s *parts) use(path string, bytes int64) {
	if !slices.Contains(s.info.Paths, path) {
		s.info.Paths = append(s.info.Paths, path)
	}
	s.info.Bytes += bytes
}

// setNodes takes the number of nodes that a file tells; all that tell one must agree.
func (s *parts) setNodes(file string, n int64) error {
	switch {
	case s.nodesFrom == "":
		s.info.Nodes, s.nodesFrom = uint64(n), file
	case s.info.Nodes != uint64(n):
		return input.Wrong(file, "arrays have one row for each node",
			"there are %d nodes here, but %d in %s", n, s.info.Nodes, s.nodesFrom)
	}
	return nil
}

// outOfRange returns the error for a number that is no node; signed tells that the source's
// integers may be negative.
func (s *parts) outOfRange(where, what string, id uint64, signed bool) error {
	if signed && int64(id) < 0 {
		return input.Wrong(where, "ids begin at 0", "%s %d is negative", what, int64(id))
	}
	return input.Wrong(where, fmt.Sprintf("there are %d nodes, by %s", s.info.Nodes, s.nodesFrom),
		"%s %d is out of range", what, id)
}

// NewOpener returns what opens the tables of a source.
func NewOpener(fs vfs.FS, opt *Options) table.Opener { return newParts(fs, opt, "", "").tables }
