package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/shell/words"
)

// NodeSet is a parsed set of nodes: ids, a random draw, or a split.
type NodeSet struct {
	IDs    NodeList
	Random int
	Split  string
}

// NodeRef is an external id, or a node id if Internal is set.
type NodeRef struct {
	External string
	Internal bool
	ID       uint64
}

// String returns the reference as it was written.
func (r NodeRef) String() string {
	if r.Internal {
		return fmt.Sprintf("#%d", r.ID)
	}
	return words.Quoted(r.External)
}

// Text returns the reference without quotes.
func (r NodeRef) Text() string {
	if r.Internal {
		return r.String()
	}
	return r.External
}

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
}

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
	last Token    // the token before the current one
	toks [2]Token // the current token and the next
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
	p.last = Token{}
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
	if t.Kind == tokPunct && t.Text == ";" {
		p.next()
		t = p.tok()
	}
	if t.Kind != tokEnd {
		return p.fail("unexpected %s after %s%s%s", words.Quoted(t.Text), out.Statement.Head,
			expected(p.want),
			cmp.Or(words.Near(t.Text, p.want), p.unquoted(), out.uncommaed(t)))
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
	at := p.tok().Pos
	if p.tok().Kind != tokPunct || at == 0 || !IsWord(p.src[at-1]) {
		return ""
	}
	return "; a name with signs in it stands in quotes"
}

// uncommaed says what to do where a node follows a node without a comma.
func (p *Parsed) uncommaed(t Token) string {
	_, isID := words.ParseNumber(t.Text)
	isID = isID || t.Kind == tokString
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

func (p *parser) tok() Token { return p.toks[0] }

func (p *parser) next() {
	after, _ := p.lex.next() // quotes were checked before, so there are no errors
	p.last, p.toks, p.want = p.toks[0], [2]Token{p.toks[1], after}, nil
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
	return p.tok().Kind == TokWord && strings.EqualFold(p.tok().Text, w)
}

func (p *parser) punct(s string) bool {
	if t := p.tok(); t.Kind == tokPunct && t.Text == s {
		p.next()
		return true
	}
	return false
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Src: p.src, Pos: p.tok().Pos, Msg: fmt.Sprintf(format, args...),
		AtEnd: p.tok().Kind == tokEnd, Want: p.want, Slot: p.slot, Place: p.place}
}

// failBack returns an error that points at the token before the current one.
func (p *parser) failBack(format string, args ...any) *SyntaxError {
	return &SyntaxError{Src: p.src, Pos: p.last.Pos, Msg: fmt.Sprintf(format, args...)}
}

// head takes the one or two words that begin a statement.
func (p *parser) head() (*Statement, error) {
	t := p.tok()
	if t.Kind != TokWord {
		p.want = Heads()
		return nil, p.fail("a statement begins with a word%s", expected(p.want))
	}
	var nouns []string
	for i := range Statements {
		verb, noun, two := strings.Cut(Statements[i].Head, " ")
		if !strings.EqualFold(verb, t.Text) {
			continue
		}
		if !two {
			p.next()
			return &Statements[i], nil
		}
		if second := p.toks[1]; second.Kind == TokWord && strings.EqualFold(second.Text, noun) {
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
		return nil, p.fail("unknown statement %s%s", words.Quoted(t.Text),
			cmp.Or(words.Near(t.Text, Heads()), "; HELP lists them"))
	}
	p.next()
	p.want = nouns
	return nil, p.fail("%s wants %s%s", strings.ToUpper(t.Text), strings.Join(nouns, ", "),
		words.Near(p.tok().Text, nouns))
}

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

func (p *parser) value(c Clause) (v Value, err error) {
	p.slot = c
	defer func() {
		if err == nil {
			p.slot = Clause{}
		}
	}()
	switch c.Arg {
	case ArgInt:
		v.N, err = p.bounded(c)
	case ArgFanout:
		v.List, err = p.fanout()
	case ArgName:
		v.Text, err = p.name(c)
	case ArgWords:
		v.Words, err = p.words(c)
	case ArgSizes:
		v.Sizes, err = p.sizes(c.Word)
	case ArgRun:
		v.Text, err = p.text(c.Word + " wants the name of a run")
	case ArgFile:
		v.Text, err = p.text(c.Word + " wants a file of the store, such as topology/in.csc")
	case ArgPath:
		v.Text, err = p.text(c.Word + " wants a file name in quotes, such as 'rows.csv'")
	case ArgNodes:
		v.Nodes, err = p.nodes()
	case ArgMatch:
		v.Match, err = p.match()
	case ArgNode:
		var ref NodeRef
		ref, err = p.node(c.Word + " wants a node id")
		v.Nodes.IDs = OneNode(ref)
	case ArgEdge:
		v.Edge, err = p.edge(c.Word)
	case ArgRange:
		v.Lo, v.Hi, err = p.colRange(c.Word)
	case ArgNone:
	}
	return v, err
}

// bounded parses a number and checks the bounds of its clause.
func (p *parser) bounded(c Clause) (int64, error) {
	n, err := p.integer(c.Word)
	switch {
	case err != nil:
		return 0, err
	case c.most > 0 && (n < c.least || n > c.most):
		return 0, p.failBack("%s wants %d to %d", c.Word, c.least, c.most)
	case n < c.least:
		return 0, p.failBack("%s wants a number from %d on", c.Word, c.least)
	}
	return n, nil
}

func (p *parser) integer(word string) (int64, error) {
	n, err := strconv.ParseInt(p.tok().Text, 10, 63)
	if err != nil || p.tok().Kind != TokWord || n < 0 {
		return 0, p.fail("%s wants a number, found %s", word, found(p.tok()))
	}
	p.next()
	return n, nil
}

func (p *parser) fanout() ([]int, error) {
	var out []int
	for {
		if len(out) == hopsMost {
			return nil, p.fail("FANOUT has numbers for at most %d hops", hopsMost)
		}
		if p.accept("all") {
			out = append(out, -1)
		} else {
			n, err := p.integer("FANOUT")
			if err != nil {
				return nil, p.fail("FANOUT wants one number a hop, or all, as in 10,5; found %s",
					found(p.tok()))
			}
			if n < 1 || n > 1<<20 {
				return nil, p.failBack("a fanout is 1 to %d, or all", 1<<20)
			}
			out = append(out, int(n))
		}
		if !p.punct(",") {
			return out, nil
		}
	}
}

func (p *parser) name(c Clause) (string, error) {
	if c.Choices == nil {
		return p.text(c.Word + " wants a name")
	}
	for _, w := range c.Choices {
		if p.accept(w) {
			return w, nil
		}
	}
	return "", p.fail("%s wants %s%s", c.Word, strings.Join(c.Choices, ", "),
		words.Near(p.tok().Text, c.Choices))
}

// words parses a list of words that must be among the choices of a clause.
func (p *parser) words(c Clause) (out []string, err error) {
	for {
		if len(out) == listMost {
			return nil, p.fail("%s takes at most %d", c.Word, listMost)
		}
		w, err := p.name(c)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, w) {
			return nil, p.failBack("%s stands twice", w)
		}
		if out = append(out, w); !p.punct(",") {
			return out, nil
		}
	}
}

