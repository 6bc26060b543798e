package shell

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/result"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cancelDevice cancels a context with a read, and counts those that come later.
type cancelDevice struct {
	blockdev.Device
	cancel context.CancelFunc
	left   atomic.Int64 // reads until then
}

func (d *cancelDevice) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	if d.left.Add(-1) == 0 {
		d.cancel()
	}
	return d.Device.ReadBatch(ctx, reqs)
}

// TestCancelHops holds that a statement over much of a graph stops at the batch of reads after its
// cancellation, whatever it does.
func TestCancelHops(t *testing.T) {
	g := layouttest.Random(7, 100_000, 400_000)
	g.Both = true
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	for _, stmt := range []string{"NEIGHBORS RANDOM 50000 HOPS 2 COUNT", "PATH 1 TO 2 MAX 9",
		"DEGREES TOP 5", "DEGREES BINS 4", "NEIGHBORS RANDOM 50000"} {
		ctx, cancel := context.WithCancel(t.Context())
		d := &cancelDevice{Device: dev, cancel: cancel}
		d.left.Store(8)
		err := Run(ctx, Options{Store: store, Dev: d, Out: io.Discard, Err: io.Discard,
			Statements: []string{stmt}, Memory: 8 << 20})
		if d.left.Load() <= 0 && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want it cancelled", stmt, err)
		}
		if n := -d.left.Load(); n > 2 {
			t.Errorf("%s: %d batches were read after it was cancelled", stmt, n)
		}
		cancel()
	}
}

// TestHubCount counts two hops from a hub whose neighbors reach the whole graph, and holds that the
// sets it keeps are counted in the budget and stay small.
func TestHubCount(t *testing.T) {
	const nodes = 200_000
	g := layouttest.Graph{Nodes: nodes}
	r := rand.New(rand.NewPCG(1, 2))
	for v := 1; v <= nodes/2; v++ {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v)},
			layouttest.Edge{Src: layout.NodeID(r.IntN(nodes)), Dst: layout.NodeID(v)},
			layouttest.Edge{Src: layout.NodeID(nodes/2 + v - 1), Dst: layout.NodeID(v)})
	}
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	e := graph.New(store, mustDevice(t), mem.NewBudget(16<<20))
	p, err := lang.Parse("NEIGHBORS 0 HOPS 2 COUNT")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	x := query.New(t.Context(), e, p, 1, result.NewRenderer("csv", &out, result.Box{}))
	if err := x.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "hop,nodes,total\n1,100000,100000\n2,99999,199999\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	// Three sets of an eighth of a byte for each node, and the block cache.
	if most := int64(4<<20 + 1<<20 + 3*nodes/4); e.Budget.Peak() > most {
		t.Errorf("peak %d bytes, want at most %d", e.Budget.Peak(), most)
	}
	if err := e.Close(); err != nil || e.Budget.Used() != 0 {
		t.Errorf("%d bytes are still held: %v", e.Budget.Used(), err)
	}
}

// TestPathVisitsNodesOnce: a search that finds nothing ends when all that can be reached was seen,
// however many steps it may take, and looks at each node once.
func TestPathVisitsNodesOnce(t *testing.T) {
	g := layouttest.Graph{Nodes: 8, Both: true}
	for v := range layout.NodeID(4) { // two rings
		next := (v + 1) % 4
		g.Edges = append(g.Edges, layouttest.Edge{Src: v, Dst: next},
			layouttest.Edge{Src: v + 4, Dst: next + 4})
	}
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	e := graph.New(store, mustDevice(t), mem.NewBudget(16<<20))
	defer e.Close()
	p, err := lang.Parse("PROFILE PATH 0 TO 5 OUT MAX 60000")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	x := query.New(t.Context(), e, p, 1, result.NewRenderer("csv", &out, result.Box{}))
	if err := x.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sides := 0
	for _, row := range rows {
		if !strings.HasSuffix(row[0], "─ forth") && !strings.HasSuffix(row[0], "─ back") {
			continue
		}
		sides++
		if n, err := strconv.Atoi(row[3]); err != nil || n > 3 {
			t.Errorf("%s met %d nodes of a ring of 4: %v\n%s", row[0], n, err, out.String())
		}
	}
	if sides != 2 {
		t.Errorf("%d sides:\n%s", sides, out.String())
	}
}
