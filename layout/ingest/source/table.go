package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"gdb/layout/ingest/text"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNotInteger says that an id is no integer although the first ids of the source are: the source
// must be read again after ForceText.
var ErrNotInteger = errors.New("an id is not an integer")

const (
	// sampleBytes and sampleRows at the head of a file decide its delimiter, header and ids.
	sampleBytes = 256 << 10
	sampleRows  = 1000
)

// textTable is a text file whose form is known.
type textTable struct {
	path   string
	format text.Format
	width  int
	names  []string   // of the columns, if there is a header
	sample [][]string // first rows, without the header
	lines  uint64     // about how many it has
}

func readHead(fs vfs.FS, file string) (head []byte, all bool, err error) {
	head, all, err = text.Head(fs, file, sampleBytes)
	if err != nil {
		return nil, false, missing(file, err)
	}
	return head, all, nil
}

// tableHints are what is known of a table before its head is read.
type tableHints struct {
	format *text.Format // what the source's format prescribes, or nil
	known  []string     // names that a header may have, besides those of flags
	header string       // --header
}

// openTable looks at the head of a file.
func (s *parts) openTable(file string, h tableHints) (*textTable, error) {
	head, all, err := readHead(s.fs, file)
	if err != nil {
		return nil, err
	}
	t := &textTable{path: file}
	if t.format, err = s.textFormat(head, all, file, h.format); err != nil {
		return nil, err
	}
	rows := text.Rows(head, all, t.format, sampleRows+1)
	if len(rows) == 0 {
		return nil, &BadInputError{Where: file, What: "there are no rows in it"}
	}
	t.width = len(rows[0])
	if t.format.Header, err = s.isHeader(file, rows, h); err != nil {
		return nil, err
	}
	if t.format.Header {
		t.names, rows = rows[0], rows[1:]
		if h.format == nil && h.header != "yes" {
			s.note("%s: the first line names the columns: %s", file, few(t.names))
		}
	}
	// Rows of another width are bad, and say nothing about columns.
	t.sample = slices.DeleteFunc(rows, func(r []string) bool { return len(r) != t.width })
	stat, err := s.fs.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	if !slices.Contains(s.info.Paths, file) {
		s.use(file, stat.Size())
	}
	if t.lines, err = text.LinesAbout(s.fs, file, head, all); err != nil {
		return nil, err
	}
	return t, nil
}

// textFormat applies --delim to a guess.
func (s *parts) textFormat(head []byte, all bool, file string, fixed *text.Format) (
	text.Format, error) {
	f := text.Format{}
	switch {
	case fixed != nil:
		f = *fixed
		if c := comment(head); f.Comment != 0 && c != 0 {
			f.Comment = c
		}
	default:
		f = guessFormat(head, all, file)
	}
	switch d := s.opt.Delim; {
	case d == "":
	case d == "tab" || d == `\t`:
		f.Delim = '\t'
	case d == "space" || d == " ":
		f.Delim = 0
	case len(d) == 1 && d != "\n" && d != `"`:
		f.Delim = d[0]
	default:
		return f, WrongUsage("--delim %q is not one character, tab or space", d)
	}
	return f, nil
}

// guessFormat finds the delimiter that cuts all of the first rows into the same number of fields.
func guessFormat(head []byte, all bool, file string) text.Format {
	f := text.Format{Quotes: true}
	f.Comment = comment(head)
	delims := []byte(",\t;|")
	if strings.Contains(path.Base(file), ".tsv") || strings.Contains(path.Base(file), ".tab") {
		delims = []byte("\t,;|")
	}
	if !strings.Contains(path.Base(file), ".csv") && !strings.Contains(path.Base(file), ".tsv") {
		delims = append(delims, 0)
	}
	for _, d := range delims {
		f.Delim = d
		rows := text.Rows(head, all, f, 50)
		even := len(rows) > 0 && len(rows[0]) > 1
		wrong := 0
		for _, r := range rows {
			if len(r) != len(rows[0]) {
				wrong++
			}
		}
		// A few rows may be bad, which is reported when they are read.
		if even && 10*wrong <= len(rows) {
			return f
		}
	}
	f.Delim = delims[0]
	return f
}

// comment is the sign that begins comments, if the file begins with one: # or, as in collections of
// networks, a percent sign and a blank. Then lines that begin with it are skipped.
func comment(head []byte) byte {
	switch {
	case bytes.HasPrefix(head, []byte("#")):
		return '#'
	case bytes.HasPrefix(head, []byte("% ")), bytes.HasPrefix(head, []byte("%\t")):
		return '%'
	}
	return 0
}

func isNumber(f string) bool {
	_, err := strconv.ParseFloat(f, 64)
	return err == nil
}

func isInteger(f string) bool {
	_, ok := text.ParseID([]byte(strings.TrimPrefix(f, "-")))
	return ok
}

