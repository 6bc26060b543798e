package gen

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

// mustRows reads a table.
func mustRows[T any](t *testing.T, files map[string]string, name string) []T {
	t.Helper()
	r := strings.NewReader(files[name+".parquet"])
	rows, err := parquet.Read[T](r, r.Size())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return rows
}

// TestTyped: keys have rows, nodes and edges are as many as asked for, and kinds tell which items a
// user looks at, after it was asked far more than before.
func TestTyped(t *testing.T) {
	fs := vfs.NewMem()
	o := genOptions(Typed, fs)
	o.Dim, o.TrainFrac = 16, .3
	made, err := Make(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	files := mustFiles(t, fs, "out")
	users, items := mustRows[userRow](t, files, "users"), mustRows[itemRow](t, files, "items")
	tags, orders := mustRows[tagRow](t, files, "tags"), mustRows[orderRow](t, files, "orders")
	views, tagged := mustRows[viewRow](t, files, "views"), mustRows[taggedRow](t, files, "tagged")
	if n := len(users) + len(items) + len(tags) + len(orders); n != int(made.Nodes) {
		t.Errorf("%d nodes, %d wanted", n, made.Nodes)
	}
	if n := len(views) + len(tagged) + 2*len(orders); n != int(made.Edges) {
		t.Errorf("%d edges, %d wanted", n, made.Edges)
	}
	if len(users[0].Embedding) != 4 || len(items[0].Embedding) != 16 ||
		len(tags[0].Embedding) != 1 {
		t.Error("vectors have other widths than they should")
	}
	user, item, tag := map[int64]userRow{}, map[int64]bool{}, map[string]bool{}
	kindOf, splits := map[int64]int{}, map[string]int{}
	for _, u := range users {
		if user[u.ID] = u; u.Split != nil {
			splits[*u.Split]++
		}
	}
	for i, r := range items {
		item[r.ID], kindOf[r.ID] = true, i%o.Classes
	}
	for _, r := range tags {
		tag[r.Tag] = true
	}
	if n := splits["train"] * 10 / len(users); n < 2 || n > 3 || splits["val"] == 0 {
		t.Errorf("splits of %d users: %v", len(users), splits)
	}
	var own, all [2]int
	for i, v := range views {
		u, ok := user[v.User]
		if !ok || !item[v.Item] || i > 0 && v.At.Before(views[i-1].At) {
			t.Fatalf("view %+v: a key without a row, or not in the order of time", v)
		}
		after := 0
		if !v.At.Before(u.Asked) {
			after = 1
		}
		if all[after]++; u.Kind == "k0"+string(rune('0'+kindOf[v.Item])) {
			own[after]++
		}
	}
	// Of five kinds chance is a fifth.
	before, after := float64(own[0])/float64(all[0]), float64(own[1])/float64(all[1])
	if before < .4 || before > .48 || after < .94 {
		t.Errorf("of the items a user looks at %.2f are of its kind before it is asked, %.2f "+
			"after; want .44 and .96", before, after)
	}
	for _, r := range orders {
		if _, ok := user[r.User]; !ok || !item[r.Item] {
			t.Fatalf("order %+v: a key without a row", r)
		}
	}
	for _, r := range tagged {
		if !item[r.Item] || !tag[r.Tag] {
			t.Fatalf("tagged %+v: a key without a row", r)
		}
	}
	o.Out = "again"
	if _, err := Make(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(files, mustFiles(t, fs, "again")) {
		t.Error("the same options give other bytes")
	}
	o.Out, o.Edges = "few", 6000
	if _, err := Make(context.Background(), o); err == nil ||
		!strings.Contains(err.Error(), "edges") {
		t.Errorf("too few edges: %v", err)
	}
}
