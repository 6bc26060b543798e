package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/words"
)

// condition is a comparison of WHERE. It holds if one of its comparisons holds; IN has several.
type condition []comparison

// comparison compares two values. A comparison that could never hold because of the kinds of its
// sides is never made: it is an error of the statement.
type comparison struct {
	left, right *lang.MatchExpr // a literal is on the right unless both are
	op          string
	by          basis
	literal     words.Cell    // for byValue: the value that the literal on the right stands for
	number      *number       // for byValue: the same as a number, if it is one
	external    string        // for byNode: the id
	node        layout.NodeID // for byNode: the node, once it was found
	classes     []int         // for byClass: the numbers of the classes
	together    bool          // for byClass: a node must have all the classes and no others
}

// basis says what a comparison looks at.
type basis uint8

const (
	byValue basis = iota
	byNode        // compares the node itself with the node whose id the literal names
	byClass       // compares the classes of a node with the classes that the literal names
)

// domain says what the values of an expression are.
type domain uint8

const (
	numbers domain = iota // weights, features, labels that are numbers, and literals
	times
	ids
	labels   // one class for each node
	labelSet // several classes for each node
	types
	texts // literals
)

// whereMaker makes the conditions of a statement. It reads no files.
type whereMaker struct {
	meta *kv.Meta
	note func(format string, args ...any)
}

