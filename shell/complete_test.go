package shell

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/words"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCandidates holds what Tab offers: what the parser expects, then names of the catalog.
func TestCandidates(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", richGraph())
	s := &session{Options: Options{Store: store}}
	s.engine = graph.ForProcess(store, mustDevice(t), 64<<20)
	for _, name := range []string{"r0001", "r0002"} {
		if err := store.FS().MkdirAll("s/runs/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, store.FS(), "s/runs/"+name+"/run.json", sealedRun(t, store.Meta().UUID,
			map[string]any{"model": "sage", "fanout": []int{5, -1}, "batch": 32, "seed": 7}))
		writeFile(t, store.FS(), "s/runs/"+name+"/metrics.jsonl", `{"epoch":1,"loss":3,"hit":1}`)
	}
	want := candidate{word: "r0001", help: "sage, fanout 5,all, batch 32, seed 7"}
	if got := s.expected("RUNS PLOT "); len(got) == 0 || got[0] != want {
		t.Errorf("runs are %v", got)
	}
	for text, want := range map[string]string{
		"NEI":                       "NEIGHBORS",
		"nei":                       "NEIGHBORS",
		"DEGREES; sta":              "STATS",
		"STATS ":                    "GRAPH CACHE IO PARTITIONS BUCKETS",
		"STATS g":                   "GRAPH",
		"NEIGHBORS ":                "RANDOM SPLIT",
		"NEIGHBORS 1 ":              "IN OUT BOTH HOPS VIA COUNT LIMIT",
		"NEIGHBORS 1 IN ":           "HOPS VIA COUNT LIMIT",
		"NEIGHBORS 1 IN HOPS 2\n C": "COUNT",
		"NEIGHBORS 1 VIA ":          "cites knows",
		"NEIGHBORS 1 VIA k":         "knows",
		"LABELS SPLIT ":             "test train val",
		"LABELS SPLIT 'tr":          "'train'",
		"NEIGHBORS 1 VIA \"k":       "\"knows\"",
		"NEIGHBORS 'RAN":            "",
		"LABELS SPLIT tr":           "train",
		"SAMPLE 1 FANOUT ":          "all",
		"SAMPLE 1 FANOUT 2,":        "all",
		"SAMPLE 1 FANOUT 2 SHOW d":  "dense",
		"BLOCK topology/in":         "topology/in.csc topology/in.idx",
		"RUNS PLOT ":                "r0001 r0002",
		"RUNS PLOT r0001 METRIC l":  "loss",
		"STATS CACHE RUN r0002":     "r0002",
		"STATS CACHE BY ":           "policy file partition epoch",
		"SIM":                       "SIMULATE",
		"SIMULATE CACHE ": "" +
			"POLICIES SIZES RUN SPLIT FANOUT BATCH SEED EPOCHS BATCHES",
		"SIMULATE CACHE POLICIES s":     "static static-sampled s3fifo sieve",
		"SIMULATE CACHE POLICIES lru,b": "belady",
		"SIMULATE CACHE POLICIES lru ":  "SIZES RUN SPLIT FANOUT BATCH SEED EPOCHS BATCHES",
		"SIMULATE CACHE SIZES 10% RUN ": "r0001 r0002",
		"SIMULATE CACHE SPLIT v":        "val",
		"SIMULATE CACHE FANOUT ":        "all",
		"MATCH ":                        "(",
		"MATCH (":                       "{id: IN )",
		"MATCH (a ":                     "{id: IN )",
		"MATCH (a IN ":                  "SPLIT",
		"MATCH (a IN SPLIT t":           "test train",
		"MATCH (a {":                    "id",
		"MATCH (a {id: ":                "",
		"MATCH (a {id: 1})":             "-[ <-[ WHERE RETURN",
		"MATCH (a {id: 1})-":            "-[",
		"MATCH (a {id: 1})-[":           "*1..2 ] :cites :knows",
		"MATCH (a {id: 1})-[r:":         "cites knows",
		"MATCH (a {id: 1})-[r:k":        "knows",
		"MATCH (a {id: 1})-[r]":         "-> -",
		"MATCH (a {id: 1})<-[r]":        "-",
		"MATCH (a {id: 1})-[r]->":       "(",
		"MATCH (a {id: 1})-[r]->(b) ":   "-[ <-[ WHERE RETURN",
		"MATCH (a {id: 1})-[r]->(b) WHERE ": "a a.label a.f0 b b.label b.f0 r.type r.weight " +
			"r.time",
		"MATCH (a {id: 1})-[r]->(b) WHERE b.l":      "b.label",
		"MATCH (a {id: 1})-[r]->(b) WHERE b.label ": "IN = <> < <= > >=",
		"MATCH (a {id: 1})-[]->(b) WHERE b.label = ": "" +
			"'red' 'green' a a.label a.f0 b b.label b.f0",
		"MATCH (a {id: 1})-[r]->() WHERE r.type = ": "" +
			"'cites' 'knows' a a.label a.f0 r.type r.weight r.time",
		"MATCH (a {id: 1})-[]->(b) WHERE b.label = 'red' ": "AND OR RETURN",
		"MATCH (a {id: 1}) RETURN ": "" +
			"DISTINCT a a.label a.f0 count( min( max( avg(",
		"MATCH (a {id: 1}) RETURN c":                           "count(",
		"MATCH (a {id: 1}) RETURN count(":                      "a a.label a.f0",
		"MATCH (a {id: 1}) RETURN a ":                          "AS ORDER LIMIT INTO",
		"MATCH (a {id: 1}) RETURN a.label AS l ORDER ":         "BY",
		"MATCH (a {id: 1}) RETURN a, a.label AS l ORDER BY ":   "a l",
		"MATCH (a {id: 1}) RETURN a, a.label AS l ORDER BY l ": "DESC ASC LIMIT INTO",
		"CA":                             "CALL",
		"CALL ":                          procedureNames(),
		"CALL gdb.pa":                    "gdb.pagerank(",
		"CALL gdb.pagerank() YIELD no":   "node",
		"CALL gdb.kcore() YIELD node, v": "value",
		"MATCH (a)-[:k":                  "knows",
		"MATCH (a)--(b) WITH b MATCH (b)<-[r:cites|": "cites knows",
		"MATCH (a)--(b) WITH b WHERE b.i":            "b.id",
		"MATCH (a)-[r]-(b) WITH r RETURN r.w":        "r.weight",
		"MATCH (a) WITH a RET":                       "RETURN",
		"UNWIND [1] AS x RETURN toi":                 "toint( tointeger(",
		"NEIGBORS 1 ":                                "",
		"NEIGHBORS 'a":                               "",
		".mo":                                        ".mode",
		".mode j":                                    "json jsonl",
		".timing ":                                   "on off",
		".help SAM":                                  "SAMPLE",
		".read s/top":                                "s/topology/",
		".watch 2 DEG":                               "DEGREES",
		".xyzzy ":                                    "",
		"DEGREES;\n.mode csv\nDEGREES T":             "TOP",
	} {
		start, found := s.candidates(text, utf8.RuneCountInString(text))
		var words []string
		for _, c := range found {
			words = append(words, c.word)
			if strings.Contains(c.help, "\n") {
				t.Errorf("%s: the help of %s has several lines", text, c.word)
			}
		}
		got := strings.Join(words, " ")
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if start < 0 || start > len(text) {
			t.Errorf("%q: the word begins at %d", text, start)
		}
	}
}

