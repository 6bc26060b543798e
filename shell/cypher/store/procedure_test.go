package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/query"
)

// TestProcedures holds that CALL gives what the shell's own statements do, as values that go on in
// a statement, and that mistakes are told.
func TestProcedures(t *testing.T) {
	st := shop(t)
	for _, c := range []struct{ stmt, want string }{
		{"MATCH (i:item {id: 'x1'}) CALL gdb.neighbors(i) YIELD neighbor, type, direction " +
			"RETURN type, direction, neighbor.name ORDER BY type, neighbor.name",
			"buys in Ann; buys in Bob; buys in Bob; likes in Ann"},
		{"MATCH (i:item {id: 'x1'}) CALL gdb.neighbors(i) YIELD neighbor WITH DISTINCT neighbor " +
			"MATCH (neighbor)-[:buys]->(j) RETURN neighbor.id, count(j) ORDER BY neighbor.id",
			"1 2; 2 2"},
		{"MATCH (i:item) WITH collect(i) AS seeds CALL gdb.sample(seeds, ['all'], 5) " +
			"YIELD hop, node, neighbor AS u WHERE u.id = 3 RETURN hop, node.id, u.name",
			"1 x2 Cyd"},
		{"MATCH (i:item {id: 'x1'}) CALL gdb.sample(i, [1, 1]) YIELD hop RETURN count(*), max(hop)",
			"2 2"},
		{"OPTIONAL MATCH (i:item {id: 'x9'}) CALL gdb.neighbors(i) YIELD neighbor RETURN neighbor",
			""},
		{"CALL gdb.procedures() YIELD name, signature WHERE name = 'gdb.nearest' RETURN signature",
			"gdb.nearest(node :: NODE, k :: INTEGER, [run :: STRING]) :: (node :: NODE, " +
				"score :: FLOAT)"},
		{"CALL gdb.components() YIELD value RETURN value, count(*)", "0 5"},
		{"CALL gdb.triangles() YIELD node, value WHERE value > 0 RETURN node.name, value " +
			"ORDER BY id(node)", "Ann 1; Bob 1; <nil> 1"},
		{"CALL gdb.kcore() YIELD node, value WHERE value = 2 RETURN count(*)", "3"},
		{"CALL gdb.pagerank(0.5) YIELD value RETURN round(1000 * sum(value))", "1000"},
		{"MATCH (u:user {id: 1}) CALL gdb.distances(u) YIELD node, value " +
			"RETURN collect(node.id), value ORDER BY value", "[1] 0; [2, 'x1', 'x2'] 1"},
		{"MATCH (i:item) CALL gdb.neighbors(i) YIELD neighbor RETURN neighbor.id LIMIT 1", "1"},
	} {
		switch got, err := answer(t, st, 0, c.stmt); {
		case err != nil:
			t.Errorf("%s: %v", c.stmt, err)
		case got != c.want:
			t.Errorf("%s\ngives %s\nwant  %s", c.stmt, got, c.want)
		}
	}
	for _, c := range []struct{ stmt, want string }{
		{"MATCH (n) CALL gdb.predict(n, 'r1') YIELD node RETURN node", "Options.Predict"},
		{"CALL gdb.neighbours()", "no procedure gdb.neighbours; did you mean gdb.neighbors?"},
		{"MATCH (n) CALL gdb.neighbors(n) YIELD node RETURN node", "gives no node"},
		{"MATCH (n) CALL gdb.neighbors(n.id) YIELD neighbor RETURN 1", "wants NODE for node, not"},
		{"MATCH (n) CALL gdb.neighbors() YIELD neighbor RETURN 1", "takes 1 to 2 arguments, not 0"},
		{"MATCH (n) CALL gdb.neighbors(n, 'up') YIELD neighbor RETURN 1", "want IN, OUT or BOTH"},
		{"CALL gdb.sample([], [1])", "there are no seeds"},
		{"CALL gdb.sample([1], [1])", "something that is no node"},
		{"MATCH (n) CALL gdb.sample(n, [0]) YIELD hop RETURN hop", "a fanout is 1 to"},
		{"MATCH (n) CALL gdb.shortestPaths(n, 'weight') YIELD value RETURN 1", "have no weights"},
		{"CALL gdb.pagerank(2)", "damping is between 0 and 1"},
		{"MATCH (n) CALL gdb.nearest(n, 3) YIELD node RETURN node", "Options.Vectors"},
	} {
		_, err := answer(t, st, 0, c.stmt)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.stmt, err, c.want)
		}
	}
}

// TestPredict holds that predictions are rows of nodes that a run and its name ask for.
func TestPredict(t *testing.T) {
	st, ctx := shop(t), context.Background()
	if err := st.Catalog().PutRun(ctx, kv.RunMeta{Name: "r1", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	e := query.NewEngine(st, layouttest.Device(t), mem.NewBudget(64<<20), 1)
	e.Learned(nil, nil, func(_ context.Context, _ *layout.Store, _ blockdev.Device, run string,
		calibrated bool, nodes []layout.NodeID, memory int64,
		emit func(layout.NodeID, any, float64) error) error {
		if run != "r1" || memory < 32<<20 {
			t.Errorf("run %s in %d bytes", run, memory)
		}
		if calibrated {
			return emit(nodes[0], "red", .5)
		}
		return errors.Join(emit(nodes[0], "red", .75), emit(nodes[1], 2.5, math.NaN()))
	})
	defer func() { _ = e.Close() }()
	stmt := "MATCH (u:user) WHERE u.id < 3 WITH collect(u) AS us CALL gdb.predict(us, $run) " +
		"YIELD node, prediction, probability RETURN node.name, prediction, probability"
	r, err := e.Query(ctx, stmt, map[string]any{"run": "r1"})
	if want := "[[Ann red 0.75] [Bob 2.5 <nil>]]"; err != nil || fmt.Sprint(r.Rows) != want {
		t.Errorf("rows %v, %v, want %s", r, err, want)
	}
	for asked, want := range map[string]string{"true": "[[Ann red 0.5]]",
		"false": "[[Ann red 0.75] [Bob 2.5 <nil>]]"} {
		r, err := e.Query(ctx, strings.Replace(stmt, "$run", "$run, "+asked, 1),
			map[string]any{"run": "r1"})
		if err != nil || fmt.Sprint(r.Rows) != want {
			t.Errorf("calibrated %s: rows %v, %v, want %s", asked, r, err, want)
		}
	}
	if _, err := e.Query(ctx, stmt, map[string]any{"run": "r2"}); err == nil ||
		!strings.Contains(err.Error(), "did you mean r1?") {
		t.Errorf("an unknown run: %v", err)
	}
}
