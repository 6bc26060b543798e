package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/layout"

	"pgregory.net/rapid"
)

// twinHop is a hop of a pattern, seen from the anchor.
type twinHop struct {
	word        string // IN, OUT or BOTH
	via         int
	least, most int
}

// text is the hop as MATCH writes it, or seen from its other end.
func (h twinHop) text(w *twin, flipped bool) string {
	inner := ""
	if h.via >= 0 {
		inner = ":'" + w.types[h.via] + "'"
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

// twinMatchMost bounds the matches that the twin enumerates.
const twinMatchMost = 20_000

// matches calls fn with the nodes of each match of a pattern that begins at path, until it returns
// false.
func (w *twin) matches(path []layout.NodeID, hops []twinHop, steps int,
	fn func([]layout.NodeID) bool) bool {
	if len(hops) == 0 {
		return fn(path)
	}
	h := hops[0]
	for _, dir := range w.directions(h.word) {
		for _, e := range w.lists[dir][path[len(path)-1]] {
			if h.via >= 0 && int(e.Type) != h.via {
				continue
			}
			next := append(slices.Clone(path), e.Nbr)
			if steps > 0 {
				next = append(slices.Clone(path[:len(path)-1]), e.Nbr)
			}
			if steps+1 >= h.least && !w.matches(next, hops[1:], 0, fn) {
				return false
			}
			if steps+1 < h.most && !w.matches(next, hops, steps+1, fn) {
				return false
			}
		}
	}
	return true
}

// drawMatch draws a MATCH; false if it has too many matches for the twin.
func (w *twin) drawMatch(rt *rapid.T) (query, bool) {
	words := []string{"IN"}
	if w.lists[layout.Out] != nil {
		words = append(words, "OUT", "BOTH")
	}
	var hops []twinHop
	for range rapid.IntRange(1, 3).Draw(rt, "hops") {
		h := twinHop{word: rapid.SampledFrom(words).Draw(rt, "word"), via: -1, least: 1, most: 1}
		if w.types != nil && rapid.Bool().Draw(rt, "typed") {
			h.via = rapid.IntRange(0, len(w.types)-1).Draw(rt, "via")
		}
		if rapid.IntRange(0, 3).Draw(rt, "long") == 0 {
			h.least = rapid.IntRange(1, 2).Draw(rt, "least")
			h.most = h.least + rapid.IntRange(0, 1).Draw(rt, "more")
		}
		hops = append(hops, h)
	}
	anchor := layout.NodeID(rapid.IntRange(0, len(w.lists[layout.In])-1).Draw(rt, "anchor"))
	cycle := rapid.IntRange(0, 4).Draw(rt, "cycle") == 0
	var found [][]layout.NodeID
	all := w.matches([]layout.NodeID{anchor}, hops, 0, func(p []layout.NodeID) bool {
		if !cycle || p[len(p)-1] == anchor {
			found = append(found, p)
		}
		return len(found) < twinMatchMost
	})
	names := []string{"n0"}
	parts := []string{fmt.Sprintf("(n0 {id: #%d})", anchor)}
	for i := range hops {
		names = append(names, fmt.Sprintf("n%d", i+1))
		parts = append(parts, "("+names[i+1]+")")
	}
	if cycle {
		parts[len(hops)] = "(n0)"
	}
	flipped := rapid.Bool().Draw(rt, "flipped")
	pattern := ""
	for i, part := range parts {
		switch {
		case flipped && i > 0:
			pattern = part + hops[i-1].text(w, true) + pattern
		case flipped:
			pattern = part
		case i > 0:
			pattern += hops[i-1].text(w, false) + part
		default:
			pattern = part
		}
	}
	if cycle {
		names = names[:len(hops)]
	}
	return w.matchQuery(rt, pattern, names, found), all
}

// matchQuery draws what is returned of the matches.
func (w *twin) matchQuery(rt *rapid.T, pattern string, names []string,
	found [][]layout.NodeID) query {
	last := names[len(names)-1]
	var rows []string
	for _, p := range found {
		rows = append(rows, w.name(p[len(names)-1]))
	}
	kind := rapid.SampledFrom([]string{"rows", "count", "distinct", "group"}).Draw(rt, "return")
	stmt := "MATCH " + pattern
	switch kind {
	case "count":
		return query{stmt: stmt + " RETURN count(*)",
			want: fmt.Sprintf("count(*)\n%d\n", len(found))}
	case "distinct":
		stmt += " RETURN DISTINCT " + last
		slices.Sort(rows)
		rows = slices.Compact(rows)
	case "group":
		stmt += " RETURN " + last + ", count(*)"
		counts := map[string]int{}
		for _, r := range rows {
			counts[r]++
		}
		rows = nil
		for name, n := range counts {
			rows = append(rows, fmt.Sprintf("%s,%d", name, n))
		}
	default:
		stmt += " WHERE n0.id <> " + last + ".id RETURN n0, " + last
		first := ""
		if len(found) > 0 {
			first = w.name(found[0][0])
		}
		rows = slices.DeleteFunc(rows, func(r string) bool { return r == first })
		for i, r := range rows {
			rows[i] = first + "," + r
		}
	}
	slices.Sort(rows)
	return query{stmt: stmt, check: func(got string) string {
		lines := strings.Split(strings.TrimSpace(got), "\n")[1:]
		slices.Sort(lines)
		if !slices.Equal(lines, rows) {
			return fmt.Sprintf("%d rows, want %d: %.300q", len(lines), len(rows), rows)
		}
		return ""
	}}
}

// TestMatchCarets holds that what MATCH refuses is named, at its column.
func TestMatchCarets(t *testing.T) {
	for _, c := range []struct {
		src, msg string
		col      int
	}{
		{"OPTIONAL MATCH (a) RETURN a", "OPTIONAL MATCH is not part of gdb; see .help match", 1},
		{"MATCH (a) RETURN a", "must be anchored", 7},
		{"MATCH (a {id: 1})-[*1..9]->(b) RETURN b", "from 1..1 to 1..4", 21},
		{"MATCH (a {id: 1}) RETURN b", `no variable "b"`, 26},
		{"MATCH (a {id: 1}) RETURN a.yer", "a node has id, label", 26},
		{"MATCH (a {id: 1}) WHERE a.id ~ 3 RETURN a", "a comparison wants", 30},
		{"MATCH (a {id: 1}) WITH a", "WITH is not part of gdb", 19},
		{"MATCH (a {id: 1})-[]->b RETURN a", `a node wants "("`, 23},
		{"MATCH (a {id: 1}) RETURN cont(*)", `no function "cont"; did you mean count?`, 26},
		{"MATCH (a {id: 1}) RETURN a LIMIT x", "LIMIT wants a number", 34},
		{"MATCH (a {id: 1}) RETURN a ORDER a", "ORDER wants BY", 34},
		{"MATCH (a {id: 1}) RETURN a UNION", "UNION is not part of gdb", 28},
	} {
		_, err := parse(c.src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Msg, c.msg) ||
			syntax.Pos+1 != c.col {
			t.Errorf("%q: got %v, want %q at %d", c.src, err, c.msg, c.col)
		}
	}
}
