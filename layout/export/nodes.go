package export

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/internal/tables"
	"gdb/kv"

	"gdb/layout/columnfile"
	"gdb/layout/ingest/schema"
	"gdb/layout/rowfile"

	"github.com/RoaringBitmap/roaring/v2"
)

// nodeTable is the table of the nodes of a type, or of all.
type nodeTable struct {
	e       *exporter
	f       *file
	typ     int
	of      kv.NodeTypeMeta
	numbers bool // ids are integers
	columns []*columnfile.Reader
	shared  *columnfile.Features // that columns have their values in
	rows    *rowfile.Reader      // features; nil if there are none
	dim     int
	vector  bool // features are one column
	labels  *rowfile.Reader
	splits  []split
	// The rest is about the rows under way.
	nodes    []kv.NodeID
	ids      []string
	values   []columnfile.Values
	features []float32
	label    []byte
}

// split is a split whose members a column names.
type split struct {
	name string
	set  *roaring.Bitmap
}

// nodes writes the tables of nodes.
func (e *exporter) nodes(ctx context.Context) error {
	types := e.meta.NodeTypes
	if !e.meta.Typed() {
		types = []kv.NodeTypeMeta{{Nodes: e.meta.Nodes}}
	}
	for i, of := range types {
		t := &nodeTable{e: e, typ: i, of: of, numbers: e.idsAreNumbers(i)}
		if err := errors.Join(t.write(ctx), t.close()); err != nil {
			return fmt.Errorf("nodes %s: %w", of.Name, err)
		}
	}
	if len(e.meta.Features) > 1 {
		e.note("of several matrices of features, only %s is written", e.meta.Features[0].Name)
	}
	return nil
}

func (t *nodeTable) write(ctx context.Context) error {
	key := t.of.KeyName
	if key == "" {
		key = free("id", t.of.Columns)
	}
	columns := []tables.Column{{Name: key, Kind: idKind(t.numbers)}}
	t.shared = columnfile.NewFeatures(t.e.store, t.e.files.Device, t.e.files.Budget)
	for _, c := range t.of.Columns {
		if c.Type == columnfile.Sparse {
			return fmt.Errorf("column %s has sparse vectors, which are not written", c.Name)
		}
		r, err := t.shared.Open(ctx, c)
		if err != nil {
			return err
		}
		t.columns, columns = append(t.columns, r), append(columns, kindOf(&c))
	}
	t.values = make([]columnfile.Values, len(t.columns))
	for _, more := range []func(context.Context) ([]tables.Column, error){t.openLabels,
		t.openSplits, t.openFeatures} {
		some, err := more(ctx)
		if err != nil {
			return err
		}
		columns = append(columns, some...)
	}
	path := "nodes.parquet"
	if t.of.Name != "" {
		path = pathOf("nodes", t.of.Name, t.typ)
	}
	t.e.schema.Tables = append(t.e.schema.Tables, schema.Table{Name: t.of.Name, File: path,
		Key: key, Types: typesOf(t.of.Columns)})
	var err error
	if t.f, err = t.e.create(path, columns); err != nil {
		return err
	}
	for v := uint64(0); v < t.of.Nodes; v += rowsOnce {
		if err := t.chunk(ctx, v, min(rowsOnce, t.of.Nodes-v)); err != nil {
			return err
		}
		t.e.progress("write nodes", t.of.First+v, t.e.meta.Nodes, "nodes")
	}
	return t.f.finish()
}

func (t *nodeTable) close() error {
	err := t.f.abort()
	for _, c := range t.columns {
		err = errors.Join(err, c.Close())
	}
	if t.shared != nil {
		err = errors.Join(err, t.shared.Close())
	}
	return err
}

