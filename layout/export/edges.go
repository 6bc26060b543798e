package export

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/tables"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/ingest/schema"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

// edgeFile is the table of the edges of a relation, or of all.
type edgeFile struct {
	e        *exporter
	f        *file
	relation int
	src, dst bool             // ids are integers
	table    *edgetable.Table // nil if there are no columns
	types    bool             // a column has the type of each edge
	weights  bool
	times    bool
	row      uint64          // of the next edge
	last     edgetable.Entry // the edge before it, where tables of levels are merged
	// The rest is about the edges that wait.
	edges  []listfile.Edge
	to     []kv.NodeID
	ends   []kv.NodeID
	ids    []string
	values []columnfile.Values
}

// forward returns the relations that are written: those that are no reverse ones.
func (e *exporter) forward() (relations []int) {
	n := max(1, len(e.meta.Relations))
	if e.meta.Typed() && e.given("reverse") != "" {
		n /= 2
		e.schema.Flags["reverse"] = "true"
	}
	for i := range n {
		relations = append(relations, i)
	}
	return relations
}

// edges writes the tables of edges, as many in a pass over the lists as memory allows.
func (e *exporter) edges(ctx context.Context) error {
	has, err := e.attributes(ctx)
	if err != nil {
		return err
	}
	atOnce := max(1, int((e.Memory-processBytes)/2/fileBytes))
	for some := range slices.Chunk(e.forward(), atOnce) {
		open := map[int]*edgeFile{}
		err := e.pass(ctx, some, has, open)
		for _, t := range open {
			err = errors.Join(err, t.close())
		}
		if err != nil {
			return fmt.Errorf("edges: %w", err)
		}
	}
	return nil
}

// attribute is what some edge of a relation has.
type attribute struct{ weights, times bool }

// attributes finds out which relations have weights other than 1, and times. In a store that is not
// typed all edges have them.
func (e *exporter) attributes(ctx context.Context) ([]attribute, error) {
	if !e.meta.Typed() {
		return []attribute{{e.meta.Weighted, e.meta.Timestamped}}, nil
	}
	has := make([]attribute, len(e.meta.Relations))
	if !e.meta.Weighted && !e.meta.Timestamped {
		return has, nil
	}
	return has, topology.Scan(ctx, e.store, e.files.Device, layout.In,
		func(_ layout.NodeID, _ bool, l *listfile.Lists) error {
			for i, r := range l.Types {
				has[r].weights = has[r].weights || len(l.Weights) > 0 && l.Weights[i] != 1
				has[r].times = has[r].times || len(l.Times) > 0 && l.Times[i] != kv.NoTime
			}
			return ctx.Err()
		})
}

// pass writes some relations.
func (e *exporter) pass(ctx context.Context, relations []int, has []attribute,
	open map[int]*edgeFile) error {
	for _, r := range relations {
		t, err := e.openEdges(ctx, r, has[r])
		if err != nil {
			return err
		}
		open[r] = t
	}
	done := uint64(0)
	err := topology.Scan(ctx, e.store, e.files.Device, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					if err := e.edge(ctx, open, first+layout.NodeID(i), l, k); err != nil {
						return err
					}
				}
			}
			done += uint64(len(l.Nbrs))
			e.progress("write edges", done, e.meta.Edges, "edges")
			return ctx.Err()
		})
	for _, r := range relations {
		if err == nil {
			err = open[r].flush(ctx)
		}
		if err == nil {
			err = open[r].f.finish()
		}
	}
	return err
}

// edge takes an entry of the list of a node.
func (e *exporter) edge(ctx context.Context, open map[int]*edgeFile, node layout.NodeID,
	l *listfile.Lists, k uint64) error {
	x := listfile.Edge{Nbr: l.Nbrs[k]}
	if len(l.Types) > 0 {
		x.Type = l.Types[k]
	}
	if len(l.Weights) > 0 {
		x.Weight = l.Weights[k]
	}
	if len(l.Times) > 0 {
		x.Time = l.Times[k]
	}
	relation := 0
	if e.meta.Typed() {
		relation = int(x.Type)
	}
	t := open[relation]
	if t == nil {
		return nil
	}
	t.edges, t.to = append(t.edges, x), append(t.to, node)
	if len(t.edges) < rowsOnce {
		return nil
	}
	return t.flush(ctx)
}

