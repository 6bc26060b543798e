// Package table opens the tables that a user has as files, text or columnar: it finds the files,
// tells how they are cut into columns, reads their rows, and turns columns into features (Encoder):
// numbers as they are, with gaps filled, and categories as one number for each.
package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/input"

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

// Table is a table whose form is known.
type Table struct {
	Path   string
	Format input.Format
	Width  int
	Names  []string   // of the columns, if there is a header
	Sample [][]string // first rows, without the header
	Lines  uint64     // about how many it has
	files  []string   // what it is made of: path, or the files of a directory
	// dims are the values of each column, where it is a table of columns: 1, or of lists the
	// length of the first. Text has none.
	dims  []int
	lists []bool
	times []kv.TimeForm // of a table of columns
	kinds []string      // of a table of columns: see columnar.File.Kind
	// Index are the columns that pandas wrote the index of a frame to, in its order.
	Index []int
}

// Unread is the kind of a column whose values are not read.
const Unread = columnar.Unread

// Kind returns the type of the values of a column where its file says it, "" where it is found from
// texts, and Unread.
func (t *Table) Kind(col int) string {
	if t.kinds == nil || t.kinds[col] == "" && t.List(col) {
		return ""
	}
	if t.kinds[col] == "" {
		return columnfile.String
	}
	return t.kinds[col]
}

// IsTime reports whether the file of a column has times as numbers.
func (t *Table) IsTime(col int) bool {
	return t.kinds != nil &&
		(t.kinds[col] == columnfile.Date || t.kinds[col] == columnfile.Timestamp)
}

// TimeForm returns how a column of times is written: in a text, by its first rows.
func (t *Table) TimeForm(col int) kv.TimeForm {
	if t.times != nil && t.times[col] != kv.TimeNumber {
		return t.times[col]
	}
	form := kv.TimeNumber
	for _, r := range t.Sample {
		switch date, day := input.DateForm([]byte(r[col])); {
		case !date:
			return kv.TimeNumber
		case !day:
			form = kv.TimeDatetime
		case form == kv.TimeNumber:
			form = kv.TimeDate
		}
	}
	return form
}

// Dim returns how many numbers a column gives for a row.
func (t *Table) Dim(col int) int {
	if t.dims == nil {
		return 1
	}
	return t.dims[col]
}

// Head returns the beginning of a text file, and whether it is the whole file.
func Head(fs vfs.FS, file string) (head []byte, all bool, err error) {
	head, all, err = input.TextHead(fs, file, sampleBytes)
	if err != nil {
		return nil, false, input.Missing(file, err)
	}
	return head, all, nil
}

// Opener opens tables and reads them.
type Opener struct {
	FS      vfs.FS
	Delim   string
	Comment string   // begins comments; "none": there are none; "": it is guessed
	Named   []string // columns that flags name: columns, and ranges of them
	Missing []string // words for a value that is not known
	// Filled says that gaps in numbers are filled, and AllowNaN that they may be.
	Filled, AllowNaN bool
	SkipBad          int64 // bad lines tolerated
	Memory           int64 // of the process, bytes; 0: no bound
	Bad              BadLines

	Note func(format string, args ...any)
	Use  func(path string, bytes int64) // counts a file among those that are read
}

// Hints are what is known of a table before its head is read.
type Hints struct {
	Format *input.Format // what the source's format prescribes, or nil
	Known  []string      // names that a header may have, besides what flags name
	Header string        // --header
	// Nodes tells which of some words are ids of nodes, and whether it looked at all ids; nil if
	// nothing lists them.
	Nodes func(words []string) (known map[string]bool, all bool, err error)
}

