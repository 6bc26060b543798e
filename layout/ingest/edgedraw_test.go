package ingest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// pair is an edge without a type.
type pair [2]uint32

func (p pair) back() pair { return pair{p[1], p[0]} }

// storedPairs reads the splits of a store of pairs, and its lists, with how often each edge is
// there.
func storedPairs(t testing.TB, r *reading, splits []kv.EdgeSplitMeta) (of map[string]map[pair]int,
	lists map[pair]int) {
	t.Helper()
	of, lists = map[string]map[pair]int{}, map[pair]int{}
	for _, s := range splits {
		e, err := readEdges(t.Context(), r.store, r.dev, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		of[s.Name] = map[pair]int{}
		for i := range e.Src {
			of[s.Name][pair{e.Src[i], e.Dst[i]}]++
		}
	}
	err := listfile.Scan(t.Context(), r.store, r.dev, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					lists[pair{uint32(l.Nbrs[k]), uint32(int(first) + i)}]++
				}
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return of, lists
}

// TestEdgeDraw draws splits of small graphs of any edges: each edge of the source is in one split,
// with its duplicates and its reverse, whatever the flags; the lists have train.
func TestEdgeDraw(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var csv strings.Builder
		csv.WriteString("src,dst\n")
		var edges []pair
		gap := rapid.Uint32Range(1, 3).Draw(rt, "gap") // of ids: without one they are the nodes
		for i := range rapid.IntRange(40, 400).Draw(rt, "edges") {
			e := pair{rapid.Uint32Range(0, 20).Draw(rt, "src"),
				rapid.Uint32Range(0, 20).Draw(rt, "dst")}
			if i < 21 { // all nodes occur
				e = pair{uint32(i), uint32((i + 1) % 21)}
			}
			edges = append(edges, e)
			fmt.Fprintf(&csv, "%d,%d\n", e[0]*gap, e[1]*gap)
		}
		opt := Options{Options: source.Options{Sources: []string{"e.csv"}, Memory: 128 << 20},
			Out: "s", EdgeSplit: "random=50/20/30", Seed: rapid.Uint64().Draw(rt, "seed"),
			Undirected: rapid.Bool().Draw(rt, "undirected"), Dedup: rapid.Bool().Draw(rt,
				"dedup"), KeepSelfLoops: rapid.Bool().Draw(rt, "loops")}
		opt.KeepDuplicates = !opt.Dedup && rapid.Bool().Draw(rt, "duplicates")
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "e.csv", []byte(csv.String()))
		meta, err := Run(t.Context(), fs, opt)
		if errors.Is(err, ErrUsage) && strings.Contains(err.Error(), "gets none") {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		of, lists := storedPairs(t, open(t, fs, "s"), meta.EdgeSplits)
		checkDraw(rt, &opt, edges, of, lists)
	})
}

// checkDraw compares what is stored with the edges of the source.
func checkDraw(t *rapid.T, opt *Options, edges []pair, of map[string]map[pair]int,
	lists map[pair]int) {
	unique := opt.Dedup || opt.Undirected && !opt.KeepDuplicates
	source := map[pair]int{}
	for _, e := range edges {
		if e[0] == e[1] && opt.Undirected && !opt.KeepSelfLoops {
			continue
		}
		switch back := source[e.back()]; {
		case !unique:
			source[e]++
		case opt.Undirected && e[0] > e[1] && back > 0: // stands from the lower node
		case opt.Undirected && e[0] < e[1] && back > 0:
			delete(source, e.back())
			source[e] = 1
		default:
			source[e] = 1
		}
	}
	want, stored := map[pair]int{}, 0
	for name, split := range of {
		for e, n := range split {
			if n != source[e] {
				t.Fatalf("%v is %d times in %s, %d times in the source", e, n, name, source[e])
			}
			stored++
			for other, set := range of {
				if other != name && (set[e] > 0 || set[e.back()] > 0) {
					t.Fatalf("%v is in %s and it or its reverse in %s", e, name, other)
				}
			}
			if name == "train" {
				want[e] += n
				if opt.Undirected && e[0] != e[1] {
					want[e.back()] += n
				}
			}
		}
	}
	if stored != len(source) {
		t.Fatalf("%d different edges in splits, the source has %d", stored, len(source))
	}
	if fmt.Sprint(want) != fmt.Sprint(lists) {
		t.Fatalf("lists have %v, want %v", lists, want)
	}
}

