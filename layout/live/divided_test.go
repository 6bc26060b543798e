package live

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/splits"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dividedModel is what a model of a store of one type has of edges in splits.
type dividedModel struct {
	how                string // as --edge-split has it
	seed               uint64
	keep, dedup, loops bool
	given              []modelEdge         // each once, as the sources have it
	split              []string            // by given edge
	of                 map[nodePair]string // by pairs of nodes that an edge joins or joined
}

// newDividedModel draws a store of one type whose edges are in splits.
func newDividedModel(r *rand.Rand) *model {
	m := newModel(r)
	d := &dividedModel{how: "random=50/25/25", seed: r.Uint64N(100), of: map[nodePair]string{}}
	if m.next = 12; m.timed && r.IntN(2) == 0 {
		d.how = "time=1,2"
	}
	switch {
	case m.undirected && r.IntN(2) == 0:
		d.keep = true
		m.weighted, m.timed = r.IntN(2) == 0, r.IntN(4) == 0
	case !m.undirected && !m.weighted && !m.timed:
		d.dedup = r.IntN(2) == 0
	}
	m.divided = d
	return m
}

// same returns an edge as parallel ones have it.
func (m *model) same(e modelEdge) modelEdge {
	e.weight, e.time = 0, 0
	if m.undirected {
		e.src, e.dst = min(e.src, e.dst), max(e.src, e.dst)
	}
	return e
}

// addDivided adds edges to their splits: by time, or where the edges between their ends are, or by
// the numbers that these have.
func (m *model) addDivided(edges []modelEdge) {
	d := m.divided
	for _, e := range edges {
		for _, name := range []string{e.src, e.dst} {
			if !slices.Contains(m.names, name) {
				m.names = append(m.names, name)
			}
		}
	}
	how, err := splits.ParseEdgeSplit(d.how, d.seed, m.timed)
	if err != nil {
		panic(err)
	}
	place := func(name string) uint32 { return uint32(slices.Index(m.names, name)) }
	drops := m.undirected && !d.keep || d.dedup
	for _, e := range edges {
		pair, split := pairBetween(e.src, e.dst), ""
		switch {
		case m.undirected && !d.loops && e.src == e.dst:
			continue
		case how.Times != nil:
			split = edgefile.Splits[e.time]
		default:
			if split = d.of[pair]; split == "" {
				split = how.Draw.Of(place(e.src), place(e.dst))
			}
			d.of[pair] = split
		}
		at := slices.IndexFunc(d.given, func(of modelEdge) bool { return m.same(of) == m.same(e) })
		if !drops || at < 0 {
			d.given, d.split = append(d.given, e), append(d.split, split)
		} else if d.given[at].src != e.src && place(e.src) < place(e.dst) {
			d.given[at] = e // both ways: it goes up
		}
	}
	m.list()
}

// list sets the edges of the lists to those of train.
func (m *model) list() {
	m.edges = m.edges[:0]
	for i, e := range m.divided.given {
		if m.divided.split[i] != "train" {
			continue
		}
		if m.edges = append(m.edges, e); m.undirected && e.src != e.dst {
			e.src, e.dst = e.dst, e.src
			m.edges = append(m.edges, e)
		}
	}
}

// removeDivided removes edges, and what is known of nodes that no edge joins any more.
func (m *model) removeDivided(is func(e modelEdge) bool) (removed int) {
	d := m.divided
	kept, split := d.given[:0:0], d.split[:0:0]
	clear(d.of)
	for i, e := range d.given {
		if !is(e) {
			kept, split = append(kept, e), append(split, d.split[i])
			d.of[pairBetween(e.src, e.dst)] = d.split[i]
		}
	}
	removed = len(d.given) - len(kept)
	d.given, d.split = kept, split
	m.list()
	return removed
}

