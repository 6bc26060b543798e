package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sampleRows are the rows at the head of a file that decide its delimiter, header and kind of ids.
const sampleRows = 1000

// openTexts opens edge files, a node file and split files of text.
func openTexts(fs vfs.FS, opt *Options, format string, edges []string) (*texts, error) {
	s := &texts{fs: fs, opt: opt, splits: opt.Splits, info: Info{Format: format}}
	integers := true
	for _, p := range edges {
		t, sample, err := s.openTable(p)
		if err != nil {
			return nil, err
		}
		if err := s.edgeColumns(t, format); err != nil {
			return nil, err
		}
		for _, row := range sample {
			integers = integers && looksInteger(row, t.src) && looksInteger(row, t.dst)
		}
		s.edges = append(s.edges, *t)
	}
	if opt.Nodes != "" {
		t, sample, err := s.openTable(opt.Nodes)
		if err != nil {
			return nil, err
		}
		if err := s.nodeColumns(t); err != nil {
			return nil, err
		}
		for _, row := range sample {
			integers = integers && looksInteger(row, t.id)
		}
		s.nodes = t
	}
	s.info.TextIDs = !integers
	for name, p := range s.splits {
		if _, err := fs.Stat(p); err != nil {
			return nil, fmt.Errorf("ingest: --split %s: %w", name, err)
		}
		s.info.Paths, s.info.Splits = append(s.info.Paths, p), append(s.info.Splits, name)
	}
	slices.Sort(s.info.Splits)
	return s, nil
}

// looksInteger takes negative numbers for integers too: as ids they are errors, not text.
func looksInteger(row [][]byte, col int) bool {
	if col >= len(row) {
		return true
	}
	_, ok := parseID(bytes.TrimPrefix(row[col], []byte("-")))
	return ok
}

// openTable looks at the head of a file: delimiter, header, width.
func (s *texts) openTable(path string) (*table, [][][]byte, error) {
	info, err := s.fs.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("ingest: %w", err)
	}
	s.info.Paths, s.info.Bytes = append(s.info.Paths, path), s.info.Bytes+info.Size()
	t := &table{path: path, src: -1, dst: -1, rel: -1, weight: -1, time: -1, id: -1, label: -1}
	head, err := s.head(path)
	if err != nil {
		return nil, nil, err
	}
	if t.format, err = s.textFormat(path, head); err != nil {
		return nil, nil, err
	}
	var rows [][][]byte
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 || t.format.comment != 0 && line[0] == t.format.comment {
			continue
		}
		fields, err := t.format.split(line, nil)
		if err != nil {
			return nil, nil, &BadInputError{Where: path + " line 1", What: err.Error()}
		}
		if len(fields) > 0 {
			rows = append(rows, fields)
		}
	}
	if len(rows) == 0 {
		return nil, nil, &BadInputError{Where: path, What: "the file holds no rows"}
	}
	t.width = len(rows[0])
	if t.format.header, err = s.hasHeader(rows); err != nil {
		return nil, nil, err
	}
	if t.format.header {
		for _, f := range rows[0] {
			t.names = append(t.names, string(f))
		}
		rows = rows[1:]
	}
	return t, rows, nil
}

// head returns the first whole lines of a file.
func (s *texts) head(path string) ([]byte, error) {
	l, err := openLines(s.fs, path)
	if err != nil {
		return nil, err
	}
	lines, _, err := l.next()
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	end, rows := 0, 0
	for ; rows < sampleRows && end < len(lines); rows++ {
		i := bytes.IndexByte(lines[end:], '\n')
		if i < 0 {
			end = len(lines)
			break
		}
		end += i + 1
	}
	return lines[:end], nil
}

