package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/listfile"
	"gdb/layout/nodeids"
	"gdb/layout/openfiles"
	"gdb/layout/parts"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// part is what a commit adds: text files as gdb ingest reads them.
type part struct{ edges, nodes string }

// history is a random graph that grows, and how it is ingested.
type history struct {
	parts []part
	opt   ingest.Options
	ints  bool
}

func newHistory(r *rand.Rand) *history {
	h := &history{ints: r.IntN(2) == 0}
	h.opt.Undirected, h.opt.Both = r.IntN(2) == 0, r.IntN(2) == 0
	h.opt.KeepSelfLoops = h.opt.Both
	weighted := !h.opt.Undirected && r.IntN(2) == 0
	nodes, edges := 0, map[string]bool{}
	for i := range 1 + r.IntN(4) {
		var p part
		more := r.IntN(30) * r.IntN(2)
		if i == 0 {
			more += 20
		}
		p.nodes = "id,a,b,kind,part\n"
		for range more {
			p.nodes += fmt.Sprintf("%s,%d,%g,%s,%s\n", h.name(nodes), nodes, float64(nodes)/3,
				[]string{"x", "y", "z", ""}[nodes%4], []string{"train", "val", "test", ""}[nodes%3])
			nodes++
		}
		p.edges = "src,dst"
		if weighted {
			p.edges += ",weight"
		}
		for k := 0; k < 20+r.IntN(80); k++ {
			e := h.name(r.IntN(nodes)) + "," + h.name(r.IntN(nodes))
			if weighted && edges[e] { // parallel edges of other weights have no order
				continue
			}
			edges[e] = true
			if p.edges += "\n" + e; weighted {
				p.edges += fmt.Sprintf(",%d", k)
			}
		}
		h.parts = append(h.parts, p)
	}
	return h
}

func (h *history) name(v int) string {
	if h.ints {
		return fmt.Sprint(v * 3)
	}
	return fmt.Sprintf("n%d", v)
}

// options writes the sources of a part to files, and returns how they are read.
func (h *history) options(t *testing.T, fs vfs.FS, p part, shape bool) ingest.Options {
	t.Helper()
	opt := ingest.Options{}
	if shape {
		opt = h.opt
	}
	for name, text := range map[string]string{"e.csv": p.edges, "n.csv": p.nodes} {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte(text + "\n"))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	opt.Edges, opt.Memory = "e.csv", 1<<30
	if strings.Count(p.nodes, "\n") > 1 {
		opt.Nodes, opt.FeatureCols, opt.LabelCol, opt.SplitCol = "n.csv", "a,b", "kind", "part"
	}
	return opt
}

// whole returns all parts as one.
func (h *history) whole() (all part) {
	for i, p := range h.parts {
		if i > 0 {
			_, p.edges, _ = strings.Cut(p.edges, "\n")
			_, p.nodes, _ = strings.Cut(p.nodes, "\n")
			all.edges += "\n"
		}
		all.edges, all.nodes = all.edges+p.edges, all.nodes+p.nodes
	}
	return all
}

func (h *history) ingest(t *testing.T, fs vfs.FS, p part, out string) {
	t.Helper()
	opt := h.options(t, fs, p, true)
	opt.Out = out
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
}

// TestAppend: a store that was appended to is, to all who read it, what an ingest of all sources at
// once makes.
func TestAppend(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if seed%2 == 0 {
				allLarge(t)
			}
			r := rand.New(rand.NewPCG(seed, 1))
			h, fs := newHistory(r), vfs.NewMem()
			if seed >= 8 { // edges are in splits
				h.opt.EdgeSplit, h.opt.Seed = "random=60/20/20", seed
			}
			h.ingest(t, fs, h.parts[0], "live")
			h.ingest(t, fs, h.whole(), "once")
			for _, p := range h.parts[1:] {
				opt := h.options(t, fs, p, false)
				if _, err := Append(t.Context(), fs, "live", opt); err != nil {
					t.Fatal(err)
				}
			}
			want := contents(t, fs, "once", r)
			if got := contents(t, fs, "live", r); got != want {
				t.Errorf("appended:\n%s\nat once:\n%s", got, want)
			}
			opt := parts.OrderOptions{Memory: 1 << 30}
			if _, err := Compact(t.Context(), fs, "live", opt); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, fs, "live", r); got != want {
				t.Errorf("compacted:\n%s\nat once:\n%s", got, want)
			}
		})
	}
}

