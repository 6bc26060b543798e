package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"
	"gdb/layout/nodeids"
	"gdb/layout/partitioner"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// ordered orders a store into out, checks all of the new one, and opens it.
func ordered(t *testing.T, fs vfs.FS, s *layout.Store, opt OrderOptions) *layout.Store {
	t.Helper()
	opt.Memory, opt.Version = 160<<20, "test"
	dev := layouttest.Device(t)
	m, report, err := Order(t.Context(), s, dev, fs, opt)
	if err != nil {
		t.Fatal(err)
	}
	st, err := layout.Open(t.Context(), fs, opt.Out)
	if err != nil {
		t.Fatal(err)
	}
	if st.Meta().UUID != m.UUID || *m.EdgeCut != report.Cut || len(st.Parts()) != opt.Parts+1 {
		t.Errorf("%+v and %+v of %d bounds", m, report, len(st.Parts()))
	}
	found, err := inspect.Check(t.Context(), dev, st, inspect.CheckOptions{Full: true})
	if err != nil || len(found.Findings) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	return st
}

// sameContent compares what two stores say by the ids of the user.
func sameContent(t *testing.T, got, want *content) {
	t.Helper()
	if !maps.EqualFunc(got.lists, want.lists, slices.Equal) ||
		!maps.EqualFunc(got.rows, want.rows, slices.Equal) ||
		!maps.Equal(got.labels, want.labels) ||
		!slices.Equal(got.classes, want.classes) ||
		!slices.Equal(slices.Sorted(slices.Values(got.train)),
			slices.Sorted(slices.Values(want.train))) {
		t.Errorf("the stores differ")
	}
}

// rest is what metadata say besides the order of nodes.
func rest(m *kv.Meta) string {
	c := *m
	c.UUID, c.Created, c.CreatedBy = kv.UUID{}, time.Time{}, ""
	c.IDs, c.Files, c.EdgeTables = kv.IDsMeta{}, nil, nil
	c.Partitioner, c.Partitions, c.EdgeCut, c.Coded = "", nil, nil, true
	c.Source.Args = slices.DeleteFunc(slices.Clone(m.Source.Args), func(s string) bool {
		flag, _, _ := strings.Cut(s, "=")
		return slices.Contains(orderWords, flag)
	})
	labels := ""
	if c.Labels != nil {
		labels, c.Labels = fmt.Sprintf("%+v", *m.Labels), nil
	}
	return fmt.Sprintf("%+v %s", c, labels)
}

var orderWords = []string{"--partitioner", "--partitions", "--restream"}

// TestOrder: an ordered store has what the store had, by the ids of the user; a partition is a
// range of nodes that keep the order they had. An ordered store can be ordered again.
func TestOrder(t *testing.T) {
	for i, ids := range []string{"dense", "text", "multi", "unknown", "target"} {
		method := partitioner.Method(partitioner.Words()[i])
		t.Run(ids+" "+string(method), func(t *testing.T) {
			fs := vfs.NewMem()
			g := graph(400, 1700, ids)
			if g.Both = i%2 == 0; g.Both {
				g.DType = rowfile.Sparse
			}
			s := layouttest.Build(t, fs, "whole", g)
			want := contentOf(t, s)
			st := ordered(t, fs, s, OrderOptions{Out: "one", Method: method, Parts: 5})
			got := contentOf(t, st)
			sameContent(t, got, want)
			if m := st.Meta().Features[0]; !m.Equal(&s.Meta().Features[0]) {
				t.Errorf("rows %+v", m)
			}
			was := map[string]int{}
			for v, id := range want.external {
				was[id] = v
			}
			bounds := st.Parts()
			for p := range len(bounds) - 1 {
				part := got.external[bounds[p]:bounds[p+1]]
				if !slices.IsSortedFunc(part, func(a, b string) int { return was[a] - was[b] }) {
					t.Errorf("part %d is not in the order of before", p)
				}
			}
			again := ordered(t, fs, st, OrderOptions{Out: "two", Method: partitioner.Random,
				Parts: 3, Seed: 4})
			sameContent(t, contentOf(t, again), want)
			if slices.Equal(got.external, contentOf(t, again).external) {
				t.Error("the second order is the first")
			}
		})
	}
}

