package kv

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// nodesMost and edgesMost are the numbers of nodes and edges that ids of 32 bits and positions
	// of 8 bytes can count.
	nodesMost, edgesMost = uint64(1) << 32, uint64(1) << 60
	// bucketsMost is the number of buckets of degrees, by powers of two, that 32 bits can have.
	bucketsMost = 33
	// blockLeast and blockMost bound the bytes of a block of topology.
	blockLeast, blockMost = 4096, 1 << 20
	// typesMost is the number of types that the two bytes of an edge's type can tell apart.
	typesMost = 1 << 16
)

// Check fails if the metadata cannot describe a store: readers size their memory and place their
// reads by it. Contradictions with the files themselves are found where the files are read.
func (m *Meta) Check() error {
	switch {
	case m.Nodes > nodesMost || m.Edges > edgesMost:
		return fmt.Errorf("%d nodes and %d edges are more than can be stored", m.Nodes, m.Edges)
	case m.BlockBytes != 0 && (m.BlockBytes < blockLeast || m.BlockBytes > blockMost ||
		m.BlockBytes&(m.BlockBytes-1) != 0):
		return fmt.Errorf("blocks of %d bytes, no power of two from %d to %d", m.BlockBytes,
			blockLeast, blockMost)
	case len(m.EdgeTypes) > typesMost:
		return fmt.Errorf("%d types of edges, at most %d", len(m.EdgeTypes), typesMost)
	case len(m.Stats.InHist) > bucketsMost || len(m.Stats.OutHist) > bucketsMost:
		return fmt.Errorf("degrees of %d and %d buckets, at most %d", len(m.Stats.InHist),
			len(m.Stats.OutHist), bucketsMost)
	}
	if err := m.checkIDs(); err != nil {
		return err
	}
	if len(m.Files) > 0 && !slices.Contains(m.Directions, "in") {
		return fmt.Errorf("lists of directions %q, without in", m.Directions)
	}
	if !slices.Contains([]TimeForm{TimeNumber, TimeDate, TimeDatetime}, m.Times) {
		return fmt.Errorf("times written as %q", m.Times)
	}
	for _, d := range m.Directions {
		if d != "in" && d != "out" {
			return fmt.Errorf("lists of direction %q", d)
		}
	}
	for _, s := range m.Splits {
		if s.Name == "" || s.Count > m.Nodes {
			return fmt.Errorf("split %q of %d of %d nodes", s.Name, s.Count, m.Nodes)
		}
	}
	if err := m.checkFiles(); err != nil {
		return err
	}
	if err := m.checkPartitions(); err != nil {
		return err
	}
	for i := range m.Features {
		if err := m.Features[i].check(); err != nil {
			return err
		}
	}
	if err := m.checkFeatureNames(); err != nil {
		return err
	}
	if err := m.checkTypes(); err != nil {
		return err
	}
	if err := m.checkEdgeTables(); err != nil {
		return err
	}
	if err := m.checkLevels(); err != nil {
		return err
	}
	if m.Labels != nil {
		return m.Labels.check(m.Nodes)
	}
	return nil
}

// checkIDs checks how ids are kept.
func (m *Meta) checkIDs() error {
	kinds := []IDKind{IDsDense, IDsInteger, IDsString}
	if m.Typed() {
		kinds = append(kinds, IDsTyped)
	}
	if !slices.Contains(kinds, m.IDs.Kind) {
		return fmt.Errorf("ids of kind %q", m.IDs.Kind)
	}
	for _, t := range m.NodeTypes {
		k := t.Keys
		if k == nil {
			continue
		}
		columns := []*TableColumn{k.Rows, k.Sorted, k.Places}
		some := slices.ContainsFunc(columns[1:], func(c *TableColumn) bool { return c != nil })
		if m.IDs.Kind != IDsTyped || k.Base > 1<<63-1 || t.Nodes > 1<<63-k.Base ||
			some && slices.Contains(columns, nil) {
			return fmt.Errorf("ids of the type %q: %+v of %d nodes, of kind %q", t.Name, *k,
				t.Nodes, m.IDs.Kind)
		}
		for _, c := range columns {
			if c != nil && (c.Type != "int64" || c.Rows != t.Nodes || c.Nulls > 0) {
				return fmt.Errorf("ids of the type %q of %d nodes: %+v", t.Name, t.Nodes, *c)
			}
		}
	}
	return nil
}

// checkTypes checks that the types of a typed store hold each node once, and that relations join
// types that there are.
func (m *Meta) checkTypes() error {
	if !m.Typed() {
		return nil
	}
	next := uint64(0)
	for _, t := range m.NodeTypes {
		if t.First != next || t.Nodes > m.Nodes-next {
			return fmt.Errorf("type %q has the nodes %d to %d of %d, after node %d", t.Name,
				t.First, t.First+t.Nodes, m.Nodes, next)
		}
		next += t.Nodes
	}
	if next != m.Nodes || len(m.Relations) != len(m.EdgeTypes) {
		return fmt.Errorf("types hold %d of %d nodes, and %d of %d types of edges join any", next,
			m.Nodes, len(m.Relations), len(m.EdgeTypes))
	}
	in, out := uint64(0), uint64(0) // lists: see layout.NodeLists
	for i, r := range m.Relations {
		if min(r.Src, r.Dst) < 0 || max(r.Src, r.Dst) >= len(m.NodeTypes) {
			return fmt.Errorf("edges of type %q join nodes of type %d and %d, of %d types",
				m.EdgeTypes[i], r.Src, r.Dst, len(m.NodeTypes))
		}
		in, out = in+m.NodeTypes[r.Dst].Nodes, out+m.NodeTypes[r.Src].Nodes
	}
	if slices.Contains(m.Directions, "out") {
		in = max(in, out)
	}
	if in > nodesMost {
		return fmt.Errorf("%d lists, one for each node and relation, are more than can be stored",
			in)
	}
	return nil
}