// openLabels opens labels that are no column of the table, or says which column they are.
func (t *nodeTable) openLabels(ctx context.Context) (columns []tables.Column, err error) {
	m, flag := t.e.meta.Labels, "label-col"
	switch {
	case m == nil:
		t.e.schema.Flags[flag] = "none"
		return nil, nil
	case t.e.meta.Typed() && m.OfType != t.of.Name:
		return nil, nil
	}
	for name, role := range t.of.Roles {
		if strings.HasPrefix(role, "label") {
			t.e.schema.Flags[flag] = t.e.columnWord(t.typ, name)
			if sep := t.e.given("label-sep"); sep != "" {
				t.e.schema.Flags["label-sep"] = sep
			}
			return nil, nil
		}
	}
	name := free("label", t.of.Columns)
	t.e.schema.Flags[flag] = t.e.columnWord(t.typ, name)
	c := tables.Column{Name: name, Kind: tables.String, Optional: true}
	switch m.Kind {
	case "target":
		c.Kind = tables.Float32
	case "multi":
		t.e.schema.Flags["label-sep"] = labelSep
		if slices.ContainsFunc(m.Classes, func(s string) bool {
			return strings.Contains(s, labelSep)
		}) || m.Unknown > 0 {
			t.e.note("labels are not written: some are unknown, or have a %s", labelSep)
			t.e.schema.Flags[flag] = "none"
			return nil, nil
		}
	}
	t.labels, err = t.e.files.Rows(ctx, m.Rows)
	return []tables.Column{c}, err
}

// labelSep is between several labels of a node.
const labelSep = "|"