// openEdges opens the table of a relation, and puts it into the schema.
func (e *exporter) openEdges(ctx context.Context, relation int, has attribute) (t *edgeFile,
	err error) {
	t = &edgeFile{e: e, relation: relation, weights: has.weights, times: has.times,
		src: e.idsAreNumbers(0), dst: e.idsAreNumbers(0),
		types: !e.meta.Typed() && len(e.meta.EdgeTypes) > 0}
	s, path := schema.Edges{}, "edges.parquet"
	if e.meta.Typed() {
		r := e.meta.Relations[relation]
		s.Name, s.From, s.To = source.RelationEnds(e.meta, relation)
		path = pathOf("edges", e.meta.EdgeTypes[relation], relation)
		t.src, t.dst = e.idsAreNumbers(r.Src), e.idsAreNumbers(r.Dst)
	}
	var of []kv.TableColumn
	if table := e.meta.EdgeTable(relation); table != nil {
		of = table.Columns
		t.table, err = edgetable.Open(ctx, e.store, e.files.Device, relation, e.files.Budget)
		if err != nil {
			return nil, err
		}
	}
	t.values = make([]columnfile.Values, len(of))
	s.File, s.Types = path, typesOf(of)
	columns := t.columns(&s, of)
	e.schema.Edges = append(e.schema.Edges, s)
	if t.f, err = e.create(path, columns); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// columns returns the columns of the table, whose names go into the schema.
func (t *edgeFile) columns(s *schema.Edges, of []kv.TableColumn) []tables.Column {
	s.Source, s.Target = free("source", of), free("target", of)
	s.Type, s.Weight, s.Time = source.NoColumn, source.NoColumn, source.NoColumn
	columns := []tables.Column{{Name: s.Source, Kind: idKind(t.src)},
		{Name: s.Target, Kind: idKind(t.dst)}}
	if t.types {
		s.Type = free("type", of)
		columns = append(columns, tables.Column{Name: s.Type, Kind: tables.String})
	}
	if t.weights {
		s.Weight = free("weight", of)
		columns = append(columns, tables.Column{Name: s.Weight, Kind: tables.Float32})
	}
	if t.times {
		s.Time = free("time", of)
		kind := map[kv.TimeForm]tables.Kind{kv.TimeDate: tables.Date,
			kv.TimeDatetime: tables.Timestamp, kv.TimeNumber: tables.Int64}[t.e.meta.Times]
		columns = append(columns, tables.Column{Name: s.Time, Kind: kind})
	}
	for _, c := range of {
		columns = append(columns, kindOf(&c))
	}
	return columns
}

func (t *edgeFile) close() error {
	err := t.f.abort()
	if t.table != nil {
		err = errors.Join(err, t.table.Close())
		t.table = nil
	}
	return err
}

// flush writes the edges that wait.
func (t *edgeFile) flush(ctx context.Context) (err error) {
	n := len(t.edges)
	if n == 0 {
		return nil
	}
	if err := t.names(ctx); err != nil {
		return err
	}
	if err := t.read(ctx); err != nil {
		return err
	}
	for i := range n {
		if err := t.write(i); err != nil {
			return err
		}
	}
	t.row += uint64(n)
	t.edges, t.to = t.edges[:0], t.to[:0]
	return nil
}

// read reads the columns of the edges that wait.
func (t *edgeFile) read(ctx context.Context) error {
	if t.table != nil && t.table.IsMerged() {
		return t.readMerged(ctx)
	}
	for k := range t.values {
		scan := func(ctx context.Context, first, n uint64,
			fn func(uint64, *columnfile.Values) error) error {
			return t.table.Scan(ctx, first, n, k, fn)
		}
		if err := scanner(scan).read(ctx, t.row, uint64(len(t.edges)), &t.values[k]); err != nil {
			return err
		}
	}
	return nil
}

// readMerged finds the rows of the edges in the tables of base and levels.
func (t *edgeFile) readMerged(ctx context.Context) error {
	var entries []edgetable.Entry
	for i, v := range t.to {
		if t.row+uint64(i) > 0 && t.last.Node == v {
			t.last.Place++
		} else {
			t.last = edgetable.Entry{Node: v}
		}
		entries = append(entries, t.last)
	}
	rows, err := t.table.Rows(ctx, entries, nil)
	for k := range t.values {
		if err == nil {
			err = t.table.Gather(ctx, rows, k, &t.values[k])
		}
	}
	return err
}

// names reads the ids of the ends, once each.
func (t *edgeFile) names(ctx context.Context) (err error) {
	t.ends = append(t.ends[:0], t.to...)
	for _, x := range t.edges {
		t.ends = append(t.ends, x.Nbr)
	}
	slices.Sort(t.ends)
	t.ends = slices.Compact(t.ends)
	t.ids, err = t.e.dict.External(ctx, t.ends, t.ids[:0])
	return err
}

// write writes edge i of those that wait.
func (t *edgeFile) write(i int) error {
	x := &t.edges[i]
	src, _ := slices.BinarySearch(t.ends, x.Nbr)
	dst, _ := slices.BinarySearch(t.ends, t.to[i])
	if err := t.e.id(t.f, t.ids[src], t.src); err != nil {
		return err
	}
	if err := t.e.id(t.f, t.ids[dst], t.dst); err != nil {
		return err
	}
	if t.types {
		t.f.String(t.e.meta.EdgeTypes[x.Type])
	}
	if t.weights {
		t.f.Float32(x.Weight)
	}
	if t.times {
		t.f.Int64(timeOf(x.Time, t.e.meta.Times))
	}
	for k := range t.values {
		t.f.value(&t.values[k], i)
	}
	return t.f.EndRow()
}

// timeOf returns a time in seconds as a file has it: in days, in microseconds, or as it is.
func timeOf(seconds int64, form kv.TimeForm) int64 {
	const day = 24 * 60 * 60
	switch form {
	case kv.TimeDate:
		return (seconds - (seconds%day+day)%day) / day
	case kv.TimeDatetime:
		return seconds * 1_000_000
	}
	return seconds
}
