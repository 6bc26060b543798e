package source

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// guessIDs takes the ids of some columns for text if one of them is no integer, and tells which if
// others are. A few among many integers are bad lines where those may be skipped.
func (s *parts) guessIDs(t *table.Table, columns ...int) {
	integers, others, odd := 0, 0, ""
	for _, r := range t.Sample {
		for _, col := range columns {
			switch {
			case col < 0, r[col] == "": // an error when it is read, whatever the others are
			case table.IsInteger(r[col]):
				integers++
			case odd == "":
				odd = r[col]
				fallthrough
			default:
				others++
			}
		}
	}
	if others == 0 || int64(others) <= s.opt.SkipBad && others < integers/2 {
		return
	}
	s.info.TextIDs = true
	switch same := sameNumber(odd); {
	case integers > 0 && same != "":
		s.note("%s: ids are read as text: %q is not the same node as %q", t.Path, odd, same)
	case integers > 0:
		s.note("%s: ids are read as text, since %q is not an integer of 64 bits", t.Path, odd)
	}
}

// sameNumber returns the integer that is the same number as an id that is written in another way: 7
// for 007 and 7.0; "" if there is none.
func sameNumber(id string) string {
	digits := strings.TrimLeft(id, "0")
	if digits == "" && id != "" {
		digits = "0"
	}
	if x, err := strconv.ParseFloat(id, 64); !table.IsInteger(digits) && err == nil &&
		x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		digits = strconv.FormatInt(int64(x), 10)
	}
	if digits == id || !table.IsInteger(digits) {
		return ""
	}
	return digits
}

// idKind returns the kind that ids are read as.
func (s *parts) idKind() input.Kind {
	if s.info.TextIDs {
		return input.Key
	}
	return input.ID
}

// TypeSep stands between the type of a node and its id: user 17 is the node "user:17".
const TypeSep = ":"

// Relation is a file of edges of one type, between nodes of a type each, or of any if these are "".
type Relation struct {
	Src, Name, Dst string
	File           string
	// Key is the column of a foreign key, where File is the table of Src: a row has an edge to the
	// node of Dst whose id is there, and none where it is null. Time is its column of times, and
	// "none" is none.
	Key, Time string
	// Columns names the columns of File where a schema does; nil where flags do.
	Columns *EdgeColumns
}

// EdgeColumns name the columns of a table of edges. "" is found by its name, or is the next one of
// the ends; "none" is none.
type EdgeColumns struct {
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	Type   string `json:"type,omitempty"`
	Weight string `json:"weight,omitempty"`
	Time   string `json:"time,omitempty"`
}

var relationName = regexp.MustCompile(`^(?:([\w.-]+):)?([\w.-]+)(?::([\w.-]+))?=(.+)$`)

// ParseRelation reads NAME=FILE or SRC:NAME:DST=FILE; ok is false where there is no name.
func ParseRelation(s string) (r Relation, ok bool) {
	m := relationName.FindStringSubmatch(s)
	if m == nil || (m[1] == "") != (m[3] == "") {
		return Relation{File: s}, false
	}
	return Relation{Src: m[1], Name: m[2], Dst: m[3], File: m[4]}, true
}

// String returns what ParseRelation reads.
func (r Relation) String() string {
	if r.Src == "" {
		return r.Name + "=" + r.File
	}
	return r.Src + ":" + r.Name + ":" + r.Dst + "=" + r.File
}

// nodeTypes finds the types of nodes, and whether they are said of all or of none.
func (s *textGraph) nodeTypes() error {
	o := s.opt
	if (o.SrcType == "") != (o.DstType == "") {
		return input.Usage("--src-type and --dst-type go together: both ends of an edge " +
			"have a type")
	}
	types := []string{o.SrcType, o.DstType}
	for _, t := range s.edges {
		types = append(types, t.srcType, t.dstType)
	}
	if slices.Contains(types, "") && strings.Join(types, "") != "" {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "" })
		if o.SrcType != "" || slices.ContainsFunc(s.edges, func(t *edgeTable) bool {
			return t.srcType == ""
		}) {
			return input.Usage("some edges have types of nodes and others have none: write " +
				"--edges SRC:REL:DST=FILE of all, or give --src-type and --dst-type")
		}
	}
	for _, t := range types {
		if t != "" && !slices.Contains(s.info.NodeTypes, t) {
			s.info.NodeTypes = append(s.info.NodeTypes, t)
		}
	}
	if len(s.info.NodeTypes) > 0 {
		s.info.TextIDs = true
	}
	slices.Sort(s.info.NodeTypes)
	return s.typeOfNodes()
}

