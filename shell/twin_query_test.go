package shell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/query"
	"gdb/shell/result"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// drawn is a statement and what the twin answers; or check says what is wrong with an answer; or
// the statement fails with an error that says fails.
type drawn struct {
	stmt, want string
	check      func(got string) string
	fails      string
}

// drawer draws statements over the nodes of a twin.
type drawer struct {
	*twin
	*rand.Rand
}

// drawers draw a statement each; false if the twin can't answer it.
var drawers = map[string]func(*drawer) (drawn, bool){
	"NEIGHBORS": (*drawer).neighborsQuery, "DEGREES": (*drawer).degreesQuery,
	"PATH": (*drawer).pathQuery, "MATCH": drawMatch}

func (d *drawer) chance(share float64) bool { return d.Float64() < share }

func pick[T any](d *drawer, among ...T) T { return among[d.IntN(len(among))] }

// node is any node, or one that an edge chooses: a hub is chosen as often as it has edges.
func (d *drawer) node() layout.NodeID {
	v := layout.NodeID(d.IntN(d.nodes()))
	if l := d.lists[layout.In][v]; len(l) > 0 && d.chance(0.5) {
		return l[d.IntN(len(l))].Nbr
	}
	return v
}

// ref writes a node as its number or its id.
func (d *drawer) ref(v layout.NodeID) string {
	if d.chance(0.5) {
		return fmt.Sprintf("#%d", v)
	}
	return quotedText(d.names[v])
}

func quotedText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// stranger is a node that no store has.
func (d *drawer) stranger() string {
	return pick(d, "'no such node'", fmt.Sprintf("#%d", d.nodes()+d.IntN(9)), "-17")
}

