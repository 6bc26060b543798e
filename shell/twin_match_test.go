package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/layout"
	"gdb/shell/words"
)

// twinHop is a hop of a pattern, seen from the anchor.
type twinHop struct {
	name        string // of its edge, if it is one
	word        string // IN, OUT or BOTH
	via         int
	least, most int
}

// text is the hop as MATCH writes it, or seen from its other end.
func (h *twinHop) text(w *twin, flipped bool) string {
	inner := h.name
	if h.via >= 0 {
		inner += ":" + quotedText(w.types[h.via])
	}
	if h.most > 1 {
		inner += fmt.Sprintf("*%d..%d", h.least, h.most)
	}
	switch {
	case h.word == "BOTH":
		return "-[" + inner + "]-"
	case (h.word == "OUT") != flipped:
		return "-[" + inner + "]->"
	}
	return "<-[" + inner + "]-"
}

// twinMatch is a match: its nodes, and the type of the last edge of each hop.
type twinMatch struct {
	nodes []layout.NodeID
	types []uint16
}

// twinStepsMost bounds the edges that the twin follows for one MATCH.
const twinStepsMost = 10_000

// matches calls fn with each match of a pattern that begins with m; false if it takes too long.
func (m *matchDrawer) matches(t twinMatch, hops []twinHop, steps int, fn func(twinMatch)) bool {
	if len(hops) == 0 {
		fn(t)
		return true
	}
	h := &hops[0]
	for k, dir := range m.directions(h.word) {
		at := t.nodes[len(t.nodes)-1]
		for _, e := range m.lists[dir][at] {
			if k > 0 && e.Nbr == at {
				continue // the lists of the other direction have it too
			}
			if m.steps++; m.steps > twinStepsMost {
				return false
			}
			if h.via >= 0 && int(e.Type) != h.via {
				continue
			}
			next := twinMatch{slices.Clone(t.nodes), slices.Clone(t.types)}
			if steps > 0 { // the node where it stands is in the place of the hop's end
				next.nodes[len(next.nodes)-1] = e.Nbr
			} else {
				next.nodes, next.types = append(next.nodes, e.Nbr), append(next.types, e.Type)
			}
			if steps+1 >= h.least && !m.matches(next, hops[1:], 0, fn) {
				return false
			}
			if steps+1 < h.most && !m.matches(next, hops, steps+1, fn) {
				return false
			}
		}
	}
	return true
}

// matchDrawer draws one MATCH.
type matchDrawer struct {
	*drawer
	hops  []twinHop
	names []string // of the nodes
	found []twinMatch
	steps int // that it took to find them
	fails string
}

// drawMatch draws a MATCH; false if it has too many matches for the twin.
func drawMatch(d *drawer) (drawn, bool) {
	m := &matchDrawer{drawer: d}
	for i := range pick(d, 1, 1, 2, 2, 3) {
		m.drawHop(i)
	}
	pattern, ok := m.pattern()
	if !ok {
		return drawn{}, false
	}
	stmt := "MATCH " + pattern
	if d.chance(0.5) {
		stmt += m.where()
	}
	q := m.returns(stmt)
	q.fails = m.fails
	return q, true
}

func (m *matchDrawer) drawHop(i int) {
	h := twinHop{word: m.direction(), via: -1, least: 1, most: 1}
	if h.word == "" {
		h.word = "IN"
	}
	if m.types != nil && m.chance(0.5) {
		h.via = m.IntN(len(m.types))
	}
	if m.chance(0.2) {
		h.least = 1 + m.IntN(2)
		h.most = h.least + m.IntN(2)
	}
	if h.most == 1 && m.chance(0.5) {
		h.name = fmt.Sprintf("r%d", i)
	}
	m.hops = append(m.hops, h)
}

