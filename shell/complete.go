package shell

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/train/runs"

	"github.com/dustin/go-humanize"
)

// candidates returns the words that may stand at the cursor: the words that the parser expects
// there, and then names of the catalog. cursor counts runes. start is the rune at which the word
// begins.
func (s *session) candidates(text string, cursor int) (start int, found []candidate) {
	text = unfinished(string([]rune(text)[:cursor]))
	item := skipBlank(text)
	if strings.HasPrefix(item, ".") {
		if strings.Contains(item, "\n") {
			return cursor, nil
		}
		word, all := s.dotCandidates(item)
		return cursor - utf8.RuneCountInString(word), matching(all, word)
	}
	at := lastWord(item)
	word, all := item[at:], s.expected(item[:at])
	all = append(all, s.cypherCandidates(item[:at], word, all)...)
	if word != "" && lang.IsQuote(word[0]) {
		all = inQuotes(all, word[:1])
	}
	return cursor - utf8.RuneCountInString(word), matching(all, word)
}

// lastWord returns where the last word of a part of a statement begins, or its open quote.
func lastWord(item string) int {
	var open *lang.SyntaxError
	if errors.As(lang.CheckQuotes(item), &open) {
		return open.Pos
	}
	at := len(item)
	for at > 0 && lang.IsWord(item[at-1]) {
		at--
	}
	return at
}

// matching returns the candidates that begin with word, without regard to case. A candidate in
// quotes matches a word without the quote, too.
func matching(all []candidate, word string) (found []candidate) {
	begins := func(name string) bool {
		return len(name) >= len(word) && strings.EqualFold(name[:len(word)], word)
	}
	for _, c := range all {
		if begins(c.word) || begins(strings.TrimPrefix(c.word, "'")) {
			found = append(found, c)
		}
	}
	return found
}

// inQuotes returns the candidates that may stand in quotes, put into quotes of the given kind.
func inQuotes(all []candidate, quote string) (found []candidate) {
	for _, c := range all {
		if c.name == "" {
			continue
		}
		c.word = quote + strings.ReplaceAll(c.name, quote, quote+quote) + quote
		found = append(found, c)
	}
	return found
}

// nameCandidate returns a candidate for a name. The name is put into quotes unless it is a plain
// word.
func nameCandidate(name, help string) candidate {
	c := candidate{word: name, help: help, name: name}
	if name == "" || strings.IndexFunc(name, func(r rune) bool {
		return r < utf8.RuneSelf && !lang.IsWord(byte(r))
	}) >= 0 {
		c.word = inQuotes([]candidate{c}, "'")[0].word
	}
	return c
}

// expected returns the words that may follow a part of a statement.
func (s *session) expected(before string) (all []candidate) {
	p, err := lang.Parse(before)
	if err == nil {
		return open(p)
	}
	var wrong *lang.SyntaxError
	if !errors.As(err, &wrong) || !wrong.AtEnd {
		return nil
	}
	st := statementOf(before)
	for _, w := range wrong.Want {
		all = append(all, candidate{word: w, help: wordHelp(st, w)})
	}
	if wrong.Place != nil {
		all = append(all, placeValues(s.engine.Meta(), wrong.Place)...)
	}
	return append(all, s.names(before, wrong.Slot)...)
}

// open returns the clauses that a statement may still take.
func open(p *lang.Parsed) (all []candidate) {
	if p.Statement == nil {
		return nil
	}
	if p.Statement.Operand == lang.ArgMatch {
		for _, w := range p.Want {
			all = append(all, candidate{word: w, help: wordHelp(p.Statement, w)})
		}
		return all
	}
	for _, c := range p.Statement.Clauses {
		if !p.Has(c.Word) && p.Excluded(c.Word) == nil {
			all = append(all, candidate{word: c.Word, help: clauseHelp(p.Statement, c)})
		}
	}
	return all
}

