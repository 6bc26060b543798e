package columnar

import (
	"errors"
	"fmt"
	"io"

	"gdb/internal/mem"
	"gdb/layout/ingest/text"

	"github.com/parquet-go/parquet-go"
)

// valuesRead are taken from a page at a time.
const valuesRead = 1024

// parquetFile reads Parquet.
type parquetFile struct {
	name    string
	file    *parquet.File
	columns []column
}

func openParquet(name string, d *disk) (*parquetFile, error) {
	f, err := parquet.OpenFile(d, d.size, parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, err
	}
	return &parquetFile{name, f, columnsOf(f.Root())}, nil
}

func (t *parquetFile) rows() int64 { return t.file.NumRows() }

// pageBytes is how much of a column is in memory while it is read, at most: writers make pages of
// up to 1 MiB, and dictionaries of as much.
const pageBytes = 2 << 20

// checkMemory is an error if a page of each of some columns takes more than bound.
func (t *parquetFile) checkMemory(columns []int, bound int64) error {
	most, rows := int64(0), int64(0)
	for _, g := range t.file.Metadata().RowGroups {
		sum := int64(0)
		for _, c := range columns {
			if leaf := t.columns[c].leaf; leaf < len(g.Columns) {
				sum += min(g.Columns[leaf].MetaData.TotalUncompressedSize, pageBytes)
			}
		}
		if sum > most {
			most, rows = sum, g.NumRows
		}
	}
	if bound <= 0 || most <= bound {
		return nil
	}
	return &text.Error{File: t.name, What: fmt.Sprintf("reading a page of each of %d columns "+
		"takes %s, and %s may be used", len(columns), mem.FormatSize(most),
		mem.FormatSize(bound)), Do: fmt.Sprintf("give more --memory, or write row groups of "+
		"fewer than %d rows, or one column of lists", rows)}
}

// openGroup begins a row group.
func (t *parquetFile) openGroup(i int, cursors []*cursor) (rows int64, err error) {
	groups := t.file.RowGroups()
	if i == len(groups) {
		return 0, io.EOF
	}
	chunks := groups[i].ColumnChunks()
	for _, c := range cursors {
		if c.leaf >= len(chunks) {
			return 0, fmt.Errorf("a row group has %d columns", len(chunks))
		}
		p := &pages{column: c.column, pages: chunks[c.leaf].Pages()}
		if err := c.setGroup(p); err != nil {
			return 0, err
		}
	}
	return groups[i].NumRows(), nil
}

// pages reads the column of a row group, a page at a time.
type pages struct {
	column *column
	pages  parquet.Pages
	page   parquet.Page
	reader parquet.ValueReader
	buffer []parquet.Value
	have   []parquet.Value // of buffer, not taken yet
	ended  bool            // the row group has no more pages
}

// take reads n rows of the column.
func (p *pages) take(c *cursor, n int) error {
	if !c.list {
		for len(c.values) < n {
			if err := p.ensure(); err != nil {
				return err
			}
			k := min(n-len(c.values), len(p.have))
			c.keep(p.have[:k])
			p.have = p.have[k:]
		}
		return nil
	}
	for begun := false; ; {
		err := p.ensure()
		switch {
		case err == errEnded && len(c.ends) == n-1 && begun:
			c.ends = append(c.ends, len(c.values))
			return nil
		case err != nil:
			return err
		}
		v := p.have[0]
		if v.RepetitionLevel() == 0 { // the first of a row
			if begun {
				c.ends = append(c.ends, len(c.values))
				if len(c.ends) == n {
					return nil
				}
			}
			begun = true
		}
		p.have = p.have[1:]
		if v.DefinitionLevel() >= c.present {
			c.keep([]parquet.Value{v})
		}
	}
}

// keep appends values to the batch's; their texts are copied, since their page goes.
func (c *cursor) keep(values []parquet.Value) {
	if c.form != texts {
		c.values = append(c.values, values...)
		return
	}
	for _, v := range values {
		if v.IsNull() {
			c.values = append(c.values, v)
		} else {
			c.keepText(v.ByteArray())
		}
	}
}

// errEnded says that a row group has fewer rows than it says.
var errEnded = errors.New("a row group has fewer values than it says")

// ensure makes sure that there are values to take.
func (p *pages) ensure() error {
	for len(p.have) == 0 {
		if p.reader == nil {
			if p.ended {
				return errEnded
			}
			page, err := p.pages.ReadPage()
			if err == io.EOF {
				p.ended = true
				return errEnded
			}
			if err != nil {
				return fmt.Errorf("column %q: %w", p.column.name, err)
			}
			p.page, p.reader = page, page.Values()
		}
		if p.buffer == nil {
			p.buffer = make([]parquet.Value, valuesRead)
		}
		n, err := p.reader.ReadValues(p.buffer)
		p.have = p.buffer[:n]
		if err != nil {
			if err != io.EOF {
				return fmt.Errorf("column %q: %w", p.column.name, err)
			}
			p.drop()
		}
	}
	return nil
}

// drop gives a page back once nothing of it is waiting.
func (p *pages) drop() {
	if p.column.form == texts { // what waits lies in the page
		for i, v := range p.have {
			p.have[i] = v.Clone()
		}
	}
	parquet.Release(p.page)
	p.page, p.reader = nil, nil
}

func (p *pages) close() error {
	p.have = nil
	if p.page != nil {
		p.drop()
	}
	return p.pages.Close()
}
