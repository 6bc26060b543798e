package shell

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gdb/shell/lang"
	"gdb/shell/words"
)

// dotHelp writes one screen about the whole shell, or what is known about a word.
func (s *session) dotHelp(_ context.Context, word string) error {
	word = strings.TrimPrefix(word, ".")
	var b strings.Builder
	switch {
	case word == "":
		s.helpAll(&b)
	case !s.helpStatement(&b, word) && !s.helpCypher(&b, word) && !s.helpDot(&b, word) &&
		!s.helpSearch(&b, word):
		return dotUsagef("knows nothing about %s%s", words.Quoted(word),
			words.Near(word, slices.Concat(lang.Heads(), cypherTopics, dotNames())))
	}
	_, err := io.WriteString(s.Out, b.String())
	return err
}

// bold returns text that stands out in help.
func (s *session) bold(text string) string {
	if s.OutColor {
		return words.Dressed(text, words.StyleBold)
	}
	return text
}

func (s *session) helpAll(b *strings.Builder) {
	fmt.Fprintf(b, "%s end with a semicolon and may span lines\n", s.bold("Statements"))
	for _, st := range lang.Statements {
		fmt.Fprintf(b, "  %-16s %s\n", st.Head, st.Help)
	}
	fmt.Fprintf(b, "%s are one line each; a prefix is enough\n", s.bold("Commands"))
	for _, d := range dots {
		fmt.Fprintf(b, "  %-26s %s\n", strings.TrimSpace("."+d.name+" "+d.args), d.help)
	}
	b.WriteString("More about each: .help sample, .help .mode, .help cypher; " +
		".help cache searches\n")
}

// helpStatement writes about the statements that word names, by head or verb, and reports whether
// there are any.
func (s *session) helpStatement(b *strings.Builder, word string) bool {
	found := false
	for i := range lang.Statements {
		st := &lang.Statements[i]
		verb, _, _ := strings.Cut(st.Head, " ")
		if !strings.EqualFold(st.Head, word) && !strings.EqualFold(verb, word) {
			continue
		}
		if found {
			b.WriteByte('\n')
		}
		found = true
		fmt.Fprintf(b, "%s: %s\n\n  %s;\n", s.bold(st.Head), st.Help, syntax(st))
		width := 0
		for _, c := range st.Clauses {
			width = max(width, len(clauseSyntax(c)))
		}
		for _, c := range st.Clauses {
			fmt.Fprintf(b, "    %-*s  %s\n", width, clauseSyntax(c), clauseHelp(st, c))
		}
		if st.Operand == lang.ArgMatch {
			b.WriteString(matchPage)
		}
		fmt.Fprintf(b, "  example: %s\n", st.Example)
		if rel := related(st); len(rel) > 0 {
			fmt.Fprintf(b, "  related: %s\n", strings.Join(rel, ", "))
		}
	}
	return found
}

// matchPage is the additional text of .help match.
const matchPage = `
  Nodes stand in parentheses, and the hops between them in brackets:
    (a {id: 42})        the node with this id; (a {id: #17}) by its internal number
    (a IN SPLIT train)  a node of a split
    (a)                 any node; one end of the pattern must be one of the two above
    -[]->  <-[]-  -[]-  along edges, against them, or either way
    -[e:cites]->        an edge of one type, called e
    -[*1..3]->          one to three hops, four at most; such a hop has no name

  WHERE compares values, joined by AND and OR (AND binds before OR):
    a.id  a.label       what a node is called, and its label or number; a is a.id
    a.f0  a.age         a feature by its column or its name; others in quotes: a.'petal length'
    e.type  e.weight    what an edge has, if the store has it
    e.time              a number as it was ingested, or a date: e.time >= '2024-05-31'
    = <> < <= > >=      and IN [1, 2]; text stands in quotes, numbers may
    What can not be equal is an error, such as a class that the store does not have.

  RETURN names the columns: values, count(*), count, min, max, avg; AS gives a name.
    DISTINCT            each row once
    ORDER BY x [DESC]   by an item of RETURN;  LIMIT n the first rows

  A node or an edge may stand in a match twice, and an empty value is like nothing.
  What this form cannot say is openCypher, and has other rules: .help cypher.

`

func (s *session) helpDot(b *strings.Builder, word string) bool {
	for _, d := range dots {
		if d.name == word {
			fmt.Fprintf(b, "%s %s\n  %s\n", s.bold("."+d.name), d.args, d.help)
			if d.choices != nil {
				fmt.Fprintf(b, "  choices: %s\n", strings.Join(d.choices, ", "))
			}
			return true
		}
	}
	return false
}

// helpSearch lists everything whose name, clauses or description holds the word.
func (s *session) helpSearch(b *strings.Builder, word string) bool {
	word = strings.ToLower(word)
	holds := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool {
			return strings.Contains(strings.ToLower(t), word)
		})
	}
	for i := range lang.Statements {
		st := &lang.Statements[i]
		if holds(st.Head, st.Help, st.Example) {
			fmt.Fprintf(b, "%-14s %s\n", st.Head, st.Help)
		}
		for _, c := range st.Clauses {
			if holds(append(c.Choices, c.Word, clauseHelp(st, c))...) {
				fmt.Fprintf(b, "%-14s %s %s\n", st.Head, clauseSyntax(c), clauseHelp(st, c))
			}
		}
	}
	for _, w := range slices.Sorted(maps.Keys(wordTexts)) {
		if holds(w, wordTexts[w]) {
			fmt.Fprintf(b, "%-14s %s\n", w, wordTexts[w])
		}
	}
	for _, d := range dots {
		if holds(append(d.choices, d.name, d.help)...) {
			fmt.Fprintf(b, "%-14s %s\n", "."+d.name, d.help)
		}
	}
	return b.Len() > 0
}