// tables are files of a graph with types, weights, times and splits of edges; ids are text, or
// integers with gaps.
func tables(t *testing.T, fs vfs.FS, text bool) ingest.Options {
	var edges, nodes bytes.Buffer
	name := func(v int) string {
		if text {
			return fmt.Sprintf("user:%x", v*v+v)
		}
		return fmt.Sprint(v*3 + 5)
	}
	edges.WriteString("src,rel,dst,w,t,note\n")
	for i := range 900 {
		fmt.Fprintf(&edges, "%s,r%d,%s,%g,%d,n%d\n", name(i*i%211), i%3, name(i*7%193),
			float64(i)/8, i*100, i)
	}
	nodes.WriteString("id,label,f0,city,split\n")
	for v := range 211 {
		fmt.Fprintf(&nodes, "%s,%d,%g,c%d,%s\n", name(v), v%12-1, float64(v)/16, v%4,
			[]string{"train", "val", "test"}[v%3])
	}
	if err := errors.Join(files.WriteAtomic(fs, "edges.csv", edges.Bytes()),
		files.WriteAtomic(fs, "nodes.csv", nodes.Bytes())); err != nil {
		t.Fatal(err)
	}
	return ingest.Options{Options: source.Options{Edges: "edges.csv", Nodes: "nodes.csv",
		SrcCol: "src", DstCol: "dst", RelCol: "rel", WeightCol: "w", TimeCol: "t",
		LabelCol: "label", SplitCol: "split", FeatureCols: "f0", Categorical: "city",
		Memory: 160 << 20}, FeatureDType: "bf16", Both: true}
}

// edgesOfSplit returns the edges of a split, named by the ids of the user, in order of the text.
func edgesOfSplit(t *testing.T, s *layout.Store, names []string, split string) (all []string) {
	t.Helper()
	f, err := edgefile.Open(t.Context(), s, layouttest.Device(t), split)
	if err != nil {
		t.Fatal(err)
	}
	var e edgefile.Edges
	if err := errors.Join(f.Read(t.Context(), 0, f.Count(), &e), f.Close()); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i, src := range e.Src {
		if at := uint64(e.Dst[i])<<32 | uint64(src); at < last {
			t.Fatalf("edge %d of %s is out of order", i, split)
		} else {
			last = at
		}
		all = append(all, fmt.Sprint(names[src], e.Rel[i], names[e.Dst[i]]))
	}
	slices.Sort(all)
	return all
}

