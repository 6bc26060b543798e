package tables

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// EdgeTables are the tables of edges.
type EdgeTables struct {
	Tables []kv.EdgeTable
	Files  []kv.FileMeta
}

// Edges writes the tables of edges: their rows are joined with the places of edges in the in-lists,
// sorted by these, and written, as many columns in a pass as memory allows. Memory does not grow
// with the edges; on disk the rows are there twice for a while.
type Edges struct {
	*steps.Work
	Info  *source.Info
	Nodes uint64
	First []uint64 // the first node of each type, of a source whose types are ranges
}

// Write writes the tables, given the results of Rows and Places; nil if there are none.
func (p *Edges) Write(ctx context.Context, rows, places []extsort.Run) (*EdgeTables, error) {
	if len(p.Info.EdgeTables) == 0 {
		return nil, nil
	}
	sorted, err := steps.Do(ctx, p.Work, "edge-rows",
		func(ctx context.Context, out *[]extsort.Run) (err error) {
			*out, err = p.placeRows(ctx, rows, places)
			p.DropRuns(rows)
			p.DropRuns(places)
			p.KeepRuns(*out)
			return err
		})
	if err != nil {
		return nil, err
	}
	return steps.Do(ctx, p.Work, "edge-tables",
		func(ctx context.Context, out *EdgeTables) error {
			w := &edgesWriter{p: p, runs: *sorted, out: out}
			err := w.write(ctx)
			p.DropRuns(*sorted)
			p.KeepFiles(out.Files...)
			return err
		})
}

// placeRows joins rows, by their numbers, with the places of their edges, and sorts them by table
// and place. Of an entry of a reverse relation, the text is the place of the edge that it is the
// reverse of. Aux is the node whose list the entry is in.
func (p *Edges) placeRows(ctx context.Context, rows, places []extsort.Run) ([]extsort.Run,
	error) {
	from, err := extsort.OpenEntries(ctx, p.Sorter("edge-rows", 0, p.Memory.Merge), rows)
	if err != nil {
		return nil, err
	}
	j := &rowJoin{ctx: ctx, rows: from, reverse: map[uint64]uint64{}}
	for _, t := range p.Info.EdgeTables {
		j.reverse[uint64(t.Type)] = uint64(t.Reverse)
	}
	done, total := uint64(0), uint64(0)
	for _, r := range places {
		total += r.Records
	}
	arena := max(p.Memory.Sort, p.Memory.Strings)
	runs, err := extsort.SortEntries(p.Sorter("placed-rows", 0, arena),
		func(s *extsort.Strings) error {
			opt := p.Sorter("edge-places", placeWords, p.Memory.Merge)
			return extsort.Merge(ctx, opt, places, func(words []uint64) error {
				for i := 0; i < len(words); i += placeWords {
					if err := j.add(words[i:i+placeWords], s); err != nil {
						return err
					}
				}
				done += uint64(len(words) / placeWords)
				p.Progress("sort rows of edges", done, total, "edges")
				return nil
			})
		})
	return runs, errors.Join(err, from.Close())
}

// rowJoin finds the rows of edges, which come in the order of their numbers. Rows of edges that are
// in no list are passed over.
type rowJoin struct {
	ctx     context.Context
	rows    *extsort.Entries
	reverse map[uint64]uint64 // relations by those that they are the reverse of
	row     extsort.Entry
	some    bool
	place   uint64 // of the last edge that is no reverse
	text    [8]byte
}

func (j *rowJoin) add(rec []uint64, to *extsort.Strings) (err error) {
	number, place, node := rec[0], rec[1], rec[2]
	table := number >> relationShift
	if place&reverseEntry != 0 {
		binary.LittleEndian.PutUint64(j.text[:], j.place)
		return to.Add(extsort.Entry{Key: j.reverse[table]<<relationShift | place&^reverseEntry,
			Text: j.text[:], Aux: node})
	}
	for !j.some || j.row.Key < number {
		if j.row, j.some, err = j.rows.Next(j.ctx); err != nil || !j.some {
			break
		}
	}
	if err == nil && (!j.some || j.row.Key != number) {
		err = fmt.Errorf("ingest: the row of an edge is missing: %w", extsort.ErrDamaged)
	}
	if err != nil {
		return err
	}
	j.place = place
	return to.Add(extsort.Entry{Key: table<<relationShift | place, Text: j.row.Text, Aux: node})
}

