package lang

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestSyntaxErrors holds each message and the column of its caret.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		src, msg string
		col      int
	}{
		{"NEIGBORS 42;", `unknown statement "NEIGBORS"; did you mean NEIGHBORS?`, 1},
		{"", "a statement begins with a word", 1},
		{"STATS GRPAH;",
			"STATS wants GRAPH, CACHE, IO, PARTITIONS, BUCKETS; did you mean GRAPH?", 7},
		{"STATS;", "STATS wants GRAPH, CACHE, IO", 6},
		{"SAMPLE 1 FANOUT 2 SHOW dens;",
			"SHOW wants dense, layers, edges, io; did you mean dense?", 24},
		{"SAMPLE 1;", "SAMPLE needs FANOUT", 10},
		{"SAMPLE 1 FANOUT x;", "FANOUT wants one number a hop, or all", 17},
		{"SAMPLE 1 FANOUT 0;", "a fanout is 1 to", 17},
		{"FEATURES 42 COLUMNS 0;", "COLUMNS wants a range such as 0:16", 22},
		{"FEATURES 42 COLUMNS 3:3;", "COLUMNS wants a range that is not empty", 23},
		{"NEIGHBORS 42 OUT OUT;", "OUT stands twice", 18},
		{"NEIGHBORS 42 IN OUT;", "IN, OUT and BOTH exclude each other", 17},
		{"NEIGHBORS 42 VAI cites;", `unexpected "VAI" after NEIGHBORS`, 14},
		{"NEIGHBORS 42 VAI -- cites", `unexpected "VAI" after NEIGHBORS`, 14},
		{"NEIGHBORS 'a;", "the quote is not closed", 11},
		{"NEIGHBORS #x;", "# wants an internal node id", 12},
		{"NEIGHBORS 42 LIMIT -3;", "LIMIT wants a number", 20},
		{"NEIGHBORS RANDOM 0;", "RANDOM wants 1 to", 18},
		{"LABELS 1,;", "expected a node id", 10},
		{"EXPLAIN NEIGBORS 42;", `unknown statement "NEIGBORS"; did you mean NEIGHBORS?`, 9},
		{"PROFILE", "a statement begins with a word", 8},
		{"PATH 1 TO;", "TO wants a node id", 10},
		{"PATH 1 MAX 3;", "PATH needs TO", 14},
		{"NEIGHBORS 1 INTO;", "INTO wants a file name in quotes", 17},
		{"DEGREES BINS x;", "BINS wants a number", 14},
		{"STATS IO BY fil;", "BY wants file, phase, op; did you mean file?", 13},
		{"TRACE IO ONN;", `unexpected "ONN" after TRACE IO`, 10},
		{"SET seed;", "SET needs TO", 10},
		{"BLOCK topology/in.csc;", "BLOCK needs AT", 23},
		{"NEIGHBORS 42 HOPS 0;", "HOPS wants 1 to 64", 19},
		{"NEIGHBORS 42 HOPS 65;", "HOPS wants 1 to 64", 19},
		{"SAMPLE 1 FANOUT 2 EPOCH 0;", "EPOCH wants a number from 1 on", 25},
		{"DEGREES LOG TOP 3;", "OF, TOP, LOG and BINS exclude each other", 13},
		{"DEGREES BOTH TOP 3;", "TOP and BOTH exclude each other", 14},
		{"NEIGHBORS 1 VIA a:b", "a name with signs in it stands in quotes", 18},
		{"MATCH (a {id: 1})-[:a:b]->(c) RETURN c", "a name with signs in it stands in quotes", 22},
		{"NEIGHBORS 42 43;", "between nodes stands a comma, as in 42,7", 14},
		{"SELECT 1;", `unknown statement "SELECT"; rows are asked for as in MATCH`, 1},
		{"show tables;", `unknown statement "show"; DESCRIBE shows`, 1},
		{"INSERT INTO t;", `unknown statement "INSERT"; the shell reads`, 1},
		{"PLEASE;", `unknown statement "PLEASE"; HELP lists them`, 1},
		{`NEIGHBORS "a;`, "the quote is not closed", 11},
		{`MATCH (a {id: 1}) -->(b) RETURN b;`, "a hop is written -[]->", 19},
	} {
		_, err := Parse(c.src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: got %v, want a syntax error", c.src, err)
			continue
		}
		if !strings.Contains(syntax.Msg, c.msg) || syntax.Pos+1 != c.col {
			t.Errorf("%q: got %q at column %d, want %q at %d", c.src, syntax.Msg, syntax.Pos+1,
				c.msg, c.col)
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 3 || strings.Index(lines[2], "^") != c.col+1 {
			t.Errorf("%q: the caret is off:\n%v", c.src, err)
		}
	}
}