// listMost bounds the length of lists of words and sizes.
const listMost = 256

// sizes parses a list of sizes such as 64MiB or 10%.
func (p *parser) sizes(word string) (out []CacheSize, err error) {
	for {
		if len(out) == listMost {
			return nil, p.fail("%s takes at most %d", word, listMost)
		}
		t := p.tok()
		n, err := mem.ParseSize(t.Text)
		percent, wrong := strconv.ParseFloat(t.Text, 64)
		if t.Kind != TokWord || err != nil {
			return nil, p.fail("%s wants sizes such as 64MiB or 10%%, found %s", word, found(t))
		}
		p.next()
		one := CacheSize{Bytes: n}
		if p.punct("%") {
			if wrong != nil || !(percent > 0 && percent <= 1000) {
				e := p.failBack("%s wants percents from above 0 to 1000", word)
				if n == 0 {
					e.Pos = t.Pos // it is no size, with or without its sign
				}
				return nil, e
			}
			one = CacheSize{Percent: percent}
		} else if n == 0 {
			return nil, p.failBack("a cache of no bytes holds nothing: that is the policy none")
		}
		if out = append(out, one); !p.punct(",") {
			return out, nil
		}
	}
}

func (p *parser) text(what string) (string, error) {
	t := p.tok()
	if t.Kind != TokWord && t.Kind != tokString {
		return "", p.fail("%s, found %s", what, found(t))
	}
	p.next()
	return t.Text, nil
}

func (p *parser) colRange(word string) (lo, hi int, err error) {
	wrong := func() error { return p.fail("%s wants a range such as 0:16", word) }
	a, err := p.integer(word)
	if err != nil || !p.punct(":") {
		return 0, 0, wrong()
	}
	b, err := p.integer(word)
	if err != nil {
		return 0, 0, wrong()
	}
	if a >= b {
		return 0, 0, p.failBack("%s wants a range that is not empty, such as 0:16", word)
	}
	return int(a), int(b), nil
}

// nodes parses ids, RANDOM n or SPLIT name.
func (p *parser) nodes() (s NodeSet, err error) {
	switch {
	case p.accept("RANDOM"):
		n, err := p.integer("RANDOM")
		s.Random = int(n)
		if err == nil && (n < 1 || n > 1<<24) {
			err = p.failBack("RANDOM wants 1 to %d nodes", 1<<24)
		}
		return s, err
	case p.accept("SPLIT"):
		s.Split, err = p.text("SPLIT wants a name")
		return s, err
	}
	s.IDs = NodeList{src: p.src, from: p.tok().Pos}
	for {
		if _, err := p.node("expected a node id, RANDOM n or SPLIT name"); err != nil {
			return s, err
		}
		s.IDs.Count++
		if !p.punct(",") {
			return s, nil
		}
	}
}

func (p *parser) node(what string) (NodeRef, error) {
	if p.punct("#") {
		n, err := strconv.ParseUint(p.tok().Text, 10, 32)
		if err != nil {
			return NodeRef{}, p.fail("# wants an internal node id, found %s", found(p.tok()))
		}
		p.next()
		return NodeRef{Internal: true, ID: n}, nil
	}
	s, err := p.text(what)
	return NodeRef{External: s}, err
}

func found(t Token) string {
	if t.Kind == tokEnd {
		return "the end"
	}
	return words.Quoted(t.Text)
}

func expected(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; expected " + strings.Join(words, ", ")
}

// CacheSize is a size in bytes, or in percent of the memory that all features would take.
type CacheSize struct {
	Bytes   int64
	Percent float64
}

// Mode says what to do with the operators of a statement.
type Mode uint8

const (
	modeRun Mode = iota
	ModeExplain
	ModeProfile
)
