package store_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestTurns holds that statements are the same where nodes take turns, in ranges whose lists fit in
// memory: of one direction and of both, of one type of edges and of several, of parallel edges, and
// with a list that is longer than there is room for in a range.
func TestTurns(t *testing.T) {
	const nodes = 60_000
	g := layouttest.Random(12, nodes, 0)
	g.EdgeTypes, g.Both = []string{"a", "b", "c"}, true
	r := rand.New(rand.NewPCG(12, 0))
	edge := func(src, dst, typ int) {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(src), Dst: layout.NodeID(dst),
			Type: uint16(typ)})
	}
	for i := range 900_000 {
		edge(r.IntN(nodes), r.IntN(nodes), i%3)
	}
	for i := range 60_000 {
		edge(nodes/2, r.IntN(nodes), i%2)
	}
	g.Edges = append(g.Edges, g.Edges[:2000]...)
	st := layouttest.Build(t, vfs.NewMem(), "s", g)
	// The memory has room for the lists that several threads may hold at a time, as they are
	// scheduled: the third statement takes up to 13 MiB. The first takes 9 MiB, and no turns in 14.
	for i, stmt := range []string{
		"MATCH (a)-->(b)-->(c), (a)-->(c) RETURN count(*)",
		"MATCH (a)-[:a]->(b)-[:b]->(c)-[:c]->(a) RETURN count(*)",
		"MATCH (a)-[:a]-(b)-[:b]-(c)-[:a|c]-(a) WHERE a.id < b.id RETURN count(*), sum(c.id)",
		"MATCH (a)-[:a]->(b)<-[:c]-(c)-[:b]->(a) RETURN b.id % 5 AS k, count(*) AS n " +
			"ORDER BY n DESC, k",
		"MATCH (a)-[:a]->(b)-[:c]->(c)-[r:b]->(a) RETURN type(r), count(r), count(DISTINCT b)",
	} {
		want, err := answer(t, st, 0, stmt)
		if err != nil {
			t.Fatal(err)
		}
		little := int64(16 << 20)
		if i == 0 {
			little = 12 << 20
		}
		plan, err := answer(t, st, little, "EXPLAIN "+stmt)
		if err != nil || !strings.Contains(plan, "from the file, about ") {
			t.Errorf("%s: no turns: %s, %v", stmt, plan, err)
		}
		got, err := answer(t, st, little, stmt)
		got, rest, _ := strings.Cut(got, "; lists of neighbors are read from the file")
		if err != nil || got != want {
			t.Errorf("%s: %.300s %s, %v; want %.300s", stmt, got, rest, err, want)
		}
	}
}
