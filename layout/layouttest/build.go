// Package layouttest writes stores from graphs in memory, for the tests of the packages that read
// them.
package layouttest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/internal/sparse"
	"gdb/internal/testgraph"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Graph is a graph in memory. The zero value of a field leaves that part out.
type Graph struct {
	Nodes int
	Edges []Edge // in any order; duplicates and self loops are kept

	EdgeTypes []string // if not empty, Edge.Type is stored
	Weighted  bool
	Timed     bool
	Both      bool // also stores out-lists

	// Features is (Nodes, Dim) row-major, stored as DType (f32 if empty).
	Features []float32
	Dim      int
	DType    string

	// Types make a typed store: the nodes of a type follow those of the type before it, and of
	// their features only the first are stored. Relations say what edges of each type join.
	Types     []Type
	Relations []kv.RelationMeta

	// Classes holds the names of classes. Labels holds one class for each node, -1 for none; or
	// Multi holds the classes of each node.
	Classes []string
	Labels  []int32
	Multi   [][]int
	// Unknown holds the unknown classes of each node, besides those in Multi; nil for none.
	Unknown [][]int
	// Targets holds one number for each node, NaN for none.
	Targets []float32

	// IDs holds external ids of nodes, for a dictionary; if it is nil, ids are node numbers.
	IDs []string

	Splits     map[string][]layout.NodeID
	Partitions int // of equal size; 0 makes one
	BlockBytes int // 0 stands for 4096
	UUID       kv.UUID

	// NoCatalog leaves out the catalog: the store has its metadata in memory only, and no sets. It
	// is for tests that make many stores.
	NoCatalog bool
}

// Type is a type of nodes.
type Type struct {
	Name       string
	Nodes, Dim int // Dim is at most that of the graph; the values behind it must be 0
}

// Edge is an edge with the values that can be stored with it.
type Edge struct {
	Src, Dst layout.NodeID
	Type     uint16
	Weight   float32
	Time     int64
}

// firsts returns the first node of each type.
func (g *Graph) firsts() (first []uint64) {
	next := uint64(0)
	for _, t := range g.Types {
		first = append(first, next)
		next += uint64(t.Nodes)
	}
	return first
}

// Random returns a random graph (see testgraph.Random) without features and labels. Its edges have
// types, weights and times, which are stored if the caller sets the fields for them.
func Random(seed uint64, nodes, edges int) Graph {
	g := Graph{Nodes: nodes}
	for i, e := range testgraph.Random(seed, nodes, edges) {
		g.Edges = append(g.Edges, Edge{Src: layout.NodeID(e.Src), Dst: layout.NodeID(e.Dst),
			Type: uint16(i % 3), Weight: float32(i) / 2, Time: int64(i) - 5})
	}
	return g
}

// Lists returns the lists of a direction, sorted as a store has them: Nbr is the source of
// in-edges, the destination of out-edges.
func (g *Graph) Lists(dir layout.Direction) [][]listfile.Edge {
	lists := make([][]listfile.Edge, g.Nodes)
	for _, e := range g.Edges {
		node, nbr := e.Dst, e.Src
		if dir == layout.Out {
			node, nbr = nbr, node
		}
		lists[node] = append(lists[node], listfile.Edge{Nbr: nbr, Type: e.Type, Weight: e.Weight,
			Time: e.Time})
	}
	numbers := g.numbers(dir)
	for v, l := range lists {
		of := func(e listfile.Edge) (list layout.NodeID) {
			if numbers != nil {
				list, _ = numbers.List(layout.NodeID(v), e.Type)
			}
			return list
		}
		slices.SortStableFunc(l, func(a, b listfile.Edge) int {
			return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(a.Nbr, b.Nbr))
		})
	}
	return lists
}

// numbers returns which lists nodes have, if types have lists by relation.
func (g *Graph) numbers(dir layout.Direction) *layout.NodeLists {
	if len(g.Types) == 0 {
		return nil
	}
	return layout.ListsOf(&kv.Meta{Format: kv.TypedVersion, Nodes: uint64(g.Nodes),
		NodeTypes: g.nodeTypes(), Relations: g.Relations}, dir)
}

// nodeTypes describes the types of nodes.
func (g *Graph) nodeTypes() (types []kv.NodeTypeMeta) {
	first := g.firsts()
	for i, t := range g.Types {
		types = append(types, kv.NodeTypeMeta{Name: t.Name, First: first[i],
			Nodes: uint64(t.Nodes)})
	}
	return types
}

