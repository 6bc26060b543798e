package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/lang"
	"gdb/shell/words"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustDevice(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

// plainGraph is a ring of 10 nodes with a chord, and nothing else.
func plainGraph() layouttest.Graph {
	g := layouttest.Graph{Nodes: 10}
	for v := range 10 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v),
			Dst: layout.NodeID((v + 1) % 10)})
	}
	g.Edges = append(g.Edges, layouttest.Edge{Src: 0, Dst: 5}, layouttest.Edge{Src: 3, Dst: 3})
	return g
}

// richGraph has all that a store can hold: types, weights, times, both directions, string ids,
// features, classes and splits.
func richGraph() layouttest.Graph {
	names := []string{"ada", "bob", "cyd o'neill", "dan", "eve|x", "fay", "gus", "hal"}
	g := layouttest.Graph{Nodes: 8, EdgeTypes: []string{"cites", "knows"}, Weighted: true,
		Timed: true, Both: true, IDs: names, Dim: 3, Classes: []string{"red", "green"},
		Labels: []int32{0, 1, -1, 1, 0, 1, -1, 1}, Splits: layouttest.Splits(8)}
	for i, e := range [][2]layout.NodeID{{0, 1}, {0, 2}, {1, 2}, {3, 2}, {2, 4}, {4, 0}, {5, 0},
		{6, 0}, {7, 5}, {0, 1}} {
		g.Edges = append(g.Edges, layouttest.Edge{Src: e[0], Dst: e[1], Type: uint16(i % 2),
			Weight: float32(i) / 4, Time: int64(1000 * i)})
	}
	g.Features = layouttest.Features(8, 3)
	g.Features[4] = float32(math.NaN())
	g.Features[5] = float32(math.Inf(1))
	return g
}

// multiGraph has multi-labels, and in-lists only.
func multiGraph() layouttest.Graph {
	return layouttest.Graph{Nodes: 4, Edges: []layouttest.Edge{{Src: 0, Dst: 1}, {Src: 2, Dst: 1}},
		Classes: []string{"a", "b", "c"}, Multi: [][]int{{0, 2}, nil, {}, {2}},
		Splits: map[string][]layout.NodeID{"train": {0, 1, 2, 3}, "none": {}}}
}

// targetGraph has numbers for labels.
func targetGraph() layouttest.Graph {
	return layouttest.Graph{Nodes: 3, Edges: []layouttest.Edge{{Src: 0, Dst: 1}},
		Targets: []float32{1.5, float32(math.NaN()), -2}}
}

// hubNeighbors is more than a block of 4 KiB holds.
const hubNeighbors = 3000

// hubGraph has a node whose list is longer than a block; entries alternate between two types.
func hubGraph() layouttest.Graph {
	g := layouttest.Graph{Nodes: hubNeighbors + 1, EdgeTypes: []string{"even", "odd"}}
	for v := 1; v <= hubNeighbors; v++ {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v), Dst: 0,
			Type: uint16(v % 2)})
	}
	return g
}

// weightsGraph has a hub whose edges weigh nothing but for three, a node with few edges, and one
// with a debt.
func weightsGraph() layouttest.Graph {
	g := layouttest.Graph{Nodes: hubNeighbors + 1, Weighted: true, Both: true}
	for v := 1; v <= hubNeighbors; v++ {
		w := float32(0)
		if v%1000 == 0 {
			w = float32(v)
		}
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v), Dst: 0, Weight: w})
	}
	for i, w := range []float32{5, 0, .25, 100} {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(1000 + i), Dst: 1000,
			Weight: w})
	}
	g.Edges = append(g.Edges, layouttest.Edge{Src: 8, Dst: 7, Weight: 1},
		layouttest.Edge{Src: 9, Dst: 7, Weight: -2})
	return g
}

var goldenGraphs = map[string]func() layouttest.Graph{"plain": plainGraph, "rich": richGraph,
	"multi": multiGraph, "target": targetGraph, "hub": hubGraph,
	"weights": weightsGraph}

// volatile is what differs between runs.
var volatile = regexp.MustCompile(`(?m)[0-9.]+ ms, `)

// profileTime is the column of times in a profile, as csv or in a box.
var profileTime = regexp.MustCompile(
	`(?m)^((?:"[^"]*"|[^,│\n]*),(?:"[^"]*"|[^,\n]*),\d*,\d*,)[0-9.]+` +
		`|^((?:│[^│]*){4}│ ?)[0-9.]+ *`)

// timeEdge and timeHead are the borders and the head of that column in a box, which is as wide as
// the longest time.
var (
	timeEdge = regexp.MustCompile(`(?m)^([┌├└](?:─+[┬┼┴]){4})─+`)
	timeHead = regexp.MustCompile(`(?m)^((?:│[^│\n]*){4}│ ms) *│`)
)