// conditions makes the conditions of WHERE, which is an OR of ANDs.
func (w *whereMaker) conditions(where [][]lang.MatchCondition) (or [][]condition, err error) {
	for _, and := range where {
		var all []condition
		for i := range and {
			c, err := w.condition(&and[i])
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		or = append(or, all)
	}
	return or, nil
}

func (w *whereMaker) condition(c *lang.MatchCondition) (made condition, err error) {
	op := c.Op
	if op == "IN" {
		op = "="
	}
	for i := range c.Right {
		one, err := w.comparison(&c.Left, &c.Right[i], op)
		if err != nil {
			return nil, fmt.Errorf("WHERE %s %s %s: %w", written(&c.Left), c.Op,
				written(&c.Right[i]), err)
		}
		made = append(made, one)
	}
	return made, nil
}

// written returns an expression as messages write it.
func written(e *lang.MatchExpr) string {
	if e.Literal != nil && e.Literal.Kind == words.String {
		return words.Quoted(e.Text)
	}
	return words.Truncated(e.Text, words.QuotedMost)
}

// mirrored maps each operator to the one that says the same when the sides are exchanged.
var mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (w *whereMaker) comparison(left, right *lang.MatchExpr, op string) (comparison, error) {
	if left.Literal != nil && right.Literal == nil {
		left, right, op = right, left, mirrored[op]
	}
	c := comparison{left: left, right: right, op: op}
	c.literal = words.Cell{Kind: words.String, Text: right.Text} // with all the digits
	var err error
	switch of := w.domain(left); {
	case right.Literal == nil:
		err = w.properties(&c)
	case of == numbers:
		err = w.number(&c)
	case of == times:
		err = w.time(&c)
	case of == ids:
		err = w.id(&c)
	case of == types:
		err = w.edgeType(&c)
	case of == texts:
		err = bothLiterals(&c)
	default:
		err = w.label(&c, of)
	}
	return c, err
}

// domain returns what the values of an expression are.
func (w *whereMaker) domain(e *lang.MatchExpr) domain {
	if e.Literal != nil {
		if e.Literal.Kind == words.String {
			return texts
		}
		return numbers
	}
	switch {
	case e.OfEdge && e.Prop == "type":
		return types
	case e.OfEdge && e.Prop == "time":
		return times
	case e.OfEdge:
		return numbers
	case e.Prop == "id":
		return ids
	case e.Prop == "label":
		return map[string]domain{"class": labels, "multi": labelSet}[w.meta.Labels.Kind]
	}
	return numbers
}

// bare reports whether the literal is a number without quotes.
func (c *comparison) bare() bool { return c.right.Literal.Kind != words.String }

// ordered reports whether a comparison asks for more or less, and not for equality.
func (c *comparison) ordered() bool { return c.op != "=" && c.op != "<>" }

// number prepares to compare a number with a literal, which is rounded as the store has rounded the
// number.
func (w *whereMaker) number(c *comparison) error {
	n, ok := parseNumber(c.literal.Text)
	if !ok {
		return fmt.Errorf("%s is a number, and %s is none", written(c.left), written(c.right))
	}
	if dtype := w.dtype(c.left); dtype != "" {
		n = number{f: rowfile.Round(dtype, n.float())}
	}
	c.number = &n
	return nil
}

// dtype returns the type in which the store keeps a number; "" for a literal.
func (w *whereMaker) dtype(e *lang.MatchExpr) string {
	switch {
	case e.Literal != nil:
		return ""
	case e.OfEdge:
		return rowfile.F32
	case e.Prop == "label":
		return w.meta.Labels.Rows.DType
	}
	return w.meta.Features[0].DType
}

// time prepares to compare the time of an edge with a number or a date.
func (w *whereMaker) time(c *comparison) error {
	if n, ok := parseNumber(c.literal.Text); ok {
		c.number = &n
		return nil
	}
	seconds, ok := graph.ParseTime(c.literal.Text)
	if !ok {
		return fmt.Errorf("%s is no time: give a number as it was ingested, or a date in quotes "+
			"such as '2024-05-31' or '2024-05-31T12:00:00Z'", written(c.right))
	}
	c.number = &number{whole: true, i: seconds}
	if w.meta.Times == "" {
		w.note("the times of this store are numbers: %s stands for %d, its seconds since 1970",
			written(c.right), seconds)
	}
	return nil
}

// wholeIDs reports whether all ids of the store are whole numbers.
func (w *whereMaker) wholeIDs() bool { return !w.meta.IDs.Kind.Text() }

// id prepares to compare a node's id with a literal. For equality it compares the node with the
// node of that id.
func (w *whereMaker) id(c *comparison) error {
	n, isNumber := parseNumber(c.literal.Text)
	if w.wholeIDs() && !isNumber {
		return fmt.Errorf("the ids of this store are whole numbers, and %s is none",
			written(c.right))
	}
	if c.ordered() {
		if c.bare() || w.wholeIDs() {
			c.number = &n
		}
		return nil
	}
	c.by, c.external = byNode, c.literal.Text
	if w.wholeIDs() {
		var whole bool
		if c.external, whole = n.text(); !whole {
			return fmt.Errorf("the ids of this store are whole numbers, and %s is none",
				written(c.right))
		}
	}
	return nil
}

// edgeType prepares to compare the type of an edge with a literal, which must name a type.
func (w *whereMaker) edgeType(c *comparison) error {
	if c.ordered() {
		return ordered(c, w.meta.EdgeTypes, "types of edges")
	}
	found := named(w.meta.EdgeTypes, c.literal.Text)
	if len(found) == 0 {
		return fmt.Errorf("no such edge type%s; DESCRIBE TYPES lists them",
			words.Near(c.literal.Text, w.meta.EdgeTypes))
	}
	c.literal.Text = w.meta.EdgeTypes[found[0]]
	return nil
}

// label prepares to compare the label of a node with a literal, which must name a class.
func (w *whereMaker) label(c *comparison, of domain) error {
	classes := w.meta.Labels.Classes
	switch {
	case c.ordered() && of == labelSet:
		return fmt.Errorf("a node has several labels here, which have no order: ask with =, <> " +
			"or IN")
	case c.ordered():
		return ordered(c, classes, "labels")
	}
	c.by = byClass
	if c.classes = named(classes, c.literal.Text); len(c.classes) > 0 {
		return nil
	}
	if parts := strings.Split(c.literal.Text, ";"); of == labelSet && len(parts) > 1 {
		c.together = true
		for _, part := range parts {
			found := named(classes, part)
			if len(found) == 0 {
				return noClass(part, classes)
			}
			c.classes = append(c.classes, found[0])
		}
		slices.Sort(c.classes)
		c.classes = slices.Compact(c.classes)
		return nil
	}
	return noClass(c.literal.Text, classes)
}

// classesShown is how many classes the error of an unknown class lists.
const classesShown = 10

// noClass returns the error of a class that the store does not have.
func noClass(name string, classes []string) error {
	var some []string
	for _, c := range classes[:min(len(classes), classesShown)] {
		some = append(some, words.Truncated(c, words.QuotedMost))
	}
	if len(classes) > classesShown {
		some = append(some, fmt.Sprintf("… (%d)", len(classes)))
	}
	return fmt.Errorf("no class %s%s; there are %s", words.Quoted(name), words.Near(name, classes),
		strings.Join(some, ", "))
}

// named returns the places of the names that a text means: the name that is written the same, or
// the names that are the same number. 1, 1.0 and 1e0 are one number.
func named(names []string, text string) (found []int) {
	if i := slices.Index(names, text); i >= 0 {
		return []int{i}
	}
	n, ok := parseNumber(text)
	for i, name := range names {
		if !ok || n.isNaN() {
			break
		}
		if m, isNumber := parseNumber(name); isNumber && compareNumbers(n, m) == 0 {
			found = append(found, i)
		}
	}
	return found
}

// ordered returns an error if more or less is asked between a number and names that are not
// numbers.
func ordered(c *comparison, names []string, what string) error {
	word, none := firstText(names)
	n, isNumber := parseNumber(c.literal.Text)
	switch {
	case none && c.bare():
		return fmt.Errorf("the %s of this store are no numbers, such as %s: compare with a text "+
			"in quotes", what, words.Quoted(word))
	case !none && !isNumber:
		return fmt.Errorf("the %s of this store are numbers, and %s is none", what,
			written(c.right))
	case c.bare():
		c.number = &n
	}
	return nil
}

// firstText returns the first of some names that is not a number; false if all are numbers.
func firstText(names []string) (name string, found bool) {
	i := slices.IndexFunc(names, func(s string) bool {
		_, ok := parseNumber(s)
		return !ok
	})
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// bothLiterals prepares to compare two literals, the left one of which is a text.
func bothLiterals(c *comparison) error {
	n, _ := parseNumber(c.literal.Text)
	if _, isNumber := parseNumber(c.left.Text); c.bare() && !isNumber {
		return fmt.Errorf("%s is a number, and %s is none", written(c.right), written(c.left))
	}
	if c.bare() {
		c.number = &n
	}
	return nil
}

// properties prepares to compare two properties.
func (w *whereMaker) properties(c *comparison) error {
	a, b := w.domain(c.left), w.domain(c.right)
	for _, side := range []struct {
		of    domain
		expr  *lang.MatchExpr
		other domain
	}{{a, c.left, b}, {b, c.right, a}} {
		if side.of == labelSet && (side.other != labelSet || c.ordered()) {
			return fmt.Errorf("a node has several labels here: %s compares with a class in "+
				"quotes, or by = and <> with the labels of another node", written(side.expr))
		}
		if text, none := w.textOf(side.of); none && side.other <= times {
			return fmt.Errorf("%s is text%s, which compares with no number", written(side.expr),
				text)
		}
	}
	return nil
}

// textOf reports whether the values of a domain are texts that are not numbers, and returns an
// example.
func (w *whereMaker) textOf(d domain) (example string, texts bool) {
	names := map[domain][]string{types: w.meta.EdgeTypes}
	if w.meta.Labels != nil {
		names[labels] = w.meta.Labels.Classes
	}
	if d == ids {
		return "", !w.wholeIDs()
	}
	if example, texts = firstText(names[d]); texts {
		example = ", such as " + words.Quoted(example)
	}
	return example, texts
}

// lookups returns how many ids the conditions look up.
func lookups(where [][]condition) (n int) {
	eachComparison(where, func(c *comparison) {
		if c.by == byNode {
			n++
		}
	})
	return n
}

func eachComparison(where [][]condition, fn func(c *comparison)) {
	for _, and := range where {
		for _, c := range and {
			for i := range c {
				fn(&c[i])
			}
		}
	}
}

// findNodes looks up the ids that conditions name. An id that the store does not have is an error,
// as it is in a pattern.
func findNodes(ctx context.Context, x *exec.Execution, where [][]condition) (err error) {
	eachComparison(where, func(c *comparison) {
		if err != nil || c.by != byNode {
			return
		}
		var found []layout.NodeID
		one := lang.OneNode(lang.NodeRef{External: c.external})
		found, err = x.Graph.Find(ctx, lang.NodeSet{IDs: one}, 0)
		if err != nil {
			err = fmt.Errorf("WHERE %s: %w", written(c.left), err)
			return
		}
		c.node = found[0]
	})
	return err
}

// holdsWhere reports whether one of the ANDs of conditions holds for a match.
func (o *matchOutput) holdsWhere(or [][]condition, vals *matchValues, r *matchRow,
	row int) (bool, error) {
	for _, and := range or {
		ok := true
		var err error
		for i := 0; i < len(and) && ok; i++ {
			if ok, err = o.holds(and[i], vals, r, row); err != nil {
				return false, err
			}
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}

// holds reports whether a condition holds for a match. No comparison holds for an empty value.
func (o *matchOutput) holds(c condition, vals *matchValues, r *matchRow, row int) (bool, error) {
	for i := range c {
		if ok, err := o.compare(&c[i], vals, r, row); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (o *matchOutput) compare(c *comparison, vals *matchValues, r *matchRow,
	row int) (bool, error) {
	switch c.by {
	case byNode:
		return (r.nodes[o.places[c.left.Name]] == c.node) == (c.op == "="), nil
	case byClass:
		has := vals.classes[c.left.Name][row]
		return has != nil && c.classesMatch(has) == (c.op == "="), nil
	}
	left := vals.of(c.left, row)
	if c.number != nil {
		return c.compareNumber(left)
	}
	right := c.literal
	if c.right.Literal == nil {
		right = vals.of(c.right, row)
	}
	order, ok := compareCells(left, right)
	return ok && orderHolds(c.op, order), nil
}

// compareNumber compares a value with the number on the right. An id that is not a number does not
// compare with a number.
func (c *comparison) compareNumber(left words.Cell) (bool, error) {
	n, ok := numberOf(left)
	switch {
	case !ok && left.Kind == words.String:
		return false, fmt.Errorf("WHERE %s %s %s: the id %s is no number: write %s in quotes to "+
			"compare texts", written(c.left), c.op, written(c.right), words.Quoted(left.Text),
			written(c.right))
	case !ok || n.isNaN() || c.number.isNaN():
		return false, nil
	}
	return orderHolds(c.op, compareNumbers(n, *c.number)), nil
}

// classesMatch reports whether the classes of a node, in ascending order, are the classes that are
// asked for.
func (c *comparison) classesMatch(has []int) bool {
	if c.together {
		return slices.Equal(has, c.classes)
	}
	return slices.ContainsFunc(has, func(class int) bool {
		return slices.Contains(c.classes, class)
	})
}

// orderHolds reports whether an order of two values is one that an operator accepts.
func orderHolds(op string, order int) bool {
	switch op {
	case "=":
		return order == 0
	case "<>":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}