// statementOf returns the statement that a text begins with, or nil.
func statementOf(text string) *lang.Statement {
	fields := strings.Fields(strings.ToUpper(text))
	for i := range lang.Statements {
		head := strings.Fields(lang.Statements[i].Head)
		for skip := 0; skip < 2 && len(fields) >= skip+len(head); skip++ { // EXPLAIN and the like
			if slices.Equal(fields[skip:skip+len(head)], head) {
				return &lang.Statements[i]
			}
		}
	}
	return nil
}

// wordHelp returns what a keyword means, in one line.
func wordHelp(st *lang.Statement, word string) string {
	if st != nil && st.Operand == lang.ArgMatch && matchWords[word] != "" {
		return matchWords[word]
	}
	if text := choiceTexts[word]; text != "" {
		return text
	}
	if st != nil {
		if text := clauseHelp(st, lang.Clause{Word: word}); text != "" {
			return text
		}
	}
	var nouns []string
	for i := range lang.Statements {
		verb, noun, two := strings.Cut(lang.Statements[i].Head, " ")
		switch {
		case noun == word && st == nil, verb == word && !two:
			return lang.Statements[i].Help
		case verb == word:
			nouns = append(nouns, noun)
		}
	}
	if len(nouns) > 0 {
		return strings.Join(nouns, ", ")
	}
	return wordTexts[word]
}

// wordTexts says what those words mean that are neither statements nor clauses.
var wordTexts = map[string]string{
	"RANDOM": "so many nodes, drawn", "SPLIT": "the nodes of a split", "all": "whole lists",
	"EXPLAIN": "how a statement would run, without running it",
	"PROFILE": "run a statement and show what each step cost",
}

// names returns the names of the catalog that an argument may be.
func (s *session) names(before string, slot lang.Clause) (all []candidate) {
	m := s.engine.Meta()
	fields := strings.Fields(strings.ToUpper(before))
	last := ""
	if len(fields) > 0 {
		last = fields[len(fields)-1]
	}
	switch {
	case last == "SPLIT":
		for _, sp := range m.Splits {
			all = append(all, nameCandidate(sp.Name, humanize.Comma(int64(sp.Count))+" nodes"))
		}
	case slot.Word == "SET":
		for _, name := range query.Settings {
			all = append(all, candidate{word: name, help: clauseTexts[strings.ToUpper(name)]})
		}
	case slot.Arg == lang.ArgRun:
		return runCandidates(s.engine)
	case slot.Word == "METRIC":
		return s.metrics(fields)
	case slot.Word == "VIA":
		for _, t := range m.EdgeTypes {
			all = append(all, nameCandidate(t, "edge type"))
		}
	case slot.Arg == lang.ArgEdge && strings.Contains(before, ","):
		for _, t := range m.EdgeTypes {
			all = append(all, nameCandidate(t, "edge type"))
		}
	case slot.Arg == lang.ArgFile:
		for _, f := range m.Files {
			all = append(all, nameCandidate(f.Path, mem.FormatSize(f.Size)))
		}
	}
	return all
}

// metrics returns the fields that RUNS PLOT may draw, for the run that is named after PLOT.
func (s *session) metrics(upper []string) (all []candidate) {
	at := slices.Index(upper, "PLOT") + 1
	if at == 0 || at >= len(upper) {
		return nil
	}
	for _, r := range runCandidates(s.engine) {
		if !strings.EqualFold(r.word, upper[at]) {
			continue
		}
		names := map[string]bool{}
		err := runs.Open(s.Store, r.word).Epochs(func(epoch *runs.Epoch) error {
			for _, name := range epoch.Numbers() {
				names[name] = true
			}
			return nil
		})
		if err != nil {
			return nil // the statement will say why
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			all = append(all, nameCandidate(name, "of each epoch"))
		}
	}
	return all
}

