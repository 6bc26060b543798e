package tck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdb/shell/cypher/value"
)

// notation reads values as the kit writes them, and writes them in one form: labels, keys and, if
// asked for, the elements of lists are sorted.
type notation struct {
	text     string
	anyOrder bool
}

func canonical(text string, anyOrder bool) string {
	n := &notation{text, anyOrder}
	out := n.value()
	if rest := strings.TrimSpace(n.text); rest != "" {
		return fmt.Sprintf("%s, and not read: %s", out, rest)
	}
	return out
}

func (n *notation) sign(s string) bool {
	n.text = strings.TrimLeft(n.text, " \n")
	rest, ok := strings.CutPrefix(n.text, s)
	if ok {
		n.text = rest
	}
	return ok
}

// word reads a name or a number.
func (n *notation) word() string {
	n.sign("")
	i := strings.IndexAny(n.text, " :,(){}[]<>|")
	if i < 0 {
		i = len(n.text)
	}
	out := n.text[:i]
	n.text = n.text[i:]
	return out
}

func (n *notation) value() string {
	switch {
	case n.sign("("):
		return "(" + n.entity(")")
	case n.sign("[:"):
		n.text = ":" + n.text
		return "[" + n.entity("]")
	case n.sign("["):
		return n.list()
	case n.sign("<"):
		return n.path()
	case n.sign("{"):
		return n.props()
	case n.sign("'"):
		return value.Quote(n.quoted())
	}
	w := n.word()
	if f, err := strconv.ParseFloat(w, 64); err == nil && strings.ContainsAny(w, ".eENI") {
		return value.Float(f)
	}
	return cmp.Or(w, "?")
}

func (n *notation) quoted() string {
	var b strings.Builder
	for i := 0; i < len(n.text); i++ {
		c := n.text[i]
		if c == '\'' {
			n.text = n.text[i+1:]
			break
		}
		if c == '\\' && i+1 < len(n.text) && strings.IndexByte(`\'`, n.text[i+1]) >= 0 {
			i++
			c = n.text[i]
		}
		b.WriteByte(c)
	}
	return b.String()
}

// entity reads labels and properties up to an end.
func (n *notation) entity(end string) string {
	var labels []string
	for n.sign(":") {
		labels = append(labels, ":"+n.word())
	}
	slices.Sort(labels)
	out := strings.Join(labels, "")
	if n.sign("{") {
		out += n.props()
	}
	n.sign(end)
	return out + end
}

func (n *notation) list() string {
	var items []string
	for !n.sign("]") && n.text != "" {
		items = append(items, n.value())
		n.sign(",")
	}
	if n.anyOrder {
		slices.Sort(items)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (n *notation) props() string {
	all := map[string]string{}
	for !n.sign("}") && n.text != "" {
		key := n.word()
		n.sign(":")
		all[key] = n.value()
		n.sign(",")
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, k+": "+all[k])
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func (n *notation) path() string {
	out := "<"
	for !n.sign(">") && n.text != "" {
		switch {
		case n.sign("<-"):
			out += "<-"
		case n.sign("->"):
			out += "->"
		case n.sign("-"):
			out += "-"
		default:
			out += n.value()
		}
	}
	return out + ">"
}
