package lang

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/shell/words"
)

// longStatements have every clause, and all that MATCH may be made of.
var longStatements = []string{
	"EXPLAIN NEIGHBORS 42,'x''y',#17 IN VIA 'a b' HOPS 2 COUNT LIMIT 3 INTO 'f.csv';",
	"PROFILE DEGREES BOTH VIA cites OF RANDOM 64 TOP 3 LOG BINS 4;",
	"PATH 'ä' TO #7 OUT VIA cites MAX 10;",
	"SAMPLE SPLIT train IN FANOUT 10,all,5 SEED 7 EPOCH 1 BATCH 2 SIZE 64 STRATEGY full " +
		"SHOW dense;",
	"FEATURES 1,2 COLUMNS 0:16 STATS;",
	"MATCH (a {id: 'x'})-[r:cites]->(b)<-[:'a b'*1..3]-(c IN SPLIT train)-[s]-() " +
		"WHERE a.label = 'red' AND r.weight >= 0.5 OR b.id IN [1, 'x', -2] AND c <> b " +
		"RETURN DISTINCT a, b.f0, count(*) AS n, avg(c.f1) ORDER BY n DESC LIMIT 3 INTO 'f.npy';",
}

// mutated changes one to three tokens of a statement: drops, doubles, swaps or replaces them, or
// puts others between, with blanks, tabs and lines as they come.
func mutated(r *rand.Rand, src string, words []string) string {
	toks, err := tokens(src)
	if err != nil {
		return src
	}
	var parts []string
	for i, t := range toks[:len(toks)-1] {
		parts = append(parts, strings.TrimRight(src[t.pos:toks[i+1].pos], " "))
	}
	for range 1 + r.IntN(3) {
		at, word := r.IntN(len(parts)), words[r.IntN(len(words))]
		switch r.IntN(5) {
		case 0:
			parts = append(slices.Delete(parts, at, at+1), "")
		case 1:
			parts = slices.Insert(parts, at, parts[at])
		case 2:
			other := r.IntN(len(parts))
			parts[at], parts[other] = parts[other], parts[at]
		case 3:
			parts[at] = word
		default:
			parts = slices.Insert(parts, at, word)
		}
	}
	blanks := []string{" ", " ", " ", "  ", "\t", "\n", " \r\n "}
	out := parts[0]
	for _, p := range parts[1:] {
		out += blanks[r.IntN(len(blanks))] + p
	}
	return out
}

// TestCarets mutates statements and holds that the caret of an error is under the first token at
// which no statement could go on: what stands before it could, and with it no more.
func TestCarets(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{"?", "IN", "OF", "'q", "日本", "'é'", "\"q", "\"a b\"",
		"-- it's", strings.Repeat("wide", 30), strings.Repeat("長", 50), "=", "(", "]",
		"#", ",", "17", "-5", "x.y", "a", "SPLIT", "RETURN", "WITH", "0:1", ":", "*", "1..9", ".."}
	statements := slices.Clone(longStatements)
	for _, st := range Statements {
		statements = append(statements, st.Example)
		for _, c := range st.Clauses {
			words = append(words, c.Word)
		}
	}
	wrong := 0
	for range 20_000 {
		src := mutated(r, statements[r.IntN(len(statements))], words)
		_, err := Parse(src)
		if err == nil {
			continue
		}
		wrong++
		var e *SyntaxError
		if !errors.As(err, &e) {
			t.Fatalf("seed %d: %q: %v", seed, src, err)
		}
		if what := misplaced(e) + misdrawn(e); what != "" {
			t.Fatalf("seed %d: %q: %s\n%v", seed, src, what, err)
		}
	}
	if wrong < 10_000 {
		t.Errorf("seed %d: only %d statements were wrong", seed, wrong)
	}
}

// misplaced says what is wrong with the place of an error.
func misplaced(e *SyntaxError) string {
	if strings.Contains(e.Msg, "must be anchored") { // a whole pattern lacks something
		if e.Src[e.Pos] != '(' {
			return "the pattern does not begin there"
		}
		return ""
	}
	toks, err := tokens(e.Src)
	if err != nil {
		if e.Msg != "the quote is not closed" || !IsQuote(e.Src[e.Pos]) {
			return "no quote is open there"
		}
		return ""
	}
	i := slices.IndexFunc(toks, func(t token) bool { return t.pos == e.Pos })
	if i < 0 {
		return "no token begins there"
	}
	end := len(e.Src)
	if i+1 < len(toks) {
		end = toks[i+1].pos
	}
	var before *SyntaxError
	if _, err := Parse(e.Src[:e.Pos]); errors.As(err, &before) && !before.AtEnd {
		return "what stands before is wrong already: " + before.Msg
	}
	if Comment(e.Src[:end], e.Pos) > 0 {
		return "" // an arrow without its point
	}
	var with *SyntaxError
	if _, err := Parse(e.Src[:end]); !errors.As(err, &with) || with.Pos != e.Pos {
		return "a statement could go on there"
	}
	return ""
}

func columnsOf(s string) (n int) {
	for _, r := range s {
		n += words.Width(r)
	}
	return n
}

// misdrawn says what is wrong with the lines of a message.
func misdrawn(e *SyntaxError) string {
	lines := strings.Split(e.Error(), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[2], "^") {
		return "there are not three lines"
	}
	tabs := func(s string) string { return strings.Repeat("\t", strings.Count(s, "\t")) }
	pad := strings.TrimSuffix(lines[2], "^")
	before := "  " + e.Src[strings.LastIndexByte(e.Src[:e.Pos], '\n')+1:e.Pos]
	line := lines[1]
	if after, cut := strings.CutPrefix(line, "  …"); cut { // what is left of the line's beginning
		line, pad = after, strings.TrimPrefix(pad, "   ")
		runes, room := []rune(before), columnsOf(pad)
		from := len(runes)
		for ; from > 0 && words.Width(runes[from-1]) <= room; from-- {
			room -= words.Width(runes[from-1])
		}
		before = string(runes[from:])
	}
	if columnsOf(pad) != columnsOf(before) || tabs(pad) != tabs(before) ||
		!strings.HasPrefix(line, before) {
		return "the caret is not below it"
	}
	if columnsOf(line) > excerptMost+len("  ")+4 {
		return "the line is too long"
	}
	return ""
}

// tokens returns the tokens of src; the last is tokEnd. It returns an error at a quote that is not
// closed.
func tokens(src string) (all []token, err error) {
	for l := (lexer{src: src}); ; {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		if all = append(all, t); t.kind == tokEnd {
			return all, nil
		}
	}
}
