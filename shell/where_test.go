package shell

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWhereSaysNever compares what does and what does not compare: a condition that could hold for
// no row because of what its sides are is an error, and not a result without rows.
func TestWhereSaysNever(t *testing.T) {
	large := layouttest.Graph{Nodes: 4, IDs: []string{"5", "13835058055282163712",
		"13835058055282163713", "13835058055282163714"}, Both: true, Edges: []layouttest.Edge{
		{Src: 0, Dst: 1}, {Src: 0, Dst: 2}, {Src: 0, Dst: 3}}}
	decimal := layouttest.Graph{Nodes: 3, Both: true, Edges: []layouttest.Edge{{Src: 0, Dst: 1},
		{Src: 0, Dst: 2}}, Classes: []string{"0.0", "1"}, Labels: []int32{0, 1, -1}}
	stores := map[string]layouttest.Graph{"rich": richGraph(), "target": targetGraph(),
		"multi": multiGraph(), "large": large, "decimal": decimal}
	for _, c := range []struct{ store, pattern, where, want string }{
		{"rich", "(a {id: ada})-[e]->(b)", "e.weight = 'heavy'",
			"e.weight is a number, and \"heavy\" is none"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.weight = '0.25'", "cyd o'neill"},
		{"rich", "(a {id: ada})-[e]->(b)", "0.25 = e.weight", "cyd o'neill"},
		{"rich", "(a {id: ada})-[e]->(b)", "1 < e.weight", "bob"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.weight IN [0.25, 'x']", "\"x\" is none"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.f0 = 'red'", "b.f0 is a number"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.f0 = b.label", "b.label is text, such as \"red\""},
		{"rich", "(a {id: ada})-[e]->(b)", "b.id > e.time", "b.id is text"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.type = e.weight",
			"e.type is text, such as \"cites\""},
		{"rich", "(a {id: ada})-[e]->(b)", "b.label = 'gren'",
			"no class \"gren\"; did you mean green?"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.label <> 'blue'",
			"no class \"blue\"; there are red, green"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.label > 3", "no numbers, such as \"red\""},
		{"rich", "(a {id: ada})-[e]->(b)", "b.label > 'a'", "bob bob"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.type = 'nows'", "did you mean knows?"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.type IN [cites]", "no variable"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.id = 'Bob'", "did you mean 'bob'?"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.id IN ['bob', 'nobody']", "id \"nobody\": not found"},
		{"rich", "(a {id: ada})-[e]->(b)", "b.id > 5", "is no number: write 5 in quotes"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.time >= '1970-01-01T02:00:00Z'", "bob"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.time < '1970-01-01 00:30'", "bob cyd o'neill"},
		{"rich", "(a {id: ada})-[e]->(b)", "e.time < 'May'", "\"May\" is no time"},
		{"rich", "(a {id: ada})-[e]->(b)", "1 = 'a'", "1 is a number, and \"a\" is none"},
		{"target", "(b)-[]->(a {id: 1})", "a.label = 'good'", "a.label is a number"},
		{"multi", "(b)-[]->(a {id: 1})", "b.label = 'c'", "0"},
		{"multi", "(b)-[]->(a {id: 1})", "b.label = 'a;c'", "0"},
		{"multi", "(b)-[]->(a {id: 1})", "b.label = 'c;a'", "0"},
		{"multi", "(b)-[]->(a {id: 1})", "b.label <> 'a'", "2"},
		{"multi", "(b)-[]->(a {id: 1})", "b.label = 'a;d'", "no class \"d\""},
		{"multi", "(b)-[]->(a {id: 1})", "b.label > 'a'", "have no order"},
		{"multi", "(b)-[]->(a {id: 1})", "b.label = b.id", "several labels"},
		{"large", "(a {id: 5})-[]->(b)", "b.id = 13835058055282163713", "13835058055282163713"},
		{"large", "(a {id: 5})-[]->(b)", "b.id > 13835058055282163713", "13835058055282163714"},
		{"large", "(a {id: 5})-[]->(b)", "'13835058055282163713' > b.id", "13835058055282163712"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.label = 1.0", "1"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.label = '1e0'", "1"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.label <> 0", "1"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.label = 2", "no class \"2\""},
		{"decimal", "(a {id: 0})-[]->(b)", "b.label > 'x'", "are numbers, and \"x\" is none"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.id = 'x'", "whole numbers, and \"x\" is none"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.id = 1.5", "whole numbers, and 1.5 is none"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.id = 1.0", "1"},
		{"decimal", "(a {id: 0})-[]->(b)", "b.id = 7", "ids are 0 to 2"},
	} {
		store := layouttest.Build(t, vfs.NewMem(), "s", stores[c.store])
		var out bytes.Buffer
		err := Run(t.Context(), Options{Store: store, Dev: mustDevice(t), Mode: "csv", Out: &out,
			Err: io.Discard, Memory: 64 << 20,
			Script: "MATCH " + c.pattern + " WHERE " + c.where + " RETURN b.id ORDER BY b.id"})
		got := strings.TrimSpace(strings.TrimPrefix(out.String(), "b.id\n"))
		got = strings.ReplaceAll(got, "\n", " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: got %q, want %q", c.store, c.where, got, c.want)
		}
	}
}

