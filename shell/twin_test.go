package shell

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/shell/words"
)

// twin answers from lists in memory what the shell answers from a store.
type twin struct {
	lists  [2][][]listfile.Edge // by direction; those of the other are nil if the store lacks them
	types  []string
	names  []string
	labels []string // "" for none; nil if the store has no labels
	splits map[string][]layout.NodeID

	seen []int32 // scratch: the hop at which a node was met, or -1
}

func twinOf(g *layouttest.Graph) *twin {
	w := &twin{types: g.EdgeTypes, names: g.IDs, splits: g.Splits, seen: make([]int32, g.Nodes)}
	for v := 0; w.names == nil || v < g.Nodes && len(w.names) < g.Nodes; v++ {
		w.names = append(w.names, fmt.Sprint(v))
	}
	if g.Labels != nil {
		w.labels = make([]string, g.Nodes)
		for v, class := range g.Labels {
			if class >= 0 {
				w.labels[v] = g.Classes[class]
			}
		}
	}
	w.lists[layout.In] = g.Lists(layout.In)
	if g.Both {
		w.lists[layout.Out] = g.Lists(layout.Out)
	}
	return w
}

func (w *twin) nodes() int { return len(w.lists[layout.In]) }

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

// each calls fn with the neighbors of v by edges of a type, or of all for -1.
func (w *twin) each(v layout.NodeID, dirs []layout.Direction, via int, fn func(layout.NodeID)) {
	for _, dir := range dirs {
		for i := range w.lists[dir][v] {
			if e := &w.lists[dir][v][i]; via < 0 || int(e.Type) == via {
				fn(e.Nbr)
			}
		}
	}
}

// neighbors are the rows of NEIGHBORS with their header.
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
				row := fmt.Sprintf("%s,%s,%s", w.names[v], dir, w.names[e.Nbr])
				if w.types != nil {
					row += "," + w.types[e.Type]
				}
				out = append(out, row)
			}
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// levels are the nodes first met at each hop, in ascending order, until a hop meets none.
func (w *twin) levels(nodes []layout.NodeID, dirs []layout.Direction, via,
	hops int) (out [][]layout.NodeID) {
	for i := range w.seen {
		w.seen[i] = -1
	}
	for _, v := range nodes {
		w.seen[v] = 0
	}
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	for hop := 1; hop <= hops && len(nodes) > 0; hop++ {
		var next []layout.NodeID
		for _, v := range nodes {
			w.each(v, dirs, via, func(u layout.NodeID) {
				if w.seen[u] < 0 {
					w.seen[u] = int32(hop)
					next = append(next, u)
				}
			})
		}
		slices.Sort(next)
		out, nodes = append(out, next), next
	}
	return out
}

// hops are the rows of NEIGHBORS … HOPS, the first limit of them.
func (w *twin) hops(levels [][]layout.NodeID, limit int) string {
	var out strings.Builder
	out.WriteString("hop,node\n")
	for i, level := range levels {
		for _, v := range level[:min(len(level), limit)] {
			fmt.Fprintf(&out, "%d,%s\n", i+1, w.names[v])
			limit--
		}
	}
	return out.String()
}

// hopsCount are the rows of NEIGHBORS … COUNT.
func (w *twin) hopsCount(levels [][]layout.NodeID) string {
	out, total := "hop,nodes,total\n", 0
	for i, level := range levels {
		total += len(level)
		out += fmt.Sprintf("%d,%d,%d\n", i+1, len(level), total)
	}
	return out
}

// degree is the number of entries of a type in a list.
func (w *twin) degree(v layout.NodeID, dir layout.Direction, via int) (n int) {
	if via < 0 {
		return len(w.lists[dir][v])
	}
	for i := range w.lists[dir][v] {
		if int(w.lists[dir][v][i].Type) == via {
			n++
		}
	}
	return n
}

const degreesHeader = "node,direction,degree\n"

