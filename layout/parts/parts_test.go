package parts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/edgetable"
	"gdb/layout/edgetable/edgetabletest"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"
	"gdb/layout/openfiles"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// graph is a graph with everything that a node and an edge can have.
func graph(nodes, edges int, ids string) layouttest.Graph {
	g := layouttest.Random(5, nodes, edges)
	g.EdgeTypes, g.Weighted, g.Timed = []string{"a", "b", "c"}, true, true
	g.Dim, g.Features = 5, layouttest.Features(nodes, 5)
	g.Classes, g.Labels = layouttest.ClassNames(7), make([]int32, nodes)
	for v := range g.Labels {
		g.Labels[v] = int32(v%5) - 1 // classes 4, 5 and 6 are empty
	}
	g.Splits = map[string][]layout.NodeID{}
	for v := 3; v < nodes; v += 11 {
		g.Splits["train"] = append(g.Splits["train"], layout.NodeID(v))
	}
	for v := range nodes {
		switch ids {
		case "text":
			g.IDs = append(g.IDs, fmt.Sprintf("node %x", v*v+v))
		case "multi", "target", "unknown":
			g.Labels, g.Classes = nil, nil
		}
	}
	switch ids {
	case "multi":
		g.Classes, g.Multi = layouttest.ClassNames(9), make([][]int, nodes)
		for v := range nodes {
			if v%3 > 0 {
				g.Multi[v] = []int{v % 4, v % 9}
			}
			if v%12 == 1 { // labeled, of no class
				g.Multi[v] = []int{}
			}
		}
	case "unknown":
		g.Classes, g.Multi, g.Unknown = layouttest.ClassNames(9), make([][]int, nodes),
			make([][]int, nodes)
		for v := range nodes {
			if v%3 > 0 {
				g.Multi[v], g.Unknown[v] = []int{v % 9}, []int{(v + 1) % 9, (v + 4) % 9}
			}
		}
	case "target":
		for v := range nodes {
			g.Targets = append(g.Targets, float32(v)/3)
		}
	}
	return g
}

// content is what a store says of its nodes, by the ids of the user.
type content struct {
	lists    map[string][]string // neighbors with what edges carry, in order of the text
	rows     map[string][]float32
	labels   map[string]string
	train    []string
	classes  []string
	external []string
}

// contentOf reads a store whole.
func contentOf(t *testing.T, s *layout.Store) *content {
	t.Helper()
	ctx, dev := t.Context(), layouttest.Device(t)
	files := openfiles.New(s, dev, mem.NewBudget(0))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() { must(files.Close()) }()
	m := s.Meta()
	nodes := make([]layout.NodeID, m.Nodes)
	for i := range nodes {
		nodes[i] = layout.NodeID(i)
	}
	dict, err := files.IDs(ctx, 0)
	must(err)
	c := &content{lists: map[string][]string{}, rows: map[string][]float32{},
		labels: map[string]string{}}
	c.external, err = dict.External(ctx, nodes, nil)
	must(err)
	r, err := files.Topology(ctx, layout.In, topology.Options{})
	must(err)
	ses := r.NewSession()
	defer ses.Release()
	l, err := ses.Lists(ctx, nodes)
	must(err)
	rows, err := files.Rows(ctx, m.Features[0])
	must(err)
	x := make([]float32, int(m.Nodes)*m.Features[0].Dim)
	must(rows.Gather(ctx, nodes, nil, x))
	labels, err := files.Rows(ctx, m.Labels.Rows)
	must(err)
	raw := make([]byte, int(m.Nodes)*m.Labels.Rows.RowBytes)
	must(labels.GatherRaw(ctx, nodes, nil, raw))
	for i, id := range c.external {
		var entries []edgetable.Entry
		for k := range l.Off[i+1] - l.Off[i] {
			entries = append(entries, edgetable.Entry{Node: nodes[i], Place: uint32(k)})
		}
		cells := edgetabletest.Cells(t, s, 0, entries)
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			c.lists[id] = append(c.lists[id], fmt.Sprintf("%s|%d %g %d%s",
				c.external[l.Nbrs[k]], l.Types[k], l.Weights[k], l.Times[k], cells[k-l.Off[i]]))
		}
		slices.Sort(c.lists[id])
		d, w := m.Features[0].Dim, m.Labels.Rows.RowBytes
		c.rows[id], c.labels[id] = x[i*d:(i+1)*d], string(raw[i*w:(i+1)*w])
	}
	set, err := s.Split(ctx, "train")
	must(err)
	for it := set.Iterator(); it.HasNext(); {
		c.train = append(c.train, c.external[it.Next()])
	}
	c.classes = m.Labels.Classes
	return c
}