// TestEdgeDrawKeepsPairsTogether draws splits of edges with types and times, reversed under a type
// of their own as other libraries do: all edges between two nodes are in one split.
func TestEdgeDrawKeepsPairsTogether(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("src,dst,rel,time\n")
	for i := range 300 {
		a, b := i%17, 17+i%31
		fmt.Fprintf(&csv, "%d,%d,likes,%d\n%d,%d,liked_by,%d\n%d,%d,likes,%d\n", a, b, i, b, a, i,
			a, b, 1000+i)
	}
	for _, undirected := range []bool{false, true} {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "e.csv", []byte(csv.String()))
		meta, err := Run(t.Context(), fs,
			Options{Options: source.Options{Sources: []string{"e.csv"}, Memory: 128 << 20,
				RelCol: "rel", TimeCol: "time"}, Out: "s", EdgeSplit: "random=50/20/30", Seed: 1,
				Undirected: undirected})
		if err != nil {
			t.Fatal(err)
		}
		of, lists := storedPairs(t, open(t, fs, "s"), meta.EdgeSplits)
		for name, split := range of {
			for e := range split {
				for other, set := range of {
					if other != name && set[e]+set[e.back()] > 0 {
						t.Fatalf("undirected %v: %v is in %s and %s", undirected, e, name, other)
					}
				}
				if name != "train" && lists[e]+lists[e.back()] > 0 {
					t.Fatalf("undirected %v: %v of %s is in the lists", undirected, e, name)
				}
			}
		}
	}
}

