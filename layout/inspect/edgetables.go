package inspect

import (
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"

	"github.com/cockroachdb/errors/oserror"
)

// startsRows is how many rows of starts are read together.
const startsRows = 8192

// startsCheck compares where the rows of a table of edges begin for each node with its in-lists,
// which come in order.
type startsCheck struct {
	c       *checker
	t       *kv.EdgeTable
	first   uint64             // node of the first row
	r       *columnfile.Reader // nil if the column is damaged, which its own check reports
	values  columnfile.Values
	at      uint64 // the first row of values
	next    uint64 // row
	entries uint64 // of lists so far
	wrong   bool
}

// openStarts begins to check the tables of edges, by their relations.
func (c *checker) openStarts() (map[int]*startsCheck, error) {
	m, all := c.s.Meta(), map[int]*startsCheck{}
	for i := range m.EdgeTables {
		s := &startsCheck{c: c, t: &m.EdgeTables[i]}
		if m.Typed() {
			s.first = m.NodeTypes[m.Relations[s.t.Relation].Dst].First
		}
		var err error
		s.r, err = columnfile.Open(c.ctx, c.s, c.dev, s.t.Starts, nil)
		var bad *layout.CorruptionError
		if err != nil && !errors.As(err, &bad) && !oserror.IsNotExist(err) &&
			!errors.Is(err, kv.ErrFormat) {
			return all, err
		}
		all[s.t.Relation] = s
	}
	return all, nil
}

// list takes the next list, or a further part of one.
func (s *startsCheck) list(node layout.NodeID, begins bool, entries uint64) error {
	if begins {
		if err := s.upTo(uint64(node) - s.first + 1); err != nil {
			return err
		}
	}
	s.entries += entries
	return nil
}

// upTo checks the starts of nodes whose lists begin after the entries so far.
func (s *startsCheck) upTo(row uint64) error {
	for ; s.r != nil && s.next < min(row, s.t.Starts.Rows); s.next++ {
		if s.next >= s.at+uint64(s.values.Rows) {
			if err := s.read(); err != nil || s.r == nil {
				return err
			}
		}
		if got := uint64(s.values.Ints[s.next-s.at]); got != s.entries && !s.wrong {
			s.wrong = true // the others are wrong too
			s.c.report.Findings = append(s.c.report.Findings, kv.Finding{Path: s.t.Starts.Path,
				Block: -1, Offset: -1, What: fmt.Sprintf("edges of node %d begin at row %d, and "+
					"its lists say %d", s.first+s.next, got, s.entries)})
		}
	}
	return nil
}

// read reads the next rows.
func (s *startsCheck) read() error {
	s.at = s.next
	s.values.Reset()
	err := s.r.Scan(s.c.ctx, s.at, min(startsRows, s.t.Starts.Rows-s.at), nil,
		func(_ uint64, v *columnfile.Values) error {
			s.values.Append(v, 0, v.Rows)
			return nil
		})
	var bad *layout.CorruptionError
	if errors.As(err, &bad) {
		err = s.close()
	}
	return err
}

func (s *startsCheck) close() error {
	if s.r == nil {
		return nil
	}
	err := s.r.Close()
	s.r = nil
	return err
}

// backRows checks that the rows of a reverse relation are each row of the table once, by their
// range and their sum.
func (c *checker) backRows(r *columnfile.Reader) error {
	m := c.s.Meta()
	for i := range m.EdgeTables {
		if b := m.EdgeTables[i].Reverse; b == nil || b.Rows.Path != r.Meta().Path {
			continue
		}
		n, sum := r.Meta().Rows, uint64(0)
		err := r.Scan(c.ctx, 0, n, nil, func(at uint64, v *columnfile.Values) error {
			for k, row := range v.Ints {
				if uint64(row) >= n || v.Null(k) {
					c.find(-1, -1, "entry %d has row %d of %d", at+uint64(k), row, n)
				}
				sum += uint64(row)
			}
			return nil
		})
		if err == nil && n > 0 && sum != sumBelow(n) {
			c.find(-1, -1, "some rows are there twice")
		}
		return err
	}
	return nil
}

// sumBelow returns the sum of the numbers below n.
func sumBelow(n uint64) uint64 {
	if n%2 == 0 {
		return n / 2 * (n - 1)
	}
	return (n - 1) / 2 * n
}
