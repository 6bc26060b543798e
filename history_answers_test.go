package gdb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb"
	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/live"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// answers opens a store and returns what statements give.
func answers(t *testing.T, fs vfs.FS, dir string, statements []string) map[string]string {
	t.Helper()
	db := openOn(t, fs, dir)
	defer db.Close()
	all := map[string]string{}
	for _, s := range statements {
		all[s] = rowsOf(t.Context(), t, db, s)
	}
	return all
}

func openOn(t *testing.T, fs vfs.FS, dir string) *gdb.DB {
	t.Helper()
	db, err := gdb.Open(t.Context(), dir, gdb.Options{FS: fs, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// samples returns what is drawn of a store by some seeds, for all nodes and for some of them: nodes
// and neighbors, and all else if no edges are parallel, which are in another order once compacted.
func samples(t *testing.T, fs vfs.FS, dir string, parallel bool) (drawn string) {
	t.Helper()
	db := openOn(t, fs, dir)
	defer db.Close()
	var nodes []kv.NodeID
	for v := range db.Meta().Nodes {
		nodes = append(nodes, kv.NodeID(v))
	}
	for seed := range uint64(3) {
		for step := range 3 {
			var some []kv.NodeID
			for i := step; i < len(nodes); i += 1 + 2*step {
				some = append(some, nodes[i])
			}
			d, err := db.Sample(t.Context(), some, []int{2, 1 + step}, seed, uint64(step), seed+7)
			if err != nil {
				t.Fatal(err)
			}
			if drawn += fmt.Sprintln(d.NodeIDs, d.Nbrs); !parallel {
				drawn += fmt.Sprintln(d.Lists)
			}
		}
	}
	return drawn
}

// sameAnswers fails unless statements give the same of two stores.
func sameAnswers(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for statement, rows := range want {
		if got[statement] != rows {
			t.Errorf("%s: %s: %s\nwant %s", what, statement, got[statement], rows)
		}
	}
}

// grown is a graph of one type of nodes that a random history makes, with a number, a word and a
// label of each node, and a weight and a type of each edge.
type grown struct {
	r          *rand.Rand
	fs         vfs.FS
	undirected bool
	nodes      [][4]string // id, x, label, split
	edges      [][4]string // ends, weight, type
	next       int
}

func (g *grown) row(id string) [4]string {
	return [4]string{id, fmt.Sprint(g.r.IntN(9)), []string{"a", "b"}[g.r.IntN(2)],
		[]string{"train", "val", "test", ""}[g.r.IntN(4)]}
}

// newNodes adds nodes; their rows are returned.
func (g *grown) newNodes(n int) (rows [][4]string) {
	for range n {
		g.next++
		rows = append(rows, g.row(fmt.Sprintf("n%02d", g.next*37%100)))
	}
	g.nodes = append(g.nodes, rows...)
	return rows
}

// newEdges adds edges; an undirected graph has none twice, and no loops.
func (g *grown) newEdges(n int) (rows [][4]string) {
	for range n {
		e := [4]string{g.nodes[g.r.IntN(len(g.nodes))][0], g.nodes[g.r.IntN(len(g.nodes))][0],
			fmt.Sprint(1 + g.r.IntN(4)), []string{"x", "y"}[g.r.IntN(2)]}
		if g.undirected && (e[0] == e[1] || slices.ContainsFunc(g.edges, func(of [4]string) bool {
			return min(e[0], e[1]) == min(of[0], of[1]) && max(e[0], e[1]) == max(of[0], of[1])
		})) {
			continue
		}
		g.edges, rows = append(g.edges, e), append(rows, e)
	}
	return rows
}

// options writes tables, and returns how they are read. Edges of an undirected graph have no
// weights, which would be merged.
func (g *grown) options(t *testing.T, nodes, edges [][4]string) (opt ingest.Options) {
	t.Helper()
	opt.Memory = 1 << 30
	table := func(name string, rows [][4]string, columns ...int) {
		text := ""
		for _, row := range rows {
			for i, c := range columns {
				text += row[c] + []string{",", "\n"}[i/(len(columns)-1)]
			}
		}
		writeFile(t, g.fs, name, text)
	}
	if len(nodes) > 0 {
		head := [4]string{"id", "x", "kind", "part"}
		table("n.csv", slices.Insert(slices.Clone(nodes), 0, head), 0, 1, 2, 3)
		opt.Nodes, opt.FeatureCols, opt.LabelCol, opt.SplitCol = "n.csv", "x", "kind", "part"
	}
	if opt.NoEdges = len(edges) == 0; opt.NoEdges {
		return opt
	}
	edges = slices.Insert(slices.Clone(edges), 0, [4]string{"src", "dst", "w", "rel"})
	if opt.Edges, opt.RelCol = "e.csv", "rel"; g.undirected {
		table("e.csv", edges, 0, 1, 3)
	} else {
		opt.WeightCol = "w"
		table("e.csv", edges, 0, 1, 2, 3)
	}
	return opt
}

func (g *grown) once(t *testing.T, dir string) {
	t.Helper()
	opt := g.options(t, g.nodes, g.edges)
	opt.Out, opt.Undirected = dir, g.undirected
	if _, err := ingest.Run(t.Context(), g.fs, opt); err != nil {
		t.Fatal(err)
	}
}

// step changes the graph and the store s in the same way.
func (g *grown) step(t *testing.T) {
	t.Helper()
	switch k := g.r.IntN(6); {
	case k == 0 && len(g.nodes) > 6:
		g.remove(t)
	case k == 1: // other values
		var rows [][4]string
		for i := range g.nodes {
			if g.r.IntN(4) == 0 {
				now := g.row(g.nodes[i][0])
				if now[3] == "" { // it stays in the split that it was in
					now[3] = g.nodes[i][3]
				}
				g.nodes[i], rows = now, append(rows, now)
			}
		}
		g.append(t, rows, nil)
	case k == 2:
		g.append(t, nil, g.newEdges(1+g.r.IntN(6))) // a small commit
	default:
		nodes := g.newNodes(g.r.IntN(3))
		g.append(t, nodes, g.newEdges(1+g.r.IntN(8)))
	}
}

func (g *grown) append(t *testing.T, nodes, edges [][4]string) {
	t.Helper()
	if len(nodes)+len(edges) == 0 {
		return
	}
	if _, err := live.Append(t.Context(), g.fs, "s", g.options(t, nodes, edges)); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a node with its edges, and all edges between the ends of another.
func (g *grown) remove(t *testing.T) {
	t.Helper()
	gone := g.nodes[2+g.r.IntN(len(g.nodes)-2)][0]
	writeFile(t, g.fs, "gone.txt", gone+"\n")
	del := live.Deletion{DeleteNodes: "gone.txt"}
	del.Memory = 1 << 30
	from, to := "", ""
	if len(g.edges) > 0 {
		e := g.edges[g.r.IntN(len(g.edges))]
		from, to = e[0], e[1]
		writeFile(t, g.fs, "gone.csv", "src,dst\n"+from+","+to+"\n")
		del.Edges = "gone.csv"
	}
	if _, err := live.Delete(t.Context(), g.fs, "s", del); err != nil {
		t.Fatal(err)
	}
	g.nodes = slices.DeleteFunc(g.nodes, func(row [4]string) bool { return row[0] == gone })
	g.edges = slices.DeleteFunc(g.edges, func(e [4]string) bool {
		return e[0] == gone || e[1] == gone || e[0] == from && e[1] == to
	})
}

// grownStatements are asked of a store of a grown graph; each has one order of rows.
var grownStatements = []string{
	"MATCH (n) RETURN n.id, n.x, n.label ORDER BY n.id",
	"MATCH (n) RETURN n.label, count(*), sum(n.x), min(n.id), collect(DISTINCT n.x)[0] IS NULL " +
		"ORDER BY n.label",
	"MATCH (a)-[r]->(b) RETURN a.id, type(r), b.id, r.weight " +
		"ORDER BY a.id, b.id, type(r), r.weight",
	"MATCH (a)-[r:x]->(b) WHERE r.weight > 1 RETURN a.id, count(*) AS c ORDER BY a.id",
	"MATCH (a)<-[r]-(b) RETURN a.id, count(*), sum(r.weight) ORDER BY a.id",
	"MATCH (a)-[]-(b) RETURN a.id, count(DISTINCT b) ORDER BY a.id",
	"MATCH (a)-[]->(b)-[]->(c) WHERE a.x <= c.x RETURN a.id, c.id, count(*) ORDER BY a.id, c.id",
	"MATCH (a)-[:y*1..3]->(b) RETURN a.id, b.id, count(*) ORDER BY a.id, b.id",
	"MATCH (n) OPTIONAL MATCH (n)-[r:y]->(m) RETURN n.id, count(m) ORDER BY n.id",
	"MATCH (n) WHERE NOT (n)-->() RETURN n.id ORDER BY n.id",
	"MATCH (n) WHERE n.x > 3 AND n.label = 'a' RETURN n.id, n.x ORDER BY n.x DESC, n.id",
	"CALL gdb.kcore() YIELD node, value RETURN node.id, value ORDER BY node.id",
	"CALL gdb.triangles() YIELD node, value RETURN node.id, value ORDER BY node.id",
	"CALL gdb.components() YIELD node, value RETURN count(*), count(DISTINCT value), max(value)",
	"CALL gdb.pagerank() YIELD node, value RETURN node.id, round(value * 10000) ORDER BY node.id",
	"CALL gdb.pagerank() YIELD value RETURN round(sum(value) * 100000)",
	"DEGREES", "DEGREES BINS 3", "DEGREES VIA x",
	"LABELS RANDOM 99 COUNTS", // of all nodes
	"UNWIND range(0, 90) AS v MATCH (n) WHERE id(n) = v RETURN count(*)",
	"MATCH (a) WHERE a.id STARTS WITH 'n0' MATCH (a)-->(b) RETURN DISTINCT b.id ORDER BY b.id",
}

// TestHistoryAnswers: after random commits, deletions and replaced values a store answers
// statements as it does compacted, and as an ingest of what it holds at once does; of the same
// seeds its samples are, to the bit, those of the compacted store.
func TestHistoryAnswers(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			g := &grown{r: rand.New(rand.NewPCG(seed, 41)), fs: vfs.NewMem(),
				undirected: seed%2 == 1}
			g.newNodes(8)
			for i := range g.nodes[:2] { // all classes and splits
				g.nodes[i][2], g.nodes[i][3] = []string{"a", "b"}[i], []string{"train", "val"}[i]
			}
			g.nodes[2][3] = "test"
			g.newEdges(12)
			g.once(t, "s")
			for round := range 3 {
				for range 1 + g.r.IntN(4) {
					g.step(t)
				}
				got, drawn := answers(t, g.fs, "s", grownStatements), samples(t, g.fs, "s",
					!g.undirected)
				once := fmt.Sprint("once", round)
				g.once(t, once)
				sameAnswers(t, "levels", got, answers(t, g.fs, once, grownStatements))
				opt := parts.OrderOptions{Memory: 1 << 30}
				if _, err := live.Compact(t.Context(), g.fs, "s", opt); err != nil {
					t.Fatal(err)
				}
				sameAnswers(t, "compacted", answers(t, g.fs, "s", grownStatements), got)
				if now := samples(t, g.fs, "s", !g.undirected); now != drawn {
					t.Errorf("samples of levels:\n%s\ncompacted:\n%s", drawn, now)
				}
			}
		})
	}
}
