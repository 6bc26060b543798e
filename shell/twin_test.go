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

func (w *twin) neighbors(nodes []layout.NodeID, dirs []layout.Direction, via int,
	limit int) string {
	out, rows := []string{"node,direction,neighbor"}, 0
	if w.types != nil {
		out[0] += ",type"
	}
	for _, dir := range dirs {
		for _, v := range nodes {
			for _, e := range w.lists[dir][v] {
				if via >= 0 && int(e.Type) != via || rows == limit {
					continue
				}
				rows++
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

func (w *twin) degrees(nodes []layout.NodeID, dirs []layout.Direction) string {
	out := "node,direction,degree\n"
	for _, dir := range dirs {
		for _, v := range nodes {
			out += fmt.Sprintf("%s,%s,%d\n", w.name(v), dir, len(w.lists[dir][v]))
		}
	}
	return out
}

func (w *twin) top(n int, dir layout.Direction) string {
	nodes := make([]layout.NodeID, len(w.lists[dir]))
	for v := range nodes {
		nodes[v] = layout.NodeID(v)
	}
	slices.SortStableFunc(nodes, func(a, b layout.NodeID) int {
		return cmp.Compare(len(w.lists[dir][b]), len(w.lists[dir][a]))
	})
	return w.degrees(nodes[:min(n, len(nodes))], []layout.Direction{dir})
}

// query is a statement and what the twin answers.
type query struct{ stmt, want string }

// drawQuery draws a statement over the nodes of a twin.
func (w *twin) drawQuery(rt *rapid.T) query {
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
		clause += " VIA " + w.types[via]
	}
	switch n := rapid.IntRange(1, 5).Draw(rt, "n"); rapid.IntRange(0, 4).Draw(rt, "statement") {
	case 0:
		return query{"NEIGHBORS " + at + clause, w.neighbors(set, w.directions(word), via, -1)}
	case 1:
		return query{fmt.Sprintf("NEIGHBORS %s%s LIMIT %d", at, clause, n),
			w.neighbors(set, w.directions(word), via, n)}
	case 2:
		return query{fmt.Sprintf("NEIGHBORS %s%s HOPS %d COUNT", at, clause, n),
			w.hopsCount(set, w.directions(word), via, n)}
	case 3:
		return query{fmt.Sprintf("DEGREES %s OF %s", word, at), w.degrees(set, w.directions(word))}
	default:
		if word == "BOTH" {
			word = "IN"
		}
		return query{fmt.Sprintf("DEGREES TOP %d %s", n, word), w.top(n, w.directions(word)[0])}
	}
}

// check compares one drawn query.
func (w *twin) check(rt *rapid.T, store *layout.Store, dev blockdev.Device) {
	q := w.drawQuery(rt)
	if got := mustRun(rt, store, dev, "csv", q.stmt); got != q.want {
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
