package linkcmd

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/source"
)

// pairReader reads the edges of a file: lines of head, relation and tail, or of head and tail, with
// tabs, commas or the like between them, as the first line has. A file that was ingested is one
// too: a header says which columns are the ends and the relation; other columns are not read.
type pairReader struct {
	name  string
	csv   *csv.Reader
	src   pairSource
	first bool
	line  int // of what next returned last
	// The columns of a header; head is -1 without one.
	head, relation, tail int
}

// pairSource is what the store knows of the file that it was made of.
type pairSource struct {
	typed                    bool   // edges have relations
	srcCol, dstCol, relCol   string // the columns that flags named, "" for none
	headType, tailType, sign string // the types of the ends; and the sign between columns
}

// sourceOf reads it from the flags of the ingest.
func sourceOf(m *kv.Meta) (s pairSource) {
	s.typed = len(m.EdgeTypes) > 0
	for flag, to := range map[string]*string{"src-col": &s.srcCol, "dst-col": &s.dstCol,
		"rel-col": &s.relCol, "src-type": &s.headType, "dst-type": &s.tailType, "delim": &s.sign} {
		for _, arg := range m.Source.Args {
			if value, ok := strings.CutPrefix(arg, "--"+flag+"="); ok {
				*to = value
			}
		}
	}
	return s
}

// signs may stand between columns, the likeliest first.
const signs = "\t,;|"

func newPairReader(in io.Reader, name string, src pairSource) *pairReader {
	const look = 4096
	b := bufio.NewReaderSize(in, look)
	head, _ := b.Peek(look) // what there is
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, mark) {
		head = head[len(mark):]
		_, _ = b.Discard(len(mark)) // it was peeked
	}
	r := csv.NewReader(b)
	line := string(head)
	for strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "#\n") { // comments
		r.Comment = '#'
		_, line, _ = strings.Cut(line, "\n")
	}
	line, _, _ = strings.Cut(line, "\n")
	if i := strings.IndexAny(signs, src.sign); len(src.sign) == 1 && i >= 0 {
		r.Comma = rune(signs[i])
	} else {
		for _, sign := range signs {
			if strings.ContainsRune(line, sign) {
				r.Comma = sign
				break
			}
		}
	}
	r.LazyQuotes = r.Comma == '\t'
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	return &pairReader{name: name, csv: r, src: src, first: true, head: -1}
}

// header takes a first line that names the columns of the ends.
func (r *pairReader) header(fields []string) bool {
	head, tail, relation := source.EndColumns(fields)
	for _, c := range []struct {
		name string
		to   *int
	}{{r.src.srcCol, &head}, {r.src.dstCol, &tail}, {r.src.relCol, &relation}} {
		if at := slices.Index(fields, c.name); c.name != "" && at >= 0 {
			*c.to = at
		}
	}
	if head < 0 || tail < 0 || head == tail {
		return false
	}
	if !r.src.typed || relation == head || relation == tail {
		relation = -1
	}
	r.head, r.tail, r.relation = head, tail, relation
	return true
}

// next returns the next line, or io.EOF. A first line that names the columns is left out.
func (r *pairReader) next() (line [3]string, err error) {
	fields, err := r.csv.Read()
	if err == nil && r.first && r.header(fields) {
		fields, err = r.csv.Read()
	}
	r.first = false
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		r.line = bad.Line
		return line, bad.Err
	case err != nil:
		r.line++ // which could not be read
		return line, err
	}
	r.line, _ = r.csv.FieldPos(0)
	switch n := len(fields); {
	case r.head >= 0 && n <= max(r.head, r.tail, r.relation):
		return line, fmt.Errorf("%d fields, fewer than the header has", n)
	case r.head >= 0 && r.relation >= 0:
		return [3]string{fields[r.head], fields[r.relation], fields[r.tail]}, nil
	case r.head >= 0:
		return [3]string{fields[r.head], "", fields[r.tail]}, nil
	case n == 2 || n > 2 && !r.src.typed:
		return [3]string{fields[0], "", fields[1]}, nil
	case n == 3:
		return [3]string{fields[0], fields[1], fields[2]}, nil
	}
	return line, fmt.Errorf("want head, relation and tail, or head and tail; found %d fields: a "+
		"first line that names them, such as src,dst, says which are the ends", len(fields))
}

// wrong says where what is wrong was found.
func (r *pairReader) wrong(err error) error {
	advice := ""
	if r.line == 1 {
		advice = "; a first line that names the columns, such as head,relation,tail or src,dst, " +
			"is left out"
	}
	return fmt.Errorf("predict: %s line %d: %w%s", r.name, r.line, err, advice)
}