// set draws one node or more, or a split; fails is what their error says if one is unknown.
func (d *drawer) set() (text string, set []layout.NodeID, fails string) {
	if len(d.splits) > 0 && d.chance(0.05) {
		name := pick(d, slices.Sorted(mapKeys(d.splits))...)
		return "SPLIT " + name, d.splits[name], ""
	}
	var refs []string
	for range 1 + d.IntN(pick(d, 1, 3, 9)) {
		set = append(set, d.node())
		refs = append(refs, d.ref(set[len(set)-1]))
	}
	if d.chance(0.03) {
		refs, fails = append(refs, d.stranger()), "not found"
	}
	return strings.Join(refs, pick(d, ",", " , ")), set, fails
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// direction draws a word for lists that the store has.
func (d *drawer) direction() string {
	if d.lists[layout.Out] == nil {
		return pick(d, "", "IN")
	}
	return pick(d, "", "IN", "OUT", "BOTH")
}

// via draws an edge type: its number, or -1 for all; fails is what the error says of one that is
// unknown.
func (d *drawer) via() (text string, via int, fails string) {
	switch {
	case d.chance(0.02) && d.types == nil:
		return "VIA likes", -1, "have no types"
	case d.chance(0.02):
		return "VIA 'no such type'", -1, "type"
	case d.types != nil && d.chance(0.5):
		via = d.IntN(len(d.types))
		return "VIA " + quotedText(d.types[via]), via, ""
	}
	return "", -1, ""
}

// statement joins a head and its clauses in any order, in letters of any case.
func (d *drawer) statement(head string, clauses ...string) string {
	clauses = slices.DeleteFunc(clauses, func(s string) bool { return s == "" })
	d.Shuffle(len(clauses), func(i, j int) { clauses[i], clauses[j] = clauses[j], clauses[i] })
	if d.chance(0.1) {
		verb, rest, _ := strings.Cut(head, " ")
		head = strings.ToLower(verb) + " " + rest
	}
	return strings.Join(append([]string{head}, clauses...), " ")
}

func (d *drawer) neighborsQuery() (drawn, bool) {
	text, set, fails := d.set()
	word := d.direction()
	viaText, via, viaFails := d.via()
	head, dirs := "NEIGHBORS "+text, d.directions(word)
	var q drawn
	switch n := d.IntN(5); pick(d, "list", "limit", "hops", "hops limit", "count") {
	case "list":
		q.stmt = d.statement(head, word, viaText)
		q.check = sameRows(d.neighbors(set, dirs, via), -1)
	case "limit":
		q.stmt = d.statement(head, word, viaText, fmt.Sprintf("LIMIT %d", n))
		q.check = sameRows(d.neighbors(set, dirs, via), n)
	case "hops":
		n = 1 + n%2
		q.stmt = d.statement(head, word, viaText, fmt.Sprintf("HOPS %d", n))
		q.want = d.hops(d.levels(set, dirs, via, n), d.nodes())
	case "hops limit":
		most := d.IntN(50)
		q.stmt = d.statement(head, word, viaText, fmt.Sprintf("HOPS %d", n+1),
			fmt.Sprintf("LIMIT %d", most))
		q.want = d.hops(d.levels(set, dirs, via, n+1), most)
	default:
		hops := ""
		if n > 0 {
			hops = fmt.Sprintf("HOPS %d", n)
		}
		q.stmt = d.statement(head, word, viaText, hops, "COUNT")
		q.want = d.hopsCount(d.levels(set, dirs, via, max(n, 1)))
	}
	if q.fails = fails; viaFails != "" {
		q.fails = viaFails
	}
	return q, true
}

func (d *drawer) degreesQuery() (drawn, bool) {
	word := d.direction()
	viaText, via, fails := d.via()
	dirs := d.directions(word)
	var q drawn
	kind, n := "of", 1+d.IntN(40)
	if d.chance(0.1) { // these scan the graph
		kind = pick(d, "top", "bins", "log", "")
	}
	switch kind {
	case "of":
		text, set, unknown := d.set()
		q.stmt = d.statement("DEGREES", word, viaText, "OF "+text)
		q.want = degreesHeader + d.degrees(set, dirs, via)
		if fails == "" {
			fails = unknown
		}
	case "top":
		if word == "BOTH" {
			return q, false // no statement
		}
		q.stmt = d.statement("DEGREES", word, viaText, fmt.Sprintf("TOP %d", n))
		q.want = degreesHeader + d.top(n, dirs[0], via)
	default:
		q.want, q.stmt = "direction,degrees,nodes,share", d.statement("DEGREES", word, viaText)
		if kind != "bins" {
			n = 0
		} else {
			q.stmt = d.statement("DEGREES", word, viaText, fmt.Sprintf("BINS %d", n))
		}
		if kind == "log" {
			q.want, q.stmt = q.want+",bar", d.statement("DEGREES", word, viaText, "LOG")
		}
		q.want += "\n"
		for _, dir := range dirs {
			q.want += d.histogram(n, kind == "log", dir, via)
		}
	}
	q.fails = fails
	return q, true
}

func (d *drawer) pathQuery() (drawn, bool) {
	a, b := d.node(), d.node()
	word := d.direction()
	viaText, via, fails := d.via()
	for range d.IntN(12) { // a walk, so that not all pairs are far apart
		next := b
		d.each(b, d.directions("IN"), -1, func(u layout.NodeID) {
			if next == b || d.chance(0.3) {
				next = u
			}
		})
		b = next
	}
	most, maxText := 0, ""
	if d.chance(0.3) {
		most = 1 + d.IntN(5)
		maxText = fmt.Sprintf("MAX %d", most)
	}
	from, to := d.ref(a), d.ref(b)
	if fails == "" && d.chance(0.03) {
		to, fails = d.stranger(), "not found"
	}
	q := drawn{stmt: d.statement("PATH "+from, "TO "+to, word, viaText, maxText), fails: fails}
	if fails == "" {
		q.check = d.checkPath(a, b, word, via, most)
	}
	return q, true
}

// sameRows holds that an answer has the rows of want, or n of them. Node, direction and neighbor
// come in order; several edges to one neighbor in any.
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
	edge := func(row string) string { return strings.Join(strings.SplitN(row, ",", 4)[:3], ",") }
	return func(got string) string {
		rows := strings.Split(strings.TrimSpace(got), "\n")
		if len(rows)-1 != count {
			return fmt.Sprintf("%d rows, want %d", len(rows)-1, count)
		}
		for i, row := range rows {
			if edge(row) != edge(all[i]) {
				return fmt.Sprintf("row %d is %s, want %s", i, row, all[i])
			}
			if left[row]--; left[row] < 0 {
				return "it should not hold " + row
			}
		}
		return ""
	}
}

