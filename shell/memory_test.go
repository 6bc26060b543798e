package shell

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/result"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// starGraph has a node whose neighbors are all others, under names of some length.
func starGraph() layouttest.Graph {
	g := layouttest.Random(7, 120_000, 120_000)
	for v := range layout.NodeID(g.Nodes - 1) {
		g.Edges = append(g.Edges, layouttest.Edge{Src: v + 1, Dst: 0})
	}
	return g
}

// peakHeap is how much the live heap grows while run runs, as far as it is looked at: what two
// collections in a row find, since one counts what died while it marked.
func peakHeap(run func()) (grown int64) {
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, done := live(), make(chan struct{})
	last := before
	go func() { defer close(done); run() }()
	for {
		select {
		case <-done:
			return grown
		case <-time.After(time.Millisecond):
			now := live()
			grown, last = max(grown, min(now, last)-before), now
		}
	}
}

// TestResultsAreCounted holds that what a statement keeps of its rows is counted, all of it, and is
// given back.
func TestResultsAreCounted(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", starGraph())
	const slack = 8 << 20 // parts of lists and of names, which have a largest size
	for _, stmt := range []string{
		"MATCH (a {id: 0})<-[]-(b) RETURN b.id, count(*)",
		"MATCH (a {id: 0})<-[]-(b) RETURN b.id, min(b.id), max(b.id), avg(b.id)",
		"MATCH (a {id: 0})<-[]-(b) RETURN b.id ORDER BY b.id DESC",
		"MATCH (a {id: 0})<-[]-(b) RETURN DISTINCT b.id, a.id",
		"SAMPLE RANDOM 120000 FANOUT all SHOW dense",
		"SAMPLE RANDOM 120000 FANOUT all SHOW edges",
		"SAMPLE RANDOM 120000 FANOUT all,all SHOW layers",
	} {
		budget := mem.NewBudget(0)
		e := graph.New(store, mustDevice(t), budget)
		run := func(stmt string) {
			p, err := lang.Parse(stmt)
			if err == nil {
				out := result.NewRenderer("csv", io.Discard, result.Box{})
				err = query.New(t.Context(), e, p, 1, out).Run(t.Context())
			}
			if err != nil {
				t.Errorf("%s: %v", stmt, err)
			}
		}
		run("NEIGHBORS 1,2 IN") // opens what others share
		open := budget.Used()
		grown := peakHeap(func() { run(stmt) })
		counted := budget.Peak() - open
		t.Logf("%s: %d bytes are counted, the heap grew by %d", stmt, counted, grown)
		if grown > counted+counted/4+slack {
			t.Errorf("%s: the heap grew by %d, %d bytes were counted", stmt, grown, counted)
		}
		if err := e.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%s: %d bytes stay counted: %v", stmt, budget.Used(), err)
		}
	}
}

// TestScansAreCounted holds that a statement whose counters do not fit is refused before it reads.
func TestScansAreCounted(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", starGraph())
	budget := mem.NewBudget(2 << 20)
	e := query.NewEngine(store, mustDevice(t), budget, 1)
	var full *mem.LimitError
	_, err := e.Query(t.Context(), "DEGREES IN TOP 1000000", nil)
	if !errors.As(err, &full) || full.What != "the highest degrees" {
		t.Errorf("120,000 degrees in 2 MiB: %v", err)
	}
	if _, err := e.Query(t.Context(), "DEGREES IN TOP 10", nil); err != nil {
		t.Errorf("10 of them: %v", err)
	}
	if err := e.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes stay counted: %v", budget.Used(), err)
	}
}
