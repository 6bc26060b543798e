package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// twin answers from lists in memory what the shell answers from a store.
type twin struct {
	lists [2][][]layout.Edge // by direction
	types []string
	name  func(layout.NodeID) string
}

// directions are those that a word asks for; "" is OUT, where there are out-lists.
func (w *twin) directions(word string) []layout.Direction {
	switch {
	case word == "BOTH":
		return []layout.Direction{layout.In, layout.Out}
	case word == "OUT" || word == "" && w.lists[layout.Out] != nil:
		return []layout.Direction{layout.Out}
	}
	return []layout.Direction{layout.In}
}

func (w *twin) neighbors(nodes []layout.NodeID, dirs []layout.Direction, via int) string {
	out := []string{"node,direction,neighbor"}
	if w.types != nil {
		out[0] += ",type"
	}
	for _, dir := range dirs {
		for _, v := range nodes {
			for _, e := range w.lists[dir][v] {
				if via >= 0 && int(e.Type) != via {
					continue
				}
				row := fmt.Sprintf("%s,%s,%s", w.name(v), dir, w.name(e.Nbr))
				if w.types != nil {
					row += "," + w.types[e.Type]
				}
				out = append(out, row)
			}
		}
	}
	return strings.Join(out, "\n") + "\n"
}

func (w *twin) hopsCount(nodes []layout.NodeID, dirs []layout.Direction, via, hops int) string {
	out, total := "hop,nodes,total\n", 0
	seen := map[layout.NodeID]bool{}
	for _, v := range nodes {
		seen[v] = true
	}
	for hop := 1; hop <= hops && len(nodes) > 0; hop++ {
		var next []layout.NodeID
		for _, dir := range dirs {
			for _, v := range nodes {
				for _, e := range w.lists[dir][v] {
					if (via < 0 || int(e.Type) == via) && !seen[e.Nbr] {
						seen[e.Nbr] = true
						next = append(next, e.Nbr)
					}
				}
			}
		}
		nodes, total = next, total+len(next)
		out += fmt.Sprintf("%d,%d,%d\n", hop, len(next), total)
	}
	return out
}

// degree is the number of entries of a type in a list.
func (w *twin) degree(v layout.NodeID, dir layout.Direction, via int) (n int) {
	if via < 0 {
		return len(w.lists[dir][v])
	}
	for _, e := range w.lists[dir][v] {
		if int(e.Type) == via {
			n++
		}
	}
	return n
}

func (w *twin) degrees(nodes []layout.NodeID, dirs []layout.Direction, via int) string {
	out := "node,direction,degree\n"
	for _, dir := range dirs {
		for _, v := range nodes {
			out += fmt.Sprintf("%s,%s,%d\n", w.name(v), dir, w.degree(v, dir, via))
		}
	}
	return out
}

// histogram counts the nodes in bins of a width.
func (w *twin) histogram(bins int, dir layout.Direction, via int) string {
	most := 0
	for v := range w.lists[dir] {
		most = max(most, len(w.lists[dir][v]))
	}
	width := (most + bins) / bins
	counts := make([]int, (most+width)/width)
	for v := range w.lists[dir] {
		counts[w.degree(layout.NodeID(v), dir, via)/width]++
	}
	out := "direction,degrees,nodes,share\n"
	for i, n := range counts {
		name := fmt.Sprint(i * width)
		if width > 1 {
			name += fmt.Sprintf("..%d", (i+1)*width-1)
		}
		out += fmt.Sprintf("%s,%s,%d,%s\n", dir, name, n,
			raw(float64(n)/float64(len(w.lists[dir]))))
	}
	return out
}

func (w *twin) top(n int, dir layout.Direction, via int) string {
	nodes := make([]layout.NodeID, len(w.lists[dir]))
	for v := range nodes {
		nodes[v] = layout.NodeID(v)
	}
	slices.SortStableFunc(nodes, func(a, b layout.NodeID) int {
		return cmp.Compare(w.degree(b, dir, via), w.degree(a, dir, via))
	})
	return w.degrees(nodes[:min(n, len(nodes))], []layout.Direction{dir}, via)
}

// query is a statement and what the twin answers; or check says what is wrong with an answer.
type query struct {
	stmt, want string
	check      func(got string) string
}