// TestTimesAreDates shows and takes times as the source wrote them.
func TestTimesAreDates(t *testing.T) {
	g := richGraph()
	for i := range g.Edges {
		g.Edges[i].Time = int64(86400*(18262+i) + 3600*(i%2)) // from 2020-01-01 on
	}
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	store.Meta().Times = kv.TimeDate
	const after = "MATCH (a {id: ada})-[e]->(b) WHERE e.time > '2020-01-02' " +
		"RETURN e.time, count(e.time), avg(e.time) ORDER BY e.time"
	for stmt, want := range map[string]string{
		"NEIGHBORS ada VIA cites": "node,direction,neighbor,type,weight,time\n" +
			"ada,out,bob,cites,0,2020-01-01\n",
		after: "e.time,count(e.time),avg(e.time)\n" +
			"2020-01-02T01:00:00Z,1,2020-01-02T01:00:00Z\n" +
			"2020-01-10T01:00:00Z,1,2020-01-10T01:00:00Z\n",
	} {
		if got := mustRun(t, store, mustDevice(t), "csv", stmt); got != want {
			t.Errorf("%s: got\n%swant\n%s", stmt, got, want)
		}
	}
}

// TestSelfLoopIsOneMatch counts an edge from a node to itself once where a step may go either way.
func TestSelfLoopIsOneMatch(t *testing.T) {
	g := plainGraph()
	g.Both = true
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	for pattern, want := range map[string]string{"(a {id: 3})-[]-(a)": "1",
		"(a {id: 3})-[]-(b)": "3", "(a {id: 3})-[*1..2]-(b {id: 3})": "4"} {
		got := mustRun(t, store, mustDevice(t), "csv", "MATCH "+pattern+" RETURN count(*)")
		if got != "count(*)\n"+want+"\n" {
			t.Errorf("%s: %s", pattern, got)
		}
	}
}

// TestNotesOfResults says what a result lacks, in every mode.
func TestNotesOfResults(t *testing.T) {
	apart := plainGraph()
	store := layouttest.Build(t, vfs.NewMem(), "s", apart)
	store.Meta().EdgeSplits = []kv.EdgeSplitMeta{{Name: "train", Count: 12}, {Name: "val",
		Count: 1000}, {Name: "test", Count: 234}}
	const note = "note: train edges; 1,234 of val and test are apart\n"
	for _, stmt := range []string{"NEIGHBORS 3 IN COUNT", "DEGREES IN", "DEGREES OF 3",
		"STATS GRAPH", "DESCRIBE", "MATCH (b)-[]->(a {id: 3}) RETURN count(*)", "PATH 1 TO 2"} {
		if got := notes(t, store, stmt); got != note {
			t.Errorf("%s: %q", stmt, got)
		}
	}
	lone := layouttest.Build(t, vfs.NewMem(), "s", multiGraph())
	const none = "no in-edges, and this store keeps no out-lists: gdb ingest --direction both " +
		"keeps the edges that leave a node too\n"
	for stmt, want := range map[string]string{"NEIGHBORS 0": "note: the node has " + none,
		"NEIGHBORS 0,1,2": "note: 2 of 3 nodes have " + none, "NEIGHBORS 0 IN": "",
		"NEIGHBORS 1": "", "NEIGHBORS 0 COUNT": "note: the node has " + none,
		"DEGREES OF 0": "note: the node has " + none} {
		if got := notes(t, lone, stmt); got != want {
			t.Errorf("%s: %q, want %q", stmt, got, want)
		}
	}
}

// notes are what a statement writes beside its result.
func notes(t *testing.T, store *layout.Store, stmt string) string {
	t.Helper()
	var err bytes.Buffer
	if e := Run(t.Context(), Options{Store: store, Dev: mustDevice(t), Mode: "csv", Out: io.Discard,
		Err: &err, Script: stmt, Memory: 64 << 20}); e != nil {
		t.Errorf("%s: %v", stmt, e)
	}
	return err.String()
}