// splits compares the files of the splits with the model.
func (t *trial) splits(s *layout.Store, dev blockdev.Device, names []string) {
	t.Helper()
	if !slices.Equal(names, t.m.names) {
		t.Errorf("%s: nodes %s, want %s", t.log, names, t.m.names)
	}
	for _, split := range s.Meta().EdgeSplits {
		var got, want []modelEdge
		f, err := edgefile.Open(t.Context(), s, dev, split.Name)
		if err != nil {
			t.Fatal(t.log, err)
		}
		err = f.Stream(t.Context(), 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
			for i := range e.Src {
				one := modelEdge{src: names[e.Src[i]], dst: names[e.Dst[i]]}
				if e.Rel != nil {
					one.typ = s.Meta().EdgeTypes[e.Rel[i]]
				}
				got = append(got, one)
			}
			return nil
		})
		if err != nil {
			t.Fatal(t.log, err)
		}
		for i, e := range t.m.divided.given {
			if t.m.divided.split[i] == split.Name {
				e.weight, e.time = 0, 0
				want = append(want, e)
			}
		}
		order := func(a, b modelEdge) int {
			return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst),
				cmp.Compare(a.typ, b.typ))
		}
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s has %v, want %v", t.log, split.Name, got, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// givenSource is a source of edges that are in given splits.
type givenSource struct {
	source.Source
	info  source.Info
	split []string
}

func (s *givenSource) Info() *source.Info { return &s.info }

// Edges streams the edges one by one, with their splits.
func (s *givenSource) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	at := 0
	return s.Source.Edges(ctx, func(c *source.EdgeChunk) error {
		for i := range c.Len() {
			one := source.EdgeChunk{Where: c.Where, Split: s.split[at]}
			at++
			if c.SrcText != nil {
				one.SrcText, one.DstText = c.SrcText[i:i+1], c.DstText[i:i+1]
			} else {
				one.SrcInt, one.DstInt = c.SrcInt[i:i+1], c.DstInt[i:i+1]
			}
			if c.TypeText != nil {
				one.TypeText = c.TypeText[i : i+1]
			}
			if c.Weight != nil {
				one.Weight = c.Weight[i : i+1]
			}
			if c.Time != nil {
				one.Time = c.Time[i : i+1]
			}
			if err := fn(&one); err != nil {
				return err
			}
		}
		return nil
	})
}

// bytesDivided compares the files of a store whose edges are in splits with those of an ingest of
// all that it has, with its splits, its identity and its order of ids.
func (t *trial) bytesDivided(made *kv.Meta) {
	t.Helper()
	m := t.m
	type edge struct {
		modelEdge
		split string
	}
	var edges []edge
	for i, e := range m.divided.given {
		edges = append(edges, edge{e, m.divided.split[i]})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.typ, b.typ) })
	isInOrder := slices.IsSortedFunc(m.names, func(a, b string) int {
		return cmp.Or(len(a)-len(b), cmp.Compare(a, b))
	})
	if len(edges) == 0 || m.dense && !isInOrder ||
		m.typed && (edges[0].typ != "a" || edges[len(edges)-1].typ != "b") {
		return // an ingest would number nodes or types otherwise
	}
	given := &givenSource{}
	var all []modelEdge
	for _, e := range edges {
		all, given.split = append(all, e.modelEdge), append(given.split, e.split)
	}
	t.write("e.csv", m.text(all, m.typed, m.weighted, m.timed))
	t.write("n.csv", "id\n"+strings.Join(m.names, "\n")+"\n")
	opt := t.options(m.typed, m.weighted, m.timed)
	opt.Nodes, opt.IDCol, opt.Out, opt.UUID = "n.csv", "id", "once", made.UUID
	opt.Undirected, opt.Both, opt.KeepSelfLoops = m.undirected, m.both, true
	opt.KeepDuplicates, opt.Dedup, opt.NoEdges = m.divided.keep, m.divided.dedup, true
	src, err := source.Open(t.Context(), t.fs, &opt.Options)
	if err != nil {
		t.Fatal(t.log, err)
	}
	given.Source, given.info = src, *src.Info()
	given.info.EdgeSplits = edgefile.Splits
	want, err := ingest.RunSource(t.Context(), t.fs, given, opt)
	if err != nil {
		t.Fatal(t.log, err)
	}
	sameFiles(t.T, t.fs, "s", made, "once", want)
	for i, s := range want.EdgeSplits { // of train and drawn ones it is not counted
		if s.Reversed = 0; made.EdgeSplits[i] != s {
			t.Errorf("split %+v, want %+v", made.EdgeSplits[i], s)
		}
	}
	if t.Failed() {
		t.Fatal(t.log)
	}
	if err := t.fs.RemoveAll("once"); err != nil {
		t.Fatal(err)
	}
}

