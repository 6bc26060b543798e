package store_test

import (
	"context"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/layouttest"
	"gdb/layout/nodeindex"
)

// TestIndexes: statements answer the same with indexes as without, and EXPLAIN says which are used.
func TestIndexes(t *testing.T) {
	plain, st := shop(t), shop(t)
	for _, name := range []string{"user.name", "user.age", "user.born", "item.price"} {
		label, property, _ := strings.Cut(name, ".")
		_, err := nodeindex.Build(context.Background(), st, layouttest.Device(t),
			mem.NewBudget(64<<20), label, property)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ by, stmt string }{
		{"(u:user) by name", "MATCH (u:user {name: 'Bob'}) RETURN u.id"},
		{"(u:user) by age", "MATCH (u:user) WHERE u.age = 30.0 AND u.name <> 'Bob' RETURN u.id"},
		{"(u:user) by age", "MATCH (u:user) WHERE u.age IN [41, null, 30, 'x'] RETURN u.id"},
		{"(u:user) by born", "MATCH (u:user) WHERE u.born = date('1983-01-31') RETURN u.name"},
		{"(i:item) by price", "MATCH (i:item {price: 2.5})<-[:buys]-(u) RETURN u.id, u.age"},
		{"", "UNWIND ['Cyd', 'Dee', 'Ann'] AS x MATCH (u:user {name: x}) RETURN u.id"},
		{"-", "MATCH (u:user) WHERE u.name = 'Ann' OR u.age = 41 RETURN u.id"},
		{"-", "MATCH (u {name: 'Bob'}) RETURN u.id"},
		{"(u:user) by name", "MATCH (u:user) WHERE u.name = 5 RETURN u.id"},
		{"", "MATCH p = (u:user {name: 'Bob'})-[*0..2]->(v) RETURN v.id, length(p)"},
		{"-", "MATCH (u:user) WHERE u.name STARTS WITH 'B' RETURN u.id"},
	} {
		by, stmt := c.by, c.stmt
		want, err := answer(t, plain, 0, stmt)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answer(t, st, 0, stmt); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", stmt, got, err, want)
		}
		explained, err := answer(t, st, 0, "EXPLAIN "+stmt)
		if err != nil || by == "-" && strings.Contains(explained, " by ") ||
			by != "-" && !strings.Contains(explained, by) {
			t.Errorf("%s: %s, %v; want %q", stmt, explained, err, by)
		}
	}
	if got, err := answer(t, st, 0, "DESCRIBE"); err != nil ||
		!strings.Contains(got, "index user.name string, 3 values") {
		t.Errorf("DESCRIBE: %s, %v", got, err)
	}
}

// TestIndexOfAnotherSnapshot: it is named, and not used.
func TestIndexOfAnotherSnapshot(t *testing.T) {
	st := shop(t)
	ctx := context.Background()
	m, err := nodeindex.Build(ctx, st, layouttest.Device(t), mem.NewBudget(64<<20), "user", "name")
	if err != nil {
		t.Fatal(err)
	}
	m.Snapshot = 7
	if err := st.Catalog().PutIndex(ctx, m); err != nil {
		t.Fatal(err)
	}
	got, err := answer(t, st, 0, "MATCH (u:user {name: 'Bob'}) RETURN u.id")
	if want := "2; the index user.name is not used: it is of snapshot 7, and this is 0; "; err !=
		nil || !strings.HasPrefix(got, want) {
		t.Errorf("%s, %v; want %s…", got, err, want)
	}
}
