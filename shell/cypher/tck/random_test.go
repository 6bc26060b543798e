package tck

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/internal/mem"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// randomGraph returns a graph with labels A, B and C, types R, S and T, properties that are null
// here and there, loops and parallel edges.
func randomGraph(r *rand.Rand, nodes, edges int) *memory {
	g := &memory{}
	for i := range nodes {
		props := value.Map{"i": int64(i)}
		if r.IntN(4) > 0 {
			props["n"] = int64(r.IntN(5))
		}
		if r.IntN(3) > 0 {
			props["f"] = float64(r.IntN(8)) / 2
		}
		if r.IntN(5) > 0 {
			props["s"] = []string{"x", "y", "xy"}[r.IntN(3)]
		}
		g.labels = append(g.labels, []string{[]string{"A", "B", "C"}[r.IntN(3)]})
		g.props = append(g.props, props)
	}
	loops := r.IntN(2) == 0
	for range edges {
		from, to := int64(r.IntN(nodes)), int64(r.IntN(nodes))
		if from == to && !loops {
			if to = (to + 1) % int64(nodes); to == from {
				break
			}
		}
		g.rels = append(g.rels, value.Rel{ID: int64(len(g.rels)), From: from, To: to,
			Type: []string{"R", "R", "S", "T"}[r.IntN(4)], G: g})
		g.of = append(g.of, value.Map{"w": int64(r.IntN(4))})
	}
	return g
}

// statements makes random statements.
type statements struct {
	*rand.Rand
	nodes, rels []string // names that are there
	names       int      // that the statement has had
}

func (s *statements) one(of ...string) string { return of[s.IntN(len(of))] }

func (s *statements) node() string {
	name := ""
	switch {
	case len(s.nodes) > 0 && s.IntN(4) == 0:
		return "(" + s.nodes[s.IntN(len(s.nodes))] + ")"
	case s.IntN(5) > 0:
		name = fmt.Sprintf("v%d", s.names)
		s.names++
		s.nodes = append(s.nodes, name)
	}
	out := name + s.one("", "", ":A", ":B", ":C")
	if s.IntN(8) == 0 {
		out += fmt.Sprintf(" {n: %d}", s.IntN(5))
	}
	return "(" + out + ")"
}

func (s *statements) rel() string {
	in := ""
	if s.IntN(6) == 0 {
		in = fmt.Sprintf("r%d", len(s.rels))
		s.rels = append(s.rels, in)
	}
	named := in != ""
	in += s.one("", ":R", ":R", ":S", ":R|S", ":T")
	if !named && s.IntN(12) == 0 {
		in += s.one("*1..2", "*1..3", "*2", "*0..1")
	}
	if s.IntN(12) == 0 {
		in += fmt.Sprintf(" {w: %d}", s.IntN(4))
	}
	if in != "" {
		in = "[" + in + "]"
	}
	return s.one("-"+in+"->", "-"+in+"->", "<-"+in+"-", "-"+in+"-")
}

func (s *statements) path(hops int) string {
	out := s.node()
	for range hops {
		out += s.rel() + s.node()
	}
	return out
}

func (s *statements) property() string {
	if len(s.rels) > 0 && s.IntN(3) == 0 {
		return s.rels[s.IntN(len(s.rels))] + "." + s.one("w", "w", "none")
	}
	return s.nodes[s.IntN(len(s.nodes))] + "." + s.one("i", "n", "f", "s", "none")
}

