package live

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// typedModel is a typed graph in memory, of which a history of commits makes a store: users with
// integer ids, items with text ids, orders whose columns are keys of both, and edges.
type typedModel struct {
	r     *rand.Rand
	opt   ingest.Options
	next  int // id of the next node
	nodes map[string][][]string
	edges map[source.Relation][][]string
	known map[string]map[string]bool // ids that the store has, by type
}

// modelHeads are the columns of the tables of nodes, and modelEdges those of edges.
var (
	modelTypes = []string{"user", "item", "order"}
	modelHeads = map[string][]string{"user": {"id", "age", "kind", "part", "town"},
		"item": {"sku", "price", "name"}, "order": {"no", "user_id", "item_id", "count"}}
	modelEdges = map[source.Relation]string{
		{Src: "user", Name: "likes", Dst: "item"}:   "user,sku,stars,since",
		{Src: "user", Name: "follows", Dst: "user"}: "src,dst"}
	modelKeys = []source.Relation{{Src: "order", Name: "user_id", Dst: "user", File: "order.csv"},
		{Src: "order", Name: "item_id", Dst: "item", File: "order.csv"}}
)

func newTypedModel(r *rand.Rand) *typedModel {
	m := &typedModel{r: r, next: 1, nodes: map[string][][]string{},
		edges: map[source.Relation][][]string{}}
	o := &m.opt
	o.Both, o.Reverse, o.Memory = r.IntN(2) == 0, r.IntN(2) == 0, 1<<30
	o.IDCol, o.LabelCol, o.SplitCol = "item.sku,order.no", "user.kind", "user.part"
	o.TimeCol = "likes.since"
	o.FeatureCols, o.Categorical, o.Fill = "user.age,item.price", "user.town", "zero,indicator"
	o.ColumnTypes = "user.age=float64,item.price=float64,likes.stars=int64,order.count=int64," +
		"order.user_id=int64"
	for _, typ := range modelTypes {
		for range 6 + r.IntN(6) {
			m.nodes[typ] = append(m.nodes[typ], m.newRow(typ))
		}
	}
	for i, row := range m.nodes["user"][:4] { // all classes, splits and words, which stay
		row[1], row[2], row[3] = fmt.Sprint(i), []string{"x", "y"}[i%2], []string{"train", "val",
			"test", "train"}[i]
		row[4] = []string{"Rome", "Bonn"}[i%2]
	}
	m.nodes["user"][3][1], m.nodes["item"][0][1], m.nodes["item"][1][1] = "", "", "1.5"
	for rel := range modelEdges {
		m.edges[rel] = m.newEdges(rel, 12)
	}
	return m
}

// newRow returns a row of a new node.
func (m *typedModel) newRow(typ string) []string {
	r, id := m.r, m.next
	m.next += 1 + r.IntN(2)
	switch typ {
	case "user":
		return []string{fmt.Sprint(id), []string{fmt.Sprint(r.IntN(5)), ""}[r.IntN(5)/4],
			[]string{"x", "y", ""}[r.IntN(3)], []string{"train", "val", "test", ""}[r.IntN(4)],
			[]string{"Rome", "Bonn", ""}[r.IntN(3)]}
	case "item":
		return []string{fmt.Sprint("s", id), []string{fmt.Sprint(float64(r.IntN(16)) / 4),
			""}[r.IntN(5)/4], []string{"a", "", "b c"}[r.IntN(3)]}
	}
	return []string{fmt.Sprint("o", id), m.pick("user"), []string{m.pick("item"),
		""}[r.IntN(5)/4], fmt.Sprint(r.IntN(5))}
}

// pick returns the id of a node.
func (m *typedModel) pick(typ string) string {
	of := m.nodes[typ]
	return of[m.r.IntN(len(of))][0]
}

func (m *typedModel) newEdges(rel source.Relation, n int) (rows [][]string) {
	for range n {
		row := []string{m.pick(rel.Src), m.pick(rel.Dst)}
		if rel.Name == "likes" {
			row = append(row, []string{m.stars(), ""}[m.r.IntN(4)/3],
				fmt.Sprintf("2026-01-%02d", 1+m.r.IntN(28)))
		}
		rows = append(rows, row)
	}
	return rows
}

// stars returns a number, some of which take more bytes than those of the first tables.
func (m *typedModel) stars() string {
	return fmt.Sprint(m.r.IntN(6) << (20 * m.r.IntN(len(m.known)+1)))
}

