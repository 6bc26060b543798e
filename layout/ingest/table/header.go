package table

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gdb/layout/ingest/input"
)

// Headers are the values of --header; the first is the default.
var Headers = []string{"auto", "yes", "no"}

// SaysHeader returns what --header says: whether the first line names the columns, or that this is
// open.
func SaysHeader(value string) (named, open bool, err error) {
	if value != "" && !slices.Contains(Headers, value) {
		err = input.Usage("--header %q is not one of %s", value, strings.Join(Headers, ", "))
	}
	return value == "yes", value == "" || value == "auto", err
}

// isHeader decides whether the first row names the columns: by --header, by the format's rule,
// because a flag names one, because a name is known, or by what the rows below are. Where all this
// leaves it open, it returns an error that asks, since a name that is taken for a node spoils the
// graph.
func (s *Opener) isHeader(file string, rows [][]string, h Hints) (bool, error) {
	if named, open, err := SaysHeader(h.Header); err != nil || !open {
		return named, err
	}
	if h.Format != nil {
		return h.Format.Header, nil
	}
	if !couldBeNames(rows[0]) {
		return false, nil
	}
	if isIndex(rows[0]) {
		return true, nil
	}
	for _, name := range rows[0] {
		// A usual name with a number, such as node1, may be an id: the rows below decide.
		usual := !strings.ContainsFunc(name, unicode.IsDigit) &&
			slices.Contains(h.Known, Usual(name))
		if name != "" && (usual || slices.Contains(s.Named, name)) {
			return true, nil
		}
	}
	evidence := headerEvidence(rows)
	if len(rows[0]) == 1 && !numbersBelow(rows, 0) { // a list of ids, which may be of any form
		evidence = min(evidence, 0)
	}
	if evidence == 0 && h.Nodes != nil {
		var err error
		if evidence, err = nodesEvidence(rows, h); err != nil {
			return false, err
		}
	}
	switch {
	case evidence != 0:
		return evidence > 0, nil
	case h.Header == "" || len(rows) == 1:
		return false, nil
	case slices.ContainsFunc(rows[0], isColumnWord):
		return true, nil
	}
	return false, headerOpen(file, rows)
}

// couldBeNames reports whether the fields of a row could be names of columns: no numbers, none
// twice, and not all of them empty. Some may be empty: an index of pandas, and a column behind the
// last comma.
func couldBeNames(row []string) bool {
	named := false
	for i, name := range row {
		if IsNumber(name) || name != "" && slices.Contains(row[:i], name) {
			return false
		}
		named = named || name != ""
	}
	return named
}

// isIndex reports whether a header's first name is the name of an index, as pandas writes it.
func isIndex(names []string) bool {
	return len(names) > 2 && (names[0] == "" || names[0] == "Unnamed: 0")
}

const (
	// evidenceRows is the least number of rows whose repetitions say something.
	evidenceRows = 20
	// onceMost is the largest share of values that occur once in a column that repeats.
	onceMost = 0.05
)

// headerEvidence returns more than 0 if the first row is not like the rows below, less than 0 if it
// is like them, and 0 if they leave it open. It looks for numbers below a word; a word of another
// form than all below it; a word that does not occur below where most do repeatedly; a word that
// occurs below.
func headerEvidence(rows [][]string) (evidence int) {
	below := rows[1:]
	if len(below) == 0 {
		return 0
	}
	all := map[string]int{} // values of all columns: sources may be destinations
	for _, r := range below {
		for _, v := range r {
			all[v]++
		}
	}
	for col, name := range rows[0] {
		values := column(below, col)
		switch {
		case name == "" || len(values) == 0:
		case numbersBelow(rows, col):
			return 1
		case all[name] > 0:
			evidence = -1
		case evidence < 0:
		case otherForm(name, values) || len(values) >= evidenceRows && repeats(values, all):
			evidence = 1
		}
	}
	return evidence
}

// nodesEvidence returns less than 0 if a word of the first row is the id of a node, and more than 0
// if none is but rows below have some: nearly all rows, or half of them where all nodes are known.
func nodesEvidence(rows [][]string, h Hints) (int, error) {
	known, all, err := h.Nodes(slices.Concat(rows...))
	if err != nil {
		return 0, err
	}
	isNode := func(word string) bool { return known[word] }
	if slices.ContainsFunc(rows[0], isNode) {
		return -1, nil
	}
	found := 0
	for _, r := range rows[1:] {
		if slices.ContainsFunc(r, isNode) {
			found++
		}
	}
	if below := len(rows) - 1; found > 0 && (10*found >= 9*below || all && 2*found >= below) {
		return 1, nil
	}
	return 0, nil
}

