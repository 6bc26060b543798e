package splits_test

import (
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/layout/layouttest"
	"gdb/layout/splits"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRandom: every class gives each split its share, a node is in one split at most, and the
// catalog keeps the splits with their counts in place of those before.
func TestRandom(t *testing.T) {
	const nodes = 1000
	g := layouttest.Graph{Nodes: nodes, Classes: []string{"a", "b", "c"}}
	for v := range nodes {
		class := int32(v % 10)
		if class > 2 {
			class = 2
		}
		if v >= 900 {
			class = -1
		}
		g.Labels = append(g.Labels, class)
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Pread})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	shares, err := splits.ParseShares("random=60/20/10")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		sets, err := splits.Random(t.Context(), s, dev, shares, seed)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string][3]int{}
		seen := map[uint32]bool{}
		for name, set := range sets {
			var c [3]int
			for it := set.Iterator(); it.HasNext(); {
				v := it.Next()
				if seen[v] || g.Labels[v] < 0 {
					t.Fatalf("node %d is in two splits, or has no label", v)
				}
				seen[v] = true
				c[g.Labels[v]]++
			}
			counts[name] = c
		}
		want := map[string][3]int{"train": {54, 54, 432}, "val": {18, 18, 144},
			"test": {9, 9, 72}}
		for name, w := range want {
			if counts[name] != w {
				t.Errorf("seed %d, %s: %v by class, want %v", seed, name, counts[name], w)
			}
		}
		if err := s.Catalog().PutSplits(t.Context(), sets); err != nil {
			t.Fatal(err)
		}
		m, err := s.Catalog().Meta(t.Context())
		if err != nil || len(m.Splits) != 3 {
			t.Fatalf("%d splits, %v", len(m.Splits), err)
		}
		for _, sp := range m.Splits {
			got, err := s.Catalog().Set(t.Context(), sp.Name)
			if err != nil || !got.Equals(sets[sp.Name]) || sp.Count != got.GetCardinality() {
				t.Errorf("split %s: %v", sp.Name, err)
			}
		}
	}
}

func TestParseShares(t *testing.T) {
	for _, bad := range []string{"", "60/20/20", "random=60/20", "random=60/30/20", "random=a/b/c",
		"random=0/50/50", "random=-1/50/50", "random=nan/1/1",
		"random=.6,.2,.2", "random=.6/.2/.2"} {
		if s, err := splits.ParseShares(bad); err == nil {
			t.Errorf("%q is %v", bad, s)
		}
	}
	_, err := splits.ParseShares("random=.6/.2/.2")
	if err == nil || !strings.Contains(err.Error(), "write random=60/20/20") {
		t.Errorf("fractions: %v", err)
	}
	if s, err := splits.ParseShares("random=1/0/0"); err != nil || s[0] != 1 {
		t.Errorf("one percent: %v, %v", s, err)
	}
}