// TestAppendRefused: what a store cannot take is refused in words, and nothing of it is left.
func TestAppendRefused(t *testing.T) {
	fs := vfs.NewMem()
	h := &history{}
	nodes := "id,a,b,kind,part\nn0,1,2,x,train\nn1,3,4,y,val"
	h.ingest(t, fs, part{edges: "src,dst\nn0,n1", nodes: nodes}, "s")
	want := contents(t, fs, "s", rand.New(rand.NewPCG(1, 1)))
	for why, p := range map[string]part{
		"node n7 is new, and has no row of features": {edges: "src,dst\nn0,n7", nodes: "id,a,b"},
		"weights of edges: the sources have true, the store false": {
			edges: "src,dst,weight\nn0,n1,2", nodes: "id"},
		"have classes that the store lacks": {edges: "src,dst\nn0,n9",
			nodes: "id,a,b,kind,part\nn9,1,2,w,train\nn8,1,2,x,val"},
	} {
		_, err := Append(t.Context(), fs, "s", h.options(t, fs, p, false))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("error %v, want %q", err, why)
		}
		left, err := fs.List("s/tmp")
		if err != nil || !slices.Equal(left, []string{"live.lock"}) {
			t.Errorf("%s: %v is left in tmp, %v", why, left, err)
		}
		if got := contents(t, fs, "s", rand.New(rand.NewPCG(1, 1))); got != want {
			t.Errorf("%s: the store is now %s", why, got)
		}
	}
}

// contents returns all that a store has, as text.
func contents(t *testing.T, fs vfs.FS, dir string, r *rand.Rand) string {
	t.Helper()
	s, err := layout.OpenLive(t.Context(), fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	return contentsOf(t, s, r)
}

// contentsOf returns all that an opened store has, as text.
func contentsOf(t *testing.T, s *layout.Store, r *rand.Rand) string {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b, m := &strings.Builder{}, s.Meta()
	fmt.Fprintln(b, m.Nodes, m.Edges, len(m.Splits), m.Stats.SelfLoops, m.Stats.TypeCounts)
	if m.Labels != nil {
		fmt.Fprintln(b, m.Labels.Labeled, m.Labels.ClassCounts)
	}
	for _, dir := range m.Directions {
		for _, resident := range []bool{false, true} {
			lists(t, b, s, dev, layout.Direction(slices.Index([]string{"in", "out"}, dir)),
				topology.Options{Resident: resident}, r)
		}
	}
	nodes := make([]layout.NodeID, m.Nodes)
	for i := range nodes {
		nodes[i] = layout.NodeID(i)
	}
	set := openfiles.New(s, dev, nil)
	defer set.Close()
	dict, err := set.IDs(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	names, err := dict.External(t.Context(), nodes, nil)
	fmt.Fprintln(b, names, err)
	for i, name := range names {
		v, err := dict.Internal(t.Context(), name)
		if errors.Is(err, nodeids.ErrDeleted) {
			fmt.Fprintln(b, name, "was deleted")
		} else if err != nil || v != nodes[i] {
			t.Errorf("%s is node %d, want %d: %v", name, v, i, err)
		}
	}
	if m.Labels != nil {
		rows(t, b, set, m, nodes, r)
	}
	for _, split := range m.Splits {
		set, err := s.Split(t.Context(), split.Name)
		fmt.Fprintln(b, split.Name, set, err)
	}
	return b.String()
}

// lists writes all lists of a direction, and checks that sessions read single entries of them.
func lists(t *testing.T, b *strings.Builder, s *layout.Store, dev blockdev.Device,
	dir layout.Direction, opt topology.Options, r *rand.Rand) {
	t.Helper()
	top, err := topology.Open(t.Context(), s, dev, dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	session := top.NewSession()
	defer session.Release()
	nodes := make([]layout.NodeID, top.Nodes())
	for i, v := range r.Perm(len(nodes)) {
		nodes[i] = layout.NodeID(v)
	}
	deg := make([]uint32, len(nodes))
	if err := session.Degrees(t.Context(), nodes, deg); err != nil {
		t.Fatal(err)
	}
	off, pos := []uint32{0}, []uint32(nil)
	for i := range nodes {
		for x := range deg[i] {
			pos = append(pos, deg[i]-1-x)
		}
		off = append(off, uint32(len(pos)))
	}
	out := make([]layout.NodeID, len(pos))
	if err := session.Gather(t.Context(), off, pos, out); err != nil {
		t.Fatal(err)
	}
	text := make([]string, len(nodes))
	for i, v := range nodes {
		l, err := session.Lists(t.Context(), []layout.NodeID{v})
		if err != nil {
			t.Fatal(err)
		}
		single := slices.Clone(out[off[i]:off[i+1]])
		if slices.Reverse(single); !slices.Equal(single, l.Nbrs) {
			t.Errorf("node %d: entries %d, list %d", v, single, l.Nbrs)
		}
		text[v] = fmt.Sprintln(v, l.Nbrs, l.Types, l.Weights, l.Times)
	}
	fmt.Fprintln(b, dir, top.Nodes(), top.Edges(), text)
	all := [][]layout.NodeID{}
	err = topology.EachInRange(t.Context(), top, 0, layout.NodeID(top.Nodes()),
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				if l.Off[i] < l.Off[i+1] {
					all = append(all, slices.Clone(l.Nbrs[l.Off[i]:l.Off[i+1]]))
				}
			}
			return nil
		})
	fmt.Fprintln(b, all, err)
}

// rows writes features and labels, gathered, swept and scanned.
func rows(t *testing.T, b *strings.Builder, open *openfiles.Set, m *kv.Meta,
	nodes []layout.NodeID, r *rand.Rand) {
	t.Helper()
	x, err := open.Rows(t.Context(), m.Features[0])
	if err != nil {
		t.Fatal(err)
	}
	dim := x.Meta().Dim
	got, scanned := make([]float32, len(nodes)*dim), make([]float32, len(nodes)*dim)
	some, at := slices.Clone(nodes), make([]uint32, len(nodes))
	r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	keys := make([]uint64, len(nodes))
	for i, v := range some {
		at[i], keys[i] = uint32(v), uint64(i)<<32|uint64(i)
	}
	if err := x.Gather(t.Context(), some, at, got); err != nil {
		t.Fatal(err)
	}
	if err := x.Scan(t.Context(), 0, len(nodes), scanned); err != nil {
		t.Fatal(err)
	}
	swept := make([]float32, len(nodes)*dim)
	err = x.Sweep(t.Context(), keys, nil, func(i uint32, row []byte) error {
		return x.Decode(swept[int(i)*dim:][:dim], row)
	})
	if !slices.Equal(got, scanned) || !slices.Equal(got, swept) || err != nil {
		t.Errorf("gathered %v, scanned %v, swept %v, %v", got, scanned, swept, err)
	}
	labels, err := open.Rows(t.Context(), m.Labels.Rows)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 4*len(nodes))
	if err := labels.GatherRaw(t.Context(), nodes, nil, raw); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(b, got, raw)
}

