package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/query"
)

// cypherTopics are the words of which .help shows the page about openCypher.
var cypherTopics = []string{"cypher", "openCypher", "CALL", "OPTIONAL", "UNWIND", "WITH", "RETURN",
	"procedures", "functions"}

// cypherPage is what .help cypher shows, without functions and procedures.
const cypherPage = `
  MATCH (u:user {id: 5})-[:buys]->(i:item) WHERE i.price < 10
  RETURN i.title, count(*) AS n ORDER BY n DESC LIMIT 5;

  Clauses: MATCH, OPTIONAL MATCH, WHERE, WITH, UNWIND, CALL ... YIELD, RETURN,
    DISTINCT, ORDER BY, SKIP, LIMIT, UNION [ALL]; at the end INTO 'file'.
  Patterns:
    (n) (n:Label) (n {id: 5})   nodes; their label is their type in the store
    --> <-[r:TYPE|OTHER]- --    relationships; none stands twice in a match
    -[*1..3]->                  one to three of them; p = (a)-->(b) is a path
    shortestPath((a)-[*]->(b))  allShortestPaths finds all; EXISTS { (a)-->() }
  Values: n.id, n.label, n.column, r.weight, r.time, $param, 'text', 1.5, null,
    [1, 2], {a: 1}, [x IN list WHERE x > 1 | x * 2], CASE WHEN ... THEN ... END,
    all(x IN list WHERE ...), any, none, single, reduce(s = 0, x IN l | s + x).
  Conditions: = <> < <= > >= AND OR XOR NOT, IN list, IS [NOT] NULL, =~ 'regex',
    STARTS WITH, ENDS WITH, CONTAINS. A comparison with null is null.
`

// helpCypher writes the page about openCypher if word asks for it.
func (s *session) helpCypher(b *strings.Builder, word string) bool {
	if !slices.ContainsFunc(cypherTopics, func(t string) bool {
		return strings.EqualFold(t, word)
	}) {
		return false
	}
	fmt.Fprintf(b, "%s: statements over all nodes and edges, which need no anchor\n%s",
		s.bold("openCypher"), cypherPage)
	b.WriteString("  Aggregates:")
	wrapped(b, slices.Sorted(maps.Keys(ast.Aggregates)))
	b.WriteString("  Functions:")
	wrapped(b, slices.DeleteFunc(eval.Functions(), func(name string) bool {
		return strings.Contains(name, ".") // of a type of times, such as date.truncate
	}))
	b.WriteString("  Procedures, as CALL gdb.pagerank() YIELD node, value:\n")
	for _, p := range query.Procedures() {
		args := ""
		for i, f := range p.In {
			if i > 0 {
				f.Name = ", " + f.Name
			}
			if i >= len(p.In)-p.Optional {
				f.Name = "[" + f.Name + "]"
			}
			args += f.Name
		}
		fmt.Fprintf(b, "    %-33s  %s\n", p.Name+"("+args+")", p.Help)
	}
	b.WriteString("  DESCRIBE lists labels, types and columns; EXPLAIN and PROFILE show steps.\n")
	return true
}

// helpWidth is how wide help is.
const helpWidth = 78

// wrapped ends a line that holds a word, with words behind it, in several lines.
func wrapped(b *strings.Builder, all []string) {
	width := helpWidth - 12
	for i, w := range all {
		if i < len(all)-1 {
			w += ","
		}
		if width -= 1 + len(w); width < 0 {
			b.WriteString("\n   ")
			width = helpWidth - 4 - len(w)
		}
		b.WriteString(" " + w)
	}
	b.WriteString("\n")
}
