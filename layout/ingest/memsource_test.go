package ingest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gdb/layout/ingest/source"
)

// edge is an edge between external ids.
type edge struct {
	src, dst string
	typ      uint16
	weight   float32
	time     int64
}

func (e edge) unweighted() edge {
	e.weight = 0
	return e
}

func (e edge) compare(o edge) int {
	return cmp.Or(cmp.Compare(e.dst, o.dst), cmp.Compare(e.src, o.src), cmp.Compare(e.typ, o.typ),
		cmp.Compare(e.time, o.time), cmp.Compare(e.weight, o.weight))
}

// member is a row for a node: in a split, or with a label.
type member struct{ name, id string }

// graph is a graph as a user has it, held in memory: a Source, and the twin that stores are
// compared with.
type graph struct {
	kind     string // rows, integer, text
	nodes    int    // of kind rows
	edges    []edge
	table    []string // node table, of other kinds
	typed    bool
	weighted bool
	timed    bool
	dim      int
	rows     []string // ids of the feature rows, in order; the row of id is featureRow(id)
	labels   []member // name is the class
	labelled string   // kind of labels
	splits   []member
	inverse  bool // AddInverse
	chunk    int
}

var _ source.Source = (*graph)(nil)

func (g *graph) text() bool { return g.kind == "text" }

func (g *graph) Info() *source.Info {
	info := &source.Info{Format: "memory", Paths: nil, RowIDs: g.kind == "rows", TextIDs: g.text(),
		Typed: g.typed, Weighted: g.weighted, Timed: g.timed, AddInverse: g.inverse}
	if g.kind == "rows" {
		info.Nodes = uint64(g.nodes)
	}
	if g.typed {
		info.EdgeTypes = []string{"a", "b", "c"}
	}
	if g.dim > 0 {
		info.Features = []source.FeatureInfo{{Name: "features", Dim: g.dim, DType: "f32"}}
	}
	if g.labelled != "" {
		info.Labels = &source.LabelInfo{Kind: g.labelled, Text: g.labelled != "target"}
	}
	for _, m := range g.splits {
		if !slices.Contains(info.Splits, m.name) {
			info.Splits = append(info.Splits, m.name)
		}
	}
	return info
}

func (g *graph) step() int {
	if g.chunk == 0 {
		return 7
	}
	return g.chunk
}

func intsOf(ids []string) []uint64 {
	out := make([]uint64, len(ids))
	for i, id := range ids {
		out[i], _ = strconv.ParseUint(id, 10, 64)
	}
	return out
}

func textsOf(ids []string) [][]byte {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = []byte(id)
	}
	return out
}

func (g *graph) idChunk(file string, first int, ids []string) *source.IDChunk {
	c := &source.IDChunk{Where: source.Where{File: file, First: int64(first), Unit: "row"}}
	if g.text() {
		c.Text = textsOf(ids)
	} else {
		c.Ints = intsOf(ids)
	}
	return c
}

func (g *graph) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	first := 0
	for part := range slices.Chunk(g.edges, g.step()) {
		c := &source.EdgeChunk{Where: source.Where{File: "edges", First: int64(first), Unit: "row"}}
		var src, dst []string
		for _, e := range part {
			src, dst = append(src, e.src), append(dst, e.dst)
			if g.typed {
				c.TypeInt = append(c.TypeInt, uint32(e.typ))
			}
			if g.weighted {
				c.Weight = append(c.Weight, e.weight)
			}
			if g.timed {
				c.Time = append(c.Time, e.time)
			}
		}
		if g.text() {
			c.SrcText, c.DstText = textsOf(src), textsOf(dst)
		} else {
			c.SrcInt, c.DstInt = intsOf(src), intsOf(dst)
		}
		if err := fn(c); err != nil {
			return err
		}
		first += len(part)
	}
	return ctx.Err()
}

func (g *graph) Nodes(ctx context.Context, fn func(*source.IDChunk) error) error {
	first := 0
	for part := range slices.Chunk(g.table, g.step()) {
		if err := fn(g.idChunk("nodes", first, part)); err != nil {
			return err
		}
		first += len(part)
	}
	return ctx.Err()
}

// featureRow is the feature row of an id.
func featureRow(id string, dim int) []float32 {
	row, h := make([]float32, dim), uint32(7)
	for _, c := range []byte(id) {
		h = h*31 + uint32(c)
	}
	for k := range row {
		row[k] = float32(h%1000) + float32(k)/4
	}
	return row
}

func (g *graph) Features(ctx context.Context, name string, fn func(*source.RowChunk) error) error {
	first := 0
	for part := range slices.Chunk(g.rows, g.step()) {
		c := &source.RowChunk{First: uint64(first),
			Where: source.Where{File: name, First: int64(first), Unit: "row"}}
		if g.kind != "rows" {
			c.IDs = g.idChunk(name, first, part)
		}
		for _, id := range part {
			c.Rows = append(c.Rows, featureRow(id, g.dim)...)
		}
		if err := fn(c); err != nil {
			return err
		}
		first += len(part)
	}
	return ctx.Err()
}

