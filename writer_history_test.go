package gdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/live"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// shopModel is a typed graph that a random history makes: users with ages, items, and what users
// buy, each edge with a number of its own.
type shopModel struct {
	r     *rand.Rand
	fs    vfs.FS
	ages  map[int]string // "" is null
	items []string
	buys  [][3]int // user, number of the item, number of the edge
	next  int
}

func (m *shopModel) user() int {
	ids := m.users()
	return ids[m.r.IntN(len(ids))]
}

func (m *shopModel) users() (ids []int) {
	for id := range m.ages {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// age returns the age of a user, or null.
func (m *shopModel) age() string {
	return []string{"", fmt.Sprint(20 + m.r.IntN(50))}[min(1, m.r.IntN(4))]
}

// write commits users, of which some are known, and edges.
func (m *shopModel) write(t *testing.T, db *gdb.DB) {
	t.Helper()
	w := db.Writer()
	w.Memory = 1 << 30
	if m.r.IntN(3) > 0 {
		v := gdb.Nodes{Type: "user", Columns: []gdb.Column{{Name: "age"}}}
		for range 1 + m.r.IntN(3) {
			id := m.next*7%101 + 101*(m.next/101) // ids do not ascend
			if m.next++; m.r.IntN(2) == 0 {
				id = m.user()
			}
			if slices.Contains(v.IDs, fmt.Sprint(id)) {
				continue
			}
			m.ages[id] = m.age()
			v.IDs = append(v.IDs, fmt.Sprint(id))
			v.Columns[0].Cells = append(v.Columns[0].Cells, m.ages[id])
		}
		if err := w.AddNodes(v); err != nil {
			t.Fatal(err)
		}
	}
	e := gdb.Edges{Relation: "user:buys:item", Columns: []gdb.Column{{Name: "n"}}}
	for range m.r.IntN(4) {
		buy := [3]int{m.user(), m.r.IntN(len(m.items)), m.next}
		m.next++
		m.buys = append(m.buys, buy)
		e.Src, e.Dst = append(e.Src, fmt.Sprint(buy[0])), append(e.Dst, m.items[buy[1]])
		e.Columns[0].Cells = append(e.Columns[0].Cells, fmt.Sprint(buy[2]))
	}
	if err := w.AddEdges(e); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a user, and edges between a user and an item.
func (m *shopModel) remove(t *testing.T) {
	t.Helper()
	gone, of := m.user(), m.buys[m.r.IntN(len(m.buys))]
	writeFile(t, m.fs, "gone.txt", fmt.Sprint(gone))
	writeFile(t, m.fs, "gone.csv", fmt.Sprintf("user,item\n%d,%s\n", of[0], m.items[of[1]]))
	del := live.Deletion{}
	del.Memory = 1 << 30
	del.NodeTables = []source.NodeTable{{Type: "user", File: "gone.txt"}}
	del.Relations = []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "gone.csv"}}
	if _, err := live.Delete(t.Context(), m.fs, "s", del); err != nil {
		t.Fatal(err)
	}
	delete(m.ages, gone)
	m.buys = slices.DeleteFunc(m.buys, func(buy [3]int) bool {
		return buy[0] == gone || buy[0] == of[0] && buy[1] == of[1]
	})
}

// check asks the store for all that the model has.
func (m *shopModel) check(t *testing.T, db *gdb.DB) {
	t.Helper()
	null := func(age string) string {
		if age == "" {
			return "<nil>"
		}
		return age
	}
	var users, buys []string
	for _, id := range m.users() {
		users = append(users, fmt.Sprintf("[%d %s]", id, null(m.ages[id])))
	}
	for _, buy := range m.buys {
		buys = append(buys, fmt.Sprintf("[%d %s %s %s %d]", buy[0], null(m.ages[buy[0]]),
			m.items[buy[1]], strings.ToUpper(m.items[buy[1]]), buy[2]))
	}
	count := strconv.Itoa(len(m.buys))
	for statement, want := range map[string]string{
		"MATCH (u:user) RETURN u.id, u.age ORDER BY u.id": strings.Join(users, " "),
		"MATCH (u:user)-[r:buys]->(i:item) RETURN u.id, u.age, i.id, i.name, r.n " +
			"ORDER BY r.n": strings.Join(buys, " "),
		"MATCH (u:user)-[:buys]->(i:item) RETURN count(*)":     "[" + count + "]",
		"MATCH (i:item)-[:rev_buys]->(u:user) RETURN count(*)": "[" + count + "]",
	} {
		if got := rowsOf(t.Context(), t, db, statement); got != "["+want+"]" {
			t.Errorf("%s: %s\nwant [%s]", statement, got, want)
		}
	}
}

func rowsOf(ctx context.Context, t *testing.T, db *gdb.DB, statement string) string {
	t.Helper()
	result, err := db.Query(ctx, statement, nil)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return fmt.Sprint(result.Rows)
}

// once ingests what the model has.
func (m *shopModel) once(t *testing.T, dir string) {
	t.Helper()
	users, items, buys := "id,age\n", "id,name\n", "user,item,n\n"
	for _, id := range m.users() {
		users += fmt.Sprintf("%d,%s\n", id, m.ages[id])
	}
	for _, item := range m.items {
		items += item + "," + strings.ToUpper(item) + "\n"
	}
	for _, buy := range m.buys {
		buys += fmt.Sprintf("%d,%s,%d\n", buy[0], m.items[buy[1]], buy[2])
	}
	writeFile(t, m.fs, "u.csv", users)
	writeFile(t, m.fs, "i.csv", items)
	writeFile(t, m.fs, "b.csv", buys)
	opt := ingest.Options{Out: dir}
	opt.Memory, opt.Reverse, opt.LabelCol, opt.SplitCol = 1<<30, true, "none", "none"
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "u.csv"},
		{Type: "item", File: "i.csv"}}
	opt.Relations = []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "b.csv"}}
	if _, err := ingest.Run(t.Context(), m.fs, opt); err != nil {
		t.Fatal(err)
	}
}

