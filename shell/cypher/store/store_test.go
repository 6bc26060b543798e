package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/shell/query"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// answer returns the rows of a statement, and what it warns of.
func answer(t *testing.T, st *layout.Store, memory int64, stmt string) (string, error) {
	t.Helper()
	e := query.NewEngine(st, layouttest.Device(t), mem.NewBudget(memory), 1)
	r, err := e.Query(context.Background(), stmt, nil)
	if e := e.Close(); e != nil {
		t.Error(e)
	}
	if err != nil {
		return "", err
	}
	var rows []string
	for _, row := range r.Rows {
		rows = append(rows, strings.Trim(fmt.Sprintln(row...), "\n"))
	}
	return strings.Join(append(rows, r.Notes...), "; "), nil
}

// shop is a typed store with columns of nodes and edges.
func shop(t *testing.T) *layout.Store {
	fs := vfs.NewMem()
	for name, text := range map[string]string{
		"users.csv":  "id,name,age,born\n1,Ann,30,1994-05-01\n2,Bob,41,1983-01-31\n3,Cyd,,\n",
		"items.csv":  "sku,title,price\nx1,Tea,2.5\nx2,Cup,7.25\n",
		"orders.csv": "user,sku,quantity\n1,x1,2\n1,x2,1\n2,x1,5\n2,x1,1\n3,x2,4\n",
		"likes.csv":  "src,dst,stars\n1,x1,3\n",
		"knows.csv":  "src,dst,since\n1,2,2020\n1,1,2021\n",
	} {
		layouttest.WriteFile(t, fs, name, []byte(text))
	}
	ctx := context.Background()
	o := source.Options{Memory: 128 << 20,
		NodeTables: []source.NodeTable{{Type: "user", File: "users.csv"},
			{Type: "item", File: "items.csv"}},
		Relations: []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "orders.csv"},
			{Src: "user", Name: "likes", Dst: "item", File: "likes.csv"},
			{Src: "user", Name: "likes", Dst: "user", File: "knows.csv"}}}
	if _, err := ingest.Run(ctx, fs, ingest.Options{Options: o, Out: "shop.gdb"}); err != nil {
		t.Fatal(err)
	}
	st, err := layout.Open(ctx, fs, "shop.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestTables holds that types are labels, relations types, and columns properties.
func TestTables(t *testing.T) {
	st := shop(t)
	for _, c := range []struct{ stmt, want string }{
		{"MATCH (n) RETURN count(*)", "5"},
		{"MATCH (n:user) RETURN n ORDER BY n.id DESC LIMIT 2", "(:user {id: 3, name: 'Cyd'}); " +
			"(:user {age: 41, born: '1983-01-31', id: 2, name: 'Bob'})"},
		{"MATCH (u:user)-[:buys]->(i) WHERE u.age > 30 RETURN i.id, count(*)", "x1 2"},
		{"MATCH (u)-[b:buys {quantity: 4}]->(i) RETURN u.name, i.title, type(b)", "Cyd Cup buys"},
		{"MATCH (u:user {id: 2})-[b]->() RETURN u.name, sum(b.quantity), count(DISTINCT b)",
			"Bob 6 2"},
		{"MATCH (u:user) WHERE u.id = 1 RETURN u.born.year, u.born + duration('P1M') AS d",
			"1994 1994-06-01"},
		{"MATCH (a:user {id: 1})-[:buys]->()<-[:buys]-(b) RETURN b.name, count(*) ORDER BY b.name",
			"Bob 2; Cyd 1"},
		{"MATCH (u)-[l:likes]->(n) RETURN u.id, n.id, type(l), l.stars, l.since ORDER BY n.id",
			"1 x1 likes 3 <nil>; 1 1 likes <nil> 2021; 1 2 likes <nil> 2020"},
		{"MATCH (u)-[l:`user:likes:item`]->(n) RETURN properties(l).stars", "3"},
		{"MATCH (u:User) RETURN u", "nothing in this store has the label User; did you mean user?"},
		{"MATCH (u:user)-[:bys]->() RETURN u",
			"nothing in this store has the type of edges bys; did you mean buys?"},
		{"MATCH (i:item {id: 'x1'}) RETURN i.prise",
			"<nil>; nothing in this store has the property prise; did you mean price?"},
		{"MATCH (i:item {id: 'x9'}) RETURN i", ""},
		{"MATCH (i:item) WHERE i.age IS NULL RETURN count(*)", "2"},
		{"MATCH (i:item {sku: 'x2'})<-[b]-(u) RETURN i.id, i.sku, u.sku, sum(b.quantity)",
			"x2 x2 <nil> 5"},
		{"MATCH (i:item) WHERE i.sku = 'x1' RETURN i.title", "Tea"},
		{"MATCH (n {sku: 'x1'}) RETURN n.title", "Tea"},
		{"MATCH (n) WHERE n.id IN ['x2', 3, 'x2', null, 'none'] AND n.none IS NULL RETURN n.id",
			"3; x2; nothing in this store has the property none; did you mean name?"},
		{"MATCH (n) WHERE id(n) = 3 RETURN n.id", "x1"},
		{"MATCH (n) WHERE id(n) IN [4, 0, 2.0, 4, -1, 5, 1.5, null, 'x1', 1e300] RETURN n.id",
			"1; 3; x2"},
		{"MATCH (n:user) WHERE id(n) IN [4, 0] RETURN n.id", "1"},
		{"MATCH (n:item)<--(u) WHERE 4 = id(n) RETURN id(u)", "0; 2"},
		{"UNWIND [4, 0, 9] AS i MATCH (n:user) WHERE id(n) = i RETURN n.id", "1"},
		{"MATCH p = (n:item)<-[*1..2]-(u) WHERE id(n) = 4 RETURN count(p)", "3"},
		{"MATCH (n:item)<-[*1..2]-(u) WHERE id(n) = 0 RETURN count(*)", "0"},
		{"MATCH (n:thing) WHERE id(n) = 0 RETURN n", "nothing in this store has the label thing"},
		{"UNWIND ['x2', 3, 9, null, 1] AS u MATCH (n {id: u})--(m) RETURN u, count(m)",
			"x2 2; 3 1; 1 5"},
		{"MATCH (n) WHERE n.age > 30 OR n.price > 3 RETURN n.age, n.price", "41 <nil>; <nil> 7.25"},
		{"MATCH (n)-->(m) RETURN m.price AS p, m.age AS a ORDER BY a DESC, p DESC LIMIT 3",
			"7.25 <nil>; 7.25 <nil>; 2.5 <nil>"},
		{"MATCH (u:user) WITH u ORDER BY u.id DESC LIMIT 2 OPTIONAL MATCH (u)-->(v:user) " +
			"WHERE v.id > u.id RETURN u.name, v.name", "Cyd <nil>; Bob <nil>"},
		{"MATCH (u:user) WHERE '1990-01-01' > u.born AND u.age > 0 RETURN u.id", "born is " +
			"compared with a text, which no date equals or comes before: write date('1990-01-01')"},
		{"MATCH (u:user) WITH u WHERE u.born = '1983-01-31' RETURN u.id", "born is " +
			"compared with a text, which no date equals or comes before: write date('1983-01-31')"},
		{"MATCH (u:user) WHERE u.born >= datetime('1983-01-31') RETURN u.id",
			"born is a date, which no datetime equals or comes before: write date(…)"},
		{"MATCH (u:user) WHERE u.name > 'B' AND u.born > date('1983-01-31') RETURN u.id", ""},
	} {
		if got, err := answer(t, st, 0, c.stmt); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.stmt, got, err, c.want)
		}
	}
}