// all reports whether every sampled field of a column is so.
func (t *textTable) all(col int, is func(string) bool) bool {
	return !slices.ContainsFunc(t.sample, func(r []string) bool { return !is(r[col]) })
}

// named returns the first column with one of these names, or -1.
func (t *textTable) named(names []string) int {
	return slices.IndexFunc(t.names, func(n string) bool {
		return slices.Contains(names, strings.ToLower(n))
	})
}

// column resolves what a flag names: a column's name, or its number from 0.
func (t *textTable) column(flag, name string) (int, error) {
	if i := slices.Index(t.names, name); i >= 0 {
		return i, nil
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < t.width {
		return i, nil
	}
	e := &BadInputError{Where: t.path, usage: true,
		What: fmt.Sprintf("%s: there is no column %q", flag, name)}
	switch w := nearest(name, t.names); {
	case w != "":
		e.Do = "did you mean " + w + "?"
	case t.names != nil:
		e.Do = "the columns are " + strings.Join(t.names, ", ")
	default:
		e.Do = fmt.Sprintf("there is no header; columns are numbered 0 to %d", t.width-1)
	}
	return -1, e
}

// columns resolves a list of columns and ranges: "a,b", "f0:f127".
// "*" is every column whose sampled values are all numbers, but for those in use.
func (t *textTable) columns(flag, list string, used ...int) (cols []int, err error) {
	if list == "*" {
		for c := range t.width {
			if !slices.Contains(used, c) && t.all(c, isNumber) {
				cols = append(cols, c)
			}
		}
		if len(cols) == 0 {
			return nil, wrong(t.path, "name columns", "%s *: no other column has numbers", flag)
		}
		return cols, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, isRange := strings.Cut(part, ":")
		if slices.Contains(t.names, part) || !isRange {
			lo, hi = part, part
		}
		a, err := t.column(flag, lo)
		if err != nil {
			return nil, err
		}
		b, err := t.column(flag, hi)
		if err != nil {
			return nil, err
		}
		if b < a {
			return nil, WrongUsage("%s %s is a range backwards", flag, part)
		}
		for c := a; c <= b; c++ {
			cols = append(cols, c)
		}
	}
	return cols, nil
}

// noteUnused names the columns that have no role.
func (s *parts) noteUnusedColumns(t *textTable, used []int) {
	var names []string
	for c := range t.width {
		switch {
		case slices.Contains(used, c), c == 0 && isIndex(t.names):
		case t.names != nil:
			names = append(names, t.names[c])
		default:
			names = append(names, strconv.Itoa(c))
		}
	}
	if len(names) > 0 {
		s.note("%s: columns not used: %s", t.path, few(names))
	}
}

// few lists the first names, and how many more there are.
func few(names []string) string {
	const most = 8
	if len(names) <= most+2 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, … and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// guessIDs takes the ids of some columns for text if one of them is no integer, and tells which if
// others are. A few among many integers are bad lines where those may be skipped.
func (s *parts) guessIDs(t *textTable, columns ...int) {
	integers, others, odd := 0, 0, ""
	for _, r := range t.sample {
		for _, col := range columns {
			switch {
			case isInteger(r[col]):
				integers++
			case odd == "":
				odd = r[col]
				fallthrough
			default:
				others++
			}
		}
	}
	if others == 0 || int64(others) <= s.opt.SkipBad && others < integers/2 {
		return
	}
	s.info.TextIDs = true
	if integers > 0 {
		s.note("%s: ids are read as text, since %q is not an integer", t.path, odd)
	}
}

// idKind is what ids are read as.
func (s *parts) idKind() text.Kind {
	if s.info.TextIDs {
		return text.Key
	}
	return text.ID
}

// onBad says what becomes of a bad line.
type onBad int

const (
	badSkips    onBad = iota // it is skipped, if the options allow
	badRestarts              // the same, but an id that is no integer is ErrNotInteger
	badFails                 // it is an error: lines are counted, so none may be left out
)

// eachBatch streams a table and deals with its bad lines.
func (s *parts) eachBatch(ctx context.Context, t *textTable, mode onBad, columns []text.Column,
	vector []int, fn func(*text.Batch) error) (err error) {
	r, err := text.Open(s.fs, t.path, text.Spec{Format: t.format, Width: t.width, Columns: columns,
		Vector: vector, NaN: s.opt.AllowNaN})
	if err != nil {
		return missing(t.path, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
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
			case mode == badFails:
				return badLine(t.path, bad)
			case bad.NotInteger && mode == badRestarts && s.opt.SkipBad == 0:
				return fmt.Errorf("%w: %w", ErrNotInteger, badLine(t.path, bad))
			}
			if err := s.bad.skip(t.path, bad); err != nil {
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

// where locates a batch.
func (t *textTable) where(b *text.Batch) Where {
	return Where{File: t.path, First: b.First, Lines: b.Lines, Unit: "line"}
}

// ParseID reads a canonical unsigned integer.
func ParseID(b []byte) (uint64, bool) { return text.ParseID(b) }
