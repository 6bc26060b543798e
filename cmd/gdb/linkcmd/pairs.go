package linkcmd

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
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
	line  int // of what next returned last
}

func newPairReader(in io.Reader, name string) *pairReader {
	const look = 4096
	b := bufio.NewReaderSize(in, look)
	head, _ := b.Peek(look) // what there is
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, mark) {
		head = head[len(mark):]
		_, _ = b.Discard(len(mark)) // it was peeked
	}
	r := csv.NewReader(b)
	line, _, _ := strings.Cut(string(head), "\n")
	if strings.Contains(line, "\t") {
		r.Comma, r.LazyQuotes = '\t', true
	}
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	return &pairReader{name: name, csv: r, first: true}
}

// next is the next line, or io.EOF. A first line "head,relation,tail" is left out.
func (r *pairReader) next() (line [3]string, err error) {
	fields, err := r.csv.Read()
	if err == nil && r.first && strings.EqualFold(fields[0], "head") {
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
	switch len(fields) {
	case 2:
		return [3]string{fields[0], "", fields[1]}, nil
	case 3:
		return [3]string{fields[0], fields[1], fields[2]}, nil
	}
	return line, fmt.Errorf("want head, relation and tail, or head and tail; found %d fields",
		len(fields))
}

// wrong says where what is wrong was found.
func (r *pairReader) wrong(err error) error {
	advice := ""
	if r.line == 1 {
		advice = "; a first line that names the columns is left out if it begins with head"
	}
	return fmt.Errorf("predict: %s line %d: %w%s", r.name, r.line, err, advice)
}