// Build writes g to dir with the writers that ingest uses, and opens the store. The store gets
// g.UUID as its identity, or a fixed one if g.UUID is zero.
func Build(t testing.TB, fs vfs.FS, dir string, g Graph) *layout.Store {
	t.Helper()
	b := builder{t: t, fs: fs, dir: dir, g: &g}
	b.begin()
	b.topology(layout.In)
	if g.Both {
		b.topology(layout.Out)
	}
	if g.Dim > 0 {
		b.features()
	}
	b.labels()
	if g.IDs != nil {
		b.ids()
	}
	return b.finish()
}

type builder struct {
	t   testing.TB
	fs  vfs.FS
	dir string
	g   *Graph
	m   *kv.Meta
}

func (b *builder) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *builder) begin() {
	g := b.g
	if g.UUID == (kv.UUID{}) {
		copy(g.UUID[:], "layouttest store")
	}
	g.BlockBytes = cmp.Or(g.BlockBytes, 4096)
	b.m = &kv.Meta{Format: kv.FormatVersion, UUID: g.UUID, CreatedBy: "layouttest",
		Created: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), Nodes: uint64(g.Nodes),
		Edges: uint64(len(g.Edges)), Directions: []string{"in"}, BlockBytes: g.BlockBytes,
		Coded:     true,
		EdgeTypes: g.EdgeTypes, Weighted: g.Weighted, Timestamped: g.Timed,
		IDs: kv.IDsMeta{Kind: kv.IDsDense}, SplitColumn: -1, Partitioner: "none"}
	if g.Both {
		b.m.Directions = append(b.m.Directions, "out")
	}
	for _, name := range []string{"topology", "features", "labels", "ids"} {
		b.must(b.fs.MkdirAll(b.fs.PathJoin(b.dir, name), 0o755))
	}
}

func (b *builder) topology(dir layout.Direction) {
	g := b.g
	w, err := listfile.NewWriter(b.fs, b.fs.PathJoin(b.dir, "topology", dir.String()),
		listfile.Spec{UUID: g.UUID, Direction: dir, Nodes: uint64(g.Nodes),
			Lists: g.numbers(dir), BlockBytes: g.BlockBytes,
			Types: len(g.EdgeTypes) > 0 && len(g.Types) == 0, Weights: g.Weighted,
			Times: g.Timed})
	b.must(err)
	lists := g.Lists(dir)
	for v, l := range lists {
		for _, e := range l {
			b.must(w.AddEdge(layout.NodeID(v), e))
		}
	}
	files, err := w.Finish()
	b.must(err)
	b.m.Files = append(b.m.Files, files...)
	b.count(dir, lists)
}

// count sets the statistics of one direction.
func (b *builder) count(dir layout.Direction, lists [][]listfile.Edge) {
	hist, most := []uint64{}, uint64(0)
	for v, l := range lists {
		bucket := bits.Len(uint(len(l)))
		for len(hist) <= bucket {
			hist = append(hist, 0)
		}
		hist[bucket]++
		most = max(most, uint64(len(l)))
		for _, e := range l {
			if dir == layout.In && int(e.Nbr) == v {
				b.m.Stats.SelfLoops++
			}
		}
	}
	if dir == layout.Out {
		b.m.Stats.OutHist, b.m.Stats.OutMax = hist, most
		return
	}
	b.m.Stats.InHist, b.m.Stats.InMax = hist, most
	b.m.Stats.EdgesRead = b.m.Edges
	parts := max(b.g.Partitions, 1)
	for p := range parts {
		first, end := p*len(lists)/parts, (p+1)*len(lists)/parts
		part := kv.Partition{First: kv.NodeID(first), Nodes: uint64(end - first)}
		for _, l := range lists[first:end] {
			part.Edges += uint64(len(l))
		}
		b.m.Partitions = append(b.m.Partitions, part)
	}
	if len(b.g.EdgeTypes) > 0 {
		b.m.Stats.TypeCounts = make([]uint64, len(b.g.EdgeTypes))
		for _, e := range b.g.Edges {
			b.m.Stats.TypeCounts[e.Type]++
		}
	}
}

// rows writes a file of rows. It calls add for each node.
func (b *builder) rows(folder, name, dtype string, dim int,
	add func(w *rowfile.Writer, v int) error) kv.RowsMeta {
	path := folder + "/" + name
	w, err := rowfile.NewWriter(b.fs, b.fs.PathJoin(b.dir, folder, name), rowfile.Spec{
		UUID: b.g.UUID, Name: name, Path: path + ".rows", DType: dtype, Dim: dim,
		Nodes: uint64(b.g.Nodes)})
	b.must(err)
	for v := range b.g.Nodes {
		b.must(add(w, v))
	}
	m, files, err := w.Finish()
	b.must(err)
	b.m.Files = append(b.m.Files, files...)
	return m
}