// dotCandidates returns the words that may end a session command, and the part of such a word that
// was typed.
func (s *session) dotCandidates(line string) (word string, all []candidate) {
	name, arg, spaced := strings.Cut(line, " ")
	if !spaced {
		for _, d := range dots {
			all = append(all, candidate{word: "." + d.name,
				help: strings.TrimSpace(d.args + "  " + d.help)})
		}
		return line, all
	}
	d, err := findDot(strings.TrimPrefix(name, "."))
	if err != nil {
		return "", nil
	}
	arg = strings.TrimLeft(arg, " ")
	switch d.name {
	case "help":
		for i := range lang.Statements {
			all = append(all, candidate{word: lang.Statements[i].Head,
				help: lang.Statements[i].Help})
		}
		all = append(all, candidate{word: "cypher", help: "the language openCypher"})
		for _, d := range dots {
			all = append(all, candidate{word: "." + d.name, help: d.help})
		}
	case "read", "once", "open":
		return arg, s.filesAt(arg)
	case "watch":
		if _, stmt, ok := strings.Cut(arg, " "); ok && !strings.Contains(stmt, " ") {
			return stmt, s.expected("")
		}
		return "", nil
	}
	for _, w := range d.choices {
		all = append(all, candidate{word: w})
	}
	return arg, all
}

// filesAt returns the files beside the one whose name is being typed.
func (s *session) filesAt(typed string) (all []candidate) {
	fs := s.Store.FS()
	dir, _ := path.Split(typed)
	at := dir
	at = cmp.Or(at, ".")
	names, err := fs.List(at)
	if err != nil {
		return nil // there is nothing to complete where there is no folder
	}
	slices.Sort(names)
	for _, name := range names {
		c := candidate{word: dir + name}
		if st, err := fs.Stat(fs.PathJoin(at, name)); err == nil && st.IsDir() {
			c.word += "/"
		}
		if !strings.HasPrefix(name, ".") {
			all = append(all, c)
		}
	}
	return all
}

// runCandidates returns the names of runs as candidates.
func runCandidates(e *graph.Graph) (all []candidate) {
	for _, r := range graph.RunNames(e.Store) {
		all = append(all, candidate{word: r.Name, help: r.Settings})
	}
	return all
}

// matchWords says what the words and signs of MATCH mean.
var matchWords = map[string]string{
	"WHERE": "only matches for which this holds", "RETURN": "what of each match",
	"DISTINCT": "each row once", "AS": "a name for the column", "AND": "both hold; binds before OR",
	"OR": "one of them holds", "ORDER": "sort by an item of RETURN", "BY": "an item of RETURN",
	"DESC": "the greatest first", "ASC": "the least first", "LIMIT": "the first rows only",
	"IN": "nodes of a split, or one of a list: [1, 2]", "SPLIT": "the nodes of a split",
	"(": "a node, such as (a {id: 42}) or (b)", ")": "the end of the node",
	"{id:": "the node with this id", "}": "the end of the id", "id": "the node with this id",
	":": "the value", "[": "the edge", "]": "the end of the hop", "*1..2": "one or two hops",
	"-[": "a hop along edges, or either way", "<-[": "a hop against edges", "-": "either way",
	"->": "along edges",
}

// choiceTexts says what the choices of clauses mean.
var choiceTexts = map[string]string{
	"none": "holds nothing", "static": "the nodes in the most lists, loaded at the start",
	"static-sampled": "the nodes that a sampled epoch asks for most, loaded at the start",
	"lru":            "the least recently used row makes room",
	"clock":          "nearly lru, for less",
	"s3fifo":         "new rows must be asked for twice to stay",
	"sieve":          "rows stay that were asked for since the hand passed",
	"belady":         "the bound: it knows the batches to come",
	"dense":          "the arrays of the batch", "layers": "the sizes of each layer",
	"edges": "what was drawn", "io": "the blocks it took",
	"uniform": "every neighbor is as likely", "weighted": "by the weights of edges",
	"latest": "those of the latest edges",
	"full":   "whole lists", "policy": "with capacity and bytes saved", "file": "of the store",
	"partition": "what is held of each", "epoch": "of a run",
	"cosine": "of the angle between vectors", "dot": "their product",
	"euclid": "minus the distance between them",
	"phase":  "opening a file, or asking", "op": "the operator that read",
}

