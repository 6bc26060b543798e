package linkcmd

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// pairReader reads lines of head, relation and tail, or of head and tail, with tabs or commas
// between them: tabs if the first line has one.
type pairReader struct {
	name  string
	csv   *csv.Reader
	first bool
}

func newPairReader(in io.Reader, name string) *pairReader {
	const look = 4096
	b := bufio.NewReaderSize(in, look)
	head, _ := b.Peek(look) // what there is
	r := csv.NewReader(b)
	line, _, _ := strings.Cut(string(head), "\n")
	if strings.Contains(line, "\t") {
		r.Comma, r.LazyQuotes = '\t', true
	}
	r.ReuseRecord = true
	return &pairReader{name: name, csv: r, first: true}
}

// next is the next line, or io.EOF. A first line "head,relation,tail" is left out.
func (r *pairReader) next() (line [3]string, err error) {
	fields, err := r.csv.Read()
	if err == nil && r.first && strings.EqualFold(fields[0], "head") {
		fields, err = r.csv.Read()
	}
	r.first = false
	switch {
	case err != nil:
		return line, err
	case len(fields) == 2:
		return [3]string{fields[0], "", fields[1]}, nil
	case len(fields) == 3:
		return [3]string{fields[0], fields[1], fields[2]}, nil
	}
	return line, fmt.Errorf("%d fields: want head, relation and tail, or head and tail",
		len(fields))
}

// line is the number of the last line.
func (r *pairReader) line() int {
	line, _ := r.csv.FieldPos(0)
	return line
}
