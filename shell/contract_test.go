package shell

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"gdb/layout/layouttest"
	"gdb/shell/lang"
	"gdb/shell/result"
	"gdb/shell/words"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestModesAreComplete holds that every mode but the box shows all rows with raw numbers, and the
// box 40 with units.
func TestModesAreComplete(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", hubGraph()), mustDevice(t)
	rows := map[string]int{"csv": 3001, "tsv": 3001, "jsonl": 3000, "json": 3000, "md": 3002,
		"line": 3000*5 - 1, "none": 0, "box": 4 + 40 + 1}
	for _, mode := range result.Modes {
		if mode == "auto" {
			continue
		}
		out := mustRun(t, store, dev, mode, "NEIGHBORS 0")
		if n := strings.Count(out, "\n"); n != rows[mode] {
			t.Errorf("%s: %d lines, want %d", mode, n, rows[mode])
		}
		out = mustRun(t, store, dev, mode, "NEIGHBORS 0 COUNT; DESCRIBE FILES; STATS GRAPH")
		units := regexp.MustCompile(`\d KiB|3,000`).MatchString(out)
		if raw := strings.Contains(out, "3000"); units != (mode == "box") ||
			raw != (mode != "box" && mode != "none") {
			t.Errorf("%s: units %v, raw numbers %v:\n%s", mode, units, raw, out)
		}
	}
	long := strings.Repeat("long name ", 20)
	g := layouttest.Graph{Nodes: 2, Edges: []layouttest.Edge{{Src: 0, Dst: 1}},
		IDs: []string{long, "b"}}
	store = layouttest.Build(t, vfs.NewMem(), "t", g)
	for _, mode := range result.Modes[1:] {
		var out bytes.Buffer
		err := Run(t.Context(), Options{Store: store, Dev: dev, Script: "NEIGHBORS b IN",
			Mode: mode, Out: &out, Err: &bytes.Buffer{}, Memory: 64 << 20,
			Width: func() int { return 80 }})
		if cut := !strings.Contains(out.String(), long); err != nil ||
			cut != (mode == "box" || mode == "none") {
			t.Errorf("%s: %v, a long cell is cut: %v", mode, err, cut)
		}
	}
}

// TestHelpFitsAScreen holds that .help fits a large terminal.
func TestHelpFitsAScreen(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", plainGraph())
	out := mustRun(t, store, mustDevice(t), "csv", ".help")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) > 50 {
		t.Errorf(".help has %d lines", len(lines))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("a wide line: %s", line)
		}
	}
}

// TestNear holds that names within distance 2 are suggested, the nearest one, and no others.
func TestNear(t *testing.T) {
	if got := words.Near("CITES", []string{"cites"}); got != "; did you mean cites?" {
		t.Errorf("a name in other letters: %q", got)
	}
	among := []string{"NEIGHBORS", "DEGREES", "cites", "IN"}
	for word, want := range map[string]string{"NEIGHBORS": "", "NEIGBORS": "NEIGHBORS",
		"nighbor": "NEIGHBORS", "NIGHBO": "", "degreed": "DEGREES", "cite": "cites",
		"kites": "cites", "kit": "", "I": "IN", "xx": "", "": "", "NEIGHBORSXXX": "",
		strings.Repeat("N", 1<<20): ""} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got := words.Near(word, among); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
}

