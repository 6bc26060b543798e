package tck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// people is a graph in which a knows b and c, these know d, and d knows a.
const people = `CREATE (a:P {name: 'a', age: 1}), (b:P {name: 'b', age: 2}), (c:P {name: 'c'}),
	(d:P:Q {name: 'd', age: 4}), (a)-[:K]->(b), (a)-[:K]->(c), (b)-[:K]->(d), (c)-[:K {w: 7}]->(d),
	(d)-[:L]->(a)`

// TestStatements holds answers that the kit does not ask for.
func TestStatements(t *testing.T) {
	g := &memory{}
	if _, _, err := answer(g, people, plain.Options{Write: g.write}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ query, want string }{
		{"MATCH p = shortestPath((:P {name: 'a'})-[:K*]->(:Q)) RETURN length(p)", "2"},
		{"MATCH p = allShortestPaths((:P {name: 'a'})-[*]-(x:Q)) RETURN count(p), min(length(p))",
			"1, 1"},
		{"MATCH p = allShortestPaths((:P {name: 'a'})-[r:K*..3]->(x:Q)) " +
			"RETURN count(p), max(size(r))", "2, 2"},
		{"MATCH (a {name: 'a'}) RETURN EXISTS { (a)-->(b) WHERE b.age = 2 } AS x", "true"},
		{"MATCH (a) WHERE EXISTS { MATCH (a)-->(b) WITH b WHERE b:Q RETURN b } RETURN count(a)",
			"2"},
		{"MATCH (a)-[r {w: 7}]->(b) RETURN a.name + b.name", "'cd'"},
		{"MATCH (a)-->(b {age: a.age + 1}) RETURN a.name", "'a'"},
		{"MATCH (b {age: a.age + 1})<--(a) RETURN a.name", "'a'"},
		{"RETURN reduce(n = 1, x IN [2, 3, 4] | n * x) AS x", "24"},
		{"RETURN [1, 2, 3][-1], [1, 2, 3][..-1], {a: [1]}.a[0]", "3, [1, 2], 1"},
		{"RETURN 9007199254740993 > 9007199254740992.0", "true"},
		{"RETURN 1 < 2 < 3, 1 < 3 < 2, 1 < null < 0", "true, false, null"},
		{"UNWIND [1, 2, 2, null] AS x RETURN stDevP(x), count(DISTINCT x), avg(x)",
			"0.4714045207910317, 2, 1.6666666666666667"},
		{"RETURN substring('abcdef', 2, 3), left('ab', 9), right('abc', 2), round(2.5)",
			"'cde', 'ab', 'bc', 3.0"},
		{"RETURN 'it''s' IS NULL", "syntax"},
		{"UNWIND ['P1D', 'PT12H', 'P1D'] AS s WITH duration(s) AS d " +
			"RETURN sum(d), avg(d), max(d), count(DISTINCT d)", "'P2DT12H', 'PT20H', 'P1D', 2"},
		{"UNWIND ['P1M', 'P30D', 'P31D'] AS s WITH duration(s) AS d ORDER BY d DESC RETURN d",
			"'P31D'; 'P1M'; 'P30D'"},
		{"RETURN duration('P1D') < duration('P2D'), date('2015') < localtime('10:00')",
			"null, null"},
		{"WITH datetime.fromEpoch(1, 5) AS t RETURN t, t['epochSeconds'], t.epochMillis",
			"'1970-01-01T00:00:01.000000005Z', 1, 1000"},
		{"RETURN datetime.fromEpochMillis(-1), 2 * duration('P1D')",
			"'1969-12-31T23:59:59.999Z', 'P2D'"},
	} {
		rows, _, err := answer(g, c.query, plain.Options{})
		var mistake *ast.Error
		if errors.As(err, &mistake) && c.want == "syntax" {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		var got []string
		for _, r := range rows {
			var cells []string
			for _, v := range r {
				text, _ := value.Text(v)
				cells = append(cells, text)
			}
			got = append(got, strings.Join(cells, ", "))
		}
		if out := strings.Join(got, "; "); out != c.want {
			t.Errorf("%s: %s, want %s", c.query, out, c.want)
		}
	}
}

// TestMistakes holds the places of errors and what they suggest.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ query, at, want string }{
		{"MTCH (n) RETURN n", "MTCH", "did you mean MATCH?"},
		{"MATCH (n) RETRUN n", "RETRUN", "did you mean RETURN?"},
		{"MATCH (person) RETURN persn.name", "persn", "did you mean person?"},
		{"RETURN toUper('a')", "toUper", "did you mean toupper?"},
		{"CREATE (n)", "CREATE", "gdb ingest writes"},
		{"MATCH (n) SET n.x = 1", "SET", "gdb ingest writes"},
		{"MATCH (n) WHERE n.x = 'a RETURN n", "'a", "the quote is not closed"},
		{"MATCH (n) RETURN " + strings.Repeat("(", 5000), "", "nests deeper"},
		{"RETURN " + strings.Repeat("[", 200) + "(a", "", "expected )"},
		{"RETURN 9223372036854775807 + 1", "+ 1", "64 bits"},
		{"RETURN 1 / 0", "/", "divided by zero"},
		{"RETURN date('2015').yaer", "", `did you mean "year"?`},
		{"RETURN 1, date('2015-02-29')", "date", "day 29 is not in 1..28"},
		{"RETURN date({year: null})", "date", "year is an integer, not null"},
		{"RETURN date('2015') - date('2014')", "-", "write duration.between"},
		{"RETURN date('2015') * 2", "*", "a date * an integer is not defined"},
		{"RETURN date.truncate(2, date())", "date", "wants a unit"},
		{"RETURN duration.inDays(1, 2)", "duration", "wants two times"},
		{"RETURN datetime(2015)", "datetime", "datetime() takes a string"},
		{"RETURN range(1, 9223372036854775807)", "range", "more than"},
	} {
		_, _, err := answer(&memory{}, c.query, plain.Options{})
		var e *ast.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) || c.at != "" &&
			!strings.HasPrefix(c.query[e.Pos:], c.at) {
			t.Errorf("%.60s: %v, want %s at %s", c.query, err, c.want, c.at)
		}
	}
}