// distance is the least number of hops from a to b, along lists of dirs and edges of a type; -1 if
// there is no way.
func (w *twin) distance(a, b layout.NodeID, dirs []layout.Direction, via int) int {
	dist, queue := map[layout.NodeID]int{a: 0}, []layout.NodeID{a}
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if v == b {
			return dist[v]
		}
		for _, dir := range dirs {
			for _, e := range w.lists[dir][v] {
				if _, seen := dist[e.Nbr]; !seen && (via < 0 || int(e.Type) == via) {
					dist[e.Nbr] = dist[v] + 1
					queue = append(queue, e.Nbr)
				}
			}
		}
	}
	return -1
}

// checkPath holds that a path begins and ends where it should, follows edges, and is as short as
// any. most is MAX, or 0.
func (w *twin) checkPath(a, b layout.NodeID, word string, via, most int) func(string) string {
	dirs := w.directions(word)
	if word == "" {
		dirs = []layout.Direction{layout.Out}
	}
	// A store without out-lists is compared backwards along the in-lists.
	reversed := w.lists[dirs[0]] == nil
	if reversed {
		a, b, dirs = b, a, []layout.Direction{layout.In}
	}
	want := w.distance(a, b, dirs, via)
	if most > 0 && want > most {
		want = -1
	}
	return func(got string) string {
		rows := strings.Split(strings.TrimSpace(got), "\n")[1:]
		if len(rows) != want+1 {
			return fmt.Sprintf("%d nodes, want %d", len(rows), want+1)
		}
		if reversed {
			slices.Reverse(rows)
		}
		at := a
		for i, row := range rows {
			_, name, _ := strings.Cut(row, ",")
			name = strings.Trim(name, `"`)
			switch next, ok := w.step(at, name, dirs, via); {
			case i == 0 && name != w.name(a), i == want && name != w.name(b), i > 0 && !ok:
				return fmt.Sprintf("row %d, %s, is not on a path", i, row)
			case i > 0:
				at = next
			}
		}
		return ""
	}
}

// step returns the neighbor of that name.
func (w *twin) step(v layout.NodeID, name string, dirs []layout.Direction,
	via int) (layout.NodeID, bool) {
	for _, dir := range dirs {
		for _, e := range w.lists[dir][v] {
			if (via < 0 || int(e.Type) == via) && w.name(e.Nbr) == name {
				return e.Nbr, true
			}
		}
	}
	return 0, false
}

// sameRows holds that an answer has the rows of want, or n of them; several edges to one neighbor
// come in any order.
func sameRows(want string, n int) func(string) string {
	all := strings.Split(strings.TrimSpace(want), "\n")
	count := len(all) - 1
	if n >= 0 {
		count = min(count, n)
	}
	left := map[string]int{}
	for _, row := range all {
		left[row]++
	}
	return func(got string) string {
		rows := strings.Split(strings.TrimSpace(got), "\n")
		if len(rows)-1 != count {
			return fmt.Sprintf("%d rows, want %d", len(rows)-1, count)
		}
		for _, row := range rows {
			if left[row]--; left[row] < 0 {
				return "it should not hold " + row
			}
		}
		return ""
	}
}

