package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNotInteger says that an id is no integer although the first ids of the source are; the
// source must be read again with ids as text.
var ErrNotInteger = errors.New("an id is not an integer")

// table is one text file with what its columns mean; a column that is not there is -1.
type table struct {
	path                        string
	format                      textFormat
	names                       []string // of the header, or nil
	width                       int      // fields in a row
	src, dst, rel, weight, time int
	id, label                   int
	features                    []int
}

// texts is the source of CSV, TSV, SNAP and triple files.
type texts struct {
	fs      vfs.FS
	opt     *Options
	info    Info
	edges   []table
	nodes   *table
	splits  map[string]string
	skipped int64
}

// Info tells what was found.
func (s *texts) Info() *Info { return &s.info }

// Close does nothing: every method closes what it opens.
func (s *texts) Close() error { return nil }

// ForceText reads ids as text from now on.
func (s *texts) ForceText() { s.info.TextIDs = true }

// SkippedLines is how many bad lines were skipped in the last pass.
func (s *texts) SkippedLines() int64 { return s.skipped }

// skip reports a bad line and goes on, up to Options.SkipBad of them.
func (s *texts) skip(err error) error {
	var bad *BadInputError
	if !errors.As(err, &bad) || errors.Is(err, ErrNotInteger) || s.skipped >= s.opt.SkipBad {
		return err
	}
	s.skipped++
	if s.opt.Notes != nil {
		if _, err := fmt.Fprintf(s.opt.Notes, "skipped %v\n", bad); err != nil {
			return fmt.Errorf("ingest: write a note: %w", err)
		}
	}
	return nil
}

// at names a line of a table, for messages.
func (t *table) at(line int64) string { return fmt.Sprintf("%s line %d", t.path, line) }

// checkWidth refuses rows with another number of fields than the first.
func (t *table) checkWidth(line int64, fields [][]byte) error {
	if len(fields) == t.width || t.format.delim == 0 && len(fields) > t.width {
		return nil
	}
	return &BadInputError{Where: t.at(line), What: fmt.Sprintf("%d fields, the first row has %d",
		len(fields), t.width)}
}

// idSink collects the ids of a column as integers or text.
type idSink struct {
	ints []uint64
	text [][]byte
}

func (k *idSink) reset() { k.ints, k.text = k.ints[:0], k.text[:0] }

// add appends an id. Integers are those that are written as such: "7" and not "007".
func (k *idSink) add(asText bool, id []byte, where func() string) error {
	if len(id) == 0 {
		return &BadInputError{Where: where(), What: "the id is empty"}
	}
	if asText {
		k.text = append(k.text, id)
		return nil
	}
	n, ok := parseID(id)
	if ok {
		k.ints = append(k.ints, n)
		return nil
	}
	if _, err := strconv.ParseInt(string(id), 10, 64); err == nil && id[0] == '-' {
		return &BadInputError{Where: where(), What: fmt.Sprintf("id %s is negative", id),
			Do: "integer ids are 0 or more"}
	}
	return fmt.Errorf("%w: %w", ErrNotInteger, &BadInputError{Where: where(),
		What: fmt.Sprintf("id %.100q, but the ids of edges are integers", id),
		Do:   "use the same ids everywhere"})
}