// checkEdgeTables checks that tables of edges belong to relations, and have a start for each node.
func (m *Meta) checkEdgeTables() error {
	for i := range m.EdgeTables {
		t := &m.EdgeTables[i]
		nodes, rows := m.Nodes, uint64(max(0, m.inBase()))
		if m.Typed() && t.Relation >= 0 && t.Relation < len(m.Relations) {
			nodes = m.NodeTypes[m.Relations[t.Relation].Dst].Nodes
			if counts := m.Stats.TypeCounts; t.Relation < len(counts) {
				rows = counts[t.Relation]
			}
		} else if t.Relation != 0 || m.Typed() {
			return fmt.Errorf("a table of edges of relation %d, of %d", t.Relation,
				len(m.Relations))
		}
		if m.Typed() && len(m.Levels) > 0 { // which the counts of types count too
			rows = min(t.Rows, rows)
		}
		if t.Rows != rows || t.Starts.Rows != nodes || m.EdgeTable(t.Relation) != t {
			return fmt.Errorf("the table of relation %d has %d rows for %d edges, and starts of "+
				"%d for %d nodes, or there are two", t.Relation, t.Rows, rows, t.Starts.Rows, nodes)
		}
		columns := t.Columns
		if r := t.Reverse; r != nil {
			columns = append([]TableColumn{r.Rows}, columns...)
			if of := m.EdgeTable(r.Of); of == nil || of.Reverse != nil || of.Rows != rows {
				return fmt.Errorf("the rows of relation %d are in a table of relation %d that "+
					"is not there or has others", t.Relation, r.Of)
			}
		}
		for _, c := range columns {
			if c.Rows != rows {
				return fmt.Errorf("column %q of relation %d has %d rows, and its table %d",
					c.Name, t.Relation, c.Rows, rows)
			}
		}
	}
	return nil
}

// checkFiles checks that all files lie in the store's directory and that each is listed once.
func (m *Meta) checkFiles() error {
	seen := make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		if f.Level != 0 {
			return fmt.Errorf("file %q of level %d in a manifest of version %d", f.Path, f.Level,
				m.Manifest)
		}
		if f.Size < 0 || seen[f.Path] {
			return fmt.Errorf("file %q of %d bytes, listed before: %t", f.Path, f.Size,
				seen[f.Path])
		}
		seen[f.Path] = true
	}
	return nil
}

// checkPath fails unless a path leads into the store's directory.
func checkPath(path string) error {
	if path == "." || !filepath.IsLocal(path) || filepath.ToSlash(filepath.Clean(path)) != path ||
		strings.ContainsRune(path, 0) {
		return fmt.Errorf("file %q is not in the store", path)
	}
	return nil
}

// checkPartitions checks that the partitions ascend and hold only nodes of the graph.
func (m *Meta) checkPartitions() error {
	next := uint64(0)
	for i, p := range m.Partitions {
		if uint64(p.First) < next && p.Nodes > 0 || p.Nodes > m.Nodes ||
			uint64(p.First)+p.Nodes > m.Nodes {
			return fmt.Errorf("partition %d has nodes %d to %d of %d, after node %d", i, p.First,
				uint64(p.First)+p.Nodes, m.Nodes, next)
		}
		next = max(next, uint64(p.First)+p.Nodes)
	}
	return nil
}

func (r *RowsMeta) check() error {
	types := []string{"f32", "f16", "bf16", "sparse", "i32", "u8"}
	if !slices.Contains(types, r.DType) || r.Dim < 1 || r.RowBytes < 1 || r.PageBytes < 1 ||
		r.SumBytes < 1 {
		return fmt.Errorf("rows %q of %d %q, %d bytes in pages of %d with sums of %d", r.Name,
			r.Dim,
			r.DType, r.RowBytes, r.PageBytes, r.SumBytes)
	}
	return checkPath(r.Path)
}

func (l *LabelsMeta) check(nodes uint64) error {
	dtype := map[string]string{"class": "i32", "multi": "u8", "target": "f32"}[l.Kind]
	switch {
	case dtype == "":
		return fmt.Errorf("labels of kind %q", l.Kind)
	case l.Rows.DType != dtype:
		return fmt.Errorf("labels of kind %q in rows of %q", l.Kind, l.Rows.DType)
	case l.Labeled > nodes:
		return fmt.Errorf("%d of %d nodes have a label", l.Labeled, nodes)
	case len(l.ClassCounts) > len(l.Classes):
		return fmt.Errorf("%d classes are counted, %d have names", len(l.ClassCounts),
			len(l.Classes))
	}
	return l.checkUnknown()
}

// checkUnknown checks the count of unknown labels and the rows that keep them.
func (l *LabelsMeta) checkUnknown() error {
	classes := uint64(len(l.Classes))
	switch {
	case l.Unknown == 0:
	case l.Kind != "multi" || classes == 0 || (l.Unknown-1)/classes >= l.Labeled:
		return fmt.Errorf("%d unknown labels of kind %q of %d nodes and %d classes", l.Unknown,
			l.Kind, l.Labeled, classes)
	case l.Rows.RowBytes != 2*((len(l.Classes)+7)/8):
		return fmt.Errorf("rows of %d bytes for %d classes and which of them are known",
			l.Rows.RowBytes, classes)
	}
	return l.Rows.check()
}