func (b *builder) features() {
	g := b.g
	if g.Types != nil {
		b.typedFeatures()
		return
	}
	if g.DType == rowfile.Sparse {
		b.sparseFeatures()
		return
	}
	m := b.rows("features", "features", cmp.Or(g.DType, rowfile.F32), g.Dim,
		func(w *rowfile.Writer, v int) error {
			return w.AddF32(g.Features[v*g.Dim : (v+1)*g.Dim])
		})
	b.m.Features = append(b.m.Features, m)
}

// sparseFeatures writes the values of features that are not 0.
func (b *builder) sparseFeatures() {
	g, longest := b.g, 0
	entries := func(v int) (columns []uint32, values []float32) {
		for k, x := range g.Features[v*g.Dim : (v+1)*g.Dim] {
			if x != 0 {
				columns, values = append(columns, uint32(k)), append(values, x)
			}
		}
		return columns, values
	}
	for v := range g.Nodes {
		columns, _ := entries(v)
		longest = max(longest, len(columns))
	}
	row := make([]float32, sparse.Words(longest, g.Dim, true))
	w, err := rowfile.NewWriter(b.fs, b.fs.PathJoin(b.dir, "features", "features"), rowfile.Spec{
		UUID: g.UUID, Name: "features", Path: "features/features.rows", DType: rowfile.Sparse,
		Dim: g.Dim, Words: len(row), Nodes: uint64(g.Nodes)})
	b.must(err)
	for v := range g.Nodes {
		columns, values := entries(v)
		sparse.Row(mem.View[uint32](mem.BytesOf(row))).Set(g.Dim, columns, values)
		b.must(w.AddF32(row))
	}
	b.finishFeatures(w)
}

// typedFeatures writes the features of each type, of its own width.
func (b *builder) typedFeatures() {
	g, of, left := b.g, -1, 0
	spec := rowfile.Spec{UUID: g.UUID, Name: "features", Path: "features/features.rows",
		DType: cmp.Or(g.DType, rowfile.F32), Nodes: uint64(g.Nodes), First: g.firsts()}
	for _, t := range g.Types {
		spec.Dims = append(spec.Dims, t.Dim)
	}
	w, err := rowfile.NewWriter(b.fs, b.fs.PathJoin(b.dir, "features", "features"), spec)
	b.must(err)
	for v := range g.Nodes {
		for left == 0 {
			of++
			left = g.Types[of].Nodes
		}
		b.must(w.AddF32(g.Features[v*g.Dim : v*g.Dim+spec.Dims[of]]))
		left--
	}
	b.finishFeatures(w)
}

func (b *builder) finishFeatures(w *rowfile.Writer) {
	m, files, err := w.Finish()
	b.must(err)
	b.m.Files = append(b.m.Files, files...)
	b.m.Features = append(b.m.Features, m)
}

func (b *builder) finish() *layout.Store {
	b.types()
	slices.SortFunc(b.m.Files, func(x, y kv.FileMeta) int { return cmp.Compare(x.Path, y.Path) })
	names := []string{}
	for name := range b.g.Splits {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.m.Splits = append(b.m.Splits, kv.SplitMeta{Name: name,
			Count: uint64(len(b.g.Splits[name]))})
	}
	return b.create()
}

// Features returns n*dim numbers that differ from row to row, for Graph.Features.
func Features(n, dim int) []float32 {
	x := make([]float32, n*dim)
	for i := range x {
		x[i] = float32(i/dim%997) + float32(i%dim)/8
	}
	return x
}

// Splits returns the splits train, val and test: of every five nodes, the first three are in train,
// the fourth is in val and the fifth in test.
func Splits(nodes int) map[string][]layout.NodeID {
	s := map[string][]layout.NodeID{"train": nil, "val": nil, "test": nil}
	for v := range nodes {
		name := [...]string{"train", "train", "train", "val", "test"}[v%5]
		s[name] = append(s[name], layout.NodeID(v))
	}
	return s
}

// ClassNames returns n names of classes.
func ClassNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("class%d", i)
	}
	return names
}

