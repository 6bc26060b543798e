package shell

import (
	"regexp"
	"slices"
	"strings"

	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/store"
	"gdb/shell/lang"
	"gdb/shell/query"
)

// cypherWords are words of openCypher that complete, with what they mean.
var cypherWords = map[string]string{
	"MATCH": "find a pattern", "OPTIONAL": "MATCH that gives nulls where there is none",
	"UNWIND": "a row for each item of a list", "WITH": "what goes on, grouped and filtered",
	"CALL": "a procedure, such as gdb.pagerank()", "YIELD": "columns of the procedure",
	"UNION": "rows of another statement too", "SKIP": "leave out the first rows",
	"WHERE": "only rows for which this holds", "RETURN": "the columns of the rows",
	"ORDER": "sort", "BY": "what to sort by", "LIMIT": "the first rows only",
	"DISTINCT": "each row once", "EXISTS": "whether a pattern is there", "AS": "a name",
	"CASE": "one of several values", "STARTS": "WITH: text that begins so",
	"ENDS": "WITH: text that ends so", "CONTAINS": "text that holds another",
	"INTO": "to a file: .csv, .jsonl, .parquet or .npy",
}

// called ends in a CALL of which the name or the columns are next.
var (
	called   = regexp.MustCompile(`(?is)(^|\W)CALL\s+$`)
	yielding = regexp.MustCompile(`(?is)\bCALL\s+([\w.]+)\s*\([^()]*\)\s*YIELD\s(\s*\w+\s*,)*\s*$`)
)

// cypherCandidates returns what may follow a part of a statement of openCypher: names of the store
// where they stand, and else words and functions that a word that was begun may become. known are
// the candidates of the shell's own language.
func (s *session) cypherCandidates(before, word string, known []candidate) (all []candidate) {
	p, _ := lang.OpenCypher(before + word)
	if strings.TrimSpace(before) == "" && word != "" {
		for _, w := range []string{"OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"} {
			all = append(all, candidate{word: w, help: cypherWords[w]})
		}
		return all
	}
	if p == nil || s.engine == nil {
		return nil
	}
	names := store.NamesOf(s.engine.Meta())
	dot := strings.LastIndex(word, ".")
	switch trimmed := strings.TrimSpace(before); {
	case called.MatchString(before):
		for _, p := range query.Procedures() {
			all = append(all, candidate{word: p.Name + "(", help: p.Help})
		}
	case yielding.MatchString(before):
		all = columnsOf(yielding.FindStringSubmatch(before)[1])
	case strings.HasSuffix(trimmed, ":") || strings.HasSuffix(trimmed, "|"):
		all = namesIn(openBracket(trimmed), names)
	case dot > 0:
		for _, name := range names.Properties {
			all = append(all, candidate{word: word[:dot+1] + name, help: "property"})
		}
	case len(known) == 0 && word != "":
		all = wordCandidates()
	}
	return slices.DeleteFunc(all, func(c candidate) bool {
		return slices.ContainsFunc(known, func(k candidate) bool { return k.word == c.word })
	})
}

// namesIn returns the names that may follow a colon in a bracket.
func namesIn(bracket byte, names store.Names) (all []candidate) {
	switch bracket {
	case '[':
		for _, name := range names.Types {
			all = append(all, nameCandidate(name, "type of relationships"))
		}
	case '(':
		for _, name := range names.Labels {
			all = append(all, nameCandidate(name, "label"))
		}
	}
	for i := range all { // openCypher quotes names by backticks
		if all[i].word != all[i].name {
			all[i].word = "`" + strings.ReplaceAll(all[i].name, "`", "``") + "`"
		}
	}
	return all
}

// columnsOf returns the columns of a procedure.
func columnsOf(name string) (all []candidate) {
	for _, p := range query.Procedures() {
		for _, f := range p.Out {
			if p.Name == name {
				all = append(all, candidate{word: f.Name, help: f.Type})
			}
		}
	}
	return all
}

// wordCandidates returns words and functions.
func wordCandidates() (all []candidate) {
	for w, help := range cypherWords {
		all = append(all, candidate{word: w, help: help})
	}
	for _, f := range eval.Functions() {
		all = append(all, candidate{word: f + "(", help: "function"})
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.word, b.word) })
	return all
}

// openBracket returns the last bracket of a text that is not closed; 0 if there is none.
func openBracket(text string) byte {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth == 0 {
				return text[i]
			}
			depth--
		}
	}
	return 0
}