// Open looks at the head of a file.
func (s *Opener) Open(file string, h Hints) (*Table, error) {
	files, err := Files(s.FS, file)
	if err != nil {
		return nil, err
	}
	if files != nil {
		return s.openColumnar(file, files)
	}
	head, all, err := Head(s.FS, file)
	if err != nil {
		return nil, err
	}
	if whole := head[:bytes.LastIndexByte(head, '\n')+1]; !utf8.Valid(whole) {
		s.Note("%s: it is not UTF-8, and names are kept as the bytes they are; if it is Latin-1, "+
			"convert it: iconv -f latin1 -t utf8", file)
	}
	t := &Table{Path: file, files: []string{file}}
	if t.Format, err = s.textFormat(head, all, file, h.Format); err != nil {
		return nil, err
	}
	rows := input.TextRows(head, all, t.Format, sampleRows+1)
	if len(rows) == 0 {
		return nil, input.Wrong(file, "", "there are no rows in it")
	}
	t.Width = len(rows[0])
	if t.Format.Header, err = s.isHeader(file, rows, h); err != nil {
		var open *input.Error
		if n := comments(head, t.Format.Comment); n > 0 && errors.As(err, &open) {
			open.What += fmt.Sprintf(" (%d lines that begin with %c are passed over; --comment '' "+
				"reads them)", n, t.Format.Comment)
		}
		return nil, err
	}
	if t.Format.Header {
		t.Names, rows = rows[0], rows[1:]
		if h.Format == nil && h.Header != "yes" {
			s.Note("%s: the first line names the columns: %s", file, Few(t.Names))
		}
	}
	// Rows of another width are bad, and say nothing about columns.
	t.Sample = slices.DeleteFunc(rows, func(r []string) bool { return len(r) != t.Width })
	stat, err := s.FS.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	s.Use(file, stat.Size())
	s.noteComments(t, head, all)
	if t.Lines, err = input.LinesAbout(s.FS, file, head, all); err != nil {
		return nil, err
	}
	return t, nil
}

// noteComments notes how many lines are passed over because of the sign that they begin with.
func (s *Opener) noteComments(t *Table, head []byte, all bool) {
	sign := t.Format.Comment
	count := comments(head, sign)
	if count == 0 {
		return
	}
	lines, where := "lines that begin", ""
	if count == 1 {
		lines = "line that begins"
	}
	if !all {
		where = fmt.Sprintf(" of its first %d KiB, and those below", len(head)>>10)
	}
	s.Note("%s: %d %s with %c%s: passed over as comments; --comment '' reads such lines", t.Path,
		count, lines, sign, where)
}

// comments counts the lines that begin with a sign; 0 is none.
func comments(head []byte, sign byte) (count int) {
	for line := range bytes.Lines(head) {
		if sign != 0 && line[0] == sign {
			count++
		}
	}
	return count
}

// textFormat applies --delim to a guess.
func (s *Opener) textFormat(head []byte, all bool, file string, fixed *input.Format) (
	input.Format, error) {
	f, sign := input.Format{}, Comment(head)
	switch c := s.Comment; {
	case c == "":
	case c == "none":
		sign = 0
	case len(c) == 1 && c[0] > ' ' && c != `"`:
		sign = c[0]
	default:
		return f, input.Usage("--comment %q is not one sign, nor '' for none", c)
	}
	switch {
	case fixed != nil:
		f = *fixed
		if s.Comment != "" || f.Comment != 0 && sign != 0 {
			f.Comment = sign
		}
	default:
		f = GuessFormat(head, all, file, sign)
	}
	switch d := s.Delim; {
	case d == "":
	case d == "tab" || d == `\t`:
		f.Delim = '\t'
	case d == "space" || d == " ":
		f.Delim = 0
	case len(d) == 1 && d != "\n" && d != `"`:
		f.Delim = d[0]
	default:
		return f, input.Usage("--delim %q is not one character, tab or space", d)
	}
	return f, nil
}