// parseID reads a canonical unsigned integer.
func parseID(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// Edges streams the edges of all edge files.
func (s *texts) Edges(ctx context.Context, fn func(*EdgeChunk) error) error {
	s.skipped = 0
	for i := range s.edges {
		if err := s.edgeTable(ctx, &s.edges[i], fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *texts) edgeTable(ctx context.Context, t *table, fn func(*EdgeChunk) error) error {
	c := &EdgeChunk{Where: Where{File: t.path, Unit: "line"}}
	var src, dst idSink
	row := func(line int64, fields [][]byte) error {
		if err := t.checkWidth(line, fields); err != nil {
			return err
		}
		where := func() string { return t.at(line) }
		if err := src.add(s.info.TextIDs, fields[t.src], where); err != nil {
			return err
		}
		err := dst.add(s.info.TextIDs, fields[t.dst], where)
		if err == nil {
			err = edgePayload(c, t, line, fields)
		}
		if err != nil {
			src.ints = src.ints[:len(dst.ints)]
			src.text = src.text[:len(dst.text)]
			return err
		}
		c.Lines = append(c.Lines, line)
		return nil
	}
	flush := func() error {
		c.SrcInt, c.DstInt, c.SrcText, c.DstText = src.ints, dst.ints, src.text, dst.text
		n := len(c.Lines)
		if n == 0 {
			return nil
		}
		c.First = c.Lines[0]
		err := fn(c)
		src.reset()
		dst.reset()
		c.Lines, c.TypeText = c.Lines[:0], c.TypeText[:0]
		c.Weight, c.Time = c.Weight[:0], c.Time[:0]
		return err
	}
	return t.format.eachLine(ctx, s.fs, t.path, row, flush, s.skip)
}

// edgePayload reads relation, weight and time of a row; nothing is appended if one is bad.
func edgePayload(c *EdgeChunk, t *table, line int64, fields [][]byte) error {
	weight, stamp := 0.0, int64(0)
	var err error
	if t.weight >= 0 {
		weight, err = strconv.ParseFloat(string(fields[t.weight]), 32)
		if err != nil || weight != weight {
			return &BadInputError{Where: t.at(line), What: fmt.Sprintf("weight %q is no number",
				fields[t.weight])}
		}
	}
	if t.time >= 0 {
		if stamp, err = strconv.ParseInt(string(fields[t.time]), 10, 64); err != nil {
			return &BadInputError{Where: t.at(line), What: fmt.Sprintf("time %q is no integer",
				fields[t.time])}
		}
	}
	if t.rel >= 0 {
		if len(fields[t.rel]) == 0 {
			return &BadInputError{Where: t.at(line), What: "the relation is empty"}
		}
		c.TypeText = append(c.TypeText, fields[t.rel])
	}
	if t.weight >= 0 {
		c.Weight = append(c.Weight, float32(weight))
	}
	if t.time >= 0 {
		c.Time = append(c.Time, stamp)
	}
	return nil
}

// Nodes streams the ids of the node file.
func (s *texts) Nodes(ctx context.Context, fn func(*IDChunk) error) error {
	return s.nodeRows(ctx, func(int64, [][]byte) error { return nil },
		func(c *IDChunk) error { return fn(c) })
}

// nodeRows goes over the node file: row is called for each good row, flush with the ids of the
// rows since the last flush.
func (s *texts) nodeRows(ctx context.Context, row func(line int64, fields [][]byte) error,
	flush func(*IDChunk) error) error {
	t := s.nodes
	if t == nil {
		return nil
	}
	c := &IDChunk{Where: Where{File: t.path, Unit: "line"}}
	var ids idSink
	return t.format.eachLine(ctx, s.fs, t.path, func(line int64, fields [][]byte) error {
		if err := t.checkWidth(line, fields); err != nil {
			return err
		}
		if err := row(line, fields); err != nil {
			return err
		}
		err := ids.add(s.info.TextIDs, fields[t.id], func() string { return t.at(line) })
		if err != nil {
			return err
		}
		c.Lines = append(c.Lines, line)
		return nil
	}, func() error {
		c.Ints, c.Text = ids.ints, ids.text
		if len(c.Lines) == 0 {
			return nil
		}
		c.First = c.Lines[0]
		err := flush(c)
		ids.reset()
		c.Lines = c.Lines[:0]
		return err
	}, func(err error) error { return err })
}

// Features streams the feature columns of the node file.
func (s *texts) Features(ctx context.Context, _ string, fn func(*RowChunk) error) error {
	out := &RowChunk{}
	t := s.nodes
	return s.nodeRows(ctx, func(line int64, fields [][]byte) error {
		for _, col := range t.features {
			v, err := strconv.ParseFloat(string(fields[col]), 32)
			if err != nil {
				return &BadInputError{Where: t.at(line), What: fmt.Sprintf("feature %s is %q",
					t.columnName(col), fields[col]), Do: "features are numbers"}
			}
			if math.IsNaN(v-v) && !s.opt.AllowNaN {
				return &BadInputError{Where: t.at(line), What: fmt.Sprintf("feature %s is %v",
					t.columnName(col), v), Do: "mend it, or pass --allow-nan"}
			}
			out.Rows = append(out.Rows, float32(v))
		}
		return nil
	}, func(c *IDChunk) error {
		out.IDs, out.Where = c, c.Where
		err := fn(out)
		out.Rows = out.Rows[:0]
		return err
	})
}

func (t *table) columnName(col int) string {
	if col < len(t.names) {
		return t.names[col]
	}
	return strconv.Itoa(col)
}

// Labels streams the label column of the node file; an empty field is no label.
func (s *texts) Labels(ctx context.Context, fn func(*LabelChunk) error) error {
	if s.info.Labels == nil {
		return nil
	}
	out := &LabelChunk{}
	return s.nodeRows(ctx, func(_ int64, fields [][]byte) error {
		out.Text = append(out.Text, fields[s.nodes.label])
		return nil
	}, func(c *IDChunk) error {
		out.IDs, out.Where = c, c.Where
		err := fn(out)
		out.Text = out.Text[:0]
		return err
	})
}

// Splits streams the split files: one id a line.
func (s *texts) Splits(ctx context.Context, fn func(*SplitChunk) error) error {
	for _, name := range s.info.Splits {
		t := &table{path: s.splits[name], width: 1}
		c := &SplitChunk{Name: name, IDs: IDChunk{Where: Where{File: t.path, Unit: "line"}}}
		var ids idSink
		err := textFormat{delim: '\n'}.eachLine(ctx, s.fs, t.path,
			func(line int64, fields [][]byte) error {
				err := ids.add(s.info.TextIDs, bytes.Trim(fields[0], `"`),
					func() string { return t.at(line) })
				if err == nil {
					c.IDs.Lines = append(c.IDs.Lines, line)
				}
				return err
			}, func() error {
				c.IDs.Ints, c.IDs.Text = ids.ints, ids.text
				if len(c.IDs.Lines) == 0 {
					return nil
				}
				err := fn(c)
				ids.reset()
				c.IDs.Lines = c.IDs.Lines[:0]
				return err
			}, func(err error) error { return err })
		if err != nil {
			return err
		}
	}
	return nil
}

// column resolves a flag that names a column, by name or number.
func (t *table) column(flag, name string) (int, error) {
	if i := slices.Index(t.names, name); i >= 0 {
		return i, nil
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < t.width {
		return i, nil
	}
	return -1, fmt.Errorf("%w: %s %q: %s has no such column; it has %s", ErrUsage, flag, name,
		t.path, t.columns())
}

func (t *table) columns() string {
	if t.names != nil {
		return strings.Join(t.names, ", ")
	}
	return fmt.Sprintf("numbers 0 to %d", t.width-1)
}