func (s *statements) condition(depth int) string {
	a, b := s.nodes[s.IntN(len(s.nodes))], s.nodes[s.IntN(len(s.nodes))]
	switch k := s.IntN(12); {
	case k < 2 && depth > 0:
		return "(" + s.condition(depth-1) + s.one(" AND ", " OR ", " XOR ") +
			s.condition(depth-1) + ")"
	case k == 2 && depth > 0:
		return "NOT " + s.condition(depth-1)
	case k < 5:
		return a + s.one(" <> ", " <> ", " = ") + b
	case k == 5:
		return s.one("", "NOT ") + "(" + a + ")" + s.one("-[:R]->", "<-[:R]-", "-[:R|S]-", "-->") +
			"(" + b + ")"
	case k == 6:
		return s.property() + s.one(" IS NULL", " IS NOT NULL")
	case k == 7:
		return s.property() + s.one(" STARTS WITH ", " CONTAINS ") + "'x'"
	case k == 8:
		return s.property() + " IN " + s.one("[1, 2, null]", "['x', 'y']", "[]")
	case k == 9:
		return s.property() + s.one(" < ", " = ", " >= ") + s.property()
	case k == 10:
		return a + s.one(".n + 1 ", ".n % 3 ", ".i / 2 ", ".f * 2 ", ".i % 2.5 ", ".i / "+b+".n ") +
			s.one("=", "<>") + " " + b + ".n"
	}
	return s.property() + s.one(" < ", " <= ", " > ", " = ", " <> ") +
		s.one("1", "2.5", "3", "'x'", "null")
}

func (s *statements) result() string {
	a := s.one("*", s.nodes[0], "DISTINCT "+s.nodes[s.IntN(len(s.nodes))], s.property())
	count := "count(" + a + ")"
	switch s.IntN(10) {
	case 7:
		return "RETURN " + s.property() + " AS x, " + s.property() + " AS y ORDER BY x" +
			s.one("", " DESC") + ", y SKIP 1 LIMIT 3"
	case 8:
		return "RETURN " + s.property() + " AS x, coalesce(" + s.property() + ", " + s.property() +
			") AS y, " + s.one("avg(", "sum(", "max(", "count(DISTINCT ") + s.property() +
			") AS m, " + count + " ORDER BY m " + s.one("", "DESC") + ", x, y LIMIT 2"
	case 6:
		return "RETURN " + s.property() + " AS x, size(collect(" + s.property() + ")), " + count
	case 0:
		return "RETURN " + count
	case 1:
		return "RETURN " + s.property() + " AS k, " + count + " AS c"
	case 2:
		k := s.nodes[s.IntN(len(s.nodes))]
		return "RETURN " + k + ", " + count + " AS c, sum(" + k + ".n), max(" + s.property() + ")"
	case 3:
		return "RETURN DISTINCT " + s.property() + " AS x, " + s.property() + " AS y"
	case 4:
		return "WITH " + s.nodes[0] + " AS x, count(*) AS c WHERE c > 1 " +
			"RETURN x.n, sum(c), min(c), avg(x.f)"
	case 5:
		return "RETURN " + s.property() + " AS x, " + s.property() + " AS y, count(*) AS c " +
			"ORDER BY c DESC, x, y LIMIT 3"
	}
	if len(s.rels) > 0 {
		return "RETURN " + s.nodes[0] + ".i, type(" + s.rels[0] + "), " + s.rels[0] + ".w"
	}
	return "RETURN " + s.nodes[0] + ".i AS x, " + s.property() + " AS y"
}

// counting makes a statement that wants nothing but a count, so that nothing is listed.
func (s *statements) counting() string {
	step := func() string {
		types := s.one("", ":R", ":R", ":S", ":R|S")
		rel := "-[" + types + "]-"
		return s.one(rel+">", "<"+rel, rel) + s.one("()", "()", "(:A)", "({n: 1})")
	}
	out := "MATCH (a)" + step()
	for range s.IntN(3) {
		out += s.one("", ", (a)") + step()
	}
	return out + " RETURN " + s.one("count(*)", "count(*)", "a, count(*)")
}

// match makes a MATCH of a pattern of some hops.
func (s *statements) match(word string, hops int) string {
	out := word + s.path(hops)
	if s.IntN(4) == 0 {
		out += ", " + s.path(s.IntN(2))
	}
	if s.IntN(2) == 0 && len(s.nodes) > 0 {
		out += " WHERE " + s.condition(2)
		for s.IntN(2) == 0 {
			out += " AND " + s.condition(1)
		}
	}
	return out + " "
}