// ReadFile returns the bytes of a file.
func ReadFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// WriteFile makes a file with the given bytes.
func WriteFile(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(b)) // the file system may change the bytes that it is given
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Flip inverts bits of one byte of a file.
func Flip(t testing.TB, fs vfs.FS, path string, off int64, bits byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{0}
	_, err = f.ReadAt(b, off)
	b[0] ^= bits
	if err == nil {
		_, err = f.WriteAt(b, off)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Device opens a device that is closed when the test ends.
func Device(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

// Rewrite replaces the bytes of a file by what change returns.
func Rewrite(t testing.TB, fs vfs.FS, path string, change func(b []byte) []byte) {
	t.Helper()
	WriteFile(t, fs, path, change(ReadFile(t, fs, path)))
}

// Skewed returns a graph in which one batch takes a large part of the features, because rows are
// wide and most edges begin in few nodes.
func Skewed() Graph {
	const nodes, edges, dim, classes = 8000, 400000, 768, 5
	draw := rng.NewStream(3)
	g := Graph{Nodes: nodes, Dim: dim, Labels: make([]int32, nodes),
		Features: make([]float32, nodes*dim), Splits: map[string][]layout.NodeID{}}
	for k := range classes {
		g.Classes = append(g.Classes, fmt.Sprint("c", k))
	}
	for i := range g.Features {
		g.Features[i] = float32(i%17) / 17
	}
	for range edges {
		src := draw.Below(1 + draw.Below(nodes)) // lower nodes are drawn more often
		g.Edges = append(g.Edges, Edge{Src: layout.NodeID(src),
			Dst: layout.NodeID(draw.Below(nodes))})
	}
	for v := range nodes {
		g.Labels[v] = int32(v % classes)
		switch {
		case v%32 == 5:
			g.Splits["train"] = append(g.Splits["train"], layout.NodeID(v))
		case v%64 == 6:
			g.Splits["val"] = append(g.Splits["val"], layout.NodeID(v))
		}
	}
	return g
}

// ManyLists returns a graph whose lists do not fit in the smallest block cache. Most edges begin in
// few nodes.
func ManyLists() Graph {
	const nodes, edges, dim = 60_000, 3_000_000, 8
	draw := rng.NewStream(4)
	g := Graph{Nodes: nodes, Dim: dim, Labels: make([]int32, nodes),
		Classes: []string{"a", "b"}, Features: make([]float32, nodes*dim),
		Splits: map[string][]layout.NodeID{}}
	for range edges {
		g.Edges = append(g.Edges, Edge{
			Src: layout.NodeID(draw.Below(1 + draw.Below(nodes))),
			Dst: layout.NodeID(draw.Below(nodes))})
	}
	for v := range nodes {
		g.Labels[v] = int32(v % 2)
		if v%100 < 2 {
			name := []string{"train", "val"}[v%100]
			g.Splits[name] = append(g.Splits[name], layout.NodeID(v))
		}
	}
	return g
}

// types describes the types of a typed store.
func (b *builder) types() {
	if len(b.g.Types) > 0 {
		b.m.Format = kv.TypedVersion
	}
	b.m.NodeTypes, b.m.Relations = b.g.nodeTypes(), b.g.Relations
}

// Shop returns a graph of users, items and tags with edges of four relations, two of which join the
// same types, with times and weights. Tags have no in-edges, and the first item has many.
func Shop(seed uint64, users, items, edges int) Graph {
	const tags = 20
	item, tag := users, users+items
	g := Graph{Nodes: users + items + tags, Weighted: true, Timed: true,
		EdgeTypes: []string{"rev_buys", "sees", "has", "buys"},
		Types: []Type{{Name: "user", Nodes: users}, {Name: "item", Nodes: items},
			{Name: "tag", Nodes: tags}},
		Relations: []kv.RelationMeta{{Src: 1, Dst: 0}, {Src: 0, Dst: 1}, {Src: 2, Dst: 1},
			{Src: 0, Dst: 1}}}
	draw := rng.NewStream(seed)
	node := func(first, n int) layout.NodeID {
		return layout.NodeID(first + int(draw.Below(uint64(n))))
	}
	for i := range edges {
		e := Edge{Type: uint16(i % 4), Weight: float32(i%9) / 2, Time: int64(i*7%1000) - 5}
		user, of := node(0, users), node(item, items)
		if i%5 == 0 {
			of = layout.NodeID(item)
		}
		switch e.Type {
		case 0:
			e.Src, e.Dst = of, user
		case 2:
			e.Src, e.Dst = node(tag, tags), of
		default:
			e.Src, e.Dst = user, of
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}