// distances are the hops from nodes against the direction of edges; no entry beyond most.
func distances(c *content, from []string, most int) map[string]int {
	at := map[string]int{}
	level := from
	for hop := 0; hop <= most; hop++ {
		var next []string
		for _, id := range level {
			if _, ok := at[id]; ok {
				continue
			}
			at[id] = hop
			for _, e := range c.lists[id] {
				from, _, _ := strings.Cut(e, "|")
				next = append(next, from)
			}
		}
		level = next
	}
	return at
}

// TestParts checks that each training node is in one part; that a part has the nodes within the
// hops of its training nodes and no others, the whole lists of all but the farthest, and the rows
// and labels of all.
func TestParts(t *testing.T) {
	for _, ids := range []string{"dense", "text", "multi", "unknown", "target"} {
		t.Run(ids, func(t *testing.T) {
			fs := vfs.NewMem()
			s := layouttest.Build(t, fs, "whole", graph(400, 700, ids))
			want := contentOf(t, s)
			const hops, k = 2, 3
			report, err := Write(t.Context(), s, layouttest.Device(t), fs, Options{Parts: k,
				Hops: hops, Out: "out", Memory: 256 << 20, Threads: 1, Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			var trained []string
			reached := map[string]bool{}
			for i, part := range report.Parts {
				st, err := layout.Open(t.Context(), fs, part.Path)
				if err != nil {
					t.Fatal(err)
				}
				comparePart(t, want, contentOf(t, st), hops)
				got := contentOf(t, st)
				trained = append(trained, got.train...)
				for _, id := range got.external {
					reached[id] = true
				}
				if n := len(got.train); uint64(n) != part.Train || n > (len(want.train)+k-1)/k {
					t.Errorf("part %d trains %d nodes of %d, reported %d", i, n, len(want.train),
						part.Train)
				}
				found, err := inspect.Check(t.Context(), layouttest.Device(t), st,
					inspect.CheckOptions{Full: true})
				if err != nil || len(found.Findings) > 0 {
					t.Errorf("part %d: %+v, %v", i, found, err)
				}
			}
			slices.Sort(trained)
			all := slices.Sorted(slices.Values(want.train))
			if !slices.Equal(trained, all) {
				t.Errorf("parts train %d nodes, want each of %d once", len(trained), len(all))
			}
			if uint64(len(reached)) != report.Reached || report.Replication < 1 {
				t.Errorf("%d nodes are reached: %+v", len(reached), report)
			}
		})
	}
}

func comparePart(t *testing.T, want, got *content, hops int) {
	t.Helper()
	at := distances(want, got.train, hops)
	if len(at) != len(got.external) {
		t.Errorf("a part has %d nodes, %d are within %d hops", len(got.external), len(at), hops)
	}
	for _, id := range got.external {
		hop, ok := at[id]
		lists := want.lists[id]
		if hop == hops {
			lists = nil
		}
		if !ok || !slices.Equal(got.lists[id], lists) ||
			!slices.Equal(got.rows[id], want.rows[id]) || got.labels[id] != want.labels[id] {
			t.Fatalf("node %s, %d hops away (%v): %v %v %q, in the store %v %v %q", id, hop, ok,
				got.lists[id], got.rows[id], got.labels[id], want.lists[id], want.rows[id],
				want.labels[id])
		}
	}
	if !slices.Equal(got.classes, want.classes) {
		t.Errorf("classes %q, want %q", got.classes, want.classes)
	}
}

// TestDeal: on a graph of separate groups whose training nodes see each other, parts are groups,
// and nothing is replicated.
func TestDeal(t *testing.T) {
	const groups, size = 4, 30
	g := layouttest.Graph{Nodes: groups * size, Splits: map[string][]layout.NodeID{}}
	for v := range g.Nodes {
		for _, step := range []int{1, 2, size - 1, size - 2} {
			u := v/size*size + (v+step)%size
			g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(u),
				Dst: layout.NodeID(v)})
		}
		g.Splits["train"] = append(g.Splits["train"], layout.NodeID(v))
	}
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "whole", g)
	report, err := Write(t.Context(), s, layouttest.Device(t), fs, Options{Parts: groups, Hops: 2,
		Out: "out", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if report.Replication != 1 || report.Balance != 1 {
		t.Errorf("%+v", report)
	}
}

// TestRefused: what cannot be cut is refused, and nothing is left behind.
func TestRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "whole", graph(60, 90, "dense"))
	bare := layouttest.Build(t, fs, "bare", layouttest.Random(1, 20, 30))
	for _, c := range []struct {
		s   *layout.Store
		opt Options
	}{{s, Options{Parts: 0, Hops: 1, Out: "out"}}, {s, Options{Parts: 2, Out: "out"}},
		{s, Options{Parts: 2, Hops: 1}}, {s, Options{Parts: 50, Hops: 1, Out: "out"}},
		{bare, Options{Parts: 2, Hops: 1, Out: "out"}}} {
		_, err := Write(t.Context(), c.s, layouttest.Device(t), fs, c.opt)
		if !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: %v", c.opt, err)
		}
	}
	if _, err := Write(t.Context(), s, layouttest.Device(t), fs, Options{Parts: 2, Hops: 1,
		Out: "bare", Memory: 256 << 20}); err == nil {
		t.Error("a directory that is there is replaced")
	}
	if _, err := fs.Stat("out"); err == nil {
		t.Error("something is left behind")
	}
}