// aggregateTexts says what the functions of RETURN do.
var aggregateTexts = map[string]string{"count": "how many: count(*), or those with a value",
	"min": "the least", "max": "the greatest", "avg": "the mean"}

// placeValues returns the values that may stand at a place of a MATCH.
func placeValues(m *kv.Meta, at *lang.MatchPlace) (all []candidate) {
	if at.InHop {
		for _, t := range m.EdgeTypes {
			all = append(all, candidate{word: ":" + nameCandidate(t, "").word, help: "edge type"})
		}
		return all
	}
	if at.InOrder {
		for _, i := range at.Query.Items {
			all = append(all, candidate{word: i.As, help: "as in RETURN"})
		}
		return all
	}
	if at.Left != nil {
		all = comparedWith(m, at.Left)
	}
	for _, n := range at.Query.Nodes {
		twice := slices.ContainsFunc(all, func(c candidate) bool { return c.word == n.Name })
		if n.Name == "" || twice {
			continue
		}
		all = append(all, candidate{word: n.Name, help: "a node, by its id"})
		if m.Labels != nil {
			all = append(all, candidate{word: n.Name + ".label", help: "its label"})
		}
		all = append(all, featureCandidates(m, n.Name)...)
	}
	for _, h := range at.Query.Hops {
		for _, prop := range edgeProps(m) {
			if h.Name != "" {
				all = append(all, candidate{word: h.Name + "." + prop, help: "of the edge"})
			}
		}
	}
	if at.InReturn {
		for _, f := range lang.Aggregates {
			all = append(all, candidate{word: f + "(", help: aggregateTexts[f]})
		}
	}
	return all
}

// featuresOffered is the largest number of features that completion lists by name.
const featuresOffered = 100

// featureCandidates returns the features of a node as candidates.
func featureCandidates(m *kv.Meta, node string) (all []candidate) {
	if len(m.Features) == 0 {
		return nil
	}
	columns := m.FeatureColumns(m.Features[0])
	if !columns.Named() {
		return []candidate{{word: node + ".f0",
			help: fmt.Sprintf("a feature, f0 to f%d", m.Features[0].Dim-1)}}
	}
	for _, name := range columns.Names()[:min(m.Features[0].Dim, featuresOffered)] {
		word := name
		sign := func(r rune) bool { return r < utf8.RuneSelf && !lang.IsWord(byte(r)) }
		if strings.ContainsFunc(name, sign) {
			word = "'" + strings.ReplaceAll(name, "'", "''") + "'"
		}
		all = append(all, candidate{word: node + "." + word, help: "a feature"})
	}
	return all
}

// edgeProps returns the properties that the edges of the store have.
func edgeProps(m *kv.Meta) (props []string) {
	for _, p := range []struct {
		name string
		has  bool
	}{{"type", len(m.EdgeTypes) > 0}, {"weight", m.Weighted}, {"time", m.Timestamped}} {
		if p.has {
			props = append(props, p.name)
		}
	}
	return props
}

// comparedWith returns the values that a label or a type may be compared with.
func comparedWith(m *kv.Meta, left *lang.MatchExpr) (all []candidate) {
	switch {
	case left.Prop == "label" && m.Labels != nil:
		for _, c := range m.Labels.Classes {
			all = append(all, candidate{word: lang.Literal(c), help: "label", name: c})
		}
	case left.Prop == "type":
		for _, t := range m.EdgeTypes {
			all = append(all, candidate{word: lang.Literal(t), help: "edge type", name: t})
		}
	}
	return all
}
