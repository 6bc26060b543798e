package ingest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/splits"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// TestEdgeTimes puts edges in splits by their times, and the lists have train. Duplicates are edges
// of one time.
func TestEdgeTimes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opt := Options{Options: source.Options{Sources: []string{"e.csv"}, Memory: 128 << 20,
			TimeCol: "at"}, Out: "s", EdgeSplit: "time=30,60", Seed: 1,
			Undirected: rapid.Bool().Draw(rt, "undirected"), Dedup: rapid.Bool().Draw(rt, "dedup"),
			KeepSelfLoops: true}
		opt.KeepDuplicates = !opt.Dedup
		var csv strings.Builder
		csv.WriteString("src,dst,at\n")
		want := map[string]map[pair]int{"train": {}, "val": {}, "test": {}}
		type timed struct {
			pair
			at int
		}
		seen := map[timed]bool{}
		for i := range rapid.IntRange(40, 300).Draw(rt, "edges") {
			e := pair{rapid.Uint32Range(0, 9).Draw(rt, "src"),
				rapid.Uint32Range(0, 9).Draw(rt, "dst")}
			at := rapid.IntRange(-90, 90).Draw(rt, "at")
			if i < 30 { // all nodes occur, and all splits
				e, at = pair{uint32(i) % 10, uint32(i+1) % 10}, i/10*30
			}
			fmt.Fprintf(&csv, "%d,%d,%d\n", e[0], e[1], at)
			split := "test"
			if at < 30 {
				split = "train"
			} else if at < 60 {
				split = "val"
			}
			switch {
			case opt.Dedup && seen[timed{e, at}]:
				continue
			case opt.Dedup && opt.Undirected && seen[timed{e.back(), at}] && e[0] > e[1]:
				// It stands from the lower node.
			case opt.Dedup && opt.Undirected && seen[timed{e.back(), at}] && e[0] < e[1]:
				want[split][e.back()]--
				want[split][e]++
			default:
				want[split][e]++
			}
			seen[timed{e, at}] = true
		}
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "e.csv", []byte(csv.String()))
		meta, err := Run(t.Context(), fs, opt)
		if err != nil {
			rt.Fatal(err)
		}
		of, lists := storedPairs(t, open(t, fs, "s"), meta.EdgeSplits)
		for _, split := range want {
			maps.DeleteFunc(split, func(_ pair, n int) bool { return n == 0 })
		}
		train := map[pair]int{}
		for e, n := range want["train"] {
			train[e] += n
			if opt.Undirected && e[0] != e[1] {
				train[e.back()] += n
			}
		}
		for name := range want {
			if !maps.Equal(of[name], want[name]) {
				rt.Fatalf("%s has %v, want %v", name, of[name], want[name])
			}
		}
		if !maps.Equal(lists, train) {
			rt.Fatalf("lists have %v, want %v", lists, train)
		}
	})
}

// TestEdgeTimesOfTables: edges of a relation without times are in train.
func TestEdgeTimesOfTables(t *testing.T) {
	fs := vfs.NewMem()
	for name, text := range map[string]string{"u.csv": "id\n1\n2\n3\n",
		"buys.csv": "user,friend,at\n1,2,2024-01-31\n2,1,2024-02-01\n3,1,2024-02-29\n" +
			"1,3,2024-03-01\n",
		"knows.csv": "user,friend\n1,2\n1,3\n"} {
		layouttest.WriteFile(t, fs, name, []byte(text))
	}
	opt := Options{Options: source.Options{Memory: 128 << 20, TimeCol: "buys.at",
		NodeTables: []source.NodeTable{{Type: "u", File: "u.csv"}},
		Relations: []source.Relation{{Src: "u", Name: "buys", Dst: "u", File: "buys.csv"},
			{Src: "u", Name: "knows", Dst: "u", File: "knows.csv"}}},
		Out: "s", EdgeSplit: "time=2024-02-01,2024-03-01"}
	meta, err := Run(t.Context(), fs, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{3, 2, 1} {
		s := meta.EdgeSplits[i]
		if s.Name != edgefile.Splits[i] || s.Count != want || s.Reversed != 0 {
			t.Errorf("%v, want %d edges", s, want)
		}
	}
}

// TestEdgeTimesRefused: times that cannot be meant are refused, and nothing is left behind.
func TestEdgeTimesRefused(t *testing.T) {
	for text, want := range map[string]string{"time=1": "want time=VAL,TEST",
		"time=1,2,3": "want time=VAL,TEST", "time=1,x": `"x" is no time`,
		"time=5,5":                   "not after val",
		"time=2024-03-01,2024-02-01": "not after val",
		"time=200,300":               "a time at which it is in val",

		"time=0,1": "a time at which it is in train", "random": "or time=VAL,TEST"} {
		fs := vfs.NewMem()
		layouttest.WriteFile(t, fs, "e.csv", []byte("src,dst,at\n1,2,10\n2,3,20\n3,1,30\n"))
		opt := Options{Options: source.Options{Sources: []string{"e.csv"}, Memory: 128 << 20,
			TimeCol: "at"}, Out: "s", EdgeSplit: text}
		for _, column := range []string{"at", ""} {
			opt.TimeCol = column
			if column == "" && strings.Contains(want, "at which") {
				want = "--time-col"
			}
			_, err := Run(t.Context(), fs, opt)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of column %q: %v, want %q", text, column, err, want)
			}
			if _, err := fs.Stat("s"); err == nil {
				t.Errorf("%s: something is left behind", text)
			}
		}
	}
	if splits.AreEdgeTimes("random=80/10/10") {
		t.Error("shares are taken for times")
	}
}