func (g *graph) Labels(ctx context.Context, fn func(*source.LabelChunk) error) error {
	first := 0
	for part := range slices.Chunk(g.labels, g.step()) {
		c := &source.LabelChunk{Where: source.Where{File: "labels", First: int64(first),
			Unit: "row"}}
		var ids []string
		for _, m := range part {
			ids = append(ids, m.id)
			if g.labelled == "target" {
				v, err := strconv.ParseFloat(m.name, 32)
				if err != nil {
					v = math.NaN()
				}
				c.Target = append(c.Target, float32(v))
			} else {
				c.Text = append(c.Text, []byte(m.name))
			}
		}
		c.IDs = g.idChunk("labels", first, ids)
		if err := fn(c); err != nil {
			return err
		}
		first += len(part)
	}
	return ctx.Err()
}

func (g *graph) Splits(ctx context.Context, fn func(*source.SplitChunk) error) error {
	for i, m := range g.splits {
		c := &source.SplitChunk{Name: m.name, IDs: *g.idChunk(m.name, i, []string{m.id})}
		if err := fn(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (g *graph) Close() error { return nil }

// externals are the external ids in the order of their numbers, as docs/ingest.md promises it.
func (g *graph) externals() []string {
	var ids []string
	switch g.kind {
	case "rows":
		for i := range g.nodes {
			ids = append(ids, strconv.Itoa(i))
		}
		return ids
	}
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, id := range g.table {
		add(id)
	}
	for _, e := range g.edges {
		add(e.src)
		add(e.dst)
	}
	if g.kind == "integer" {
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
		})
	}
	return ids
}

// stored is the list of edges that a store of g with opt holds, sorted.
func (g *graph) stored(opt Options) []edge {
	var out []edge
	last := map[edge]float32{} // the weight that comes last in the source, by edges without one
	for _, e := range g.edges {
		if !g.typed {
			e.typ = 0
		}
		if !g.weighted {
			e.weight = 0
		}
		if !g.timed {
			e.time = 0
		}
		loop := e.src == e.dst
		if loop && opt.Undirected && !opt.KeepSelfLoops {
			continue
		}
		out = append(out, e)
		last[e.unweighted()] = e.weight
		if opt.Undirected && !loop || !opt.Undirected && g.inverse {
			e.src, e.dst = e.dst, e.src
			out = append(out, e)
			last[e.unweighted()] = e.weight
		}
	}
	slices.SortFunc(out, edge.compare)
	if opt.Dedup || opt.Merge != "" || opt.Undirected && !opt.KeepDuplicates {
		out = merged(out, opt.Merge, last)
	}
	return out
}

// merged are sorted edges, without duplicates, with the weight that --merge says.
func merged(edges []edge, how string, last map[edge]float32) (out []edge) {
	for i := 0; i < len(edges); {
		e, weights := edges[i], []float32{}
		for ; i < len(edges) && edges[i].src == e.src && edges[i].dst == e.dst &&
			edges[i].typ == e.typ && edges[i].time == e.time; i++ {
			weights = append(weights, edges[i].weight)
		}
		sum := float32(0)
		for _, w := range weights {
			sum += w
		}
		switch how {
		case "":
			e.weight = sum
		case "mean":
			e.weight = sum / float32(len(weights))
		case "min":
			e.weight = slices.Min(weights)
		case "max":
			e.weight = slices.Max(weights)
		case "last":
			e.weight = last[e.unweighted()]
		}
		out = append(out, e)
	}
	return out
}

// random makes a graph with everything: hubs, loops, duplicates, and rows for all nodes.
func random(seed uint64, kind string, nodes, edges int) *graph {
	r := rand.New(rand.NewPCG(seed, 9))
	g := &graph{kind: kind, nodes: nodes, dim: 3, labelled: "class"}
	name := func(i int) string {
		switch kind {
		case "integer":
			return strconv.Itoa(i*3 + 1)
		case "text":
			return fmt.Sprintf("node %x", i*i+i)
		}
		return strconv.Itoa(i)
	}
	for range edges {
		a, b := r.IntN(nodes), r.IntN(nodes)
		if r.IntN(3) == 0 {
			b = r.IntN(1 + nodes/10)
		}
		if r.IntN(20) == 0 {
			b = a
		}
		g.edges = append(g.edges, edge{src: name(a), dst: name(b), typ: uint16(r.IntN(3)),
			weight: float32(r.IntN(4)) - 1.5, time: int64(r.IntN(3)) - 1})
	}
	if kind != "rows" {
		for i := range nodes {
			g.table = append(g.table, name(i))
		}
		r.Shuffle(nodes, func(i, j int) { g.table[i], g.table[j] = g.table[j], g.table[i] })
		g.rows = g.table
	} else {
		g.rows = g.externals()
	}
	for i := range nodes {
		if r.IntN(4) > 0 {
			g.labels = append(g.labels, member{strconv.Itoa(r.IntN(12)), name(i)})
		}
		split := []string{"train", "val", "test", ""}[r.IntN(4)]
		if split != "" {
			g.splits = append(g.splits, member{split, name(i)})
		}
	}
	r.Shuffle(len(g.labels), func(i, j int) {
		g.labels[i], g.labels[j] = g.labels[j], g.labels[i]
	})
	return g
}