// TestFoundByNumber holds that id(n) finds a node, where others are looked at one by one.
func TestFoundByNumber(t *testing.T) {
	st := shop(t)
	for stmt, want := range map[string]bool{
		"MATCH (n) WHERE id(n) = 3 RETURN n":                    true,
		"MATCH (n:user)-->(m) WHERE id(n) IN [1, 2] RETURN m":   true,
		"UNWIND [1, 2] AS i MATCH (n) WHERE id(n) = i RETURN n": true,
		"MATCH (n) WHERE id(n) > 3 RETURN n":                    false,
		"MATCH (n), (m) WHERE id(n) = id(m) RETURN n":           false,
		"MATCH (n)-[r]->(m) WHERE id(r) = 3 RETURN n":           false,
		"MATCH (n) WHERE id(n) = 3 OR n.age = 3 RETURN n":       false,
	} {
		got, err := answer(t, st, 0, "EXPLAIN "+stmt)
		if err != nil || strings.Contains(got, "find") != want {
			t.Errorf("%s: %s, %v; found: %v wanted", stmt, got, err, want)
		}
	}
}

// TestDirections holds that out-lists that are kept, and those that are made of in-lists, have the
// same relationships, of which several join two nodes; and what undirected edges are.
func TestDirections(t *testing.T) {
	g := layouttest.Random(7, 40, 300)
	g.EdgeTypes, g.Weighted = []string{"a", "b", "c"}, true
	g.Edges = append(g.Edges, g.Edges[:60]...)
	g.Edges = append(g.Edges, layouttest.Edge{Src: 3, Dst: 3})
	one := layouttest.Build(t, vfs.NewMem(), "one", g)
	g.Both = true
	both := layouttest.Build(t, vfs.NewMem(), "both", g)
	for _, stmt := range []string{
		"MATCH ()-[r]->() RETURN count(*), count(DISTINCT r)",
		"MATCH ()-[r]-() RETURN count(*), count(DISTINCT r)",
		"MATCH (n)-[:a|b]->(m)-[r:c]->(n) RETURN count(*), sum(r.weight), count(DISTINCT r)",
		"MATCH (n {id: 4})-[r]->(m) RETURN m.id, type(r), r.weight ORDER BY m.id, r.weight",
		"MATCH p = (n {id: 4})-[*1..2]-(m) RETURN m.id, count(p) ORDER BY m.id",
		"MATCH p = shortestPath((n {id: 4})-[*]->(m)) RETURN m.id, length(p) ORDER BY m.id",
	} {
		kept, err := answer(t, both, 0, stmt)
		if err != nil {
			t.Fatal(err)
		}
		made, err := answer(t, one, 0, stmt)
		made, _, _ = strings.Cut(made, "; this store keeps no out-lists")
		if err != nil || kept != made || kept == "" {
			t.Errorf("%s: kept %.300s; made %.300s, %v", stmt, kept, made, err)
		}
	}
	want := fmt.Sprintf("%d %[1]d", len(g.Edges))
	if got, err := answer(t, both, 0, "MATCH ()-[r]->() RETURN count(*), count(DISTINCT r)"); err !=
		nil || got != want {
		t.Errorf("%s relationships, %v; want %s", got, err, want)
	}
	// Lists are read one by one in little memory, and for few relationships.
	if got, err := answer(t, both, 0, "MATCH ()-[r]->() WHERE r.weight <> properties(r).weight "+
		"RETURN count(*)"); err != nil || got != "0" {
		t.Errorf("%s weights read by lists are others, %v", got, err)
	}
	var out []string
	for _, e := range g.Edges {
		if e.Src == 4 {
			out = append(out, fmt.Sprintf("%d %s %v", e.Dst, g.EdgeTypes[e.Type], e.Weight))
		}
	}
	got, err := answer(t, both, 0, "MATCH (n {id: 4})-[r]->(m) RETURN m.id, type(r), r.weight")
	rows := strings.Split(got, "; ")
	slices.Sort(rows)
	slices.Sort(out)
	if err != nil || !slices.Equal(rows, out) {
		t.Errorf("edges of 4: %q, %v; want %q", rows, err, out)
	}
}

