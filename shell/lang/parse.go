package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdb/shell/words"
)

// Value is a parsed argument. The Arg of its clause says which field is set.
type Value struct {
	N      int64
	Text   string
	List   []int
	Words  []string
	Sizes  []CacheSize
	Nodes  NodeSet
	Match  *MatchQuery
	Edge   EdgeRef
	Lo, Hi int
}

// Parsed is one parsed statement: its registry entry, its operand, and its clauses by word.
type Parsed struct {
	Statement *Statement
	Mode      Mode
	src       string
	Want      []string // words that may follow, besides clauses
	Operand   Value
	Args      map[string]Value
	cypher    int // where the text of a statement of openCypher begins
}

// openCypher stands for every statement of openCypher, of which only the first word is read here.
var openCypher = Statement{Head: "openCypher"}

// cypherHeads are the words with which statements of openCypher begin.
var cypherHeads = []string{"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "CREATE",
	"MERGE", "DELETE", "DETACH", "REMOVE", "FOREACH", "DROP", "LOAD"}

// OpenCypher returns a statement that begins as those of openCypher do, and its first word; nil for
// any other.
func OpenCypher(src string) (*Parsed, string) {
	p := newParser(src, 0)
	out := &Parsed{Statement: &openCypher, src: src}
	switch {
	case p.accept("EXPLAIN"):
		out.Mode = ModeExplain
	case p.accept("PROFILE"):
		out.Mode = ModeProfile
	}
	out.cypher = p.tok().pos
	for _, head := range cypherHeads {
		if p.is(head) {
			return out, head
		}
	}
	return nil, ""
}

// Cypher returns the text of a statement and where in it openCypher begins.
func (p *Parsed) Cypher() (src string, from int) { return p.src, p.cypher }

// Has reports whether the statement has a clause.
func (p *Parsed) Has(word string) bool { _, ok := p.Args[word]; return ok }

// IntOr returns the number of a clause, or def without the clause.
func (p *Parsed) IntOr(word string, def int64) int64 {
	if v, ok := p.Args[word]; ok {
		return v.N
	}
	return def
}

type parser struct {
	src  string
	lex  lexer
	last token    // the token before the current one
	toks [2]token // the current token and the next
	want []string // words acceptable at the current token, for messages and completion
	slot Clause   // the clause whose argument is being parsed

	values int         // how many values the MATCH has so far
	left   *MatchExpr  // the left side of a comparison of MATCH
	place  *MatchPlace // where a value of MATCH is expected at the end
}

// newParser returns a parser that begins at a byte of a statement. All quotes of the statement are
// closed.
func newParser(src string, at int) *parser {
	p := &parser{src: src, lex: lexer{src, at}}
	p.next()
	p.next()
	p.last = token{}
	return p
}

// Parse parses one statement. The semicolon at its end may be missing.
func Parse(src string) (*Parsed, error) {
	if err := CheckQuotes(src); err != nil {
		return nil, err
	}
	p := newParser(src, 0)
	out := &Parsed{src: src, Args: map[string]Value{}}
	switch {
	case p.accept("EXPLAIN"):
		out.Mode = ModeExplain
	case p.accept("PROFILE"):
		out.Mode = ModeProfile
	}
	st, err := p.head()
	if err != nil {
		return nil, err
	}
	out.Statement = st
	if st.Operand != ArgNone {
		if out.Operand, err = p.value(Clause{Word: st.Head, Arg: st.Operand}); err != nil {
			return nil, err
		}
	}
	if err := p.clauses(out); err != nil {
		return nil, err
	}
	return out, nil
}

// intoClause is the clause INTO, which may stand in every statement.
var intoClause = Clause{Word: "INTO", Arg: ArgPath}

func (p *parser) clauses(out *Parsed) error {
	for {
		c := p.clause(with(out.Statement.Clauses, intoClause))
		if c == nil {
			out.Want = p.want
			break
		}
		if out.Has(c.Word) {
			return p.failBack("%s stands twice", c.Word)
		}
		if others := out.Excluded(c.Word); others != nil {
			return p.failBack("%s exclude each other", listed(others))
		}
		v, err := p.value(*c)
		if err != nil {
			return err
		}
		out.Args[c.Word] = v
	}
	t := p.tok()
	if t.kind == tokPunct && t.text == ";" {
		p.next()
		t = p.tok()
	}
	if t.kind != tokEnd {
		return p.fail("unexpected %s after %s%s%s", words.Quoted(t.text), out.Statement.Head,
			expected(p.want),
			cmp.Or(words.Near(t.text, p.want), p.unquoted(), out.uncommaed(t)))
	}
	for _, c := range out.Statement.Clauses {
		if c.Required && !out.Has(c.Word) {
			return p.fail("%s needs %s, as in: %s", out.Statement.Head, c.Word,
				out.Statement.Example)
		}
	}
	return nil
}

// unquoted says what to do where a word is followed by a sign that no word can hold.
func (p *parser) unquoted() string {
	at := p.tok().pos
	if p.tok().kind != tokPunct || at == 0 || !IsWord(p.src[at-1]) {
		return ""
	}
	return "; a name with signs in it stands in quotes"
}

