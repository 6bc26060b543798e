package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/check"
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

// storedTriples reads the in-lists and the splits of the edges at each position.
func storedTriples(t *testing.T, fs vfs.FS, dir string) map[triple][]string {
	t.Helper()
	r, got, at := open(t, fs, dir), map[triple][]string{}, uint32(0)
	splits := map[uint32]string{}
	for _, s := range r.meta.EdgeSplits {
		set, err := r.store.EdgeSplit(t.Context(), s.Name)
		if err != nil || set.GetCardinality() != s.Count {
			t.Fatalf("split %s: %v, want %d edges", s.Name, err, s.Count)
		}
		for _, position := range set.ToArray() {
			if other, ok := splits[position]; ok {
				t.Fatalf("edge %d is in %s and in %s", position, s.Name, other)
			}
			splits[position] = s.Name
		}
	}
	err := listfile.Scan(t.Context(), r.store, r.dev, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					e := triple{r.ids[l.Nbrs[k]], r.meta.EdgeTypes[l.Types[k]],
						r.ids[int(first)+i]}
					got[e] = append(got[e], splits[at])
					at++
				}
			}
			return nil
		})
	if err != nil || uint64(at) != r.meta.Edges {
		t.Fatalf("%d edges, want %d, %v", at, r.meta.Edges, err)
	}
	report, err := check.Run(context.Background(), r.dev, r.store,
		check.Options{Full: true})
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
			if opt.Undirected {
				whole := map[triple][]string{}
				for e, s := range want {
					whole[e] = append(whole[e], s...)
					if back := (triple{e.dst, e.rel, e.src}); back != e {
						whole[back] = append(whole[back], s...)
					}
				}
				want = whole
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