// TestMemory holds that rows are counted in the budget.
func TestMemory(t *testing.T) {
	st := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(1, 2000, 10))
	_, err := answer(t, st, 16<<20, "MATCH (a), (b) RETURN a, b ORDER BY b.id")
	if err == nil || !strings.Contains(err.Error(), "rows of the statement") {
		t.Errorf("2000 nodes twice in 16 MiB: %v", err)
	}
}

// TestUndirected holds the counts of two hops over undirected edges, of which no match uses one
// twice.
func TestUndirected(t *testing.T) {
	seen, degree := map[[2]layout.NodeID]bool{}, map[layout.NodeID]int{}
	text, edges := "src,dst\n", 0
	for _, e := range layouttest.Random(3, 30, 90).Edges {
		a, b := min(e.Src, e.Dst), max(e.Src, e.Dst)
		if a == b || seen[[2]layout.NodeID{a, b}] {
			continue
		}
		seen[[2]layout.NodeID{a, b}] = true
		text += fmt.Sprintf("%d,%d\n", e.Src, e.Dst)
		edges += 2
		degree[a]++
		degree[b]++
	}
	fs, ctx := vfs.NewMem(), context.Background()
	layouttest.WriteFile(t, fs, "e.csv", []byte(text))
	o := source.Options{Memory: 128 << 20, Edges: "e.csv"}
	_, err := ingest.Run(ctx, fs, ingest.Options{Options: o, Out: "u", Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	st, err := layout.Open(ctx, fs, "u")
	if err != nil {
		t.Fatal(err)
	}
	two := 0
	for _, d := range degree {
		two += d * (d - 1)
	}
	for _, c := range []struct {
		stmt string
		want int
	}{
		{"MATCH ()-->() RETURN count(*)", edges},
		{"MATCH ()-->()-->() RETURN count(*)", two},
		{"MATCH ()--()<--() RETURN count(*)", two},
		{"MATCH (a)-[r]->(b)<-[s]-(c) WHERE r <> s RETURN count(*)", two},
		{"MATCH (a)-->(b)-->(c) RETURN count([a.id, b.id, c.id])", two},
	} {
		if got, err := answer(t, st, 0, c.stmt); err != nil || got != fmt.Sprint(c.want) {
			t.Errorf("%s: %s, %v; want %d", c.stmt, got, err, c.want)
		}
	}
}

// TestThreads holds that rows and groups come in the same order on any number of threads.
func TestThreads(t *testing.T) {
	st := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(5, 6000, 9000))
	for _, stmt := range []string{"MATCH (a)-->(b) RETURN b.id, count(*)",
		"MATCH (a)-->(b)-->(c) RETURN c.id % 7 AS k, count(*), min(a.id)",
		"MATCH (a)-->(b) RETURN a.id % 5 AS x, b.id % 3 AS y, count(*) AS n, avg(b.id) " +
			"ORDER BY n DESC LIMIT 4",
		"MATCH (a)-->(b) RETURN a.id, b.id"} {
		before := runtime.GOMAXPROCS(1)
		want, err := answer(t, st, 0, stmt)
		runtime.GOMAXPROCS(4)
		for range 3 {
			got, also := answer(t, st, 0, stmt)
			if err != nil || also != nil || got != want {
				t.Errorf("%s: other rows on 4 threads than on 1; %v, %v", stmt, err, also)
			}
		}
		runtime.GOMAXPROCS(before)
	}
}

// TestFromFile holds that lists that do not fit in memory, and lists of few nodes, are read from
// the file with the same answers. What begins with UNWIND is for the reference.
func TestFromFile(t *testing.T) {
	const note, few = "; lists of neighbors are read from the file", "UNWIND [1] AS one "
	g := layouttest.Random(11, 20_000, 0)
	g.EdgeTypes, g.Both = []string{"a", "b", "c"}, true
	r := rand.New(rand.NewPCG(11, 0))
	for i := range 200_000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(r.IntN(20_000)),
			Dst: layout.NodeID(r.IntN(20_000)), Type: uint16(i % 3)})
	}
	g.Edges = append(g.Edges, g.Edges[:2000]...)
	st, read := layouttest.Build(t, vfs.NewMem(), "s", g), 0
	for _, stmt := range []string{
		"MATCH ()-->() RETURN count(*)",
		"MATCH ()-[:a]->()<--() RETURN count(*)",
		"MATCH (a)-->(b) WHERE a.id % 10 = 0 AND (b)-->(a) RETURN count(*)",
		"MATCH (a)-[r]-(b) WHERE a.id % 20 = 0 RETURN b.id % 5 AS k, type(r) AS t, count(*) " +
			"ORDER BY k, t",
		few + "MATCH (n {id: 3})-->()-->(m) RETURN m.id % 3, count(*) AS c ORDER BY c",
		few + "MATCH (a {id: 2})-[:a|b]-(b)-[r:c]-(c) WHERE c.id > b.id " +
			"RETURN type(r), count(DISTINCT r), count(*)",
		few + "MATCH (a {id: 3})-->(b)-->(c) WHERE NOT (a)-->(c) RETURN count(*)",
		few + "MATCH (a {id: 77})-[r:b]->(b) RETURN b.id, type(r)",
	} {
		want, err := answer(t, st, 0, stmt)
		if err != nil {
			t.Fatal(err)
		}
		stmt, _ := strings.CutPrefix(stmt, few)
		got, err := answer(t, st, 4<<20, stmt)
		got, rest, noted := strings.Cut(got, note)
		if noted {
			read++
		}
		if err != nil || got != want {
			t.Errorf("%s: %.300s %s, %v; want %.300s", stmt, got, rest, err, want)
		}
	}
	if read < 2 {
		t.Errorf("lists of %d statements are read from the file", read)
	}
}