// with makes a clause that hands on some of the nodes, and at times a MATCH by what they hold.
func (s *statements) with() string {
	s.Shuffle(len(s.nodes), func(i, j int) { s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i] })
	kept := s.nodes[:1+s.IntN(len(s.nodes))]
	list := strings.Join(kept, ", ")
	at, property, u := s.nodes[0], s.property(), fmt.Sprintf("u%d", s.names)
	s.nodes, s.rels = slices.Clone(kept), nil
	s.names++
	switch s.IntN(8) {
	case 0:
		return "WITH DISTINCT " + list + " "
	case 1:
		return "WITH " + list + ", count(*) AS c WHERE c > 1 "
	case 2:
		return "WITH " + list + " ORDER BY " + strings.Join(kept, ".i, ") + ".i LIMIT 3 "
	case 3:
		s.nodes = []string{at}
		return "WITH collect(" + at + ") AS l UNWIND l AS " + at + " "
	case 4:
		return "UNWIND [1, 2, null, 1.5] AS " + u + " WITH " + list + ", " + u + " MATCH (x" +
			s.one("", ":A") + ") WHERE x.i = " + u + s.one("", " + 1", " AND x.n < "+at+".i") + " "
	case 5:
		return "WITH " + list + ", " + property + " AS " + u + " MATCH (x {" + s.one("n", "i") +
			": " + u + "})" +
			s.one("", "-->("+at+")", "--("+at+")") + " "
	}
	return "WITH " + list + " "
}

func (s *statements) statement() string {
	s.nodes, s.rels, s.names = nil, nil, 0
	if s.IntN(3) == 0 {
		return s.counting()
	}
	if s.IntN(20) == 0 {
		return fmt.Sprintf("MATCH (a {i: %d}) MATCH p = shortestPath((a)%s(b%s)) "+
			"RETURN b.i, length(p), size(relationships(p))", s.IntN(8),
			s.one("-[:R*]->", "<-[*..2]-", "-[:R|S*0..3]-", "-[r*1..]->"), s.one("", ":A"))
	}
	out := ""
	for k := range 1 + s.IntN(2) {
		out += s.match("MATCH ", 1+s.IntN(3-k))
		if len(s.nodes) == 0 {
			return s.statement()
		}
	}
	for s.IntN(3) == 0 {
		out += s.with() + s.match(s.one("MATCH ", "MATCH ", "OPTIONAL MATCH "), 1+s.IntN(2))
	}
	for s.IntN(6) == 0 {
		at := s.nodes[s.IntN(len(s.nodes))]
		out += "OPTIONAL MATCH (" + at + ")" + s.rel() + s.one("()", "(:B)", "(o:A)") + " "
		if strings.HasSuffix(out, "(o:A) ") {
			out += s.one("WHERE o.n = 1 ", "")
			break
		}
	}
	return out + s.result()
}

// TestEngine holds that the engine gives the answers of the reference, for random statements over
// random graphs, with lists in memory, and with lists of which few are read at once.
func TestEngine(t *testing.T) {
	n, taken := 1500, 0
	if testing.Short() {
		n = 700
	}
	r := rand.New(rand.NewPCG(1, 2))
	var g *memory
	for i := range n {
		if i%100 == 0 {
			g = randomGraph(r, 1+r.IntN(11), r.IntN(26))
		}
		text := (&statements{Rand: r}).statement()
		if err := agree(g, text, int64(i%3*3), &taken); err != nil {
			t.Errorf("%d: %s\n\t%v", i, text, err)
		}
	}
	if taken < n*8/10 {
		t.Errorf("the engine took %d of %d statements", taken, n)
	}
}