// TestForms runs every form that the grammar has, each alone.
func TestForms(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	mustLinkRun(t, store, "distmult", 8)
	var forms []string
	for _, nodes := range []string{"ada", "#3", "ada,'cyd o''neill',#6", "RANDOM 3",
		"SPLIT train"} {
		for _, clauses := range []string{"", "IN", "OUT", "BOTH", "VIA cites", "HOPS 2", "COUNT",
			"LIMIT 2", "LIMIT 2 HOPS 3 BOTH VIA cites", "COUNT HOPS 2"} {
			forms = append(forms, "NEIGHBORS "+nodes+" "+clauses)
		}
		for _, clauses := range []string{"", "IN", "BOTH", "VIA cites"} {
			forms = append(forms, "DEGREES OF "+nodes+" "+clauses)
		}
		for _, show := range []string{"", "SHOW dense", "SHOW layers", "SHOW edges", "SHOW io"} {
			forms = append(forms, "SAMPLE "+nodes+" FANOUT 2,all "+show)
		}
		forms = append(forms, "FEATURES "+nodes, "FEATURES "+nodes+" COLUMNS 0:2",
			"FEATURES "+nodes+" STATS", "FEATURES "+nodes+" STATS COLUMNS 1:3", "LABELS "+nodes,
			"LABELS "+nodes+" COUNTS")
	}
	forms = append(forms, "DEGREES", "DEGREES IN", "DEGREES BOTH", "DEGREES TOP 3",
		"DEGREES IN TOP 3 VIA cites", "DEGREES LOG", "DEGREES BINS 3", "DEGREES VIA cites LOG",
		"PATH ada TO bob", "PATH ada TO #1 IN", "PATH ada TO bob BOTH VIA cites MAX 3",
		"SAMPLE ada FANOUT 2 IN", "SAMPLE ada FANOUT 2 OUT SEED 3", "SAMPLE ada FANOUT 2 BOTH",
		"SAMPLE ada FANOUT 2 STRATEGY uniform", "SAMPLE ada FANOUT 2 STRATEGY full",
		"SAMPLE ada FANOUT 2 STRATEGY weighted", "SAMPLE ada FANOUT 2 STRATEGY latest",
		"SAMPLE SPLIT train SIZE 2 EPOCH 2 BATCH 2 FANOUT 1",
		"STATS GRAPH", "STATS CACHE", "STATS CACHE BY policy", "STATS CACHE BY file",
		"STATS CACHE BY partition", "STATS PARTITIONS", "STATS PARTITIONS TOP 1", "STATS BUCKETS",
		"STATS BUCKETS TOP 1", "STATS IO", "STATS IO BY file", "STATS IO BY phase",
		"STATS IO BY op",
		"TRACE IO ON", "TRACE IO OFF", "TRACE IO LAST 3", "TRACE IO", "BLOCK topology/in.csc AT 1",
		"BLOCK topology/in.csc AT 1 HEX", "BLOCK topology/in.csc AT 1 DECODE", "CHECK",
		"NEAREST ada", "NEAREST ada TOP 2 BY dot", "NEAREST #3 BY euclid RUN distmult",
		"SCORE ada, cites, bob", "SCORE ada, cites, ? TOP 2", "SCORE ?, cites, bob NEW",
		"CHECK FULL", "CHECK OF topology/in.csc", "DESCRIBE", "DESCRIBE FILES", "DESCRIBE TYPES",
		"RUNS", "SET seed TO 3", "RESET STATS", "HELP",
		"MATCH (a {id: ada})-[:cites]->(b) WHERE b.id <> 'ada' RETURN b ORDER BY b DESC LIMIT 1")
	heads := map[string]bool{}
	for _, form := range forms {
		p, err := lang.Parse(form)
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		heads[p.Statement.Head] = true
		first := ""
		if p.Statement.Head == "TRACE IO" {
			first = "TRACE IO ON; "
		}
		for _, before := range []string{"", "EXPLAIN ", "PROFILE "} {
			mustRun(t, store, dev, "csv", first+before+form+";")
		}
	}
	for _, st := range lang.Statements {
		if !heads[st.Head] && !strings.HasPrefix(st.Head, "SIMULATE") {
			t.Errorf("no form of %s was run", st.Head)
		}
	}
}

// TestDefaultDirections holds that lists are followed OUT without a word, or IN in a store without
// out-lists, and that samples are drawn IN.
func TestDefaultDirections(t *testing.T) {
	dev := mustDevice(t)
	rich := layouttest.Build(t, vfs.NewMem(), "s", richGraph())
	plain := layouttest.Build(t, vfs.NewMem(), "s", plainGraph())
	for _, stmt := range []string{"NEIGHBORS #5", "NEIGHBORS #5 HOPS 2", "DEGREES OF #5", "DEGREES",
		"DEGREES TOP 3"} {
		if mustRun(t, rich, dev, "csv", stmt) != mustRun(t, rich, dev, "csv", stmt+" OUT") {
			t.Errorf("%s is not OUT", stmt)
		}
		if mustRun(t, plain, dev, "csv", stmt) != mustRun(t, plain, dev, "csv", stmt+" IN") {
			t.Errorf("%s is not IN without out-lists", stmt)
		}
	}
	sample := "SAMPLE #5 FANOUT all,all SHOW edges"
	got := mustRun(t, rich, dev, "csv", sample)
	if got != mustRun(t, rich, dev, "csv", sample+" IN") ||
		got == mustRun(t, rich, dev, "csv", sample+" OUT") {
		t.Errorf("SAMPLE is not IN: %s", got)
	}
}
