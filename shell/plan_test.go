package shell

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/trace"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/lang"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// brokenDevice fails every read.
type brokenDevice struct{ blockdev.Device }

var errBroken = errors.New("a block was read")

func (brokenDevice) ReadBatch(context.Context, []blockdev.Request) error { return errBroken }

// exampleStatements are the examples of the registry, on the nodes of richGraph.
func exampleStatements() (out []string) {
	nodes := strings.NewReplacer("<> 42", "<> 'ada'", "42,7",
		"ada,bob", "42,43", "ada,bob", "42", "ada", "0:8", "0:2",
		"cora", "train", "TO 7 MAX", "TO bob MAX")
	for _, st := range lang.Statements {
		out = append(out, nodes.Replace(st.Example))
	}
	return out
}

// TestExplainReadsNothing runs EXPLAIN of every statement on a device that fails any read, and
// holds that PROFILE shows the same operators and their actual counts.
func TestExplainReadsNothing(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	mustLinkRun(t, store, "distmult", 4)
	for _, stmt := range exampleStatements() {
		var out bytes.Buffer
		err := Run(t.Context(), Options{Store: store, Vectors: openVectors,
			Dev: brokenDevice{dev}, Out: &out,
			Err: &bytes.Buffer{}, Script: "EXPLAIN " + stmt, Memory: 64 << 20})
		if err != nil {
			t.Errorf("EXPLAIN %s: %v", stmt, err)
			continue
		}
		plan := operators(t, out.String())
		actual := operators(t, mustRun(t, store, dev, "csv", "PROFILE "+stmt))
		actual = slices.DeleteFunc(actual, func(op string) bool { return op == "open files" })
		if n := len(actual); actual[n-1] != "total" || !slices.Equal(plan, actual[:n-1]) {
			t.Errorf("%s: EXPLAIN shows %q, PROFILE %q", stmt, plan, actual)
		}
	}
}

// operators are the first column of a result.
func operators(t *testing.T, out string) (ops []string) {
	t.Helper()
	for _, r := range mustCSV(t, out)[1:] {
		ops = append(ops, r[0])
	}
	return ops
}

func mustCSV(t fatal, out string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%v in %q", err, out)
	}
	return rows
}

// profileOf runs PROFILE of a statement in a new shell, whose caches are cold, and returns a column
// of it by operator, without the branches of the tree.
func profileOf(t fatal, store *layout.Store, dev blockdev.Device, stmt,
	column string) map[string]int {
	t.Helper()
	rows := mustCSV(t, mustRun(t, store, dev, "csv", "PROFILE "+stmt))
	at, out := slices.Index(rows[0], column), map[string]int{}
	for _, r := range rows[1:] {
		n, err := strconv.Atoi(r[at])
		if err != nil {
			t.Fatalf("%s of %s is %q", column, r[0], r[at])
		}
		out[strings.TrimLeft(r[0], "└├─│ ")] = n
	}
	return out
}

// batchDevice counts the batches of reads, besides those that open files.
type batchDevice struct {
	blockdev.Device
	batches int
}

func (d *batchDevice) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	if !trace.From(ctx).Opening {
		d.batches++
	}
	return d.Device.ReadBatch(ctx, reqs)
}

// TestNeighborsReads holds that the neighbors of a node take three reads, cold: the dictionary,
// its list, and the dictionary back. Where the ids of neighbors are in several blocks, those are
// read at once: there are three waits for the disk whatever the degree.
func TestNeighborsReads(t *testing.T) {
	const far = 30 // neighbors of node 5, all over the graph
	g := layouttest.Random(3, 20_000, 60_000)
	for v := range g.Nodes {
		g.IDs = append(g.IDs, "n"+strconv.Itoa(v*7919%20_011))
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(e layouttest.Edge) bool {
		return e.Dst == 0 || e.Dst == 5
	})
	g.Edges = append(g.Edges, layouttest.Edge{Src: 1, Dst: 0}, layouttest.Edge{Src: 2, Dst: 0})
	for i := range far {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(600 * i), Dst: 5})
	}
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	for node, most := range map[layout.NodeID]int{0: 1, 5: far} {
		counted := &batchDevice{Device: dev}
		reads := profileOf(t, store, counted, "NEIGHBORS "+g.IDs[node], "read")
		if reads["nodes"] != 1 || reads["neighbors"] != 1 || reads["names"] < 1 ||
			reads["names"] > most || counted.batches != 3 {
			t.Errorf("node %d: %d batches, reads are %v", node, counted.batches, reads)
		}
		if reads["open files"] == 0 {
			t.Errorf("no file was opened: %v", reads)
		}
	}
}

// TestProfileTotal checks that the operators' reads add up to the reads of the device.
func TestProfileTotal(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", richGraph()), mustDevice(t)
	for _, stmt := range exampleStatements() {
		if strings.HasPrefix(stmt, "NEAREST") || strings.HasPrefix(stmt, "SCORE") {
			continue // they read checkpoints, which are no files of the store
		}
		before := dev.Stats()
		reads := profileOf(t, store, dev, stmt, "read")
		if n := int(dev.Stats().Reads - before.Reads); reads["total"] != n {
			t.Errorf("%s: PROFILE counts %d reads, the device %d", stmt, reads["total"], n)
		}
	}
}