// TestMany holds the same for statements with more rows than are kept, or handed on at once.
func TestMany(t *testing.T) {
	g := randomGraph(rand.New(rand.NewPCG(3, 4)), 70, 200)
	for _, text := range []string{
		"MATCH (a), (b) RETURN a.n AS x, b.i AS y ORDER BY x DESC, y SKIP 2 LIMIT 50",
		"MATCH (a), (b) WITH a.n AS x, b.n AS y ORDER BY y, x LIMIT 2000 WHERE y > 1 " +
			"RETURN x, y, count(*)",
		"MATCH (a), (b) WITH a, b MATCH (a)-->(c)<--(b) RETURN a.n AS x, b.s AS y, count(c)",
		"MATCH (a), (b) WITH a, b OPTIONAL MATCH (a)-->(b) WHERE a.n < b.n " +
			"RETURN b.i AS x, count(*) AS c, sum(a.i) ORDER BY c DESC, x LIMIT 9",
		"MATCH (a), (b) RETURN a.i AS x, b.i AS y, sum(a.i * b.i) AS m, count(*) " +
			"ORDER BY m DESC, x, y LIMIT 5",
		"MATCH (a), (b) RETURN count(*), count(DISTINCT a.n)",
		"MATCH (a) RETURN a.i / 2 AS x, a.i % 3 AS y, a.f * 2 AS z, a.i - a.f, a.f / a.n, a.f % 2",
		"MATCH (a) WHERE a.i % 2.5 > 1 RETURN a.i % -7, -a.i / 4, a.n / 4.0",
		"MATCH (a) RETURN a.i / a.n",
		"MATCH (a) RETURN a.i % a.n",
		"MATCH (a) RETURN count(*)",
		"UNWIND range(1, 5000) AS u MATCH (a {i: u % 90})-->(b) RETURN u, b.i ORDER BY u DESC, " +
			"b.i LIMIT 3000",
	} {
		for _, reads := range []int64{0, 100} {
			taken := 0
			if err := agree(g, text, reads, &taken); err != nil || taken == 0 {
				t.Errorf("%s: taken %d times, %v", text, taken, err)
			}
		}
	}
}

// TestParallelEdges holds the relationships of matches with more rows than a batch, where two nodes
// are each found by several relationships of which some are parallel.
func TestParallelEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	text := "MATCH (a)-[q]->(b), (a)-[r]->(c), (b)-[s]->(c), (a)-[t]->(d), (b)-[u]->(d), " +
		"(c)-[v]->(d) RETURN count(*), sum(q.w + 5 * r.w + 25 * s.w + 125 * t.w), " +
		"sum((q.w + 2 * r.w) * (s.w + 3 * t.w) * (u.w + 1) * (v.w + 2))"
	for i, reads := range []int64{0, 100, 100, 100, 100} {
		g, taken := randomGraph(r, 6+5*i, 60+45*i), 0
		if err := agree(g, text, reads, &taken); err != nil || taken == 0 {
			t.Errorf("reads %d: taken %d times, %v", reads, taken, err)
		}
	}
}

// TestTurns holds the same where nodes take turns, and where what is below others is counted first.
func TestTurns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, text := range []string{
		"MATCH (a)-->(b)-->(c), (a)-->(c) RETURN count(*)",
		"MATCH (a)-[:R]->(b)-->(c)-->(d)-->(a) RETURN count(*), count(DISTINCT d)",
		"MATCH (a)--(b)--(c) WHERE NOT (a)-[:R]-(c) AND a.i < c.i RETURN b.n AS n, count(*)",
		"MATCH (a)-[q]->(b)-[:S]->(c)-[s]->(a) RETURN q.w, s.w, count(*), sum(c.i)",
		"MATCH (a)-[:R]->(b)-[:S]->(c)-[:T]->(d) RETURN d, count(*)",
		"MATCH (a:A)-[:R]->(b)-[:S]->(c)-[:T]->(d), (b)-[:T]->({n: 1}) RETURN count(*)",
	} {
		turned, done := 0, 0
		for range 6 {
			g := randomGraph(r, 9, 26)
			want, _, err := answer(g, text, plain.Options{})
			if err != nil {
				t.Fatal(err)
			}
			e := &engine.Engine{Source: newSource(g, 12), Tell: func(steps []engine.Step) {
				turned += strings.Count(fmt.Sprint(steps), "from the file, about ")
				done += strings.Count(fmt.Sprint(steps), "count")
			}}
			got, _, err := answer(g, text, plain.Options{Engine: e})
			if a, b := shown(got), shown(want); err != nil || a != b {
				t.Errorf("%s: %.300s, %v\n\twant %.300s", text, a, err, b)
			}
		}
		if turned+done == 0 {
			t.Errorf("%s: no turns, and nothing is counted", text)
		}
	}
}