// TestComments holds that what stands behind "--" does nothing, wherever a word may end.
func TestComments(t *testing.T) {
	for _, src := range []string{"NEIGHBORS 4 LIMIT 2 -- two",
		"NEIGHBORS 4 -- it's four;\n LIMIT 2;",
		"-- \"first\nNEIGHBORS 4 LIMIT 2; -- last", "NEIGHBORS 4 LIMIT 2;-- last",
		"--\n--\nNEIGHBORS --\n4 --x\nLIMIT 2 --"} {
		p, err := Parse(src)
		if err != nil || listOf(p)[0].External != "4" || p.IntOr("LIMIT", 0) != 2 {
			t.Errorf("%q: %+v, %v", src, p, err)
		}
	}
	p, err := Parse("NEIGHBORS a--b,'-- c',\"it's -- \"\"d\"\"\"")
	want := []NodeRef{{External: "a--b"}, {External: "-- c"}, {External: `it's -- "d"`}}
	if err != nil || !slices.Equal(listOf(p), want) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestLongWords holds that a message shows no more of a long word than a line has room for, and
// that its caret is in place.
func TestLongWords(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, src := range []string{long, "NEIGHBORS 1 " + long, "SAMPLE 1 FANOUT " + long,
		"SAMPLE " + long + " FANOUT x", "SAMPLE 1 FANOUT x" + long + " SHOW dense",
		"MATCH (a {id: 1}) RETURN " + long, "MATCH (" + long + " {id: 1}) RETURN b",
		"STATS " + long, "NEIGHBORS '" + long, ".mode " + long} {
		_, err := Parse(src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Fatalf("%.40q: %v", src, err)
		}
		if n := len(err.Error()); n > 500 {
			t.Errorf("%.40q: a message of %d bytes: %.500s", src, n, err)
		}
		if what := misdrawn(syntax); what != "" {
			t.Errorf("%.40q: %s\n%v", src, what, err)
		}
	}
}

func TestCaretOnLaterLine(t *testing.T) {
	_, err := Parse("SAMPLE 1\n  FANOUT x;")
	if want := "  FANOUT x;\n           ^"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got:\n%v\nwant it to hold:\n%s", err, want)
	}
}

// TestExamplesParse holds that every registry entry has a help text and an example that parses.
func TestExamplesParse(t *testing.T) {
	for _, st := range Statements {
		if st.Help == "" || st.Example == "" {
			t.Errorf("%s lacks help or example", st.Head)
		}
		p, err := Parse(st.Example)
		if err != nil {
			t.Errorf("%s: %v", st.Head, err)
			continue
		}
		if p.Statement.Head != st.Head {
			t.Errorf("the example of %s parses as %s", st.Head, p.Statement.Head)
		}
	}
}

func TestParseArguments(t *testing.T) {
	p, err := Parse("sample 'it''s', #7, alice in fanout 2,all seed 9 show DENSE")
	if err != nil {
		t.Fatal(err)
	}
	ids := listOf(p)
	if len(ids) != 3 || ids[0].External != "it's" || !ids[1].Internal || ids[1].ID != 7 ||
		ids[2].External != "alice" {
		t.Errorf("ids are %+v", ids)
	}
	if f := p.Args["FANOUT"].List; len(f) != 2 || f[0] != 2 || f[1] != -1 {
		t.Errorf("fanout is %v", f)
	}
	if !p.Has("IN") || p.Args["SEED"].N != 9 || p.Args["SHOW"].Text != "dense" {
		t.Errorf("clauses are %+v", p.Args)
	}
}

func FuzzParse(f *testing.F) {
	for _, st := range Statements {
		f.Add(st.Example)
	}
	f.Add("SAMPLE 'a")
	f.Add("MATCH (a IN SPLIT b)<-[r:t*1..2]-(c {id: #1}) WHERE a.f0 >= 1 OR c IN [1, 'x'] RETURN " +
		"DISTINCT a AS b, avg(c.f1) ORDER BY b DESC LIMIT 3 INTO 'f.npy';")
	f.Fuzz(func(t *testing.T, src string) {
		_, err := Parse(src)
		var syntax *SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			t.Fatalf("%q: %v is no syntax error", src, err)
		}
		if err != nil && (syntax.Pos < 0 || syntax.Pos > len(src) || err.Error() == "") {
			t.Fatalf("%q: position %d", src, syntax.Pos)
		}
		if err != nil && misplaced(syntax) != "" {
			t.Fatalf("%q: %s\n%v", src, misplaced(syntax), err)
		}
	})
}

// listOf are the nodes that a statement names.
func listOf(p *Parsed) (refs []NodeRef) {
	for _, ref := range p.Operand.Nodes.IDs.All() {
		refs = append(refs, ref)
	}
	return refs
}
