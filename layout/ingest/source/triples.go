package source

import (
	"slices"
	"strings"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// The names that the columns of triples go by besides those of edges.
var (
	headNames     = append([]string{"h", "e1", "entity1", "headentity", "s"}, srcNames...)
	relationNames = append([]string{"r", "edge", "p", "property"}, relNames...)
	tailNames     = append([]string{"t", "e2", "entity2", "tailentity", "o"}, dstNames...)
)

// triplesHeader says whether the first line of each file names its columns: by --header, because it
// has usual names of a head, a relation and a tail, or because all files begin with the same line,
// no word of which occurs below.
func (s *textGraph) triplesHeader(files []string) (named bool, err error) {
	switch s.opt.Header {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	case "", "auto":
	default:
		return false, input.Usage("--header %q is not one of %s", s.opt.Header,
			strings.Join(table.Headers, ", "))
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

// columnsByName are the columns of the head, the relation and the tail by their names, if all three
// are usual; else they come in this order.
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
