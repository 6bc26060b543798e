package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gdb/layout/ingest/input"
)

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

// kindOf is the kind of node that the name of a column tells: the name without its endWords,
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

// sameKind says whether two kinds are one: authors are author, and so are coauthors.
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