// ingestTriples ingests files of triples, by the names of their splits, and returns the notes.
func ingestTriples(t *testing.T, files map[string]string) (meta *kv.Meta, notes string) {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("kg", 0o755); err != nil {
		t.Fatal(err)
	}
	for f, text := range files {
		layouttest.WriteFile(t, fs, "kg/"+f+".txt", []byte(text))
	}
	var said strings.Builder
	meta, err := Run(t.Context(), fs, Options{Options: source.Options{Sources: []string{"kg"},
		Memory: 128 << 20, Notes: &said}, Out: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return meta, said.String()
}

// TestReversedInTrain says of splits of the source that an edge's reverse is in train: of the same
// type, once for each edge.
func TestReversedInTrain(t *testing.T) {
	meta, notes := ingestTriples(t, map[string]string{
		"train": "a\tr\tb\na\tr\tb\nc\tr\tc\nc\ts\td\nb\tr\td\n",
		"valid": "b\tr\ta\nd\tr\tc\nc\tr\tc\n",
		"test":  "b\tr\ta\nb\tr\ta\nd\ts\tc\na\ts\td\n"})
	for i, want := range []uint64{0, 1, 3} {
		if s := meta.EdgeSplits[i]; s.Reversed != want {
			t.Errorf("%s: %d edges have their reverse in train, want %d", s.Name, s.Reversed, want)
		}
	}
	if !strings.Contains(notes, "test: 3 of its 4 edges have their reverse in train") {
		t.Errorf("no note of it in\n%s", notes)
	}
}

// TestEdgeDrawShares draws many edges: each split has its share, to within what chance does.
func TestEdgeDrawShares(t *testing.T) {
	fs := vfs.NewMem()
	var csv strings.Builder
	const edges = 40000
	for i := range edges {
		fmt.Fprintf(&csv, "%d,%d\n", i%977, i*31%1009)
	}
	layouttest.WriteFile(t, fs, "e.csv", []byte(csv.String()))
	meta, err := Run(t.Context(), fs, Options{Options: source.Options{Sources: []string{"e.csv"},
		Memory: 128 << 20, Header: "no"}, Out: "s", EdgeSplit: "random=85/5/10", Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, share := range []float64{0.85, 0.05, 0.1} {
		want, sigma := edges*share, math.Sqrt(edges*share*(1-share))
		if got := float64(meta.EdgeSplits[i].Count); math.Abs(got-want) > 5*sigma {
			t.Errorf("%s has %v of %d edges, want about %v", meta.EdgeSplits[i].Name, got, edges,
				want)
		}
	}
}

// TestEdgeSplitRefused refuses what cannot be meant, and leaves nothing behind.
func TestEdgeSplitRefused(t *testing.T) {
	const triples = "a\tr\tb\nb\tr\tc\nc\tr\ta\n"
	files := map[string]string{"kg/train.tsv": triples, "kg/valid.tsv": triples,
		"notrain/valid.tsv": triples, "notrain/test.tsv": triples, "odd/train.tsv": triples,
		"odd/more.tsv": triples, "bad/train.tsv": triples, "bad/test.tsv": "a\t\tb\n",
		"cut/train.tsv": triples, "cut/test.tsv": "a\tr\tb\na\tr\n"}
	more := []string{"odd/more.tsv"}
	for name, c := range map[string]struct {
		opt  Options
		want string
	}{
		"two": {Options{Options: source.Options{Sources: []string{"kg"}},
			EdgeSplit: "random=80/10/10"}, "has splits"},
		"sum": {Options{Options: source.Options{Sources: more}, EdgeSplit: "random=80/10/5"},
			"want 100"},
		"words": {Options{Options: source.Options{Sources: more}, EdgeSplit: "80/10/10"},
			"random="},
		"few": {Options{Options: source.Options{Sources: more}, EdgeSplit: "random=98/1/1"},
			"--seed"},
		"no train": {Options{Options: source.Options{Sources: []string{"notrain"}}},
			"no file of train"},
		"other": {Options{Options: source.Options{Format: "triples",
			Sources: []string{"odd/train.tsv", "odd/more.tsv"}}},
			"its name says none"},
		"no relation": {Options{Options: source.Options{Sources: []string{"bad"}}},
			"bad/test.tsv line 1"},
		"cut off": {Options{Options: source.Options{Sources: []string{"cut"}}},
			"cut/test.tsv line 2"},
	} {
		fs := vfs.NewMem()
		for f, text := range files {
			if err := fs.MkdirAll(fs.PathDir(f), 0o755); err != nil {
				t.Fatal(err)
			}
			layouttest.WriteFile(t, fs, f, []byte(text))
		}
		c.opt.Out, c.opt.Memory, c.opt.Seed = "s", 128<<20, 1
		if _, err := Run(t.Context(), fs, c.opt); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, err := fs.Stat("s"); err == nil {
			t.Errorf("%s: something is left behind", name)
		}
	}
}

// TestUnseen counts what train has no edge of, with room for all nodes at once and for few.
func TestUnseen(t *testing.T) {
	meta, notes := ingestTriples(t, map[string]string{
		"train": "a\tr\tb\nb\tr\ta\nb\tr\ta\nc\tr\tc\n",
		"valid": "a\ts\td\nd\tr\te\na\tr\tb\n",
		"test":  "f\tr\ta\na\tr\tf\nd\tt\td\ne\ts\ta\n"})
	want := []kv.EdgeSplitMeta{{Name: "train", Count: 4},
		{Name: "val", Count: 3, UnseenNodes: 2, UnseenTypes: 1, Reversed: 1},
		{Name: "test", Count: 4, UnseenNodes: 3, UnseenTypes: 2}}
	if fmt.Sprint(meta.EdgeSplits) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", meta.EdgeSplits, want)
	}
	for _, note := range []string{"1 edges stand more than once", "1 edges of val or test are in",
		"val: 2 of its nodes", "test: 2 of its edge types"} {
		if !strings.Contains(notes, note) {
			t.Errorf("no note %q in\n%s", note, notes)
		}
	}
}

// TestEdgeDrawOfTypes: edges of tables of several types are drawn with their reverse relations; the
// lists have train, and all files together each edge.
func TestEdgeDrawOfTypes(t *testing.T) {
	fs, opt := typedFiles(t, nil), typedOptions()
	opt.EdgeSplit, opt.Seed = "random=40/30/30", 4
	if err := ingestTyped(t, fs, opt, 0); err != nil {
		t.Fatal(err)
	}
	r := open(t, fs, "store")
	of, lists := storedPairs(t, r, r.meta.EdgeSplits)
	if !maps.Equal(of["train"], lists) {
		t.Errorf("lists have %v, train %v", lists, of["train"])
	}
	all := map[pair]int{}
	for _, edges := range of {
		for e, n := range edges {
			all[e] += n
			if edges[e.back()] != n {
				t.Errorf("%v is apart from its reverse", e)
			}
		}
	}
	want := map[pair]int{{0, 4}: 1, {1, 5}: 1, {0, 5}: 1, {4, 6}: 1, {5, 7}: 1, {4, 7}: 1}
	for e := range maps.Clone(want) {
		want[e.back()] = 1
	}
	if !maps.Equal(all, want) {
		t.Errorf("splits have %v, want %v", all, want)
	}
}