// TestInOrder holds that statements about the whole graph, whose lists are read in the order of the
// file, have the answers that they have in memory: joins, and cycles of four.
func TestInOrder(t *testing.T) {
	g := layouttest.Random(12, 20_000, 0)
	g.Both = true
	r := rand.New(rand.NewPCG(12, 0))
	for range 150_000 {
		u, v := r.Float64(), r.Float64()
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(u * u * 20_000),
			Dst: layout.NodeID(v * v * 20_000)})
	}
	st := layouttest.Build(t, vfs.NewMem(), "s", g)
	for _, stmt := range []string{
		"MATCH (a)-->(b)-->(c)-->(a) RETURN count(*)",
		"MATCH (a)-->(b)-->(c)-->(d)-->(a) RETURN count(*)",
		"MATCH (a)-->(b)-->(c)-->(d)-->(a) RETURN a, count(*) AS n ORDER BY n DESC, a.id LIMIT 3",
		"MATCH (a)-->(b)-->(c)-->(a) WHERE a.id % 3 > 0 AND b.id % 3 > 0 AND c.id % 3 > 0 " +
			"RETURN count(*)",
		"MATCH (a)-->(b)-->(c)-->(a) WITH a, count(*) AS n RETURN count(*), max(n), sum(n)",
	} {
		want, err := answer(t, st, 0, stmt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := answer(t, st, 2<<20, stmt)
		got, _, read := strings.Cut(got, "; lists of neighbors are read from the file")
		if err != nil || got != want || !read {
			t.Errorf("%s: %.300s, read %v, %v; want %.300s", stmt, got, read, err, want)
		}
	}
}