// TestCrash: after a power loss at any write the parts are not there, or are whole; the next run
// makes them.
func TestCrash(t *testing.T) {
	base := vfs.NewCrashableMem()
	layouttest.Build(t, base, "whole", graph(60, 90, "text"))
	for _, dir := range []string{"", "whole", "whole/topology", "whole/features", "whole/labels",
		"whole/ids"} {
		if err := files.SyncDir(base, dir); err != nil {
			t.Fatal(err)
		}
	}
	opt := Options{Parts: 2, Hops: 1, Out: "out", Memory: 256 << 20}
	made := func(fs vfs.FS) error {
		s, err := layout.Open(t.Context(), fs, "whole")
		if err != nil {
			return err
		}
		_, err = Write(context.Background(), s, layouttest.Device(t), fs, opt)
		return err
	}
	for at := int32(1); ; at += 41 {
		fs := base.CrashClone(vfs.CrashCloneCfg{})
		failed := made(errorfs.Wrap(fs, failFrom(at))) != nil
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		if _, err := left.Stat("out"); err == nil {
			for i := range opt.Parts {
				if _, err := layout.Open(t.Context(), left,
					"out/part"+strconv.Itoa(i)+".gdb"); err != nil {
					t.Fatalf("write %d: half of the parts are there: %v", at, err)
				}
			}
		} else if err := made(left); err != nil {
			t.Fatalf("write %d: the next run: %v", at, err)
		}
		if !failed {
			return
		}
	}
}

// failFrom fails every write from one on, as after a power loss.
func failFrom(at int32) errorfs.Injector {
	var writes atomic.Int32
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && writes.Add(1) >= at {
			return errorfs.ErrInjected
		}
		return nil
	})
}