// TestHeld: small commits are files beside the levels that are read as levels are, are written out
// once they are worth it, and then the store is as if it had been ingested at once.
func TestHeld(t *testing.T) {
	fs := vfs.NewMem()
	write := func(name, text string) {
		t.Helper()
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ingestAs := func(text, out string) {
		write("e.csv", text)
		opt := ingest.Options{Out: out, KeepSelfLoops: true, Both: true}
		opt.Edges, opt.Memory = "e.csv", 1<<30
		if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
			t.Fatal(err)
		}
	}
	ingestAs("src,dst\na,b\nb,c\n", "s")
	all := "src,dst\na,b\nb,c\n"
	var opt ingest.Options
	for i := range 7 {
		more := fmt.Sprintf("n%d,a\nb,n%d\nn%d,n%d\n", i, i, i, i)
		all += more
		write("more.csv", "src,dst\n"+more)
		opt = ingest.Options{}
		opt.Edges, opt.Memory = "more.csv", 1<<30
		level, err := Append(t.Context(), fs, "s", opt)
		if err != nil || level.Nodes != 1 || level.Edges != 3 || level.Snapshot != uint64(i+1) {
			t.Fatalf("commit %d: %+v, %v", i, level, err)
		}
	}
	ingestAs(all, "once")
	names := func() []string {
		names, err := fs.List("s/levels")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return names
	}
	r := rand.New(rand.NewPCG(1, 1))
	want := contents(t, fs, "once", r)
	check := func(what string, files ...string) {
		t.Helper()
		if got := contents(t, fs, "s", r); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
		if got := names(); !slices.Equal(got, files) {
			t.Errorf("%s: levels has %s, want %s", what, got, files)
		}
	}
	check("held", "1.commit", "2.commit", "3.commit", "4.commit", "5.commit", "6.commit",
		"7.commit")
	w, err := begin(t.Context(), fs, "s")
	if err == nil {
		err = w.flush(t.Context(), &opt)
	}
	if err == nil {
		err = errors.Join(w.sweep(t.Context()), w.close())
	}
	if err != nil {
		t.Fatal(err)
	}
	check("written out", "7")
}

// TestHeldDamage: a commit of which a bit was flipped is an error, and not a shorter store.
func TestHeldDamage(t *testing.T) {
	fs := vfs.NewMem()
	h := &history{}
	h.ingest(t, fs, part{edges: "src,dst\nn0,n1", nodes: "id"}, "s")
	opt := h.options(t, fs, part{edges: "src,dst\nn1,n0\nn2,n1", nodes: "id"}, false)
	if _, err := Append(t.Context(), fs, "s", opt); err != nil {
		t.Fatal(err)
	}
	raw, err := files.ReadSmall(fs, "s/levels/1.commit", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for _, change := range []func(b []byte) []byte{
			func(b []byte) []byte { b[i] ^= 4; return b }, func(b []byte) []byte { return b[:i] }} {
			b := change(slices.Clone(raw))
			if err := files.WriteAtomic(fs, "s/levels/1.commit", b); err != nil {
				t.Fatal(err)
			}
			if _, err := layout.OpenLive(t.Context(), fs, "s"); !errors.Is(err, layout.ErrCorrupt) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}