// shopStatements are asked of a store of the model; each has one order of rows.
var shopStatements = []string{
	"MATCH (u:user)-[r:buys]->(i:item)<-[s:buys]-(w:user) WHERE u.id < w.id " +
		"RETURN u.id, w.id, i.id, count(*), sum(r.n) + sum(s.n) ORDER BY u.id, w.id, i.id",
	"MATCH (u:user) OPTIONAL MATCH (u)-[r:buys]->(i) WHERE r.n > 3 RETURN u.id, count(r), " +
		"min(i.id) ORDER BY u.id",
	"MATCH (u:user) WHERE NOT (u)-[:buys]->() RETURN u.id, u.age IS NULL ORDER BY u.id",
	"MATCH (i:item)-[r:rev_buys]->(u:user) WHERE u.age > 30 RETURN i.name, u.id, count(r) " +
		"ORDER BY i.name, u.id",
	"MATCH (a)-[:buys]->(b)-[:rev_buys]->(c) RETURN a.id, c.id, count(*) ORDER BY a.id, c.id",
	"MATCH (n) RETURN labels(n)[0] AS l, count(*), count(n.age) ORDER BY l",
	"CALL gdb.components() YIELD node, value RETURN count(*), count(DISTINCT value)",
}

// compare compares the store with an ingest of the model, before and after it is compacted, which
// changes no sample.
func (m *shopModel) compare(t *testing.T) {
	t.Helper()
	got, drawn := answers(t, m.fs, "s", shopStatements), samples(t, m.fs, "s", false)
	m.once(t, "once")
	want := answers(t, m.fs, "once", shopStatements)
	sameAnswers(t, "levels", got, want)
	_, err := live.Compact(t.Context(), m.fs, "s", parts.OrderOptions{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	sameAnswers(t, "compacted", answers(t, m.fs, "s", shopStatements), want)
	if now := samples(t, m.fs, "s", false); now != drawn {
		t.Errorf("samples of levels:\n%s\ncompacted:\n%s", drawn, now)
	}
}

// TestWriterTypedHistory: after random commits of a writer, deletions and compactions of a typed
// store, statements give the properties and counts of a model, and what they give of one ingest.
func TestWriterTypedHistory(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := &shopModel{r: rand.New(rand.NewPCG(seed, 5)), fs: vfs.NewMem(), next: 20,
				ages: map[int]string{1: "30", 2: "", 3: "41"}, items: []string{"a", "b", "c"},
				buys: [][3]int{{1, 0, 1}, {2, 1, 2}}}
			m.once(t, "s")
			for range 8 {
				db, err := gdb.Open(t.Context(), "s", gdb.Options{FS: m.fs, Memory: 64 << 20})
				if err != nil {
					t.Fatal(err)
				}
				m.check(t, db)
				switch k := m.r.IntN(6); {
				case k == 0:
					opt := parts.OrderOptions{Memory: 1 << 30}
					_, err = live.Compact(t.Context(), m.fs, "s", opt)
				case k == 1 && len(m.ages) > 1 && len(m.buys) > 0:
					m.remove(t)
				default:
					m.write(t, db)
				}
				if err != nil || db.Close() != nil {
					t.Fatal(err)
				}
			}
			db, err := gdb.Open(t.Context(), "s", gdb.Options{FS: m.fs, Memory: 64 << 20})
			if err != nil {
				t.Fatal(err)
			}
			m.check(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if len(m.buys) > 0 { // a table without rows has no types to ingest
				m.compare(t)
			}
		})
	}
}