// pattern draws the ends and finds the matches.
func (m *matchDrawer) pattern() (string, bool) {
	first, starts := m.anchor(m.node())
	shape := pick(m.drawer, "open", "open", "open", "cycle", "closed")
	all := true
	for _, v := range starts {
		all = all && m.matches(twinMatch{nodes: []layout.NodeID{v}}, m.hops, 0,
			func(t twinMatch) {
				if shape != "cycle" || t.nodes[len(t.nodes)-1] == v {
					m.found = append(m.found, t)
				}
			})
	}
	parts := []string{"(n0 " + first + ")"}
	for i := range m.hops {
		parts = append(parts, fmt.Sprintf("(n%d)", i+1))
	}
	switch last := len(m.hops); shape {
	case "cycle":
		parts[last] = "(n0)"
	case "closed":
		v := m.node()
		if len(m.found) > 0 && m.chance(0.9) {
			v = m.found[m.IntN(len(m.found))].nodes[last]
		}
		text, ends := m.anchor(v)
		parts[last] = fmt.Sprintf("(n%d %s)", last, text)
		for _, v := range ends { // from where the shell may begin, if it has the lists
			if m.lists[layout.Out] == nil {
				break
			}
			all = all && m.matches(twinMatch{nodes: []layout.NodeID{v}}, reversed(m.hops), 0,
				func(twinMatch) {})
		}
		m.found = slices.DeleteFunc(m.found, func(t twinMatch) bool {
			return !slices.Contains(ends, t.nodes[last])
		})
	}
	for i := range m.hops {
		m.names = append(m.names, fmt.Sprintf("n%d", i))
	}
	if shape != "cycle" {
		m.names = append(m.names, fmt.Sprintf("n%d", len(m.hops)))
	}
	return m.written(parts), all
}

// reversed are the hops seen from the other end.
func reversed(hops []twinHop) (out []twinHop) {
	for _, h := range slices.Backward(hops) {
		h.word = map[string]string{"IN": "OUT", "OUT": "IN", "BOTH": "BOTH"}[h.word]
		out = append(out, h)
	}
	return out
}

// anchor draws what makes a node an end to begin at, and the nodes that it may be.
func (m *matchDrawer) anchor(v layout.NodeID) (string, []layout.NodeID) {
	switch {
	case len(m.splits) > 0 && m.chance(0.1):
		name := pick(m.drawer, slices.Sorted(mapKeys(m.splits))...)
		return "IN SPLIT " + name, m.splits[name]
	case m.chance(0.02):
		m.fails = "not found"
		return "{id: " + m.stranger() + "}", nil
	}
	return "{id: " + m.ref(v) + "}", []layout.NodeID{v}
}

// written joins nodes and hops, from left to right or the other way.
func (m *matchDrawer) written(parts []string) string {
	pattern, flipped := parts[0], m.chance(0.5)
	for i, part := range parts[1:] {
		if flipped {
			pattern = part + m.hops[i].text(m.twin, true) + pattern
		} else {
			pattern += m.hops[i].text(m.twin, false) + part
		}
	}
	return pattern
}

// twinExpr is a property as it is written, and its value: "" is none.
type twinExpr struct {
	text  string
	of    func(t *twinMatch) string
	among func() []string // the values that it can have, or some of them
}

// expr draws a property of a node or of a named edge.
func (m *matchDrawer) expr() twinExpr {
	i := m.IntN(len(m.hops))
	if name := m.hops[i].name; name != "" && m.types != nil && m.chance(0.3) {
		return twinExpr{name + pick(m.drawer, "", ".type"),
			func(t *twinMatch) string { return m.types[t.types[i]] },
			func() []string { return m.types }}
	}
	i = m.IntN(len(m.names))
	if m.labels != nil && m.chance(0.5) {
		return twinExpr{m.names[i] + ".label",
			func(t *twinMatch) string { return m.labels[t.nodes[i]] },
			func() []string {
				return slices.DeleteFunc(slices.Clone(m.labels),
					func(s string) bool { return s == "" })
			}}
	}
	return twinExpr{m.names[i] + pick(m.drawer, "", ".id"),
		func(t *twinMatch) string { return m.twin.names[t.nodes[i]] },
		func() []string { return []string{m.twin.names[m.node()]} }}
}