// csv returns a table of some columns.
func csv(head []string, rows [][]string, columns []int) string {
	var b strings.Builder
	line := func(row []string) {
		var cells []string
		for _, c := range columns {
			cells = append(cells, row[c])
		}
		fmt.Fprintln(&b, strings.Join(cells, ","))
	}
	line(head)
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// all returns numbers below n.
func all(n int) (columns []int) {
	for i := range n {
		columns = append(columns, i)
	}
	return columns
}

// once ingests the whole model.
func (m *typedModel) once(t *testing.T, fs vfs.FS, out string, id kv.UUID) *kv.Meta {
	t.Helper()
	opt := m.whole(t, fs)
	opt.Out, opt.UUID = out, id
	made, err := ingest.Run(t.Context(), fs, opt)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// whole writes the tables of the model, and returns how they are ingested.
func (m *typedModel) whole(t *testing.T, fs vfs.FS) ingest.Options {
	t.Helper()
	opt := m.opt
	for _, typ := range modelTypes {
		writeText(t, fs, typ+".csv", csv(modelHeads[typ], m.nodes[typ], all(len(modelHeads[typ]))))
		opt.NodeTables = append(opt.NodeTables, source.NodeTable{Type: typ, File: typ + ".csv"})
	}
	opt.Relations = slices.Clone(modelKeys)
	opt.Relations = append(opt.Relations, m.edgeFiles(t, fs, m.edges, "")...)
	return opt
}

// sameMeta compares the metadata of a store that commits made with those of an ingest.
func (m *typedModel) sameMeta(t *testing.T, live, want *kv.Meta) {
	t.Helper()
	got, plain := reflect.ValueOf(made(live)), reflect.ValueOf(made(want))
	for i := range got.NumField() {
		if got.Type().Field(i).Name == "Times" && m.noLikes() {
			continue // a file without rows does not tell how times are written
		}
		if a, b := got.Field(i), plain.Field(i); !reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("%s: %+v, of an ingest %+v", got.Type().Field(i).Name, a, b)
		}
	}
}

// edgeFiles writes tables of edges.
func (m *typedModel) edgeFiles(t *testing.T, fs vfs.FS, of map[source.Relation][][]string,
	prefix string) (relations []source.Relation) {
	t.Helper()
	for _, name := range []string{"likes", "follows"} {
		for rel, rows := range of {
			if rel.Name == name {
				head := strings.Split(modelEdges[rel], ",")
				if prefix == "gone-" {
					head = head[:2]
				}
				rel.File = prefix + name + ".csv"
				writeText(t, fs, rel.File, csv(head, rows, all(len(head))))
				relations = append(relations, rel)
			}
		}
	}
	return relations
}

// step changes the model and a store in the same way.
func (m *typedModel) step(t *testing.T, fs vfs.FS) {
	t.Helper()
	switch m.r.IntN(5) {
	case 0: // edges alone
		more := map[source.Relation][][]string{}
		for rel := range modelEdges {
			more[rel] = m.newEdges(rel, 1+m.r.IntN(5))
			m.edges[rel] = append(m.edges[rel], more[rel]...)
		}
		m.append(t, fs, nil, more)
	case 1:
		opt := parts.OrderOptions{Memory: 1 << 30}
		if _, err := Compact(t.Context(), fs, "live", opt); err != nil {
			t.Fatal(err)
		}
	case 2:
		m.delete(t, fs)
	default:
		m.change(t, fs)
	}
}

// change adds nodes, changes others, and adds edges of all.
func (m *typedModel) change(t *testing.T, fs vfs.FS) {
	var tables []source.NodeTable
	for _, typ := range modelTypes {
		if m.r.IntN(3) == 0 {
			continue
		}
		head := modelHeads[typ]
		columns := all(len(head))
		if m.r.IntN(2) == 0 { // some columns, in another order
			columns = columns[:1+m.r.IntN(len(head)-1)]
			m.r.Shuffle(len(columns), func(i, j int) {
				columns[i], columns[j] = columns[j], columns[i]
			})
		}
		var rows [][]string
		for i, row := range m.nodes[typ] {
			if i >= 4 && m.r.IntN(3) == 0 {
				now := m.newRow(typ)
				for _, c := range columns {
					if c > 0 {
						row[c] = now[c]
					}
				}
				rows = append(rows, row)
			}
		}
		for range 1 + m.r.IntN(4) {
			row := m.newRow(typ)
			for c := range row {
				if !slices.Contains(columns, c) {
					row[c] = ""
				}
			}
			m.nodes[typ], rows = append(m.nodes[typ], row), append(rows, row)
		}
		file := "more-" + typ + ".csv"
		m.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		m.reorder(typ, rows)
		writeText(t, fs, file, csv(head, rows, columns))
		tables = append(tables, source.NodeTable{Type: typ, File: file})
	}
	more := map[source.Relation][][]string{}
	for rel := range modelEdges {
		if m.r.IntN(2) == 0 {
			more[rel] = m.newEdges(rel, 1+m.r.IntN(5))
			m.edges[rel] = append(m.edges[rel], more[rel]...)
		}
	}
	if len(tables)+len(more) > 0 {
		m.append(t, fs, tables, more)
	}
}

// reorder puts the new nodes of a type into the order of rows.
func (m *typedModel) reorder(typ string, rows [][]string) {
	at := map[string]int{}
	for i, row := range rows {
		at[row[0]] = i
	}
	of := m.nodes[typ]
	first := len(of)
	for first > 0 && !m.known[typ][of[first-1][0]] {
		first--
	}
	slices.SortFunc(of[first:], func(a, b []string) int { return at[a[0]] - at[b[0]] })
}

func (m *typedModel) append(t *testing.T, fs vfs.FS, tables []source.NodeTable,
	more map[source.Relation][][]string) {
	t.Helper()
	opt := ingest.Options{}
	opt.NodeTables, opt.Memory = tables, 1<<30
	opt.Relations = m.edgeFiles(t, fs, more, "more-")
	if _, err := Append(t.Context(), fs, "live", opt); err != nil {
		t.Fatal(err)
	}
	m.know()
}

// noLikes reports whether no edge has a time.
func (m *typedModel) noLikes() bool {
	for rel, rows := range m.edges {
		if rel.Name == "likes" {
			return len(rows) == 0
		}
	}
	return true
}

// know notes which ids the store has.
func (m *typedModel) know() {
	m.known = map[string]map[string]bool{}
	for typ, rows := range m.nodes {
		m.known[typ] = map[string]bool{}
		for _, row := range rows {
			m.known[typ][row[0]] = true
		}
	}
}

// delete deletes some nodes with their edges, and some edges.
func (m *typedModel) delete(t *testing.T, fs vfs.FS) {
	t.Helper()
	gone := map[string]map[string]bool{}
	stay := map[string]map[string]bool{} // the first nodes, and those that orders name
	for _, typ := range modelTypes {
		stay[typ] = map[string]bool{}
		for _, row := range m.nodes[typ][:4] {
			stay[typ][row[0]] = true
		}
	}
	for _, row := range m.nodes["order"] {
		stay["user"][row[1]], stay["item"][row[2]] = true, true
	}
	del := Deletion{}
	for _, typ := range modelTypes {
		gone[typ] = map[string]bool{}
		text := "nobody"
		m.nodes[typ] = slices.DeleteFunc(m.nodes[typ], func(row []string) bool {
			at := len(gone[typ])
			if stay[typ][row[0]] || at > 2 || m.r.IntN(4) > 0 {
				return false
			}
			gone[typ][row[0]] = true
			text += "\n" + row[0]
			return true
		})
		writeText(t, fs, "gone-"+typ+".txt", text)
		del.NodeTables = append(del.NodeTables, source.NodeTable{Type: typ,
			File: "gone-" + typ + ".txt"})
	}
	named := map[source.Relation][][]string{}
	for rel := range modelEdges {
		var some [][]string
		for _, row := range m.edges[rel] {
			if m.r.IntN(4) == 0 {
				some = append(some, row)
			}
		}
		some = append(some, []string{"nobody", "nothing"})
		named[rel] = some
		m.edges[rel] = slices.DeleteFunc(m.edges[rel], func(row []string) bool {
			return gone[rel.Src][row[0]] || gone[rel.Dst][row[1]] || slices.ContainsFunc(some,
				func(of []string) bool { return of[0] == row[0] && of[1] == row[1] })
		})
	}
	del.Relations, del.Memory = m.edgeFiles(t, fs, named, "gone-"), 1<<30
	done, err := Delete(t.Context(), fs, "live", del)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(len(gone["user"]) + len(gone["item"]) + len(gone["order"])); done.Nodes !=
		want || done.LostNodes != 3 {
		t.Errorf("%d nodes deleted and %d lost, want %d and 3", done.Nodes, done.LostNodes, want)
	}
	m.know()
}

// TestTypedNodes: a typed store whose nodes and edges came, changed and went by commits has the
// same bytes as one that all tables are ingested to at once, in all files and the catalog.
func TestTypedNodes(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 21))
			m, fs := newTypedModel(r), vfs.NewMem()
			m.once(t, fs, "live", kv.UUID{})
			m.know()
			for range 2 + r.IntN(4) {
				m.step(t, fs)
			}
			m.change(t, fs)
			m.delete(t, fs)
			s, err := layout.OpenLive(t.Context(), fs, "live")
			if err != nil {
				t.Fatal(err)
			}
			want := m.once(t, fs, "once", s.Meta().UUID)
			sameFiles(t, fs, "live", s.Meta(), "once", want)
			m.sameMeta(t, s.Meta(), want)
			sound(t, fs, "live")
			for _, split := range want.Splits {
				a, err := s.Split(t.Context(), split.Name)
				other, err2 := layout.Open(t.Context(), fs, "once")
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				b, err := other.Split(t.Context(), split.Name)
				if err != nil || !a.Equals(b) {
					t.Errorf("split %s: %v, want %v, %v", split.Name, a, b, err)
				}
			}
		})
	}
}