// edgesWriter writes all tables.
type edgesWriter struct {
	p    *Edges
	runs []extsort.Run
	out  *EdgeTables
}

func (w *edgesWriter) write(ctx context.Context) error {
	info := w.p.Info
	for _, t := range info.EdgeTables {
		w.out.Tables = append(w.out.Tables, kv.EdgeTable{Relation: t.Type})
	}
	for _, t := range info.EdgeTables {
		if t.Reverse > 0 {
			w.out.Tables = append(w.out.Tables, kv.EdgeTable{Relation: t.Reverse,
				Reverse: &kv.ReverseRows{Of: t.Type}})
		}
	}
	most := 0 // columns of a table
	for _, t := range info.EdgeTables {
		most = max(most, len(t.Columns))
	}
	atOnce := max(1, int(w.p.Memory.Sort/columnBytes)-1) // and the starts
	for first := 0; first < most; first += atOnce {
		if err := w.pass(ctx, first, atOnce); err != nil {
			return err
		}
	}
	return nil
}

// pass writes some columns of all tables, and with the first of them where lists begin.
func (w *edgesWriter) pass(ctx context.Context, first, n int) error {
	bytes := int64(n+1) * columnBytes
	if err := w.p.Budget.Reserve("writing columns", bytes); err != nil {
		return err
	}
	defer w.p.Budget.Release(bytes)
	entries, err := extsort.OpenEntries(ctx, w.p.Sorter("placed-rows", 0, w.p.Memory.Merge), w.runs)
	if err != nil {
		return err
	}
	e, some, err := entries.Next(ctx)
	for i := range w.out.Tables {
		t := &tablePass{w: w, t: &w.out.Tables[i], first: first}
		if err == nil {
			err = t.open(n)
		}
		for err == nil && some && e.Key>>relationShift == uint64(t.t.Relation) {
			if err = t.add(&e); err == nil {
				e, some, err = entries.Next(ctx)
			}
		}
		if err == nil {
			err = t.finish()
		}
		if err != nil {
			err = errors.Join(err, t.abort())
			break
		}
	}
	return errors.Join(err, entries.Close())
}

// tablePass writes some columns of a table.
type tablePass struct {
	w      *edgesWriter
	t      *kv.EdgeTable
	first  int // column
	begin  uint64
	end    uint64 // nodes that the relation may lead to
	dec    rowDecoder
	rows   uint64
	begun  uint64 // nodes whose lists have begun
	starts *columnPass
	back   *columnPass // the rows of a reverse relation
	some   []*columnPass
	values []*columnfile.Values // of some
}

// columnPass is a column that is written.
type columnPass struct {
	*columnfile.Writer
	values columnfile.Values
}

// passRows is how many rows are collected before they are handed to the writer.
const passRows = 4096

// integer appends a row.
func (c *columnPass) integer(x uint64) error {
	c.values.Ints = append(c.values.Ints, int64(x))
	c.values.AddRow(true)
	return c.flush(passRows)
}

// flush hands rows on if there are at least some.
func (c *columnPass) flush(least int) error {
	if c.values.Rows < max(1, least) {
		return nil
	}
	err := c.Append(&c.values)
	c.values.Reset()
	return err
}

func (t *tablePass) open(n int) (err error) {
	p := t.w.p
	t.end = t.w.p.Nodes
	if p.Info.Ranged {
		dst := p.Info.Relations[t.t.Relation].Dst
		if t.begin = p.First[dst]; dst+1 < len(p.First) {
			t.end = p.First[dst+1]
		}
	}
	path := edgesName(t.t.Relation)
	if t.first == 0 {
		t.starts, err = t.column("starts", startsPath(path), columnfile.Int64)
		if err == nil && t.t.Reverse != nil {
			t.back, err = t.column("rows", backPath(path), columnfile.Int64)
		}
	}
	if err != nil || t.t.Reverse != nil {
		return err
	}
	t.dec.columns = edgeTableOf(p.Info, t.t.Relation).Columns
	for k := t.first; k < min(t.first+n, len(t.dec.columns)) && err == nil; k++ {
		var c *columnPass
		info := &t.dec.columns[k]
		if c, err = t.column(info.Name, columnPath(path, info.Name, k), info.Type); err == nil {
			t.some, t.values = append(t.some, c), append(t.values, &c.values)
		}
	}
	return err
}

