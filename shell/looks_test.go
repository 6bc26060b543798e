package shell

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/result"
	"gdb/shell/words"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lookContext is a context that counts how often somebody checks whether it is over. It is over
// after a given number of checks.
type lookContext struct {
	context.Context
	left, looks atomic.Int64
	over        chan struct{}
}

func newLookContext(ctx context.Context, left int64) *lookContext {
	c := &lookContext{Context: ctx, over: make(chan struct{})}
	c.left.Store(left)
	return c
}

// Err is context.Canceled from the look on that is one too many.
func (c *lookContext) Err() error {
	c.looks.Add(1)
	switch left := c.left.Add(-1); {
	case left == -1:
		close(c.over)
		fallthrough
	case left < 0:
		return context.Canceled
	}
	return nil
}

// Done is closed then too.
func (c *lookContext) Done() <-chan struct{} { return c.over }

// looksGraph has a hub that all nodes point at, and splits.
func looksGraph() layouttest.Graph {
	const nodes = 12_000
	g := layouttest.Graph{Nodes: nodes, Both: true, IDs: make([]string, nodes),
		Splits: map[string][]layout.NodeID{}}
	for v := range layout.NodeID(nodes) {
		g.IDs[v] = "node-" + string(rune('a'+v%26)) + words.Raw(int(v))
		g.Edges = append(g.Edges, layouttest.Edge{Src: v, Dst: 0},
			layouttest.Edge{Src: 0, Dst: v}, layouttest.Edge{Src: v, Dst: (v*7 + 1) % nodes},
			layouttest.Edge{Src: v, Dst: (v*13 + 5) % nodes})
		g.Splits["all"] = append(g.Splits["all"], v)
	}
	return g
}

// workPerLook is the most entries, rows and names that may pass between two looks on the mean.
const workPerLook = 1 << 15

// TestLooks holds without a clock that no statement runs long after Ctrl-C: each looks at its
// context as often as its work asks for, and once the context is over it ends at that look.
func TestLooks(t *testing.T) {
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", looksGraph()), mustDevice(t)
	edges := int64(store.Meta().Edges)
	for stmt, work := range map[string]int64{
		"SAMPLE SPLIT all OUT FANOUT all,all SHOW layers":       4 * edges,
		"SAMPLE SPLIT all BOTH FANOUT 10,10 SHOW layers":        8 * edges,
		"SAMPLE SPLIT all IN FANOUT 4,4 SHOW dense":             2 * edges,
		"SAMPLE #0 IN FANOUT all SHOW edges":                    12_000,
		"NEIGHBORS SPLIT all IN":                                2 * edges,
		"NEIGHBORS SPLIT all OUT HOPS 3 COUNT":                  3 * edges,
		"DEGREES OUT TOP 12000":                                 edges + 12_000,
		"DEGREES OF SPLIT all IN":                               12_000,
		"MATCH (a IN SPLIT all)-[]->(b) RETURN DISTINCT b":      edges,
		"MATCH (a IN SPLIT all)-[]->(b) RETURN a, b ORDER BY b": 2 * edges,
		"STATS BUCKETS":                                         edges,
	} {
		e := graph.New(store, dev, mem.NewBudget(256<<20))
		run := func(left int64) (*lookContext, error) {
			p, err := lang.Parse(stmt)
			if err != nil {
				t.Fatal(err)
			}
			ctx := newLookContext(t.Context(), left)
			x := query.New(ctx, e, p, 1, result.Discard{})
			return ctx, x.Run(ctx)
		}
		ctx, err := run(1 << 62)
		if err != nil {
			t.Errorf("%s: %v", stmt, err)
		}
		looks := ctx.looks.Load()
		if looks < work/workPerLook {
			t.Errorf("%s: %d looks for work of %d", stmt, looks, work)
		}
		for _, left := range []int64{0, looks / 2} {
			ctx, err := run(left)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: over at look %d of %d: %v", stmt, left, looks, err)
			}
			if more := ctx.looks.Load() - left; err != nil && more > looksAfter {
				t.Errorf("%s: %d looks after the last, number %d", stmt, more, left)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// looksAfter is how often an operator may look after the look that told it to end: on the way back
// and by reads that were under way.
const looksAfter = 64

// TestMatchLooksUpLess holds that a pattern with two anchors begins at the one that is no hub, and
// that DISTINCT names a node once.
func TestMatchLooksUpLess(t *testing.T) {
	g := looksGraph()
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	e := query.NewEngine(store, dev, mem.NewBudget(256<<20), 1)
	for _, stmt := range []string{"PROFILE MATCH (a {id: #0})-[]->(b {id: #4}) RETURN a",
		"PROFILE MATCH (b {id: #4})<-[]-(a {id: #0}) RETURN a",
		"PROFILE MATCH (a IN SPLIT all)-[]->(b) RETURN DISTINCT b"} {
		res, err := e.Query(t.Context(), stmt, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range res.Rows {
			name, detail := strings.TrimLeft(row[0].(string), " └─"), row[1]
			text, _ := detail.(string)
			if name == "ends" && !strings.HasPrefix(text, "begins at #4:") {
				t.Errorf("%s: %s", stmt, text)
			}
			if out, _ := row[3].(int64); name == "names" && int(out) > g.Nodes {
				t.Errorf("%s: %d names of %d nodes", stmt, out, g.Nodes)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