// compare draws n queries of each statement and compares what an engine answers with the twin.
func (w *twin) compare(t *testing.T, e *graph.Graph, n int) {
	t.Helper()
	for _, name := range slices.Sorted(mapKeys(drawers)) {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			d := &drawer{w, rand.New(rand.NewPCG(seed, 0))}
			failures := 0
			for done := 0; done < n; {
				q, ok := drawers[name](d)
				if !ok {
					continue
				}
				done++
				if wrong := q.wrong(t.Context(), e); wrong != "" {
					t.Fatalf("seed %d, query %d: %s: %s", seed, done, q.stmt, wrong)
				}
				if q.fails != "" {
					failures++
				}
			}
			if failures == 0 && n >= 500 || failures > n/4 {
				t.Errorf("seed %d: %d of %d queries fail", seed, failures, n)
			}
		})
	}
}

// wrong runs a query and says what is wrong with the answer.
func (q *drawn) wrong(ctx context.Context, e *graph.Graph) string {
	p, err := lang.Parse(q.stmt)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	err = query.New(ctx, e, p, 1, result.NewRenderer("csv", &out, result.Box{})).Run(ctx)
	switch got := out.String(); {
	case q.fails != "" && err == nil:
		return fmt.Sprintf("it answers %.300q, and should fail: %s", got, q.fails)
	case q.fails != "" && !strings.Contains(err.Error(), q.fails):
		return fmt.Sprintf("it fails with %v, want %s", err, q.fails)
	case q.fails != "":
		return ""
	case err != nil:
		return err.Error()
	case q.check != nil:
		if wrong := q.check(got); wrong != "" {
			return fmt.Sprintf("%s\n%.2000s", wrong, got)
		}
	case got != q.want:
		return fmt.Sprintf("got:\n%.2000s\nwant:\n%.2000s", got, q.want)
	}
	return ""
}

// TestTwin compares NEIGHBORS, DEGREES, PATH and MATCH with lists in memory, over small graphs. The
// largest list is read in parts.
func TestTwin(t *testing.T) {
	typed := layouttest.Random(2, 300, 4000)
	typed.EdgeTypes, typed.Both = []string{"a", "b", "c"}, true
	typed.Classes, typed.Splits = []string{"x", "10", "9"}, layouttest.Splits(typed.Nodes)
	for v := range typed.Nodes {
		typed.IDs = append(typed.IDs, fmt.Sprintf("node '%d'", v))
		typed.Labels = append(typed.Labels, int32(v%4-1))
	}
	hub := layouttest.Graph{Nodes: 100, EdgeTypes: []string{"even", "odd"}}
	for i := range graph.ListEntries + 5000 {
		hub.Edges = append(hub.Edges, layouttest.Edge{Src: layout.NodeID(i % 90),
			Dst: layout.NodeID(max(i%40, 30) % 40), Type: uint16(i % 2)})
	}
	for name, g := range map[string]layouttest.Graph{"plain": layouttest.Random(1, 500, 3000),
		"typed": typed, "hub": hub} {
		t.Run(name, func(t *testing.T) {
			store, w := layouttest.Build(t, vfs.NewMem(), "s", g), twinOf(&g)
			if name == "hub" && len(w.lists[layout.In][30]) <= graph.ListEntries/2 {
				t.Fatal("the hub is no hub")
			}
			e := graph.ForProcess(store, mustDevice(t), 64<<20)
			w.compare(t, e, 150)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