// edgesName is what files of a table of edges begin with: no type of nodes has a point in its name.
func edgesName(relation int) string { return "edges." + strconv.Itoa(relation) }

func startsPath(name string) string { return "columns/" + name + ".starts.column" }
func backPath(name string) string   { return "columns/" + name + ".rows.column" }

// EdgePaths returns the files that a table of edges will have, and its reverse.
func EdgePaths(t *source.TableInfo) []string {
	name := edgesName(t.Type)
	paths := []string{startsPath(name)}
	for k, c := range t.Columns {
		paths = append(paths, columnPath(name, c.Name, k))
	}
	if t.Reverse > 0 {
		name = edgesName(t.Reverse)
		paths = append(paths, startsPath(name), backPath(name))
	}
	return paths
}

// edgeTableOf returns the table of the edges of a relation.
func edgeTableOf(info *source.Info, relation int) *source.TableInfo {
	for i := range info.EdgeTables {
		if info.EdgeTables[i].Type == relation {
			return &info.EdgeTables[i]
		}
	}
	return nil
}

func (t *tablePass) column(name, path, typ string) (*columnPass, error) {
	p := t.w.p
	w, err := columnfile.NewWriter(p.FS, p.Path(path), columnfile.Spec{UUID: p.Journal.UUID,
		Name: name, Path: path, Type: typ})
	if err != nil {
		return nil, err
	}
	return &columnPass{Writer: w}, nil
}

// add takes the next row of the table.
func (t *tablePass) add(e *extsort.Entry) error {
	if e.Aux < t.begin || e.Aux >= t.end || e.Key&(1<<relationShift-1) != t.rows {
		return errRow
	}
	if err := t.beginLists(e.Aux + 1); err != nil {
		return err
	}
	if t.back == nil {
		return t.addRow(e.Text)
	}
	t.rows++
	if len(e.Text) != 8 {
		return errRow
	}
	return t.back.integer(binary.LittleEndian.Uint64(e.Text))
}

// addRow takes the next row of a table that is not of a reverse relation, as Rows encodes it.
func (t *tablePass) addRow(row []byte) error {
	t.rows++
	if len(t.some) == 0 {
		return nil
	}
	if err := t.dec.decode(row, t.first, t.values); err != nil {
		return err
	}
	for _, c := range t.some {
		if err := c.flush(passRows); err != nil {
			return err
		}
	}
	return nil
}

// beginLists begins the lists of all nodes before one.
func (t *tablePass) beginLists(node uint64) error {
	if t.starts == nil {
		return nil
	}
	for ; t.begin+t.begun < node; t.begun++ {
		if err := t.starts.integer(t.rows); err != nil {
			return err
		}
	}
	return nil
}

func (t *tablePass) finish() (err error) {
	if err = t.beginLists(t.end); err != nil {
		return err
	}
	if t.starts != nil {
		t.t.Rows = t.rows
		if t.t.Starts, err = t.finishColumn(&t.starts); err != nil {
			return err
		}
	}
	if t.back != nil {
		if t.t.Reverse.Rows, err = t.finishColumn(&t.back); err != nil {
			return err
		}
	}
	for i := range t.some {
		m, err := t.finishColumn(&t.some[i])
		if err != nil {
			return err
		}
		t.t.Columns = append(t.t.Columns, m)
	}
	t.w.p.Progress("write columns of edges", t.rows, t.rows, "rows")
	return nil
}

// finishColumn ends a column and sets it to nil.
func (t *tablePass) finishColumn(at **columnPass) (kv.TableColumn, error) {
	c := *at
	if err := c.flush(1); err != nil {
		return kv.TableColumn{}, err
	}
	*at = nil
	m, file, err := c.Finish()
	t.w.out.Files = append(t.w.out.Files, file)
	return m, err
}

// abort closes what finish did not.
func (t *tablePass) abort() error {
	var errs []error
	for _, c := range append(t.some, t.starts, t.back) {
		if c != nil {
			errs = append(errs, c.Abort())
		}
	}
	return errors.Join(errs...)
}