// TestDividedHistories is TestHistories of stores of one type whose edges are in splits.
func TestDividedHistories(t *testing.T) { histories(t, newDividedModel) }

// TestDividedRefused: what splits of edges cannot say is refused, and nothing changes.
func TestDividedRefused(t *testing.T) {
	fs := vfs.NewMem()
	writeText(t, fs, "e.csv", "src,dst,time\na,b,0\nb,c,1\nc,d,2\n")
	writeText(t, fs, "gone.csv", "src,dst,time\na,b,0\n")
	writeText(t, fs, "more.csv", "src,dst,time\na,e,2\n")
	opt := ingest.Options{Out: "s", EdgeSplit: "time=1,2"}
	opt.Edges, opt.TimeCol, opt.Memory = "e.csv", "time", 1<<30
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	del := Deletion{}
	del.Edges, del.TimeCol, del.Memory = "gone.csv", "time", 1<<30
	if _, err := Delete(t.Context(), fs, "s", del); err == nil ||
		!strings.Contains(err.Error(), "without times") {
		t.Errorf("edges named by times: %v", err)
	}
	src, err := source.Open(t.Context(), fs, &opt.Options)
	if err != nil {
		t.Fatal(err)
	}
	given := &givenSource{Source: src, info: *src.Info(), split: []string{"train", "val", "test"}}
	given.info.EdgeSplits = edgefile.Splits
	opt.EdgeSplit, opt.Out = "", "given"
	if _, err := ingest.RunSource(t.Context(), fs, given, opt); err != nil {
		t.Fatal(err)
	}
	more := ingest.Options{}
	more.Edges, more.TimeCol, more.Memory = "more.csv", "time", 1<<30
	if _, err := Append(t.Context(), fs, "given", more); err == nil ||
		!strings.Contains(err.Error(), "not drawn by chance") {
		t.Errorf("splits of a source: %v", err)
	}
	if s := open(t, fs, ""); s.Meta().Snapshot != 0 {
		t.Errorf("snapshot %d", s.Meta().Snapshot)
	}
}

// TestDividedLack: a node that gets a label by a file of its own keeps its features, while others
// get new ones.
func TestDividedLack(t *testing.T) {
	fs, h := vfs.NewMem(), &history{}
	h.opt.EdgeSplit = "random=50/50/0"
	nodes := "id,a,b,kind\nn0,1,2,x\nn1,3,4,y\nn2,5,6,x\n"
	edges := "src,dst\nn0,n1\nn1,n2\nn2,n0\nn1,n0\nn0,n0\nn1,n1\n"
	writeText(t, fs, "e.csv", edges)
	writeText(t, fs, "n.csv", nodes)
	opt := h.opt
	opt.Out, opt.Edges, opt.Nodes, opt.Memory = "s", "e.csv", "n.csv", 1<<30
	opt.FeatureCols, opt.LabelCol = "a,b", "kind"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	writeText(t, fs, "n.csv", "id,a,b\nn1,7,8\n")
	writeText(t, fs, "l.csv", "id,label\nn0,y\n")
	more := ingest.Options{}
	writeText(t, fs, "more.csv", "src,dst\nn0,n0\n")
	more.Edges, more.Nodes, more.Labels = "more.csv", "n.csv", "l.csv"
	more.FeatureCols, more.Memory = "a,b", 1<<30
	done, err := Append(t.Context(), fs, "s", more)
	if err != nil || done.Replaced != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	writeText(t, fs, "n.csv", "id,a,b,kind\nn0,1,2,y\nn1,7,8,y\nn2,5,6,x\n")
	writeText(t, fs, "e.csv", edges+"n0,n0\n")
	opt.Out = "once"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	if got, want := contents(t, fs, "s", r), contents(t, fs, "once", r); got != want {
		t.Errorf("appended:\n%s\nat once:\n%s", got, want)
	}
}
