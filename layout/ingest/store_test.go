package ingest

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/nodeids"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reading is a store read back through its readers.
type reading struct {
	t     testing.TB
	store *layout.Store
	dev   blockdev.Device
	meta  *kv.Meta
	ids   []string // by node
}

func open(t testing.TB, fs vfs.FS, dir string) *reading {
	t.Helper()
	ctx := context.Background()
	s, err := layout.Open(ctx, fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	dev := devtest.Open(t, blockdev.Options{})
	r := &reading{t: t, store: s, dev: dev, meta: s.Meta()}
	dict, err := nodeids.Open(ctx, s, dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []layout.NodeID
	for i := range r.meta.Nodes {
		nodes = append(nodes, layout.NodeID(i))
	}
	if r.ids, err = dict.External(ctx, nodes, nil); err != nil {
		t.Fatal(err)
	}
	for node, id := range r.ids {
		back, err := dict.Internal(ctx, id)
		if err != nil || int(back) != node {
			t.Fatalf("id %q of node %d leads to %d, %v", id, node, back, err)
		}
	}
	if err := dict.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// edges reads the lists of a direction, as edges between external ids.
func (r *reading) edges(dir layout.Direction) []edge {
	r.t.Helper()
	var out []edge
	err := listfile.Scan(context.Background(), r.store, r.dev, dir,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					e := edge{dst: r.ids[int(first)+i], src: r.ids[l.Nbrs[k]]}
					if dir == layout.Out {
						e.src, e.dst = e.dst, e.src
					}
					if l.Types != nil {
						e.typ = l.Types[k]
					}
					if l.Weights != nil {
						e.weight = l.Weights[k]
					}
					if l.Times != nil {
						e.time = l.Times[k]
					}
					out = append(out, e)
				}
			}
			return nil
		})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.SortFunc(out, edge.compare)
	return out
}