// FuzzStatement holds that no statement panics, whatever it says.
func FuzzStatement(f *testing.F) {
	for _, seed := range []string{people,
		"MATCH p = (a:P {x: $y})-[r:K|L*1..3]->(b) WHERE a.x = 1 " +
			"WITH DISTINCT a, count(*) AS n ORDER BY n DESC LIMIT 2 RETURN [x IN [n] | x], *",
		"UNWIND [1, null] AS x RETURN CASE x WHEN 1 THEN 'a' END, x[0..1] UNION RETURN {a: 1}.a",
		"RETURN all(x IN [1] WHERE x > 0) AND EXISTS { (a)-->() } OR reduce(a = 0, x IN [1] | a)",
		"RETURN date('2020-01-01').year + duration('P1D'), -0x1F ^ 1e3, `a b`, 'a\u0041'"} {
		f.Add(seed)
	}
	g := &memory{}
	if _, _, err := answer(g, people, plain.Options{Write: g.write}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		left := int64(1 << 22)
		o := plain.Options{Params: value.Map{"y": int64(1)}, Grow: func(n int64) error {
			if left -= n; left < 0 {
				return errors.New("no memory")
			}
			return nil
		}}
		q, err := plain.Prepare(text, o)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		rows := 0
		_ = q.Run(ctx, g, o, func(row []any) error {
			if _, err := value.Text(value.List(row)); err != nil {
				t.Error(err)
			}
			if rows++; rows > 1000 {
				cancel()
			}
			return nil
		})
	})
}

// TestBounds holds that a statement counts what it holds and that it can be cancelled.
func TestBounds(t *testing.T) {
	left := int64(1 << 20)
	full := errors.New("no memory")
	o := plain.Options{Grow: func(n int64) error {
		if left -= n; left < 0 {
			return full
		}
		return nil
	}}
	for _, query := range []string{
		"UNWIND range(1, 100000) AS x RETURN count(*)",
		"RETURN size([x IN range(1, 1000) | range(1, 1000)])",
		"UNWIND range(1, 1000) AS x UNWIND range(1, 1000) AS y RETURN collect(x)",
		"UNWIND range(1, 1000) AS x UNWIND range(1, 1000) AS y RETURN x ORDER BY y",
		"UNWIND range(1, 1000) AS x UNWIND range(1, 1000) AS y RETURN DISTINCT x * y + y",
		"UNWIND range(1, 1000) AS x UNWIND range(1, 1000) AS y RETURN [x, y] AS k, count(*)",
	} {
		left = 1 << 20
		if _, _, err := answer(&memory{}, query, o); !errors.Is(err, full) {
			t.Errorf("%s: %v", query, err)
		}
	}
	left = 1 << 20 // what is not held does not add up
	_, _, err := answer(&memory{}, "UNWIND range(1, 20) AS x RETURN sum(size(range(1, 9000)))", o)
	if err != nil {
		t.Error(err)
	}
	q, err := plain.Prepare("UNWIND range(1, 9999) AS x RETURN x", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	left, cancelled := 1<<20, 0
	err = q.Run(ctx, &memory{}, o, func([]any) error { cancelled++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || cancelled != 1 {
		t.Errorf("cancelled after %d rows: %v", cancelled, fmt.Sprint(err))
	}
}