// column returns what rows have in a column.
func column(rows [][]string, col int) (values []string) {
	for _, r := range rows {
		if col < len(r) {
			values = append(values, r[col])
		}
	}
	return values
}

// numbersBelow reports whether all rows but the first have numbers in a column.
func numbersBelow(rows [][]string, col int) bool {
	return len(rows) > 1 && !slices.ContainsFunc(column(rows[1:], col),
		func(v string) bool { return !IsNumber(v) })
}

// repeats reports whether nearly all values occur more than once.
func repeats(values []string, counts map[string]int) bool {
	once := 0
	for _, v := range values {
		if counts[v] == 1 {
			once++
		}
	}
	return float64(once) <= onceMost*float64(len(values))
}

// otherForm reports whether a name, without digits, is formed otherwise than all values, which must
// be a few, of few forms.
func otherForm(name string, values []string) bool {
	if strings.ContainsFunc(name, unicode.IsDigit) {
		return false
	}
	forms := map[string]bool{}
	for _, v := range values {
		forms[form(v)] = true
	}
	return len(values) > 2 && 3*len(forms) <= len(values) && !forms[form(name)]
}

// form returns a value with runs of letters as one letter a or A, and runs of digits as one digit:
// users u17 and u2 are of the form a0, their heading is not.
func form(v string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range v {
		switch {
		case unicode.IsDigit(r):
			r = '0'
		case unicode.IsUpper(r) && last != 'a' && last != 'A':
			r = 'A'
		case unicode.IsLetter(r) && last == 'A':
			continue
		case unicode.IsLetter(r):
			r = 'a'
		}
		if r != last {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// columnWords are parts of names that people give to columns of nodes and edges.
var columnWords = []string{"id", "id1", "id2", "ids", "user", "friend", "follower", "followee",
	"following", "account", "sender", "receiver", "recipient", "author", "coauthor", "paper",
	"item", "product", "name", "source", "target", "src", "dst", "node", "node1", "node2", "vertex",
	"parent", "child", "start", "end", "origin", "key", "value", "label", "class", "type"}

// isColumnWord reports whether a name, or a part of it between signs, is such a word.
func isColumnWord(name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), func(part string) bool { return slices.Contains(columnWords, part) })
}

// headerOpen asks, and shows the first rows.
func headerOpen(file string, rows [][]string) error {
	var shown []string
	for _, r := range rows[:min(3, len(rows))] {
		shown = append(shown, fmt.Sprintf("%.60q", strings.Join(r, ",")))
	}
	do := "say --header yes or --header no"
	if len(rows[0]) == 1 {
		do += "; or make the first line of this file alone the name of a column: id"
	}
	return &input.Error{Where: file, Flag: true,
		What: "does the first line name the columns? It begins with " + strings.Join(shown, " "),
		Do:   do}
}

// Headers of Neo4j say the role of a column, as in ":START_ID(Person)", or its type, as in
// "weight:int".
var (
	roleSuffix = regexp.MustCompile(`(?i):(id|start_id|end_id|type|label)(\(.*\))?$`)
	typeSuffix = regexp.MustCompile(`(?i):(int|long|float|double|boolean|byte|short|char|string|` +
		`point|date|localtime|time|localdatetime|datetime|duration)(\[\])?$`)
	indexLevel = regexp.MustCompile(`^__index_level_[0-9]+__$`)
)

// withoutType returns a column's name without the type of Neo4j.
func withoutType(name string) string {
	if at := typeSuffix.FindStringIndex(name); at != nil && at[0] > 0 {
		return name[:at[0]]
	}
	return name
}

// Usual returns a column's name in the form in which it is compared with usual names: its letters
// and digits alone, in small letters. A name of Neo4j becomes the role that it tells.
func Usual(name string) string {
	if m := roleSuffix.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, withoutType(name))
}

// Named returns the first column with one of these usual names, but for some columns, or -1.
func (t *Table) Named(names []string, except ...int) int {
	for c, n := range t.Names {
		if !slices.Contains(except, c) && slices.Contains(names, Usual(n)) {
			return c
		}
	}
	return -1
}

// Unnamed reports whether a column is an index for which pandas had no name.
func (t *Table) Unnamed(col int) bool {
	return col == 0 && isIndex(t.Names) || t.Names != nil && indexLevel.MatchString(t.Names[col])
}

// Order returns the columns as their frame had them: an index, which pandas writes last, comes
// first.
func (t *Table) Order() []int {
	order := slices.Clone(t.Index)
	for c := range t.Width {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	return order
}