// rows reads a file of rows whole.
func (r *reading) rows(m kv.RowsMeta) []float32 {
	r.t.Helper()
	f, err := rowfile.Open(context.Background(), r.store, r.dev, m, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([]float32, int(r.meta.Nodes)*m.Dim)
	if err := f.Scan(context.Background(), 0, int(r.meta.Nodes), out); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// raw reads a file of rows whole, without conversion.
func (r *reading) raw(m kv.RowsMeta) []byte {
	r.t.Helper()
	f, err := rowfile.Open(context.Background(), r.store, r.dev, m, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	var nodes []layout.NodeID
	for i := range r.meta.Nodes {
		nodes = append(nodes, layout.NodeID(i))
	}
	out := make([]byte, int(r.meta.Nodes)*m.RowBytes)
	if err := f.GatherRaw(context.Background(), nodes, nil, out); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// compare checks a store against the graph it was made of.
func (r *reading) compare(g *graph, opt Options) {
	r.t.Helper()
	r.compareIDs(g, opt)
	want := g.stored(opt)
	dirs := []layout.Direction{layout.In}
	if opt.Both {
		dirs = append(dirs, layout.Out)
	}
	for _, dir := range dirs {
		if got := r.edges(dir); !slices.Equal(got, want) {
			r.t.Fatalf("%s-lists have %d edges, want %d, or other ones", dir, len(got), len(want))
		}
	}
	r.compareStats(g, want, opt)
	r.compareLabels(g)
	r.compareSplits(g)
	if g.dim > 0 {
		got := r.rows(r.meta.Features[0])
		for node, id := range r.ids {
			if row := featureRow(id, g.dim); !slices.Equal(got[node*g.dim:][:g.dim], row) {
				r.t.Fatalf("features of %s are %v, want %v", id, got[node*g.dim:][:g.dim], row)
			}
		}
	}
}

func (r *reading) compareIDs(g *graph, opt Options) {
	r.t.Helper()
	ids := g.externals()
	want := slices.Clone(ids)
	if opt.Partitioner == "random" {
		n := uint64(len(ids))
		perm := rng.NewPermutation(n, rng.Key(opt.Seed, n))
		for i, id := range ids {
			want[perm.At(uint64(i))] = id
		}
	}
	if !slices.Equal(r.ids, want) {
		r.t.Fatalf("nodes are\n%.200q, want\n%.200q", r.ids, want)
	}
}

func (r *reading) compareStats(g *graph, want []edge, opt Options) {
	r.t.Helper()
	in, out := map[string]uint64{}, map[string]uint64{}
	loops := uint64(0)
	types := make([]uint64, 3)
	for _, e := range want {
		in[e.dst]++
		out[e.src]++
		types[e.typ]++
		if e.src == e.dst {
			loops++
		}
	}
	hist := func(deg map[string]uint64) (h []uint64, most uint64) {
		h = make([]uint64, 1)
		for _, id := range r.ids {
			for len(h) <= bits.Len64(deg[id]) {
				h = append(h, 0)
			}
			h[bits.Len64(deg[id])]++
			most = max(most, deg[id])
		}
		return h, most
	}
	s := r.meta.Stats
	inHist, inMax := hist(in)
	outHist, outMax := hist(out)
	if !slices.Equal(s.InHist, inHist) || !slices.Equal(s.OutHist, outHist) ||
		s.InMax != inMax || s.OutMax != outMax || s.SelfLoops != loops {
		r.t.Fatalf("statistics %+v, want in %v max %d, out %v max %d, loops %d", s, inHist, inMax,
			outHist, outMax, loops)
	}
	if g.typed && !slices.Equal(s.TypeCounts, types) {
		r.t.Fatalf("types %v, want %v", s.TypeCounts, types)
	}
	if r.meta.Edges != uint64(len(want)) || s.EdgesRead != uint64(len(g.edges)) {
		r.t.Fatalf("%d edges of %d read, want %d of %d", r.meta.Edges, s.EdgesRead, len(want),
			len(g.edges))
	}
	if opt.Undirected {
		kept := s.EdgesRead - s.DroppedDuplicates - s.DroppedSelfLoops
		if r.meta.Edges != 2*kept-s.SelfLoops {
			r.t.Fatalf("dropped rows are miscounted: %+v for %d edges", s, r.meta.Edges)
		}
	} else if !g.inverse && r.meta.Edges != s.EdgesRead-s.DroppedDuplicates {
		r.t.Fatalf("dropped rows are miscounted: %+v for %d edges", s, r.meta.Edges)
	}
	r.comparePartitions(in, opt)
}

func (r *reading) comparePartitions(in map[string]uint64, opt Options) {
	r.t.Helper()
	next := uint64(0)
	for _, p := range r.meta.Partitions {
		edges := uint64(0)
		for _, id := range r.ids[next : next+p.Nodes] {
			edges += in[id]
		}
		if uint64(p.First) != next || p.Edges != edges {
			r.t.Fatalf("partition %+v, want first %d, %d edges", p, next, edges)
		}
		next += p.Nodes
	}
	if next != r.meta.Nodes || len(r.meta.Partitions) != max(1, opt.Partitions) {
		r.t.Fatalf("%d partitions of %d nodes", len(r.meta.Partitions), next)
	}
}

func (r *reading) compareLabels(g *graph) {
	r.t.Helper()
	want := map[string][]string{}
	for _, m := range g.labels {
		if m.name != "" && !slices.Contains(want[m.id], m.name) {
			want[m.id] = append(want[m.id], m.name)
		}
	}
	l := r.meta.Labels
	if g.labelled == "" {
		if l != nil {
			r.t.Fatalf("labels %+v, want none", l)
		}
		return
	}
	b := r.raw(l.Rows)
	for node, id := range r.ids {
		row, got := b[node*l.Rows.RowBytes:][:l.Rows.RowBytes], []string(nil)
		for c, name := range l.Classes {
			if l.Kind == "multi" && row[c/8]>>(c%8)&1 == 1 ||
				l.Kind == "class" && int(row[0])|int(row[1])<<8|int(row[3])<<24 == c {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		slices.Sort(want[id])
		if !slices.Equal(got, want[id]) {
			r.t.Fatalf("labels of %s are %q, want %q", id, got, want[id])
		}
	}
	if l.Labeled != uint64(len(want)) {
		r.t.Fatalf("%d nodes are labeled, want %d", l.Labeled, len(want))
	}
}

func (r *reading) compareSplits(g *graph) {
	r.t.Helper()
	want := map[string][]string{}
	for _, m := range g.splits {
		want[m.name] = append(want[m.name], m.id)
	}
	if len(r.meta.Splits) != len(want) {
		r.t.Fatalf("splits %v, want %d", r.meta.Splits, len(want))
	}
	for name, ids := range want {
		set, err := r.store.Split(context.Background(), name)
		if err != nil {
			r.t.Fatal(err)
		}
		var got []string
		for _, node := range set.ToArray() {
			got = append(got, r.ids[node])
		}
		slices.Sort(got)
		slices.Sort(ids)
		if !slices.Equal(got, slices.Compact(ids)) {
			r.t.Fatalf("split %s has %d members, want %d", name, len(got), len(ids))
		}
	}
}

// storeFiles reads all files of a store but the catalog's.
func storeFiles(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(rel string)
	walk = func(rel string) {
		path := fs.PathJoin(dir, rel)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !info.IsDir() {
			out[rel] = string(layouttest.ReadFile(t, fs, path))
			return
		}
		names, err := fs.List(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if rel != "" || name != "catalog" {
				walk(strings.TrimPrefix(rel+"/"+name, "/"))
			}
		}
	}
	walk("")
	return out
}

// sameFiles compares two stores, byte for byte.
func sameFiles(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs: %d bytes, want %d, %s", name, len(got[name]), len(want[name]),
				firstDifference(got[name], want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s should not be there", name)
		}
	}
}

func firstDifference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("at byte %d", i)
		}
	}
	return "at the end"
}