// openSplits opens the splits of nodes, unless a column of the table has them.
func (t *nodeTable) openSplits(ctx context.Context) ([]tables.Column, error) {
	flag := "split-col"
	for name, role := range t.of.Roles {
		if strings.HasPrefix(role, "split") {
			t.e.schema.Flags[flag] = t.e.columnWord(t.typ, name)
			return nil, nil
		}
	}
	if l := t.e.meta.Labels; t.e.meta.Typed() && (l == nil || l.OfType != t.of.Name) {
		return nil, nil
	}
	for _, s := range t.e.meta.Splits {
		if !slices.Contains([]string{"train", "val", "test"}, s.Name) {
			t.e.note("the split %s is not written: a column has train, val and test", s.Name)
			continue
		}
		set, err := t.e.store.Split(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		t.splits = append(t.splits, split{s.Name, set})
	}
	if len(t.splits) == 0 {
		if t.e.schema.Flags[flag] == "" {
			t.e.schema.Flags[flag] = "none"
		}
		return nil, nil
	}
	name := free("split", t.of.Columns)
	t.e.schema.Flags[flag] = t.e.columnWord(t.typ, name)
	return []tables.Column{{Name: name, Kind: tables.String, Optional: true}}, nil
}

// openFeatures opens the features: a column for each of the source's, where all are numbers with a
// name and no table has these columns, else one of vectors.
func (t *nodeTable) openFeatures(ctx context.Context) (columns []tables.Column, err error) {
	if len(t.e.meta.Features) == 0 {
		return nil, nil
	}
	m := t.e.meta.Features[0]
	if t.dim = m.Dim; len(m.Sections) > 0 {
		t.dim = m.Sections[t.typ].Dim
	}
	if t.dim == 0 {
		return nil, nil
	}
	if m.DType == rowfile.Sparse {
		t.e.note("sparse features are written with all their zeros")
	}
	if t.rows, err = t.e.files.Rows(ctx, m); err != nil {
		return nil, err
	}
	names := t.e.meta.FeatureNames[m.Name]
	t.vector = t.e.meta.Typed() || len(names) != t.dim ||
		slices.ContainsFunc(names, func(c kv.ColumnMeta) bool {
			return c.Dim > 0 || slices.Contains([]string{"id", "label", "split"}, c.Name)
		})
	var words []string
	if t.vector {
		name := free("features", t.of.Columns)
		columns = []tables.Column{{Name: name, Kind: tables.Vector, Width: t.dim}}
		words = []string{t.e.columnWord(t.typ, name)}
	} else {
		for _, c := range names {
			columns = append(columns, tables.Column{Name: c.Name, Kind: tables.Float32})
			words = append(words, quoted(c.Name))
		}
	}
	if before := t.e.schema.Flags["feature-cols"]; before != "" {
		words = append([]string{before}, words...)
	}
	t.e.schema.Flags["feature-cols"] = strings.Join(words, ",")
	t.e.schema.Flags["normalize"], t.e.schema.Flags["feature-dtype"] = "none", m.DType
	if m.DType == rowfile.Sparse {
		t.e.schema.Flags["feature-dtype"] = "auto"
	}
	return columns, nil
}

// quoted returns a name as a list of names has it.
func quoted(name string) string {
	if !strings.ContainsAny(name, `",:*`) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// chunk writes n rows from number first of the table on.
func (t *nodeTable) chunk(ctx context.Context, first, n uint64) (err error) {
	t.nodes = t.nodes[:0]
	for i := range n {
		t.nodes = append(t.nodes, kv.NodeID(t.of.First+first+i))
	}
	if t.ids, err = t.e.dict.External(ctx, t.nodes, t.ids[:0]); err != nil {
		return err
	}
	for k, c := range t.columns {
		scan := func(ctx context.Context, first, n uint64,
			fn func(uint64, *columnfile.Values) error) error {
			return c.Scan(ctx, first, n, nil, fn)
		}
		if err := scanner(scan).read(ctx, first, n, &t.values[k]); err != nil {
			return err
		}
	}
	if t.rows != nil {
		t.features = slices.Grow(t.features[:0], int(n)*t.rows.Width())[:int(n)*t.rows.Width()]
		if err := t.rows.Scan(ctx, t.nodes[0], int(n), t.features); err != nil {
			return err
		}
	}
	if t.labels != nil {
		width := int(n) * t.e.meta.Labels.Rows.RowBytes
		t.label = slices.Grow(t.label[:0], width)[:width]
		if err := t.labels.ScanRaw(ctx, t.nodes[0], int(n), t.label); err != nil {
			return err
		}
	}
	for i, v := range t.nodes {
		if t.e.deleted != nil && t.e.deleted.Contains(uint32(v)) {
			continue
		}
		if err := t.row(i); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// row writes row i of those that were read.
func (t *nodeTable) row(i int) error {
	if err := t.e.id(t.f, t.ids[i], t.numbers); err != nil {
		return err
	}
	for k := range t.values {
		t.f.value(&t.values[k], i)
	}
	if t.labels != nil {
		t.writeLabel(i)
	}
	if len(t.splits) > 0 {
		in := slices.IndexFunc(t.splits, func(s split) bool {
			return s.set.Contains(uint32(t.nodes[i]))
		})
		if in < 0 {
			t.f.Null()
		} else {
			t.f.String(t.splits[in].name)
		}
	}
	if t.rows != nil {
		row := t.features[i*t.rows.Width():][:t.dim]
		if t.vector {
			t.f.Vector(row)
		} else {
			for _, x := range row {
				t.f.Float32(x)
			}
		}
	}
	return t.f.EndRow()
}

// writeLabel writes the label of row i.
func (t *nodeTable) writeLabel(i int) {
	m := t.e.meta.Labels
	row := t.label[i*m.Rows.RowBytes:][:m.Rows.RowBytes]
	switch m.Kind {
	case "target":
		if x := math.Float32frombits(binary.LittleEndian.Uint32(row)); x == x {
			t.f.Float32(x)
			return
		}
	case "multi":
		var words []string
		for class, name := range m.Classes {
			if row[class/8]>>(class%8)&1 != 0 {
				words = append(words, name)
			}
		}
		if len(words) > 0 {
			t.f.String(strings.Join(words, labelSep))
			return
		}
	default:
		if class := int32(binary.LittleEndian.Uint32(row)); class >= 0 {
			t.f.String(m.Classes[class])
			return
		}
	}
	t.f.Null()
}
