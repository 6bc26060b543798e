package table

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Headers of Neo4j say the role of a column, as in ":START_ID(Person)", or its type, as in
// "weight:int".
var (
	roleSuffix = regexp.MustCompile(`(?i):(id|start_id|end_id|type|label)(\(.*\))?$`)
	typeSuffix = regexp.MustCompile(`(?i):(int|long|float|double|boolean|byte|short|char|string|` +
		`point|date|localtime|time|localdatetime|datetime|duration)(\[\])?$`)
	indexLevel = regexp.MustCompile(`^__index_level_[0-9]+__$`)
)

// withoutType is a column's name without the type of Neo4j.
func withoutType(name string) string {
	if at := typeSuffix.FindStringIndex(name); at != nil && at[0] > 0 {
		return name[:at[0]]
	}
	return name
}

// Usual is a column's name in the form in which it is compared with usual names: its letters and
// digits alone, in small letters. If it is of Neo4j, it is the role that it says.
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

// Unnamed says that a column is an index for which pandas had no name.
func (t *Table) Unnamed(col int) bool {
	return col == 0 && isIndex(t.Names) || t.Names != nil && indexLevel.MatchString(t.Names[col])
}

// Order are the columns as their frame had them: an index, which pandas writes last, comes first.
func (t *Table) Order() []int {
	order := slices.Clone(t.Index)
	for c := range t.Width {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	return order
}
