package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gdb/internal/mem"
	"gdb/internal/spelling"
	"gdb/sample"
)

// nodeSet is a parsed set of nodes: ids, a random draw, or a split.
type nodeSet struct {
	ids    nodeList
	random int
	split  string
}

// nodeRef is an external id, or with internal set a node id.
type nodeRef struct {
	external string
	internal bool
	id       uint64
}

// String is the reference as it was written.
func (r nodeRef) String() string {
	if r.internal {
		return fmt.Sprintf("#%d", r.id)
	}
	return named(r.external)
}

// text is the reference without quotes.
func (r nodeRef) text() string {
	if r.internal {
		return r.String()
	}
	return r.external
}

// value is a parsed argument; which field is set follows from the argKind.
type value struct {
	n      int64
	text   string
	list   []int
	words  []string
	sizes  []cacheSize
	nodes  nodeSet
	match  *matchQuery
	lo, hi int
}

// parsed is one statement: its registry entry, its operand, and its clauses by word.
type parsed struct {
	st      *statement
	mode    planMode
	src     string
	want    []string // what may follow besides clauses
	operand value
	args    map[string]value
}

func (p *parsed) has(word string) bool { _, ok := p.args[word]; return ok }

// intOr returns the number of a clause, or def without it.
func (p *parsed) intOr(word string, def int64) int64 {
	if v, ok := p.args[word]; ok {
		return v.n
	}
	return def
}

type parser struct {
	src  string
	lex  lexer
	last token    // the one before the current
	toks [2]token // the current and the next
	want []string // words acceptable at the current token, for messages and completion
	slot clause   // whose argument is being parsed

	values int         // of MATCH so far
	left   *matchExpr  // of a comparison of MATCH
	place  *matchPlace // of a value of MATCH at the end
}

// newParser begins at a byte of a statement whose quotes are closed.
func newParser(src string, at int) *parser {
	p := &parser{src: src, lex: lexer{src, at}}
	p.next()
	p.next()
	p.last = token{}
	return p
}

// parse parses one statement; a final semicolon may be missing.
func parse(src string) (*parsed, error) {
	if err := checkQuotes(src); err != nil {
		return nil, err
	}
	p := newParser(src, 0)
	out := &parsed{src: src, args: map[string]value{}}
	switch {
	case p.accept("EXPLAIN"):
		out.mode = modeExplain
	case p.accept("PROFILE"):
		out.mode = modeProfile
	}
	st, err := p.head()
	if err != nil {
		return nil, err
	}
	out.st = st
	if st.operand != argNone {
		if out.operand, err = p.value(clause{word: st.head, arg: st.operand}); err != nil {
			return nil, err
		}
	}
	if err := p.clauses(out); err != nil {
		return nil, err
	}
	return out, nil
}

// intoClause may stand in every statement.
var intoClause = clause{word: "INTO", arg: argPath}

func (p *parser) clauses(out *parsed) error {
	for {
		c := p.clause(with(out.st.clauses, intoClause))
		if c == nil {
			out.want = p.want
			break
		}
		if out.has(c.word) {
			return p.failBack("%s stands twice", c.word)
		}
		if others := out.excluded(c.word); others != nil {
			return p.failBack("%s exclude each other", listed(others))
		}
		v, err := p.value(*c)
		if err != nil {
			return err
		}
		out.args[c.word] = v
	}
	t := p.tok()
	if t.kind == tokPunct && t.text == ";" {
		p.next()
		t = p.tok()
	}
	if t.kind != tokEnd {
		return p.fail("unexpected %s after %s%s%s", named(t.text), out.st.head, expected(p.want),
			cmp.Or(near(t.text, p.want), p.unquoted(), out.uncommaed(t)))
	}
	for _, c := range out.st.clauses {
		if c.required && !out.has(c.word) {
			return p.fail("%s needs %s, as in: %s", out.st.head, c.word, out.st.example)
		}
	}
	return nil
}

// unquoted says what to do where a word goes on with a sign that is in no word.
func (p *parser) unquoted() string {
	at := p.tok().pos
	if p.tok().kind != tokPunct || at == 0 || !isWord(p.src[at-1]) {
		return ""
	}
	return "; a name with signs in it stands in quotes"
}