// TestOrderIngested orders stores that were ingested: metadata, ids, lookups and splits of edges
// are kept.
func TestOrderIngested(t *testing.T) {
	for _, c := range []struct{ text, undirected, split bool }{{true, false, true},
		{false, true, true}, {true, true, false}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			fs := vfs.NewMem()
			opt := tables(t, fs, c.text)
			opt.Out, opt.Undirected = "whole", c.undirected
			if c.split {
				opt.EdgeSplit = "random=70/15/15"
			}
			if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
				t.Fatal(err)
			}
			s, err := layout.Open(t.Context(), fs, "whole")
			if err != nil {
				t.Fatal(err)
			}
			st := ordered(t, fs, s, OrderOptions{Out: "out", Method: partitioner.GAP, Parts: 4,
				Restream: 1})
			want, got := contentOf(t, s), contentOf(t, st)
			sameContent(t, got, want)
			if a, b := rest(st.Meta()), rest(s.Meta()); a != b {
				t.Errorf("metadata\n%s\nwant\n%s", a, b)
			}
			for _, e := range s.Meta().EdgeSplits {
				if !slices.Equal(edgesOfSplit(t, st, got.external, e.Name),
					edgesOfSplit(t, s, want.external, e.Name)) {
					t.Errorf("the edges of %s differ", e.Name)
				}
			}
			dict, err := nodeids.Open(t.Context(), st, layouttest.Device(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			for v, id := range got.external {
				if u, err := dict.Internal(t.Context(), id); err != nil || int(u) != v {
					t.Fatalf("%s is node %d, want %d: %v", id, u, v, err)
				}
			}
			if err := dict.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOrderRefused: what cannot be ordered is refused, and leaves nothing.
func TestOrderRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "whole", graph(60, 90, "dense"))
	for _, opt := range []OrderOptions{{Method: partitioner.GAP, Parts: 1},
		{Method: partitioner.GAP, Parts: 61}, {Method: "metis", Parts: 2},
		{Method: partitioner.Random, Parts: 2, Restream: 1},
		{Method: partitioner.GAP, Parts: 2, Memory: 100 << 20}} {
		opt.Out, opt.Memory = "out", max(opt.Memory, 96<<20)
		_, _, err := Order(t.Context(), s, layouttest.Device(t), fs, opt)
		if !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	if _, err := fs.Stat("out"); err == nil {
		t.Error("something is left behind")
	}
}

// TestOrderCrash: after a power loss at any write there is no store, or all of it, and the next run
// goes on.
func TestOrderCrash(t *testing.T) {
	base := vfs.NewCrashableMem()
	layouttest.Build(t, base, "whole", graph(60, 190, "text"))
	for _, dir := range []string{"", "whole", "whole/topology", "whole/features", "whole/labels",
		"whole/ids"} {
		if err := files.SyncDir(base, dir); err != nil {
			t.Fatal(err)
		}
	}
	run := func(fs vfs.FS, resume bool) error {
		s, err := layout.Open(t.Context(), fs, "whole")
		if err != nil {
			return err
		}
		_, _, err = Order(context.Background(), s, layouttest.Device(t), fs, OrderOptions{
			Out: "out", Method: partitioner.LDG, Parts: 3, Memory: 160 << 20, Resume: resume})
		return err
	}
	for at := int32(1); ; at += 37 {
		fs := base.CrashClone(vfs.CrashCloneCfg{})
		failed := run(errorfs.Wrap(fs, failFrom(at)), false) != nil
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		if _, err := layout.Open(t.Context(), left, "out"); err != nil {
			if err := run(left, true); err != nil {
				t.Fatalf("write %d: the next run: %v", at, err)
			}
		}
		s, err := layout.Open(t.Context(), left, "whole")
		if err != nil {
			t.Fatal(err)
		}
		st, err := layout.Open(t.Context(), left, "out")
		if err != nil {
			t.Fatalf("write %d: %v", at, err)
		}
		sameContent(t, contentOf(t, st), contentOf(t, s))
		if !failed {
			return
		}
	}
}

// TestIngestOrdered: an ingest with a partitioner that reads lists gives the store that ordering a
// plain one gives; a power loss at any write leaves no store, and the next run goes on.
func TestIngestOrdered(t *testing.T) {
	base := vfs.NewCrashableMem()
	opt := tables(t, base, true)
	plain := opt
	plain.Out = "plain"
	if _, err := ingest.Run(t.Context(), base, plain); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Open(t.Context(), base, "plain")
	if err != nil {
		t.Fatal(err)
	}
	want := contentOf(t, ordered(t, base, s, OrderOptions{Out: "want", Method: partitioner.GAP,
		Parts: 3}))
	if err := files.SyncDir(base, ""); err != nil {
		t.Fatal(err)
	}
	opt.Out, opt.Partitioner, opt.Partitions = "out", "gap", 3
	run := func(fs vfs.FS, resume bool) error {
		opt := opt
		opt.Resume = resume
		_, _, err := Ingest(context.Background(), fs, opt)
		return err
	}
	for at := int32(1); ; at += 97 {
		fs := base.CrashClone(vfs.CrashCloneCfg{})
		failed := run(errorfs.Wrap(fs, failFrom(at)), false) != nil
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := run(left, true); err != nil { // also where all is done
			t.Fatalf("write %d: the next run: %v", at, err)
		}
		st, err := layout.Open(t.Context(), left, "out")
		if err != nil {
			t.Fatalf("write %d: %v", at, err)
		}
		got := contentOf(t, st)
		sameContent(t, got, want)
		if !slices.Equal(got.external, want.external) {
			t.Fatalf("write %d: nodes are in another order", at)
		}
		if names, err := left.List("out/tmp"); err == nil && len(names) > 0 {
			t.Fatalf("write %d: %q is left", at, names)
		}
		if !failed {
			return
		}
	}
}

// TestIngestOrderedRefused: bad input leaves nothing, and a second ingest says what to do.
func TestIngestOrderedRefused(t *testing.T) {
	fs := vfs.NewMem()
	opt := tables(t, fs, false)
	opt.Out, opt.Partitioner, opt.Partitions = "out", "ldg", 2
	bad := opt
	bad.FeatureCols = "nothing"
	if _, _, err := Ingest(t.Context(), fs, bad); err == nil {
		t.Error("a column that is not there")
	}
	layouttest.WriteFile(t, fs, "bad.csv", []byte("src,rel,dst,w,t\n5,a,8,1,1\n5,a,8,x,1\n"))
	bad = opt
	bad.Edges = "bad.csv"
	if _, _, err := Ingest(t.Context(), fs, bad); err == nil {
		t.Error("a weight that is no number")
	}
	if _, err := fs.Stat("out"); err == nil {
		t.Error("something is left behind")
	}
	if _, _, err := Ingest(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Ingest(t.Context(), fs, opt); !errors.Is(err, ingest.ErrExists) {
		t.Errorf("a second ingest: %v", err)
	}
}