// TestGolden runs the scripts of testdata/golden. Each is a conversation:
//
//	store NAME          builds a graph of goldenGraphs
//	run [mode=M] [keep] [tty] [width=N] runs the input, and prints both streams; tty types it
//	file NAME           writes the input to a file, cat NAME prints one
//
// Run with -rewrite to accept what the shell prints.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		var store *layout.Store
		fs, dev := vfs.NewMem(), mustDevice(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				writeFile(t, fs, d.CmdArgs[0].Key, d.Input)
				return ""
			case "cat":
				lines := strings.SplitAfter(readFile(t, fs, d.CmdArgs[0].Key), "\n")
				for i, line := range lines {
					text := strings.TrimSuffix(line, "\n")
					lines[i] = words.Printable(text) + line[len(text):]
				}
				return strings.Join(lines, "")
			case "ls":
				names, err := fs.List("")
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(names)
				return strings.Join(names, " ")
			case "store":
				build := goldenGraphs[d.CmdArgs[0].Key]
				if build == nil {
					d.Fatalf(t, "no graph %s", d.CmdArgs[0].Key)
				}
				store = layouttest.Build(t, fs, d.CmdArgs[0].Key, build())
				return ""
			case "run":
				opt := Options{Store: store, Vectors: openVectors,
					Dev: dev, Script: d.Input, Mode: "csv", Seed: 1,
					KeepGoing: d.HasArg("keep"), Memory: 64 << 20}
				d.MaybeScanArgs(t, "mode", &opt.Mode)
				width := 0
				d.MaybeScanArgs(t, "width", &width)
				opt.Width = func() int { return width }
				if d.HasArg("tty") {
					opt.In, opt.Script = strings.NewReader(d.Input), ""
					opt.InTTY, opt.OutTTY, opt.Quiet = true, true, true
				}
				return transcript(opt)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func writeFile(t testing.TB, fs vfs.FS, name, text string) {
	t.Helper()
	layouttest.WriteFile(t, fs, name, []byte(text))
}

func readFile(t testing.TB, fs vfs.FS, name string) string {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// transcript runs a shell and returns what it wrote to both streams, and its error.
func transcript(opt Options) string {
	var out, notes bytes.Buffer
	opt.Out, opt.Err = &out, &notes
	err := Run(context.Background(), opt)
	if notes.Len() > 0 {
		fmt.Fprintf(&out, "stderr: %s", notes.String())
	}
	if err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
	}
	text := volatile.ReplaceAllString(out.String(), "")
	if strings.Contains(opt.Script, "PROFILE") {
		text = profileTime.ReplaceAllString(text, "$1$2*")
		if strings.Contains(text, "│ ms") {
			text = timeEdge.ReplaceAllString(text, "${1}───────")
			text = timeHead.ReplaceAllString(text, "$1    │")
		}
	}
	return text
}

// mustRun runs statements that must succeed and returns their output.
func mustRun(t fatal, store *layout.Store, dev blockdev.Device, mode, script string) string {
	t.Helper()
	var out, notes bytes.Buffer
	err := Run(context.Background(), Options{Store: store, Vectors: openVectors,
		Dev: dev, Script: script, Mode: mode,
		Out: &out, Err: &notes, Seed: 1, Memory: 64 << 20})
	if err != nil || notes.Len() > 0 {
		t.Fatalf("%s: %v %s", script, err, notes.String())
	}
	return out.String()
}

// fatal is what testing.TB and rapid.T have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestErrorKinds holds the kinds that exit codes are made from.
func TestErrorKinds(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", plainGraph())
	run := func(script string, keep bool) error {
		return Run(t.Context(), Options{Store: store, Vectors: openVectors,
			Dev: mustDevice(t), Script: script,
			Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, KeepGoing: keep, Memory: 64 << 20})
	}
	var syntax *lang.SyntaxError
	var failed *FailedError
	if err := run("NEIGBORS 1;", false); !errors.As(err, &syntax) || errors.As(err, &failed) {
		t.Errorf("a misspelled statement: %v", err)
	}
	if err := run("NEIGHBORS 99;", false); err == nil || errors.As(err, &syntax) {
		t.Errorf("an unknown node: %v", err)
	}
	err := run("NEIGHBORS 99; NEIGBORS 1; .mood\nNEIGHBORS 1; FEATURES 1;", true)
	if !errors.As(err, &failed) || failed.Failed != 4 || errors.As(err, &syntax) {
		t.Errorf("four failures: %v", err)
	}
	for _, dot := range []string{".mood", ".r", ".mode jsn", ".rows -1", ".timing maybe", ".once",
		".read", ".watch x DEGREES", ".watch 1", ".watch 1 DEGREES; DEGREES;",
		".open", ".last", ".help xyzzy"} {
		if err := run(dot, false); !errors.As(err, &syntax) {
			t.Errorf("%s: %v, want a syntax error", dot, err)
		}
	}
}