// textFormat decides the delimiter: --delim, the format's, or the one of comma, tab, semicolon and
// bar that the first line has most of.
func (s *texts) textFormat(path string, head []byte) (textFormat, error) {
	switch {
	case s.opt.Delim == `\t` || s.opt.Delim == "tab":
		return textFormat{delim: '\t'}, nil
	case len(s.opt.Delim) == 1:
		return textFormat{delim: s.opt.Delim[0]}, nil
	case s.opt.Delim != "":
		return textFormat{}, fmt.Errorf("%w: --delim %q: want one character, or tab", ErrUsage,
			s.opt.Delim)
	case s.info.Format == "snap":
		return textFormat{comment: '#'}, nil
	case s.info.Format == "triples":
		return textFormat{delim: '\t'}, nil
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best, most := byte(','), 0
	for _, d := range []byte(",\t;|") {
		if n := bytes.Count(line, []byte{d}); n > most {
			best, most = d, n
		}
	}
	if most == 0 && len(bytes.Fields(line)) > 1 {
		return textFormat{comment: '#'}, nil
	}
	return textFormat{delim: best}, nil
}

// hasHeader decides whether the first row is a header: --header, the format's rule, or that the
// first row has no number while the second has one, or that a flag names one of its fields.
func (s *texts) hasHeader(rows [][][]byte) (bool, error) {
	switch s.opt.Header {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	case "", "auto":
	default:
		return false, fmt.Errorf("%w: --header %q: want auto, yes or no", ErrUsage, s.opt.Header)
	}
	if s.info.Format == "triples" || s.info.Format == "snap" {
		return false, nil
	}
	flags := []string{s.opt.SrcCol, s.opt.DstCol, s.opt.RelCol, s.opt.IDCol, s.opt.LabelCol,
		s.opt.WeightCol, s.opt.TimeCol, "src", "dst", "source", "target", "from", "to", "id"}
	for _, f := range rows[0] {
		if isNumber(f) {
			return false, nil
		}
		if len(f) > 0 && slices.Contains(flags, string(f)) {
			return true, nil
		}
	}
	return len(rows) > 1 && slices.ContainsFunc(rows[1], isNumber), nil
}

func isNumber(f []byte) bool {
	_, err := strconv.ParseFloat(string(f), 64)
	return err == nil && len(f) > 0 && (f[0] <= '9')
}

func (s *texts) edgeColumns(t *table, format string) (err error) {
	def := []string{"0", "1", "", "", ""}
	if format == "triples" {
		def = []string{"0", "2", "1", "", ""}
	}
	if t.width < 2 {
		return &BadInputError{Where: t.path + " line 1", What: "one field in a row",
			Do: "edges have a source and a destination; --delim says what separates them"}
	}
	for i, c := range []struct {
		flag, name string
		col        *int
	}{{"--src-col", s.opt.SrcCol, &t.src}, {"--dst-col", s.opt.DstCol, &t.dst},
		{"--rel-col", s.opt.RelCol, &t.rel}, {"--weight-col", s.opt.WeightCol, &t.weight},
		{"--time-col", s.opt.TimeCol, &t.time}} {
		name := c.name
		if name == "" {
			name = def[i]
		}
		if name == "" {
			continue
		}
		if *c.col, err = t.column(c.flag, name); err != nil {
			return err
		}
	}
	s.info.Typed = s.info.Typed || t.rel >= 0
	s.info.Weighted = s.info.Weighted || t.weight >= 0
	s.info.Timed = s.info.Timed || t.time >= 0
	return nil
}

func (s *texts) nodeColumns(t *table) (err error) {
	id := s.opt.IDCol
	if id == "" {
		id = "0"
	}
	if t.id, err = t.column("--id-col", id); err != nil {
		return err
	}
	if s.opt.LabelCol != "" {
		if t.label, err = t.column("--label-col", s.opt.LabelCol); err != nil {
			return err
		}
		s.info.Labels = &LabelInfo{Kind: "class", Text: true}
	}
	if s.opt.FeatureCols == "" {
		return nil
	}
	for _, part := range strings.Split(s.opt.FeatureCols, ",") {
		lo, hi, isRange := strings.Cut(part, ":")
		a, err := t.column("--feature-cols", lo)
		if err != nil {
			return err
		}
		b := a
		if isRange {
			if b, err = t.column("--feature-cols", hi); err != nil {
				return err
			}
		}
		if b < a {
			return fmt.Errorf("%w: --feature-cols %s: the range is backwards", ErrUsage, part)
		}
		for c := a; c <= b; c++ {
			t.features = append(t.features, c)
		}
	}
	s.info.Features = []FeatureInfo{{Name: "features", Dim: len(t.features), DType: "text"}}
	return nil
}