// GuessFormat finds the delimiter that cuts all of the first rows, but for comments, into the same
// number of fields.
func GuessFormat(head []byte, all bool, file string, comment byte) input.Format {
	f := input.Format{Quotes: true, Comment: comment}
	delims := []byte(",\t;|")
	if strings.Contains(path.Base(file), ".tsv") || strings.Contains(path.Base(file), ".tab") {
		delims = []byte("\t,;|")
	}
	if !strings.Contains(path.Base(file), ".csv") && !strings.Contains(path.Base(file), ".tsv") {
		delims = append(delims, 0)
	}
	for _, d := range delims {
		f.Delim = d
		rows := input.TextRows(head, all, f, 50)
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

// Comment returns the sign that begins comments, if the file begins with one: # or, as in
// collections of networks, a percent sign and a blank. Then lines that begin with it are skipped.
func Comment(head []byte) byte {
	switch {
	case bytes.HasPrefix(head, []byte("#")):
		return '#'
	case bytes.HasPrefix(head, []byte("% ")), bytes.HasPrefix(head, []byte("%\t")):
		return '%'
	}
	return 0
}

// IsNumber reports whether a field is a number.
func IsNumber(f string) bool {
	_, err := strconv.ParseFloat(f, 64)
	return err == nil
}

// IsFinite reports whether a field is a number as weights are: neither NaN nor infinite.
func IsFinite(f string) bool {
	x, ok := input.ParseFloat([]byte(f))
	return ok && x-x == 0
}

// IsNumeric reports whether a field is a number, or true or false.
func IsNumeric(f string) bool {
	_, truth := input.ParseTruth([]byte(f))
	return truth || IsNumber(f)
}

// IsInteger reports whether a field is an integer.
func IsInteger(f string) bool {
	_, ok := input.ParseID([]byte(strings.TrimPrefix(f, "-")))
	return ok
}

// IsTime reports whether a field is a time.
func IsTime(f string) bool {
	_, ok := input.ParseTime([]byte(f))
	return ok
}

// IsSigned reports whether a field is an integer, which may be negative.
func IsSigned(f string) bool {
	_, ok := input.ParseInteger([]byte(f))
	return ok
}

// All reports whether is accepts every sampled field of a column.
func (t *Table) All(col int, is func(string) bool) bool {
	return !slices.ContainsFunc(t.Sample, func(r []string) bool { return !is(r[col]) })
}

// Name returns what a column is called: by its header, or by its number from 0 where it has no
// name.
func (t *Table) Name(col int) string {
	if t.Names == nil || t.Names[col] == "" {
		return strconv.Itoa(col)
	}
	return t.Names[col]
}

// Column resolves what a flag names: a column's name, which may lack the type that Neo4j writes
// behind it, or its number from 0.
func (t *Table) Column(flag, name string) (int, error) {
	if i := slices.Index(t.Names, name); i >= 0 {
		return i, nil
	}
	plain := func(n string) bool { return withoutType(n) == name }
	if i := slices.IndexFunc(t.Names, plain); i >= 0 {
		return i, nil
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < t.Width {
		return i, nil
	}
	e := &input.Error{Where: t.Path, Flag: true,
		What: fmt.Sprintf("%s: there is no column %q", flag, name)}
	switch w := message.Nearest(name, t.Names); {
	case w != "":
		e.Do = "did you mean " + w + "?"
	case t.Names != nil:
		e.Do = "the columns are " + Few(t.Names)
	default:
		e.Do = fmt.Sprintf("there is no header; columns are numbered 0 to %d", t.Width-1)
	}
	return -1, e
}

// Fractions reports whether the sampled values of a column are numbers, and one is no integer.
func (t *Table) Fractions(col int) bool {
	some := false
	return t.All(col, func(f string) bool {
		x, err := strconv.ParseFloat(f, 64)
		some = some || x != math.Trunc(x)
		return err == nil || f == ""
	}) && some
}

// Strange reports whether both tables have names of columns, and no name in common.
func (t *Table) Strange(other *Table) bool {
	return t.Names != nil && other.Names != nil && !slices.ContainsFunc(t.Names,
		func(n string) bool { return slices.Contains(other.Names, n) })
}

// Exchanged returns an error if the table lacks a column that a flag names and another has; else
// err.
func (t *Table) Exchanged(err error, other *Table, names []string) error {
	for _, name := range names {
		if name != "" && !slices.Contains(t.Names, name) && slices.Contains(other.Names, name) {
			return &input.Error{Where: t.Path, Flag: true,
				What: fmt.Sprintf("there is no column %q in it, but in %s: the files of edges and "+
					"nodes look exchanged", name, other.Path), Do: "exchange --edges and --nodes"}
		}
	}
	return err
}

// Numeric reports whether the sampled values of a column are numbers, and not all are missing; some
// may be where gaps are filled or allowed.
func (s *Opener) Numeric(t *Table, col int) bool {
	return s.numeric(t, col, s.Filled || s.AllowNaN, IsNumeric)
}

// numeric reports whether the sampled values of a column are numbers of a form, and not all are
// missing; some may be where gaps are taken.
func (s *Opener) numeric(t *Table, col int, gaps bool, form func(f string) bool) bool {
	some := false
	return t.All(col, func(f string) bool {
		gap := f == "" || slices.Contains(s.Missing, f)
		some = some || !gap
		return gap && gaps || form(f)
	}) && some
}

// WithPoint returns a number that was written with a comma in the place of the point with a point;
// "" for others.
func WithPoint(f string) string {
	if pointed := strings.Replace(f, ",", ".", 1); pointed != f && IsNumber(pointed) {
		return pointed
	}
	return ""
}

// notTaken returns why columns are not among "*" though they look like numbers; "" if none do.
func (s *Opener) notTaken(t *Table, used []int) string {
	var gaps, commas, said []string
	pointed := func(f string) bool { return IsNumber(f) || WithPoint(f) != "" }
	for c := range t.Width {
		switch {
		case slices.Contains(used, c) || t.List(c) || s.Numeric(t, c):
		case s.numeric(t, c, true, IsNumeric):
			gaps = append(gaps, t.Name(c))
		case s.numeric(t, c, true, pointed):
			commas = append(commas, t.Name(c))
		}
	}
	if len(gaps) > 0 {
		said = append(said, Few(gaps)+" with gaps, which --fill mean fills")
	}
	if len(commas) > 0 {
		said = append(said, Few(commas)+" with commas in the place of points")
	}
	return strings.Join(said, "; ")
}

// ListOf parts a list of names of columns at its commas. A name that has a comma itself stands in
// double quotes, as in a text file.
func ListOf(list string) []string {
	if strings.Contains(list, `"`) {
		r := csv.NewReader(strings.NewReader(list))
		r.LazyQuotes = true
		if names, err := r.Read(); err == nil {
			return names
		}
	}
	return strings.Split(list, ",")
}

// Columns resolves a list of columns and ranges: "a,b", "f0:f127". "*" is every column whose
// sampled values are all numbers. Columns in use are in neither; taken are those that the list
// names singly.
func (s *Opener) Columns(t *Table, flag, list string, used ...int) (cols, taken []int, err error) {
	if list == "*" {
		for c := range t.Width {
			if !slices.Contains(used, c) && (t.List(c) || s.Numeric(t, c)) {
				cols = append(cols, c)
			}
		}
		left := s.notTaken(t, used)
		switch {
		case len(cols) == 0 && left != "":
			return nil, nil, input.Wrong(t.Path, "", "%s * takes no column, and leaves out %s",
				flag, left)
		case len(cols) == 0:
			return nil, nil, input.Wrong(t.Path, "name columns",
				"%s *: no other column has numbers", flag)
		case left != "":
			s.Note("%s: %s * leaves out %s", t.Path, flag, left)
		}
		return cols, nil, nil
	}
	for _, part := range ListOf(list) {
		lo, hi, isRange := strings.Cut(part, ":")
		if slices.Contains(t.Names, part) || !isRange {
			lo, hi, isRange = part, part, false
		}
		a, err := t.Column(flag, lo)
		if err != nil {
			return nil, nil, err
		}
		b, err := t.Column(flag, hi)
		if err != nil {
			return nil, nil, err
		}
		if b < a {
			return nil, nil, input.Usage("%s %s is a range backwards", flag, part)
		}
		for c := a; c <= b; c++ {
			switch {
			case !slices.Contains(used, c):
				cols = append(cols, c)
			case !isRange:
				taken = append(taken, c)
			}
		}
	}
	return cols, taken, nil
}

// Few lists the first names, and how many more there are.
func Few(names []string) string {
	const most = 8
	if len(names) <= most+2 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, … and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