// argSyntax says how help writes each kind of argument.
var argSyntax = map[lang.Arg]string{lang.ArgInt: "n", lang.ArgFanout: "n,n...",
	lang.ArgName: "name",
	lang.ArgFile: "file", lang.ArgSizes: "64MiB|10%,...", lang.ArgRun: "run",
	lang.ArgNodes: "nodes", lang.ArgNode: "node", lang.ArgRange: "n:n", lang.ArgPath: "'file'",
	lang.ArgEdge: "head, relation, tail",
	lang.ArgMatch: "(a {id: n})-[:type*1..2]->(b) [WHERE ...] RETURN [DISTINCT] ... " +
		"[ORDER BY ...] [LIMIT n]"}

// syntax returns a statement with its clauses; optional parts are in brackets.
func syntax(st *lang.Statement) string {
	parts := []string{st.Head}
	if st.Operand != lang.ArgNone {
		parts = append(parts, argSyntax[st.Operand])
	}
	for i, c := range st.Clauses {
		if i < len(lang.Directions) && st.Clauses[0].Word == "IN" && c.Arg == lang.ArgNone {
			if i == 0 {
				parts = append(parts, "[IN|OUT|BOTH]")
			}
			continue
		}
		if c.Required {
			parts = append(parts, clauseSyntax(c))
		} else {
			parts = append(parts, "["+clauseSyntax(c)+"]")
		}
	}
	return strings.Join(parts, " ")
}

func clauseSyntax(c lang.Clause) string {
	if c.Choices != nil {
		text := c.Word + " " + strings.Join(c.Choices, "|")
		if c.Arg == lang.ArgWords {
			text += ",..."
		}
		return text
	}
	return strings.TrimSpace(c.Word + " " + argSyntax[c.Arg])
}

// related returns the heads of statements that begin with the same word, or that ask about the same
// thing.
func related(st *lang.Statement) (heads []string) {
	verb, _, _ := strings.Cut(st.Head, " ")
	for i := range lang.Statements {
		other := &lang.Statements[i]
		first, _, _ := strings.Cut(other.Head, " ")
		if other != st && (first == verb || st.Operand != lang.ArgNone &&
			other.Operand == st.Operand) {
			heads = append(heads, other.Head)
		}
	}
	return heads
}

// clauseTexts says what a clause does. The key is the statement and the word where a word means
// several things, and else only the word. Help and completion show the texts.
var clauseTexts = map[string]string{
	"IN": "the lists of incoming edges", "OUT": "the lists of outgoing edges",
	"BOTH": "both", "HOPS": "all nodes within so many hops", "VIA": "edges of one type only",
	"COUNT": "count instead of list", "LIMIT": "the first rows only",
	"OF": "of these nodes", "TOP": "the highest only", "CHECK OF": "one file only",
	"FANOUT": "neighbors drawn per node, one number a hop, or all",
	"SEED":   "seed of the random draws", "EPOCH": "epoch of a training, from 1",
	"BATCH": "batch of the epoch, from 1", "SIZE": "batch size: the seeds are those of the batch",
	"SHOW": "what of the batch", "COLUMNS": "a range of columns, such as 0:16",
	"FEATURES STATS": "least, greatest, mean and deviation of each column",
	"COUNTS":         "how many nodes have each label", "AT": "the number of the block",
	"HEX": "as bytes", "DECODE": "field by field", "FULL": "also what the bytes mean",
	"FILES": "the files with their sizes", "TYPES": "the edge types",
	"LOG": "with bars", "BINS": "so many bins of equal width, from a scan of the lists",
	"STRATEGY": "drawn evenly, by weight, by time, or all",
	"ON":       "record from now on", "OFF": "stop recording",
	"LAST": "so many of the last reads", "BY": "group by",
	"PLOT": "draw a curve of a run", "METRIC": "of which field of its records, such as val",
	"SET TO": "the new value", "STATS PARTITIONS TOP": "those with the most edges only",
	"STATS BUCKETS TOP":     "those with the most edges only",
	"INTO":                  "to a file: .csv, .jsonl, .parquet or .npy",
	"SIMULATE CACHE BATCH":  "seeds of a batch, 1000 without it",
	"SIMULATE CACHE FANOUT": "neighbors drawn per node, 10,10,10 without it",
	"POLICIES":              "which policies; all without it",
	"SIZES":                 "bytes, or percents of what all features take",
	"STATS CACHE RUN":       "the caches of this run, instead of the newest",
	"RUN":                   "with the settings of this run, so that its batches are replayed",
	"SIMULATE CACHE SPLIT":  "whose nodes are trained on, train without it",
	"EPOCHS":                "so many epochs, 1 without it",
	"BATCHES":               "the first batches of each epoch only",
	"NEAREST TOP":           "so many, 10 without it",
	"NEAREST BY":            "the angle, the product or the distance of vectors",
	"NEAREST RUN":           "of this run of links, instead of the newest",
	"NEAREST FEATURES":      "rows of these features, instead of learned vectors",
	"NEAREST TYPE":          "only nodes of this type",
	"AMONG":                 "only these nodes",
	"EXACT":                 "compare with all vectors, without an index",
	"SCORE TOP":             "so many of those that ? may be, 10 without it",
	"SCORE RUN":             "of this run of links, instead of the newest",
	"NEW":                   "only what is no edge of the graph",
	"TO":                    "the last node of the path", "MAX": "the longest path to look for",
}

// clauseHelp returns the text of a clause.
func clauseHelp(st *lang.Statement, c lang.Clause) string {
	if text, ok := clauseTexts[st.Head+" "+c.Word]; ok {
		return text
	}
	return clauseTexts[c.Word]
}