func procedureNames() string {
	var names []string
	for _, p := range query.Procedures() {
		names = append(names, p.Name+"(")
	}
	return strings.Join(names, " ")
}

// TestHelpCypher holds that the page about openCypher has each procedure, and fits a terminal.
func TestHelpCypher(t *testing.T) {
	var b strings.Builder
	if s := (&session{}); !s.helpCypher(&b, "cypher") {
		t.Fatal("there is no page")
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("a line has more than 80 columns: %s", line)
		}
	}
	for _, p := range query.Procedures() {
		if !strings.Contains(b.String(), p.Name+"(") {
			t.Errorf("the page lacks %s", p.Name)
		}
	}
}

// TestNamesInQuotes holds that a name that is more than a word is offered in quotes, whether one
// was typed or not, and that what is offered parses.
func TestNamesInQuotes(t *testing.T) {
	g := layouttest.Graph{Nodes: 2,
		Edges:     []layouttest.Edge{{Src: 0, Dst: 1}, {Src: 0, Dst: 1, Type: 1}},
		EdgeTypes: []string{"Person:knows:Person", "a 'b'"}}
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	s := &session{Options: Options{Store: store}, engine: graph.ForProcess(store, mustDevice(t),
		64<<20)}
	for text, want := range map[string]string{
		"NEIGHBORS 1 VIA ":          "'Person:knows:Person'|'a ''b'''",
		"NEIGHBORS 1 VIA Per":       "'Person:knows:Person'",
		"NEIGHBORS 1 VIA 'Person:k": "'Person:knows:Person'",
		"NEIGHBORS 1 VIA \"a":       "\"a 'b'\"",
		"MATCH (a {id: 1})-[":       ":'Person:knows:Person'|:'a ''b'''|*1..2|]",
		"MATCH (a {id: 1})-[:P":     "'Person:knows:Person'",
	} {
		start, found := s.candidates(text, utf8.RuneCountInString(text))
		var words []string
		for _, c := range found {
			words = append(words, c.word)
			_, err := lang.Parse(text[:start] + c.word)
			if err != nil && !strings.HasPrefix(text, "MATCH") {
				t.Errorf("%s%s: %v", text[:start], c.word, err)
			}
		}
		slices.Sort(words)
		wants := strings.Split(want, "|")
		slices.Sort(wants)
		if !slices.Equal(words, wants) {
			t.Errorf("%q: %q, want %q", text, words, wants)
		}
	}
}

