package live

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// valued is a node as a table of nodes has it; "" is no label, or no split.
type valued struct{ a, b, kind, part string }

func (v valued) row(name string) string {
	return fmt.Sprintf("%s,%s,%s,%s,%s\n", name, v.a, v.b, v.kind, v.part)
}

// TestReplace: commits give nodes that are there other features, labels and splits; who reads
// the store sees the last of each, earlier snapshots keep theirs, and a compaction keeps all.
func TestReplace(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			fewLevels(t, int(seed)%3+1)
			fs, h := vfs.NewMem(), &history{}
			h.opt.Undirected = seed%2 == 0
			if seed >= 6 { // edges are in splits
				h.opt.EdgeSplit = "random=60/20/20"
			}
			names, now, edges := []string{}, map[string]valued{}, "src,dst"
			draw := func(n int, fresh bool) (p part, changed int) {
				p = part{edges: "src,dst", nodes: "id,a,b,kind,part\n"}
				some := map[string]bool{}
				for range n {
					name, old := fmt.Sprintf("n%d", len(names)), !fresh && r.IntN(3) > 0
					if old {
						name = names[r.IntN(len(names))]
					}
					if some[name] {
						continue
					}
					some[name] = true
					v := valued{fmt.Sprint(r.IntN(9)), fmt.Sprint(r.IntN(9)),
						[]string{"x", "y", "z", ""}[r.IntN(4)],
						[]string{"train", "val", "test", ""}[r.IntN(4)]}
					if fresh && n > 4 && len(names) < 4 { // all classes and splits are there
						v.kind, v.part = "xyzx"[len(names):][:1],
							[]string{"train", "val", "test", "val"}[len(names)]
					}
					p.nodes += v.row(name)
					if !old {
						names = append(names, name)
					} else {
						changed++
						v = v.or(now[name])
					}
					now[name] = v
				}
				for range r.IntN(2) * r.IntN(20) {
					e := "\n" + names[r.IntN(len(names))] + "," + names[r.IntN(len(names))]
					p.edges, edges = p.edges+e, edges+e
				}
				return p, changed
			}
			first, _ := draw(20, true)
			first.edges += "\nn0,n1"
			edges += "\nn0,n1"
			for i := 0; seed >= 6 && i < 40; i++ {
				e := "\n" + names[r.IntN(len(names))] + "," + names[r.IntN(len(names))]
				first.edges, edges = first.edges+e, edges+e
			}
			h.ingest(t, fs, first, "s")
			before := contents(t, fs, "s", r)
			err := open(t, fs, "").Catalog().Hold(t.Context(), "first", 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 1 + r.IntN(5) {
				p, changed := draw(1+r.IntN(12), false)
				opt := h.options(t, fs, p, false)
				if !strings.Contains(p.edges, "\n") && r.IntN(2) == 0 {
					opt.Edges = ""
				}
				done, err := Append(t.Context(), fs, "s", opt)
				if err != nil || done.Replaced != uint64(changed) {
					t.Fatalf("%+v, want %d replaced, %v", done, changed, err)
				}
			}
			all := part{edges: edges, nodes: "id,a,b,kind,part\n"}
			for _, name := range names {
				all.nodes += now[name].row(name)
			}
			h.ingest(t, fs, all, "once")
			want := contents(t, fs, "once", r)
			if got := contents(t, fs, "s", r); got != want {
				t.Errorf("replaced:\n%s\nat once:\n%s", got, want)
			}
			s, err := layout.OpenAt(t.Context(), fs, "s", "0")
			if err != nil {
				t.Fatal(err)
			}
			if got := contentsOf(t, s, r); got != before {
				t.Errorf("snapshot 0:\n%s\nwas:\n%s", got, before)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			opt := parts.OrderOptions{Memory: 1 << 30}
			m, err := Compact(t.Context(), fs, "s", opt)
			if err != nil {
				t.Fatal(err)
			}
			twin := h.options(t, fs, all, true)
			twin.Out, twin.UUID = "twin", m.UUID
			of, err := ingest.Run(t.Context(), fs, twin)
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, fs, "s", m, "twin", of)
			if got := contents(t, fs, "s", r); got != want {
				t.Errorf("compacted:\n%s\nat once:\n%s", got, want)
			}
		})
	}
}

// or returns the node with those values of another that it has not.
func (v valued) or(of valued) valued {
	if v.kind == "" {
		v.kind = of.kind
	}
	if v.part == "" {
		v.part = of.part
	}
	return v
}

// TestReplaceNothing: sources that have no edge, no new node and no value make no commit.
func TestReplaceNothing(t *testing.T) {
	fs, h := vfs.NewMem(), &history{}
	h.ingest(t, fs, part{edges: "src,dst\nn0,n1", nodes: "id"}, "s")
	opt := ingest.Options{}
	opt.Nodes, opt.Memory = "n.csv", 1<<30
	h.options(t, fs, part{edges: "src,dst", nodes: "id\nn0"}, false)
	done, err := Append(t.Context(), fs, "s", opt)
	if err != nil || done.Snapshot != 0 || done.Replaced != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestCountsOfDeleted: labels of deleted nodes do not count, also of one without edges, in levels
// and once compacted.
func TestCountsOfDeleted(t *testing.T) {
	fs, h := vfs.NewMem(), &history{}
	first := part{edges: "src,dst\nn0,n1\nn1,n2", nodes: "id,a,b,kind,part\nn0,1,2,x,train\n" +
		"n1,1,2,y,train\nn2,1,2,x,val\nn3,1,2,y,test\nn4,1,2,,train"}
	h.ingest(t, fs, first, "s")
	want := func(labeled, x, y uint64) {
		t.Helper()
		l := open(t, fs, "").Meta().Labels
		if l.Labeled != labeled || l.ClassCounts[0] != x || l.ClassCounts[1] != y {
			t.Errorf("%d nodes are labeled, %d, want %d, %d and %d", l.Labeled, l.ClassCounts,
				labeled, x, y)
		}
		sound(t, fs, "s")
	}
	remove := func(ids string) {
		t.Helper()
		writeText(t, fs, "ids.txt", ids)
		if _, err := Delete(t.Context(), fs, "s", Deletion{DeleteNodes: "ids.txt"}); err != nil {
			t.Fatal(err)
		}
	}
	want(4, 2, 2)
	remove("n3\n") // it has no edge
	want(3, 2, 1)
	remove("n0\nn4\n")
	want(2, 1, 1)
	compact(t, fs)
	want(2, 1, 1)
	remove("n1\n")
	want(1, 1, 0)
}