// twinNumber reads a number as the language does.
func twinNumber(s string) (float64, bool) {
	if s == "" || !strings.ContainsAny(s[:1], "-0123456789") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// twinOrder sorts numbers before text, and nothing last.
func twinOrder(a, b string) int {
	x, okX := twinNumber(a)
	y, okY := twinNumber(b)
	kind := func(s string, isNumber bool) int {
		switch {
		case isNumber:
			return 0
		case s != "":
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(kind(a, okX), kind(b, okY)), cmp.Compare(x, y), cmp.Compare(a, b))
}

// literal draws a literal near the values of an expression; bare says that it is a number.
func (m *matchDrawer) literal(e twinExpr, ordered bool) (text, value string, bare bool) {
	if m.fails == "" && !ordered && m.chance(0.01) {
		m.fails = "WHERE" // of what the expression can not be
		return "'no such thing'", "no such thing", false
	}
	if len(m.found) > 0 && m.chance(0.8) {
		value = e.of(&m.found[m.IntN(len(m.found))])
	}
	if value == "" {
		value = pick(m.drawer, e.among()...)
	}
	texts := slices.ContainsFunc(e.among(), func(s string) bool {
		_, ok := twinNumber(s)
		return !ok
	})
	if _, ok := twinNumber(value); ok && !(ordered && texts) && m.chance(0.5) {
		return value, value, true
	}
	return quotedText(value), value, false
}

// twinCondition is a comparison as it is written, and what it says.
type twinCondition struct {
	text  string
	holds func(t *twinMatch) bool
}

var twinOperators = map[string]func(order int) bool{
	"=": func(o int) bool { return o == 0 }, "<>": func(o int) bool { return o != 0 },
	"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
	">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 }}

// compares says whether two values compare as an operator says: text is never a bare number, and a
// value that is missing compares with nothing.
func compares(a, b string, bare bool, op string) bool {
	x, okX := twinNumber(a)
	y, okY := twinNumber(b)
	switch {
	case a == "":
		return false
	case bare && !okX:
		return op == "<>"
	case bare:
		return twinOperators[op](cmp.Compare(x, y))
	case okX && okY:
		return twinOperators[op](cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b)))
	}
	return twinOperators[op](cmp.Compare(a, b))
}

func (m *matchDrawer) condition() twinCondition {
	left, op := m.expr(), pick(m.drawer, slices.Sorted(mapKeys(twinOperators))...)
	switch kind := m.IntN(3); kind {
	case 0:
		right := m.expr()
		return twinCondition{left.text + " " + op + " " + right.text, func(t *twinMatch) bool {
			b := right.of(t)
			return b != "" && compares(left.of(t), b, false, op)
		}}
	case 1:
		text, value, bare := m.literal(left, op != "=" && op != "<>")
		return twinCondition{left.text + op + text, func(t *twinMatch) bool {
			return compares(left.of(t), value, bare, op)
		}}
	}
	var texts []string
	var any []func(t *twinMatch) bool
	for range 1 + m.IntN(3) {
		text, value, bare := m.literal(left, false)
		texts = append(texts, text)
		any = append(any, func(t *twinMatch) bool { return compares(left.of(t), value, bare, "=") })
	}
	return twinCondition{left.text + " IN [" + strings.Join(texts, ", ") + "]",
		func(t *twinMatch) bool {
			return slices.ContainsFunc(any, func(f func(t *twinMatch) bool) bool { return f(t) })
		}}
}

// where draws conditions, and keeps the matches for which they hold.
func (m *matchDrawer) where() string {
	text := " WHERE "
	var or [][]twinCondition
	for i := range 1 + m.IntN(2) {
		if i > 0 {
			text += " OR "
		}
		var and []twinCondition
		for j := range 1 + m.IntN(2) {
			if j > 0 {
				text += " AND "
			}
			and = append(and, m.condition())
			text += and[j].text
		}
		or = append(or, and)
	}
	m.found = slices.DeleteFunc(m.found, func(t twinMatch) bool {
		return !slices.ContainsFunc(or, func(and []twinCondition) bool {
			return !slices.ContainsFunc(and, func(c twinCondition) bool { return !c.holds(&t) })
		})
	})
	return text
}

// returns draws what is returned of the matches.
func (m *matchDrawer) returns(stmt string) drawn {
	var exprs []twinExpr
	var texts []string
	for range 1 + m.IntN(3) {
		exprs = append(exprs, m.expr())
		texts = append(texts, exprs[len(exprs)-1].text)
	}
	groups := map[string][]*twinMatch{}
	var rows []string
	for i := range m.found {
		var cells []string
		for _, e := range exprs {
			cells = append(cells, e.of(&m.found[i]))
		}
		row := strings.Join(cells, ",")
		if groups[row] == nil {
			rows = append(rows, row)
		}
		groups[row] = append(groups[row], &m.found[i])
	}
	stmt += " RETURN "
	switch pick(m.drawer, "rows", "distinct", "group", "aggregates") {
	case "rows":
		rows = nil
		for row, of := range groups {
			rows = append(rows, slices.Repeat([]string{row}, len(of))...)
		}
	case "distinct":
		stmt += "DISTINCT "
	case "group":
		text, of := m.aggregate()
		texts = append(texts, text)
		for i, row := range rows {
			rows[i] = row + "," + of(groups[row])
		}
	default:
		text, of := m.aggregate()
		var all []*twinMatch
		for i := range m.found {
			all = append(all, &m.found[i])
		}
		return drawn{stmt: stmt + text, check: tableCheck([]string{of(all)}, -1, false, -1)}
	}
	stmt += strings.Join(texts, ", ")
	by, desc, limit := -1, m.chance(0.5), -1
	if m.chance(0.4) {
		by = m.IntN(len(texts))
		by = slices.Index(texts, texts[by])
		stmt += " ORDER BY " + texts[by]
		if desc {
			stmt += " DESC"
		}
	}
	if m.chance(0.3) {
		limit = m.IntN(20)
		stmt += fmt.Sprintf(" LIMIT %d", limit)
	}
	return drawn{stmt: stmt, check: tableCheck(rows, by, desc, limit)}
}

// aggregate draws an aggregate, and computes it of a group.
func (m *matchDrawer) aggregate() (string, func(of []*twinMatch) string) {
	e := m.expr()
	values := func(of []*twinMatch) (out []string) {
		for _, t := range of {
			if v := e.of(t); v != "" {
				out = append(out, v)
			}
		}
		return out
	}
	extreme := func(least bool) func(of []*twinMatch) string {
		return func(of []*twinMatch) string {
			all := append(values(of), "")
			if len(all) > 1 {
				all = all[:len(all)-1]
			}
			if least {
				return slices.MinFunc(all, twinOrder)
			}
			return slices.MaxFunc(all, twinOrder)
		}
	}
	numeric := !slices.ContainsFunc(m.found, func(t twinMatch) bool {
		_, ok := twinNumber(e.of(&t))
		return !ok && e.of(&t) != ""
	})
	switch kind := m.IntN(5); {
	case kind == 0:
		return "count(*)", func(of []*twinMatch) string { return fmt.Sprint(len(of)) }
	case kind == 1:
		return "count(" + e.text + ")",
			func(of []*twinMatch) string { return fmt.Sprint(len(values(of))) }
	case kind == 2 && numeric:
		return "avg(" + e.text + ")", func(of []*twinMatch) string {
			sum, all := 0.0, values(of)
			for _, v := range all {
				f, _ := twinNumber(v)
				sum += f
			}
			if len(all) == 0 {
				return ""
			}
			return words.Raw(sum / float64(len(all)))
		}
	case kind == 3:
		return "min(" + e.text + ")", extreme(true)
	}
	return "max(" + e.text + ")", extreme(false)
}

// tableCheck holds that an answer has the rows, or limit of them, in order of column by unless that
// is -1.
func tableCheck(want []string, by int, desc bool, limit int) func(string) string {
	count := len(want)
	if limit >= 0 {
		count = min(count, limit)
	}
	order := func(a, b string) int {
		if by < 0 {
			return 0
		}
		n := twinOrder(strings.Split(a, ",")[by], strings.Split(b, ",")[by])
		if desc {
			return -n
		}
		return n
	}
	want = slices.Clone(want)
	slices.SortFunc(want, order)
	return func(got string) string {
		rows := strings.Split(strings.TrimSuffix(got, "\n"), "\n")[1:]
		if len(rows) != count {
			return fmt.Sprintf("%d rows, want %d: %.300q", len(rows), count, want)
		}
		left := map[string]int{}
		for _, row := range want {
			left[row]++
		}
		for i, row := range rows {
			if order(row, want[i]) != 0 {
				return fmt.Sprintf("row %d is %s, want one like %s", i, row, want[i])
			}
			if left[row]--; left[row] < 0 {
				return fmt.Sprintf("it should not hold %s: %.300q", row, want)
			}
		}
		return ""
	}
}