// drawQuery draws a statement over the nodes of a twin.
func (w *twin) drawQuery(rt *rapid.T) query {
	if rapid.IntRange(0, 3).Draw(rt, "match") == 0 {
		if q, ok := w.drawMatch(rt); ok {
			return q
		}
	}
	nodes := len(w.lists[layout.In])
	dirs := []string{"", "IN"}
	if w.lists[layout.Out] != nil {
		dirs = append(dirs, "OUT", "BOTH")
	}
	word := rapid.SampledFrom(dirs).Draw(rt, "direction")
	var set []layout.NodeID
	var refs []string
	for _, v := range rapid.SliceOfN(rapid.IntRange(0, nodes-1), 1, 9).Draw(rt, "nodes") {
		set = append(set, layout.NodeID(v))
		refs = append(refs, fmt.Sprintf("#%d", v))
		if rapid.Bool().Draw(rt, "external") {
			refs[len(refs)-1] = "'" + strings.ReplaceAll(w.name(layout.NodeID(v)), "'", "''") + "'"
		}
	}
	at, clause, via := strings.Join(refs, ","), " "+word, -1
	if w.types != nil && rapid.Bool().Draw(rt, "typed") {
		via = rapid.IntRange(0, len(w.types)-1).Draw(rt, "via")
		clause += " VIA '" + w.types[via] + "'"
	}
	one := word // of statements about one direction
	if word == "BOTH" {
		one = "IN"
	}
	kind := rapid.SampledFrom([]string{"list", "limit", "hops", "of", "top", "path", "bins"})
	switch n := rapid.IntRange(1, 5).Draw(rt, "n"); kind.Draw(rt, "statement") {
	case "list":
		return query{stmt: "NEIGHBORS " + at + clause,
			check: sameRows(w.neighbors(set, w.directions(word), via), -1)}
	case "limit":
		return query{stmt: fmt.Sprintf("NEIGHBORS %s%s LIMIT %d", at, clause, n),
			check: sameRows(w.neighbors(set, w.directions(word), via), n)}
	case "hops":
		return query{stmt: fmt.Sprintf("NEIGHBORS %s%s HOPS %d COUNT", at, clause, n),
			want: w.hopsCount(set, w.directions(word), via, n)}
	case "of":
		return query{stmt: fmt.Sprintf("DEGREES%s OF %s", clause, at),
			want: w.degrees(set, w.directions(word), via)}
	case "bins":
		return query{stmt: fmt.Sprintf("DEGREES %s%s BINS %d", one, clause[1+len(word):], n),
			want: w.histogram(n, w.directions(one)[0], via)}
	case "path":
		most, b := 0, set[len(set)-1]
		stmt := fmt.Sprintf("PATH %s TO %s%s", refs[0], refs[len(refs)-1], clause)
		if n == 1 {
			most = rapid.IntRange(1, 4).Draw(rt, "max")
			stmt += fmt.Sprintf(" MAX %d", most)
		}
		return query{stmt: stmt, check: w.checkPath(set[0], b, word, via, most)}
	default:
		return query{stmt: fmt.Sprintf("DEGREES TOP %d %s%s", n, one, clause[1+len(word):]),
			want: w.top(n, w.directions(one)[0], via)}
	}
}

// check compares one drawn query.
func (w *twin) check(rt *rapid.T, store *layout.Store, dev blockdev.Device) {
	q := w.drawQuery(rt)
	got := mustRun(rt, store, dev, "csv", q.stmt)
	if q.check != nil {
		if wrong := q.check(got); wrong != "" {
			rt.Fatalf("%s: %s\n%.2000s", q.stmt, wrong, got)
		}
		return
	}
	if got != q.want {
		rt.Fatalf("%s\ngot:\n%.2000s\nwant:\n%.2000s", q.stmt, got, q.want)
	}
}

func twinOf(g *layouttest.Graph) *twin {
	w := &twin{types: g.EdgeTypes, name: func(v layout.NodeID) string {
		if g.IDs != nil {
			return g.IDs[v]
		}
		return fmt.Sprint(v)
	}}
	w.lists[layout.In] = g.Lists(layout.In)
	if g.Both {
		w.lists[layout.Out] = g.Lists(layout.Out)
	}
	return w
}

// TestTwin compares NEIGHBORS and DEGREES with lists in memory. The largest list is read in parts.
func TestTwin(t *testing.T) {
	typed := layouttest.Random(2, 300, 4000)
	typed.EdgeTypes, typed.Both = []string{"a", "b", "c"}, true
	for v := range typed.Nodes {
		typed.IDs = append(typed.IDs, fmt.Sprintf("node '%d'", v))
	}
	hub := layouttest.Graph{Nodes: 100, EdgeTypes: []string{"even", "odd"}}
	for i := range listEntries + 5000 {
		hub.Edges = append(hub.Edges, layouttest.Edge{Src: layout.NodeID(i % 90),
			Dst: layout.NodeID(max(i%40, 30) % 40), Type: uint16(i % 2)})
	}
	for name, g := range map[string]layouttest.Graph{"plain": layouttest.Random(1, 500, 3000),
		"typed": typed, "hub": hub} {
		t.Run(name, func(t *testing.T) {
			store, dev, w := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t), twinOf(&g)
			if name == "hub" && len(w.lists[layout.In][30]) <= listEntries/2 {
				t.Fatal("the hub is no hub")
			}
			rapid.Check(t, func(rt *rapid.T) { w.check(rt, store, dev) })
		})
	}
}