// TestEveryKeywordIsOffered holds that Tab offers each keyword of the examples where it stands, and
// that no place of a text is too odd for it.
func TestEveryKeywordIsOffered(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", richGraph())
	s := &session{Options: Options{Store: store}}
	s.engine = graph.ForProcess(store, mustDevice(t), 64<<20)
	words, offered := keywords(), 0
	texts := append(exampleStatements(), "PROFILE MATCH (a IN SPLIT train)<-[r:cites]-(b) "+
		"WHERE a.label IN ['red'] AND r.weight > 1 OR b.id = 'ada' "+
		"RETURN DISTINCT b, max(a.f0) AS m ORDER BY m DESC LIMIT 3;",
		"EXPLAIN SIMULATE CACHE RUN r0001 BATCHES 2 POLICIES none,sieve")
	for _, text := range texts {
		for at := range len(text) + 1 {
			if start, _ := s.candidates(text, at); start < 0 || start > at {
				t.Errorf("%q: the word at %d begins at %d", text, at, start)
			}
		}
		for at, written := range wordsOf(text) {
			word := strings.ToUpper(written)
			if !words[word] && choiceTexts[written] == "" {
				continue
			}
			offered++
			_, found := s.candidates(text, at)
			if !slices.ContainsFunc(found, func(c candidate) bool {
				return strings.HasPrefix(strings.ToUpper(c.word), word)
			}) {
				t.Errorf("%q: %s is not offered after %q", text, written, text[:at])
			}
		}
	}
	if offered < 80 {
		t.Errorf("%d keywords", offered)
	}
}

// wordsOf yields the words of a statement outside quotes, with their places.
func wordsOf(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := 0; i < len(text); {
			n := lang.Skipped(text, i)
			if n == 0 && lang.IsWord(text[i]) {
				for i+n < len(text) && lang.IsWord(text[i+n]) {
					n++
				}
				if !yield(i, text[i:i+n]) {
					return
				}
			}
			i += max(n, 1)
		}
	}
}

// TestEveryKeywordIsExplained holds that no candidate lacks a description.
func TestEveryKeywordIsExplained(t *testing.T) {
	for _, h := range lang.Heads() {
		if wordHelp(nil, h) == "" {
			t.Errorf("%s has no description", h)
		}
	}
	for _, st := range lang.Statements {
		for _, c := range st.Clauses {
			for _, w := range c.Choices {
				if wordHelp(&st, w) == "" {
					t.Errorf("%s %s %s has no description", st.Head, c.Word, w)
				}
			}
		}
	}
	for _, d := range dots {
		if d.help == "" || d.run == nil {
			t.Errorf(".%s lacks a help or a handler", d.name)
		}
	}
}

// TestHighlight holds which runes get a style, and that each rune has one.
func TestHighlight(t *testing.T) {
	paint := highlighter()
	text := "sample 'ü;' x; -- c\n.mode csv\n 'open"
	got := ""
	letters := map[string]string{"": ".", words.StyleCyan: "k", words.StyleGreen: "q",
		words.StyleDim:    "c",
		words.StyleYellow: "d", words.StyleRed: "r"}
	for _, s := range paint(text) {
		got += letters[s]
	}
	want := "kkkkkk.qqqq...." + "cccc" + "." + "ddddddddd" + "." + "." + "rrrrr"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