// uncommaed says what to do where a node stands behind a node.
func (p *parsed) uncommaed(t token) string {
	_, isID := number(t.text)
	isID = isID || t.kind == tokString
	if p.st.operand != argNodes || len(p.args) > 0 || !isID {
		return ""
	}
	return "; between nodes stands a comma, as in 42,7"
}

// excluded are the clauses of which a statement takes one, if word is one of them and another was
// said; else nil.
func (p *parsed) excluded(word string) []string {
	for _, group := range append([][]string{{"IN", "OUT", "BOTH"}}, p.st.exclude...) {
		if slices.Contains(group, word) && slices.ContainsFunc(group, p.has) {
			return group
		}
	}
	return nil
}

// listed is a list as a sentence has it.
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func (p *parser) tok() token { return p.toks[0] }

func (p *parser) next() {
	after, _ := p.lex.next() // quotes were checked: there are no errors
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

// is says whether the current token is the word w, without regard to case.
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
		atEnd: p.tok().kind == tokEnd, want: p.want, slot: p.slot, place: p.place}
}

// failBack points at the token before the current one.
func (p *parser) failBack(format string, args ...any) *SyntaxError {
	return &SyntaxError{Src: p.src, Pos: p.last.pos, Msg: fmt.Sprintf(format, args...)}
}

// head takes the one or two words that begin a statement.
func (p *parser) head() (*statement, error) {
	t := p.tok()
	if t.kind != tokWord {
		p.want = heads()
		return nil, p.fail("a statement begins with a word%s", expected(p.want))
	}
	var nouns []string
	for i := range registry {
		verb, noun, two := strings.Cut(registry[i].head, " ")
		if !strings.EqualFold(verb, t.text) {
			continue
		}
		if !two {
			p.next()
			return &registry[i], nil
		}
		if second := p.toks[1]; second.kind == tokWord && strings.EqualFold(second.text, noun) {
			p.next()
			p.next()
			return &registry[i], nil
		}
		nouns = append(nouns, noun)
	}
	if len(nouns) == 0 {
		if err := p.refuse(); err != nil {
			return nil, err
		}
		return nil, p.fail("unknown statement %s%s", named(t.text),
			cmp.Or(near(t.text, heads()), "; HELP lists them"))
	}
	p.next()
	p.want = nouns
	return nil, p.fail("%s wants %s%s", strings.ToUpper(t.text), strings.Join(nouns, ", "),
		near(p.tok().text, nouns))
}

func heads() []string {
	out := []string{"EXPLAIN", "PROFILE"}
	for _, st := range registry {
		verb, _, _ := strings.Cut(st.head, " ")
		if !slices.Contains(out, verb) {
			out = append(out, verb)
		}
	}
	return out
}

func (p *parser) clause(cs []clause) *clause {
	for i := range cs {
		if p.accept(cs[i].word) {
			return &cs[i]
		}
	}
	return nil
}

func (p *parser) value(c clause) (v value, err error) {
	p.slot = c
	defer func() {
		if err == nil {
			p.slot = clause{}
		}
	}()
	switch c.arg {
	case argInt:
		v.n, err = p.bounded(c)
	case argFanout:
		v.list, err = p.fanout()
	case argName:
		v.text, err = p.name(c)
	case argWords:
		v.words, err = p.words(c)
	case argSizes:
		v.sizes, err = p.sizes(c.word)
	case argRun:
		v.text, err = p.text(c.word + " wants the name of a run")
	case argFile:
		v.text, err = p.text(c.word + " wants a file of the store, such as topology/in.csc")
	case argPath:
		v.text, err = p.text(c.word + " wants a file name in quotes, such as 'rows.csv'")
	case argNodes:
		v.nodes, err = p.nodes()
	case argMatch:
		v.match, err = p.match()
	case argNode:
		var ref nodeRef
		ref, err = p.node(c.word + " wants a node id")
		v.nodes.ids = oneNode(ref)
	case argRange:
		v.lo, v.hi, err = p.colRange(c.word)
	case argNone:
	}
	return v, err
}

// bounded parses a number within the bounds of its clause.
func (p *parser) bounded(c clause) (int64, error) {
	n, err := p.integer(c.word)
	switch {
	case err != nil:
		return 0, err
	case c.most > 0 && (n < c.least || n > c.most):
		return 0, p.failBack("%s wants %d to %d", c.word, c.least, c.most)
	case n < c.least:
		return 0, p.failBack("%s wants a number from %d on", c.word, c.least)
	}
	return n, nil
}