// uncommaed says what to do where a node follows a node without a comma.
func (p *Parsed) uncommaed(t token) string {
	_, isID := words.ParseNumber(t.text)
	isID = isID || t.kind == tokString
	if p.Statement.Operand != ArgNodes || len(p.Args) > 0 || !isID {
		return ""
	}
	return "; between nodes stands a comma, as in 42,7"
}

// Excluded returns a group of clauses of which a statement takes only one, if word is in the group
// and another clause of it was said; otherwise it returns nil.
func (p *Parsed) Excluded(word string) []string {
	for _, group := range append([][]string{{"IN", "OUT", "BOTH"}}, p.Statement.exclude...) {
		if slices.Contains(group, word) && slices.ContainsFunc(group, p.Has) {
			return group
		}
	}
	return nil
}

// listed returns a list as it is written in a sentence.
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func (p *parser) tok() token { return p.toks[0] }

func (p *parser) next() {
	after, _ := p.lex.next() // quotes were checked before, so there are no errors
	p.last, p.toks, p.want = p.toks[0], [2]token{p.toks[1], after}, nil
}

// accept takes the current token if it is the word w, without regard to case.
func (p *parser) accept(w string) bool {
	if p.is(w) {
		p.next()
		return true
	}
	p.want = append(p.want, w)
	return false
}

// is reports whether the current token is the word w, without regard to case.
func (p *parser) is(w string) bool {
	return p.tok().kind == tokWord && strings.EqualFold(p.tok().text, w)
}

func (p *parser) punct(s string) bool {
	if t := p.tok(); t.kind == tokPunct && t.text == s {
		p.next()
		return true
	}
	return false
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Src: p.src, Pos: p.tok().pos, Msg: fmt.Sprintf(format, args...),
		AtEnd: p.tok().kind == tokEnd, Want: p.want, Slot: p.slot, Place: p.place}
}

// foreign returns the error of what the shell's own MATCH lacks.
func (p *parser) foreign(format string, args ...any) error {
	return &SyntaxError{Src: p.src, Pos: p.tok().pos, Msg: fmt.Sprintf(format, args...),
		AtEnd: p.tok().kind == tokEnd, Want: p.want, Slot: p.slot, Place: p.place, Foreign: true}
}

// failBack returns an error that points at the token before the current one.
func (p *parser) failBack(format string, args ...any) *SyntaxError {
	return &SyntaxError{Src: p.src, Pos: p.last.pos, Msg: fmt.Sprintf(format, args...)}
}

// head takes the one or two words that begin a statement.
func (p *parser) head() (*Statement, error) {
	t := p.tok()
	if t.kind != tokWord {
		p.want = Heads()
		if strings.HasPrefix(p.src[t.pos:], `\`) {
			return nil, p.fail(`no command begins with \%s; .help lists commands`, describes)
		}
		return nil, p.fail("a statement begins with a word%s", expected(p.want))
	}
	var nouns []string
	for i := range Statements {
		verb, noun, two := strings.Cut(Statements[i].Head, " ")
		if !strings.EqualFold(verb, t.text) {
			continue
		}
		if !two {
			p.next()
			return &Statements[i], nil
		}
		if second := p.toks[1]; second.kind == tokWord && strings.EqualFold(second.text, noun) {
			p.next()
			p.next()
			return &Statements[i], nil
		}
		nouns = append(nouns, noun)
	}
	if len(nouns) == 0 {
		if err := p.refuse(); err != nil {
			return nil, err
		}
		return nil, p.fail("unknown statement %s%s", words.Quoted(t.text),
			cmp.Or(habits[strings.ToUpper(t.text)], words.Near(t.text, Heads()),
				"; HELP lists them"))
	}
	p.next()
	p.want = nouns
	return nil, p.fail("%s wants %s%s", strings.ToUpper(t.text), strings.Join(nouns, ", "),
		words.Near(p.tok().text, nouns))
}

// habits says what to write for words that begin statements of other systems.
var habits = map[string]string{
	"SELECT": "; rows are asked for as in MATCH (n:TYPE) RETURN n.COLUMN",
	"SHOW":   describes + "; CALL gdb.procedures() lists procedures",
	"USE":    "; .open STORE goes on with another store",
	"INSERT": readsOnly, "UPDATE": readsOnly, "DROP": readsOnly, "ALTER": readsOnly,
}

// describes names the statement that shows the parts of a store.
const describes = "; DESCRIBE shows types, columns and splits"

// readsOnly is what is said of statements that write.
const readsOnly = "; the shell reads, ingest writes"

// Heads returns the words that a statement can begin with.
func Heads() []string {
	out := []string{"EXPLAIN", "PROFILE"}
	for _, st := range Statements {
		verb, _, _ := strings.Cut(st.Head, " ")
		if !slices.Contains(out, verb) {
			out = append(out, verb)
		}
	}
	return out
}

func (p *parser) clause(cs []Clause) *Clause {
	for i := range cs {
		if p.accept(cs[i].Word) {
			return &cs[i]
		}
	}
	return nil
}

func found(t token) string {
	if t.kind == tokEnd {
		return "the end"
	}
	return words.Quoted(t.text)
}

func expected(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; expected " + strings.Join(words, ", ")
}

// Mode says what to do with the operators of a statement.
type Mode uint8

const (
	modeRun Mode = iota
	ModeExplain
	ModeProfile
)