// TestRings holds the same for cycles of four, which are counted at one of their nodes.
func TestRings(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, c := range []struct {
		text  string
		rings bool
	}{
		{"MATCH (a)-[:R]->(b)-[:R]->(c)-[:R]->(d)-[:R]->(a) RETURN count(*)", true},
		{"MATCH (a)-->(b)-->(c)-->(d)-->(a) RETURN count(*)", true},
		{"MATCH (a)<-[:R]-(b)<-[:R]-(c)<-[:R]-(d)<-[:R]-(a) RETURN a.i, count(*)", true},
		{"MATCH (a)-->(b)-->(c {n: 1})-->(d)-->(a) RETURN c.i AS x, count(*), sum(c.f)", true},
		{"MATCH (a)-->(b), (b)-->(c), (d)<--(c), (d)-->(a) WHERE d.i > 2 RETURN count(*)", true},
		{"MATCH (a)-[:R]->(b) MATCH (b)<-[:S]-(c) MATCH (c)-->(d) MATCH (d)<-[:R]-(a) " +
			"RETURN count(*)", true},
		{"MATCH (a)-[:R]->(b)<-[:S]-(c)-[:T]->(d) MATCH (d)<-[:R]-(a) RETURN count(*)", true},
		{"MATCH (a)-->(b)-->(c)-->(d)-->(a) MATCH (a)-[:S]->(e)-[:T]->(f) " +
			"RETURN e.i AS x, count(*)", true},
		{"MATCH (a)-->(b)-->(c)-->(d)-->(a) RETURN a.i AS x", true},
		{"MATCH (a)-[:R]->(b)-[:S]->(c)-[:R]->(d)-[:S]->(a) RETURN count(*)", false},
		{"MATCH (a)--(b)--(c)--(d)--(a) RETURN count(*)", false},
		{"MATCH (a)-->(b)-->(c)<--(d)<--(a) RETURN count(*)", false},
		{"MATCH (a)-->(b)-->(c)-->(d)-->(a) WHERE b.i < d.i RETURN count(*)", false},
		{"MATCH (a)-->(b)-->(c)-->(d)-->(a), (a)-->(e) RETURN count(*)", false},
		{"MATCH (a)-->(b:A)-->(c)-->(d)-->(a) RETURN count(*)", true},
		{"MATCH (a)-->(b)-->(c)-->(d)-->(a) RETURN b.i, c.i, count(*)", false},
	} {
		for i := range 16 {
			rings := false
			g := randomGraph(r, 3+i/3, 8+2*i)
			want, _, err := answer(g, c.text, plain.Options{})
			if err != nil {
				t.Fatal(err)
			}
			src, taken := newSource(g, int64(i%2*12)), false
			src.oneWay = i%4 == 3
			e := &engine.Engine{Source: src, Tell: func(s []engine.Step) {
				taken = true
				rings = slices.ContainsFunc(s, func(s engine.Step) bool {
					return s.Name == "count" && strings.Count(s.Detail, ", ") >= 3
				})
			}}
			got, _, err := answer(g, c.text, plain.Options{Engine: e})
			if a, b := shown(got), shown(want); err != nil || a != b {
				t.Fatalf("%d: %s: %.300s, %v\n\twant %.300s", i, c.text, a, err, b)
			}
			if src.oneWay && !taken {
				t.Fatalf("%d: %s: not taken where in-lists alone are read", i, c.text)
			}
			if rings != c.rings && i%2 == 0 {
				t.Fatalf("%d: %s: counted at a node: %v", i, c.text, rings)
			}
		}
	}
}