func (p *parser) integer(word string) (int64, error) {
	n, err := strconv.ParseInt(p.tok().text, 10, 63)
	if err != nil || p.tok().kind != tokWord || n < 0 {
		return 0, p.fail("%s wants a number, found %s", word, found(p.tok()))
	}
	p.next()
	return n, nil
}

func (p *parser) fanout() ([]int, error) {
	var out []int
	for {
		if len(out) == sample.HopsMost {
			return nil, p.fail("FANOUT has numbers for at most %d hops", sample.HopsMost)
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

func (p *parser) name(c clause) (string, error) {
	if c.choices == nil {
		return p.text(c.word + " wants a name")
	}
	for _, w := range c.choices {
		if p.accept(w) {
			return w, nil
		}
	}
	return "", p.fail("%s wants %s%s", c.word, strings.Join(c.choices, ", "),
		near(p.tok().text, c.choices))
}

// words parses some of the choices of a clause.
func (p *parser) words(c clause) (out []string, err error) {
	for {
		if len(out) == listMost {
			return nil, p.fail("%s takes at most %d", c.word, listMost)
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

// listMost bounds lists of words and sizes.
const listMost = 256

// sizes parses sizes such as 64MiB or 10%.
func (p *parser) sizes(word string) (out []cacheSize, err error) {
	for {
		if len(out) == listMost {
			return nil, p.fail("%s takes at most %d", word, listMost)
		}
		t := p.tok()
		n, err := mem.ParseSize(t.text)
		percent, wrong := strconv.ParseFloat(t.text, 64)
		if t.kind != tokWord || err != nil {
			return nil, p.fail("%s wants sizes such as 64MiB or 10%%, found %s", word, found(t))
		}
		p.next()
		one := cacheSize{bytes: n}
		if p.punct("%") {
			if wrong != nil || !(percent > 0 && percent <= 1000) {
				e := p.failBack("%s wants percents from above 0 to 1000", word)
				if n == 0 {
					e.Pos = t.pos // with and without its sign it is no size
				}
				return nil, e
			}
			one = cacheSize{percent: percent}
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
	if t.kind != tokWord && t.kind != tokString {
		return "", p.fail("%s, found %s", what, found(t))
	}
	p.next()
	return t.text, nil
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
func (p *parser) nodes() (s nodeSet, err error) {
	switch {
	case p.accept("RANDOM"):
		n, err := p.integer("RANDOM")
		s.random = int(n)
		if err == nil && (n < 1 || n > 1<<24) {
			err = p.failBack("RANDOM wants 1 to %d nodes", 1<<24)
		}
		return s, err
	case p.accept("SPLIT"):
		s.split, err = p.text("SPLIT wants a name")
		return s, err
	}
	s.ids = nodeList{src: p.src, from: p.tok().pos}
	for {
		if _, err := p.node("expected a node id, RANDOM n or SPLIT name"); err != nil {
			return s, err
		}
		s.ids.count++
		if !p.punct(",") {
			return s, nil
		}
	}
}

func (p *parser) node(what string) (nodeRef, error) {
	if p.punct("#") {
		n, err := strconv.ParseUint(p.tok().text, 10, 32)
		if err != nil {
			return nodeRef{}, p.fail("# wants an internal node id, found %s", found(p.tok()))
		}
		p.next()
		return nodeRef{internal: true, id: n}, nil
	}
	s, err := p.text(what)
	return nodeRef{external: s}, err
}

func found(t token) string {
	if t.kind == tokEnd {
		return "the end"
	}
	return named(t.text)
}

// namedMost is how many characters of a word stand in a message.
const namedMost = 60

// named is a word as it stands in a message: in quotes, and not longer than a message may be.
func named(word string) string {
	if utf8.RuneCountInString(word) <= namedMost {
		return strconv.Quote(word)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.*q", namedMost, word), `"`) + `…"`
}

func expected(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; expected " + strings.Join(words, ", ")
}

// near suggests the closest word within distance 2, without regard to case.
func near(w string, among []string) string {
	best, least := "", 3
	for _, a := range among {
		if len(w) > len(a)+2*utf8.UTFMax {
			continue // a long word, such as a pasted text, is near nothing
		}
		d := spelling.Distance(strings.ToUpper(w), strings.ToUpper(a))
		if a != w && d < least && d < len(a) {
			best, least = a, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
