package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// triple is an edge of a knowledge graph by the user's names.
type triple struct{ src, rel, dst string }

// randomTriples writes the files of a knowledge graph, with loops and with triples that stand
// twice, and returns the splits of each triple.
func randomTriples(t *testing.T, fs vfs.FS, r *rand.Rand) map[triple][]string {
	t.Helper()
	want := map[triple][]string{}
	for _, split := range []string{"train", "valid", "test"} {
		var b strings.Builder
		for range 1 + r.IntN(400) {
			e := triple{fmt.Sprintf("n%d", r.IntN(30)), fmt.Sprintf("r%d", r.IntN(3)),
				fmt.Sprintf("n%d", r.IntN(30))}
			fmt.Fprintf(&b, "%s\t%s\t%s\n", e.src, e.rel, e.dst)
			want[e] = append(want[e], strings.Replace(split, "valid", "val", 1))
		}
		if err := fs.MkdirAll("kg", 0o755); err != nil {
			t.Fatal(err)
		}
		layouttest.WriteFile(t, fs, "kg/"+split+".tsv", []byte(b.String()))
	}
	return want
}

// storedTriples reads the files of edges, and checks that the lists have the edges of train, and if
// the graph is undirected their reverse.
func storedTriples(t *testing.T, fs vfs.FS, dir string) map[triple][]string {
	t.Helper()
	r, got := open(t, fs, dir), map[triple][]string{}
	lists := map[triple]int{}
	name := func(src, dst uint32, rel uint16) triple {
		return triple{r.ids[src], r.meta.EdgeTypes[rel], r.ids[dst]}
	}
	for _, s := range r.meta.EdgeSplits {
		e, err := readEdges(t.Context(), r.store, r.dev, s.Name)
		if err != nil || e.Len() != int(s.Count) {
			t.Fatalf("split %s: %v, want %d edges", s.Name, err, s.Count)
		}
		for i := range e.Src {
			key := name(e.Src[i], e.Dst[i], e.Rel[i])
			got[key] = append(got[key], s.Name)
			if s.Name != "train" {
				continue
			}
			lists[key]++
			if back := (triple{key.dst, key.rel, key.src}); r.meta.Undirected && back != key {
				lists[back]++
			}
		}
	}
	edges := uint64(0)
	err := listfile.Scan(t.Context(), r.store, r.dev, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					lists[name(uint32(l.Nbrs[k]), uint32(int(first)+i), l.Types[k])]--
					edges++
				}
			}
			return nil
		})
	if err != nil || edges != r.meta.Edges {
		t.Fatalf("%d edges in lists, want %d, %v", edges, r.meta.Edges, err)
	}
	for e, n := range lists {
		if n != 0 {
			t.Fatalf("the lists have %v %d times less than train", e, n)
		}
	}
	report, err := inspect.Check(context.Background(), r.dev, r.store,
		inspect.CheckOptions{Full: true})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("check: %v, %v", report.Findings, err)
	}
	return got
}

// TestEdgeSplits ingests triples in several ways: each stored edge is in the split of its file.
func TestEdgeSplits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for name, opt := range map[string]Options{"plain": {}, "both": {Both: true},
		"partitions": {Partitions: 3, Partitioner: "random", Seed: 5}, "dedup": {Dedup: true},
		"undirected": {Undirected: true, KeepDuplicates: true, KeepSelfLoops: true}} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			want := randomTriples(t, fs, r)
			opt.Sources, opt.Out, opt.Memory = []string{"kg"}, "s", 128<<20
			meta, err := Run(t.Context(), fs, opt)
			if err != nil {
				t.Fatal(err)
			}
			if len(meta.EdgeSplits) != 3 || len(meta.Splits) != 0 {
				t.Fatalf("splits of edges %v, of nodes %v", meta.EdgeSplits, meta.Splits)
			}
			got := storedTriples(t, fs, "s")
			if len(got) != len(want) {
				t.Errorf("%d different triples, want %d", len(got), len(want))
			}
			order := []string{"train", "val", "test"}
			for e, s := range want {
				slices.SortFunc(s, func(a, b string) int {
					return slices.Index(order, a) - slices.Index(order, b)
				})
				if opt.Dedup {
					s = s[:1]
				}
				if !slices.Equal(got[e], s) {
					t.Fatalf("%v is in %v, want %v", e, got[e], s)
				}
			}
		})
	}
}

// readEdges reads all edges of a split.
func readEdges(ctx context.Context, s *layout.Store, dev blockdev.Device, split string) (
	e edgefile.Edges, err error) {
	f, err := edgefile.Open(ctx, s, dev, split)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return e, f.Read(ctx, 0, f.Count(), &e)
}