// TestDistances holds the same for shortest paths of which the length is wanted, and for others,
// which the engine leaves alone.
func TestDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i, c := range []struct {
		taken int
		text  string
	}{
		{1, "p = shortestPath((a {i: 2})-[*]->(b)) WHERE a <> b RETURN length(p), count(*)"},
		{1, "p = shortestPath((a {i: 3})<-[:R*..2]-(b:A)) RETURN b.i, length(p)"},
		{1, "p = shortestPath((a:A)-[:R|S*0..3]-(b)) WHERE length(p) > 1 AND a.n < b.n " +
			"RETURN a.i, b.i, length(p) + 1 AS d ORDER BY d DESC, a.i, b.i LIMIT 7"},
		{1, "p = shortestPath((a)-[*]->({i: 4})) WITH a, length(p) AS d WHERE d > 1 " +
			"RETURN d, collect(a.i)"},
		{1, "p = shortestPath((a)-[:R]->(b {n: 1})) RETURN max(length(p)), sum(b.i), count(*)"},
		{1, "p = shortestPath((a)-[*]-(b)) RETURN DISTINCT 2 / length(p)"},
		{1, "shortestPath((a {i: 1})-[*..3]->(b)) RETURN count(DISTINCT b), count(*)"},
		{1, "p = shortestPath((a:C)-[*0..]->(b)) WHERE length(p) / length(p) = 1 RETURN a"},
		{0, "p = shortestPath((a {i: 2})-[*]->(b)) RETURN b.i, length(p), size(nodes(p))"},
		{0, "p = shortestPath((a {i: 2})-[r*]->(b)) RETURN b.i, length(p), size(r)"},
		{0, "p = shortestPath((a {i: 2})-[* {w: 1}]->(b)) RETURN b.i, length(p)"},
		{0, "p = shortestPath((a {i: 2})-[*]->(a)) RETURN length(p)"},
		{0, "p = allShortestPaths((a {i: 2})-[*]->(b)) RETURN b.i, length(p)"},
	} {
		for k := range 9 {
			g, taken := randomGraph(r, 9, 6+4*k), 0
			err := agree(g, "MATCH "+c.text, int64(k%3*3), &taken)
			if err != nil || taken != c.taken {
				t.Errorf("%d: %s: taken %d times, %v", i, c.text, taken, err)
			}
		}
	}
}

// agree returns an error if the engine gives other rows than the reference.
func agree(g *memory, text string, reads int64, taken *int) error {
	want, _, wrong := answer(g, text, plain.Options{})
	e := &engine.Engine{Source: newSource(g, reads), Tell: func([]engine.Step) { *taken++ }}
	got, _, err := answer(g, text, plain.Options{Engine: e})
	if wrong != nil || err != nil {
		if (wrong == nil) != (err == nil) {
			return fmt.Errorf("error %v, want %v", err, wrong)
		}
		return nil
	}
	if a, b := shown(got), shown(want); a != b {
		return fmt.Errorf("%.300s\n\twant %.300s", a, b)
	}
	// In little memory groups are made in pieces, unless something else does not fit.
	var held atomic.Int64
	e.Tell = nil
	got, _, err = answer(g, text, plain.Options{Engine: e, Grow: func(n int64) error {
		if held.Add(n) > pieceRoom {
			held.Add(-n)
			return &mem.LimitError{What: "rows", Want: n, Limit: pieceRoom}
		}
		return nil
	}})
	if a, b := shown(got), shown(want); err == nil && a != b {
		return fmt.Errorf("in little memory %.300s\n\twant %.300s", a, b)
	}
	return nil
}

// pieceRoom is memory for some groups.
const pieceRoom = 700

// shown returns rows as text, sorted.
func shown(rows [][]any) string {
	var out []string
	for _, row := range rows {
		text, _ := value.Text(value.List(row))
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
