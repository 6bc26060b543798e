package source

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The usual names of the columns of triples, besides the names of columns of edges.
var (
	headNames     = append([]string{"h", "e1", "entity1", "headentity", "s"}, srcNames...)
	relationNames = append([]string{"r", "edge", "p", "property"}, relNames...)
	tailNames     = append([]string{"t", "e2", "entity2", "tailentity", "o"}, dstNames...)
)

// triplesHeader decides whether the first line of each file names its columns: by --header, because
// it has usual names of a head, a relation and a tail, or because all files begin with the same
// line, no word of which occurs below.
func (s *textGraph) triplesHeader(files []string) (named bool, err error) {
	if named, open, err := table.SaysHeader(s.opt.Header); err != nil || !open {
		return named, err
	}
	var first string
	var below strings.Builder
	for i, f := range files {
		head, _, err := table.Head(s.fs, f)
		if err != nil {
			return false, err
		}
		line, rest, _ := strings.Cut(strings.ReplaceAll(string(head), "\r\n", "\n"), "\n")
		if i > 0 && line != first {
			return false, nil
		}
		first = line
		below.WriteString(rest + "\n")
	}
	words := strings.Split(first, "\t")
	_, named = columnsByName(words)
	if !named && len(files) > 1 {
		known := map[string]bool{}
		for word := range strings.FieldsFuncSeq(below.String(), func(r rune) bool {
			return r == '\t' || r == '\n'
		}) {
			known[word] = true
		}
		named = !slices.ContainsFunc(words, func(w string) bool { return known[w] })
	}
	if named {
		s.note("the first line of the triples names the columns: %s; --header no reads it as a "+
			"triple", table.Few(words))
	}
	return named, nil
}

// columnsByName returns the columns of the head, the relation and the tail by their names, if all
// three are usual; else they come in this order.
func columnsByName(names []string) (columns [3]int, usual bool) {
	for i, usualNames := range [][]string{headNames, relationNames, tailNames} {
		columns[i] = slices.IndexFunc(names, func(name string) bool {
			return slices.Contains(usualNames, table.Usual(name))
		})
		if columns[i] < 0 || slices.Contains(columns[:i], columns[i]) {
			return [3]int{0, 1, 2}, false
		}
	}
	return columns, len(names) == 3
}

// openTriplesFile opens a file of triples.
func (s *textGraph) openTriplesFile(file string, named bool) error {
	t, err := s.tables.Open(file, table.Hints{Format: &input.Format{Delim: '\t', Header: named}})
	if err != nil {
		return err
	}
	if t.Width != 3 {
		return input.Wrong(file, "want head TAB relation TAB tail", "its rows have %d fields",
			t.Width)
	}
	columns, _ := columnsByName(t.Names)
	e := &edgeTable{Table: t, src: columns[0], rel: columns[1], dst: columns[2], weight: -1,
		time: -1, split: tripleSplit(file)}
	if err := s.tripleColumns(e); err != nil {
		return err
	}
	s.edges = append(s.edges, e)
	s.listColumns(t, map[int]string{e.src: "head", e.rel: "relation", e.dst: "tail"})
	return nil
}

// tripleColumns takes the columns that flags name: head, relation and tail in another order.
func (s *textGraph) tripleColumns(t *edgeTable) (err error) {
	for _, c := range []struct {
		flag, value string
		col         *int
	}{{"--src-col", s.opt.SrcCol, &t.src}, {"--rel-col", s.opt.RelCol, &t.rel},
		{"--dst-col", s.opt.DstCol, &t.dst}} {
		if c.value != "" {
			if *c.col, err = t.Column(c.flag, c.value); err != nil {
				return err
			}
		}
	}
	if t.src == t.rel || t.rel == t.dst || t.src == t.dst {
		return input.Usage("%s: the columns of head, relation and tail are %d, %d and %d: each "+
			"is another; --src-col, --rel-col and --dst-col name all three", t.Path, t.src, t.rel,
			t.dst)
	}
	return nil
}

var name = regexp.MustCompile(`^(train|valid|val|dev|test)\.(tsv|txt)(\.gz|\.bz2|\.zst)?$`)

// order are the splits in the order in which their files are read.
var order = []string{"train", "val", "test"}

// tripleSplit returns the split of a file by its name, train, val or test; "" if its name tells
// none.
func tripleSplit(file string) string {
	m := name.FindStringSubmatch(path.Base(file))
	switch {
	case m == nil:
		return ""
	case m[1] == "valid" || m[1] == "dev":
		return "val"
	}
	return m[1]
}

// sortTriples puts files in the order of their splits, and files of no split last.
func sortTriples(files []string) {
	place := func(f string) int { return (slices.Index(order, tripleSplit(f)) + 4) % 4 }
	slices.SortStableFunc(files, func(a, b string) int { return place(a) - place(b) })
}

// tripleSplits returns the splits of sorted files: each file is of one, and some of train, or none
// is of any.
func tripleSplits(files []string) (splits []string, err error) {
	for _, f := range files {
		if s := tripleSplit(f); s != "" && !slices.Contains(splits, s) {
			splits = append(splits, s)
		}
	}
	if len(splits) == 0 {
		return nil, nil
	}
	if last := files[len(files)-1]; tripleSplit(last) == "" {
		return nil, input.Wrong(last, "name it train, valid or test too, or give it without "+
			"files of these names", "other files are splits, and its name says none")
	}
	if splits[0] != "train" {
		return nil, input.Wrong(files[0], "give train.tsv too; to have its triples split by "+
			"chance, give it another name, and --edge-split random=85/5/10",
			"there is no file of train triples beside it")
	}
	return splits, nil
}

// openTriples opens the files of a knowledge graph: head, relation, tail, always text.
func openTriples(fs vfs.FS, opt *Options, dir string, files []string) (Source, error) {
	s := &textGraph{parts: newParts(fs, opt, "triples", dir)}
	if err := checkFlags(opt, ofTriples); err != nil {
		return nil, err
	}
	if dir != "" {
		files = slices.DeleteFunc(files, func(f string) bool {
			return tripleSplit(f) == ""
		})
	}
	if len(files) == 0 {
		return nil, input.Wrong(dir, "want train.tsv, valid.tsv and test.tsv",
			"no triples were found")
	}
	sortTriples(files)
	named, err := s.triplesHeader(files)
	if err != nil {
		return nil, input.AsError(err)
	}
	var parts []string
	for _, f := range files {
		if err := s.openTriplesFile(f, named); err != nil {
			return nil, input.AsError(err)
		}
		parts = append(parts, fs.PathBase(f))
	}
	if s.info.EdgeSplits, err = tripleSplits(files); err != nil {
		return nil, err
	}
	s.info.TextIDs = true
	s.note("edges are the triples of %s, in this order", strings.Join(parts, ", "))
	s.noteQuotes()
	return s.parts, s.finishEdges()
}

// noteQuotes notes once that quotes are part of the names in triples.
func (s *textGraph) noteQuotes() {
	for _, t := range s.edges {
		for _, row := range t.Sample {
			for _, name := range row {
				if bare := strings.Trim(name, `"`); len(name) > 2 && name == `"`+bare+`"` {
					s.note("%s: quotes are part of the names in triples: %s is another node than "+
						"%s; --format csv --src-col 0 --rel-col 1 --dst-col 2 reads quotes as "+
						"CSV does", t.Path, name, bare)
					return
				}
			}
		}
	}
}
