package tables

import (
	"errors"

	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
)

// Carried writes tables of edges that carry their rows, while the in-lists are written: rows come
// in the order in which they are stored. The zero value writes nothing.
type Carried struct {
	work    *steps.Work
	ranged  bool
	tables  []*tablePass // by relation; nil: it has no table
	written edgesWriter
	bytes   int64 // of the budget
}

// RowsCarried returns how many bytes of the row of its table each edge of a source carries: the
// least of stream.RowSizes that holds those of the first rows, and at least some. It is 0 if rows
// are apart: the first ones are not known, records would have more than extsort.WordsMax words, of
// which some are for the ends of edges, some rows are of a reverse relation, or all columns at once
// do not fit in the memory for strings.
func RowsCarried(m *steps.Memory, info *source.Info, c stream.EdgeCodec, ends, least int) int {
	if len(info.EdgeTables) == 0 || carriedBytes(info) > m.Strings {
		return 0
	}
	for _, t := range info.EdgeTables {
		if t.RowBytes == 0 || t.Reverse > 0 {
			return 0
		}
		least = max(least, t.RowBytes)
	}
	for _, n := range stream.RowSizes {
		if c.RowBytes = n; n >= least && ends+c.Payload() <= extsort.WordsMax {
			return n
		}
	}
	return 0
}

// carriedBytes is the memory for all columns of all tables, and for where lists begin.
func carriedBytes(info *source.Info) (bytes int64) {
	for _, t := range info.EdgeTables {
		bytes += int64(len(t.Columns)+1) * columnBytes
	}
	return bytes
}

// Open begins. The caller calls Close.
func (c *Carried) Open(p *Edges) error {
	c.work, c.ranged, c.bytes = p.Work, p.Info.Ranged, carriedBytes(p.Info)
	if err := p.Budget.Reserve("writing columns", c.bytes); err != nil {
		c.bytes = 0
		return err
	}
	c.tables = make([]*tablePass, max(1, len(p.Info.Relations)))
	c.written = edgesWriter{p: p, out: &EdgeTables{}}
	of := c.written.out
	for _, t := range p.Info.EdgeTables {
		of.Tables = append(of.Tables, kv.EdgeTable{Relation: t.Type})
	}
	for i, t := range p.Info.EdgeTables {
		c.tables[t.Type] = &tablePass{w: &c.written, t: &of.Tables[i]}
		if err := c.tables[t.Type].open(len(t.Columns)); err != nil {
			return err
		}
	}
	return nil
}

// Add takes the row of the next entry of the in-lists.
func (c *Carried) Add(node uint64, relation uint16, row []byte) error {
	if !c.ranged {
		relation = 0
	}
	t := c.tables[relation]
	if t == nil {
		return nil
	}
	if node < t.begin || node >= t.end {
		return errRow
	}
	if err := t.beginLists(node + 1); err != nil {
		return err
	}
	return t.addRow(row)
}

// Finish returns the tables.
func (c *Carried) Finish() (*EdgeTables, error) {
	for _, t := range c.tables {
		if t == nil {
			continue
		}
		if err := t.finish(); err != nil {
			return nil, err
		}
	}
	c.work.KeepFiles(c.written.out.Files...)
	return c.written.out, nil
}

// Close frees the memory, and closes what Finish did not.
func (c *Carried) Close() error {
	var errs []error
	for _, t := range c.tables {
		if t != nil {
			errs = append(errs, t.abort())
		}
	}
	if c.bytes > 0 {
		c.work.Budget.Release(c.bytes)
	}
	c.tables, c.bytes = nil, 0
	return errors.Join(errs...)
}
