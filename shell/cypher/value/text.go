package value

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Text returns a value as openCypher writes it: a string in quotes, a node as
// (:Label {key: value}), a relationship as [:TYPE {key: value}], a path as <(a)-[r]->(b)>.
func Text(v any) (string, error) {
	var w writer
	w.value(v)
	return w.String(), w.err
}

// writer writes values; err is the first error of reading an entity.
type writer struct {
	strings.Builder
	err error
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case float64:
		w.WriteString(Float(v))
	case string:
		w.WriteString(Quote(v))
	case List:
		w.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				w.WriteString(", ")
			}
			w.value(x)
		}
		w.WriteByte(']')
	case Map:
		w.props(v, "")
		if len(v) == 0 {
			w.WriteString("{}")
		}
	case Node:
		w.node(v)
	case Rel:
		w.rel(v)
	case Path:
		w.path(v)
	case Temporal:
		w.WriteString(Quote(v.String()))
	default:
		fmt.Fprint(w, v)
	}
}

// props writes a map that is not empty behind what parts it from what is before.
func (w *writer) props(m Map, before string) {
	if len(m) == 0 {
		return
	}
	w.WriteString(before)
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i == 0 {
			w.WriteByte('{')
		} else {
			w.WriteString(", ")
		}
		w.WriteString(k + ": ")
		w.value(m[k])
	}
	w.WriteByte('}')
}

func (w *writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) node(n Node) {
	labels, err := n.G.Labels(n.ID)
	w.keep(err)
	props, err := n.G.NodeProps(n.ID)
	w.keep(err)
	w.WriteByte('(')
	for _, l := range labels {
		w.WriteString(":" + l)
	}
	before := ""
	if len(labels) > 0 {
		before = " "
	}
	w.props(props, before)
	w.WriteByte(')')
}

func (w *writer) rel(r Rel) {
	props, err := r.G.RelProps(r)
	w.keep(err)
	w.WriteString("[:" + r.Type)
	w.props(props, " ")
	w.WriteByte(']')
}

func (w *writer) path(p Path) {
	w.WriteByte('<')
	for i, n := range p.Nodes {
		w.node(n)
		if i == len(p.Rels) {
			break
		}
		left, right := "-", "->"
		if p.Rels[i].From != n.ID {
			left, right = "<-", "-"
		}
		w.WriteString(left)
		w.rel(p.Rels[i])
		w.WriteString(right)
	}
	w.WriteByte('>')
}

// Quote returns a string in quotes.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// Float returns a float as openCypher writes it: with a point or an exponent.
func Float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); f == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	s := strconv.FormatFloat(f, 'E', -1, 64)
	m, e, _ := strings.Cut(s, "E")
	if !strings.Contains(m, ".") {
		m += ".0"
	}
	sign := ""
	if strings.HasPrefix(e, "-") {
		sign = "-"
	}
	return m + "E" + sign + strings.TrimLeft(e, "+-0")
}