func (w *twin) degrees(nodes []layout.NodeID, dirs []layout.Direction, via int) string {
	out := ""
	for _, dir := range dirs {
		for _, v := range nodes {
			out += fmt.Sprintf("%s,%s,%d\n", w.names[v], dir, w.degree(v, dir, via))
		}
	}
	return out
}

// top are the rows of the n highest degrees.
func (w *twin) top(n int, dir layout.Direction, via int) string {
	nodes, degrees := make([]layout.NodeID, w.nodes()), make([]int, w.nodes())
	for v := range nodes {
		nodes[v], degrees[v] = layout.NodeID(v), w.degree(layout.NodeID(v), dir, via)
	}
	slices.SortStableFunc(nodes, func(a, b layout.NodeID) int {
		return cmp.Compare(degrees[b], degrees[a])
	})
	return w.degrees(nodes[:min(n, len(nodes))], []layout.Direction{dir}, via)
}

// histogram are the rows of DEGREES: of bins of equal width, or of powers of two if bins is 0.
func (w *twin) histogram(bins int, log bool, dir layout.Direction, via int) string {
	most, mostOfType, degrees := 0, 0, make([]int, w.nodes())
	for v := range degrees {
		degrees[v] = w.degree(layout.NodeID(v), dir, via)
		most = max(most, len(w.lists[dir][v]))
		mostOfType = max(mostOfType, degrees[v])
	}
	width, counts := 0, make([]int, bits.Len(uint(mostOfType))+1)
	if bins > 0 {
		width = (most + bins) / bins
		counts = make([]int, (most+width)/width)
	}
	highest := 1
	for _, i := range degrees {
		if bins > 0 {
			i /= width
		} else {
			i = bits.Len(uint(i))
		}
		counts[i]++
		highest = max(highest, counts[i])
	}
	out := ""
	for i, n := range counts {
		lo, hi := i*width, (i+1)*width-1
		if bins == 0 {
			lo, hi = 1<<i>>1, 1<<i-1
		}
		name := fmt.Sprint(lo)
		if hi > lo {
			name += fmt.Sprintf("..%d", hi)
		}
		out += fmt.Sprintf("%s,%s,%d,%s", dir, name, n, words.Raw(float64(n)/float64(w.nodes())))
		if log {
			out += "," + strings.Repeat("█", (n*20+highest-1)/highest)
		}
		out += "\n"
	}
	return out
}

// distance is the least number of hops from a to b, along lists of dirs and edges of a type; -1 if
// there is no way.
func (w *twin) distance(a, b layout.NodeID, dirs []layout.Direction, via int) int {
	for i := range w.seen {
		w.seen[i] = -1
	}
	w.seen[a] = 0
	for queue := []layout.NodeID{a}; len(queue) > 0 && w.seen[b] < 0; queue = queue[1:] {
		v := queue[0]
		w.each(v, dirs, via, func(u layout.NodeID) {
			if w.seen[u] < 0 {
				w.seen[u] = w.seen[v] + 1
				queue = append(queue, u)
			}
		})
	}
	return int(w.seen[b])
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
		rows := strings.Split(strings.TrimSpace(got), "\n")
		if rows[0] != "step,node" || len(rows) != want+2 {
			return fmt.Sprintf("%d nodes, want %d", len(rows)-1, want+1)
		}
		rows = rows[1:]
		if reversed {
			slices.Reverse(rows)
		}
		at := a
		for i, row := range rows {
			step, name, _ := strings.Cut(row, ",")
			inOrder := step == fmt.Sprint(i) || reversed && step == fmt.Sprint(want-i)
			switch next, ok := w.step(at, name, dirs, via); {
			case !inOrder, i == 0 && name != w.names[a], i == want && name != w.names[b],
				i > 0 && !ok:
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
	via int) (next layout.NodeID, found bool) {
	w.each(v, dirs, via, func(u layout.NodeID) {
		if w.names[u] == name {
			next, found = u, true
		}
	})
	return next, found
}