// typeOfNodes checks the type of the ids in tables of nodes.
func (s *textGraph) typeOfNodes() error {
	o := s.opt
	tables := o.Nodes != "" || o.Labels != "" || o.Features != "" || len(o.Splits) > 0
	switch known := s.info.NodeTypes; {
	case o.NodesType != "" && len(known) == 0:
		return input.Usage("--nodes %s=…: the edges have no types of nodes; write --edges "+
			"%[1]s:edge:%[1]s=FILE, or leave %[1]s= out", o.NodesType)
	case o.NodesType != "" && !slices.Contains(known, o.NodesType):
		return input.Usage("--nodes %s=…: there are no nodes of that type; there are %s",
			o.NodesType, strings.Join(known, ", "))
	case o.NodesType == "" && len(known) > 1 && o.Nodes != "":
		return input.Usage("which type are the ids of --nodes? Write --nodes TYPE=%s, where "+
			"TYPE is %s", o.Nodes, strings.Join(known, " or "))
	case o.NodesType == "" && len(known) > 1 && tables:
		s.note("ids in files of labels, features and splits have their type before them, as in "+
			"%s%s17", known[0], TypeSep)
	case len(known) == 1:
		s.nodesType = known[0]
		return nil
	}
	s.nodesType = o.NodesType
	return nil
}

// prefixer writes a type before ids.
type prefixer struct {
	prefix string
	arena  []byte
}

func newPrefixer(typ string) prefixer {
	if typ == "" {
		return prefixer{}
	}
	return prefixer{prefix: typ + TypeSep}
}

// apply replaces ids by those with the type before them, valid until the next call.
func (p *prefixer) apply(ids [][]byte) {
	if p.prefix == "" {
		return
	}
	size := 0
	for _, id := range ids {
		size += len(p.prefix) + len(id)
	}
	p.arena = slices.Grow(p.arena[:0], size)
	for i, id := range ids {
		at := len(p.arena)
		p.arena = append(append(p.arena, p.prefix...), id...)
		ids[i] = p.arena[at:len(p.arena):len(p.arena)]
	}
}

// endWords are words in the names of columns that say which end of an edge a column is, or that it
// has ids, and not which kind of node is there.
var endWords = strings.Fields(`src source from head subject start begin origin first left lhs out
	dst dest target to tail object end destination second right rhs in who whom what which id ids
	idx index key no num nr code name uri url label node nodes vertex vertices entity element
	knows trusts follows calls mentions citing cites cited follower followers followee following
	followed friend friends neighbor neighbour parent child ancestor descendant sender receiver
	recipient caller callee giver taker trustor trustee rater ratee voter votee predecessor
	successor before after previous next referrer referred reference related other dependent
	dependency importer imported linked linking manager employee supervisor subordinate boss
	spouse partner payer payee lender borrower by of for on at with the an new old`)

var (
	// camel is where a word begins within a name such as movieId, and idSpace is the group of ids
	// that a header of Neo4j names, as in ":START_ID(Person)".
	camel   = regexp.MustCompile(`([a-z])([A-Z])`)
	idSpace = regexp.MustCompile(`(?i):(?:start_|end_)?id\((.+)\)$`)
)

// kindOf returns the kind of node that the name of a column tells: the name without its endWords,
// numbers and single letters, as user of user_id and movie of movieId; "" if nothing is left.
func kindOf(name string) string {
	if m := idSpace.FindStringSubmatch(name); m != nil {
		return strings.ToLower(m[1])
	}
	words := strings.FieldsFunc(camel.ReplaceAllString(name, "${1}_$2"), func(r rune) bool {
		return !unicode.IsLetter(r)
	})
	var kind []string
	for _, w := range words {
		w = strings.ToLower(w)
		if !slices.Contains(endWords, w) && len(w) > len("xid") {
			w = strings.TrimSuffix(w, "id")
		}
		if w == "uid" || w == "iid" { // users and items, in data of recommendations
			w = map[string]string{"uid": "user", "iid": "item"}[w]
		}
		if len(w) > 1 && !slices.Contains(endWords, w) {
			kind = append(kind, w)
		}
	}
	return strings.Join(kind, "_")
}

// sameKind reports whether two kinds are one: authors are author, and so are coauthors.
func sameKind(a, b string) bool {
	plain := func(kind string) string {
		return strings.TrimSuffix(strings.TrimPrefix(kind, "co"), "s")
	}
	return plain(a) == plain(b)
}

// askKinds asks where the names of the ends tell two kinds of nodes, whose ids would be taken for
// one: user 1 and movie 1 would be the same node.
func (s *textGraph) askKinds(t *edgeTable) error {
	if t.Names == nil || t.srcType+t.dstType != "" || s.rows || s.opt.SameIDs {
		return nil
	}
	src, dst := kindOf(t.Names[t.src]), kindOf(t.Names[t.dst])
	if src == "" || dst == "" || sameKind(src, dst) {
		return nil
	}
	return &input.Error{Where: t.Path, Flag: true,
		What: fmt.Sprintf("its columns %s and %s look like two kinds of nodes, and %s 1 would be "+
			"the same node as %s 1", t.Names[t.src], t.Names[t.dst], src, dst),
		Do: fmt.Sprintf("say --src-type %s --dst-type %s, which numbers them apart, or --same-ids "+
			"if both are of one kind", src, dst)}
}

// NamesTable reports whether a column is called as a table is: userId as users, category_id as
// categories.
func NamesTable(column, name string) bool {
	kind, of := kindOf(column), kindOf(name)
	if singular, plural := strings.CutSuffix(of, "ies"); plural {
		of = singular + "y"
	}
	return kind != "" && sameKind(kind, of)
}
