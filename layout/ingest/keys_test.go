package ingest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest/source"
	"gdb/layout/nodeids"
)

// keyForms are ids of 60 rows, by how they are kept.
func keyForms() map[string][]string {
	forms := map[string][]string{}
	add := func(name string, id func(i int) uint64) {
		for i := range 60 {
			forms[name] = append(forms[name], fmt.Sprint(id(i)))
		}
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(60)
	add("counted", func(i int) uint64 { return uint64(i) + 1000 })
	add("largest", func(i int) uint64 { return math.MaxInt64 - 59 + uint64(i) })
	add("ascending", func(i int) uint64 { return uint64(i * i) })
	add("ascending, near", func(i int) uint64 { return uint64(i*7 + 3) })
	add("ascending, wide", func(i int) uint64 { return uint64(i) << 50 })
	add("sorted", func(i int) uint64 { return uint64(order[i]) })
	add("sorted, wide", func(i int) uint64 { return uint64(order[i])*7<<40 + 3 })
	add("text", func(i int) uint64 { return uint64(order[i]) })
	forms["text"][50] = "007"
	add("too large", func(i int) uint64 { return math.MaxInt64 - 30 + uint64(i) })
	return forms
}

// TestKeyForms: whatever ids look like, and whether they fit in memory, nodes have the lists and
// labels of their rows, and integers are kept as integers.
func TestKeyForms(t *testing.T) {
	for name, ids := range keyForms() {
		users := "id,boss,label\n"
		orders := "user,item\n"
		var want []string
		for i, id := range ids {
			boss := ""
			if i%3 > 0 {
				boss = ids[i*7%60]
				want = append(want, "user:"+id+" boss user:"+boss)
			}
			users += fmt.Sprintf("%s,%s,%c\n", id, boss, 'a'+i%2)
			item := []string{"x", "3"}[i%2]
			orders += id + "," + item + "\n"
			want = append(want, "user:"+id+" buys item:"+item)
		}
		slices.Sort(want)
		var files []string
		for _, table := range []int64{0, 64} {
			fs := typedFiles(t, map[string]string{"users.csv": users, "orders.csv": orders})
			opt := typedOptions()
			opt.Reverse, opt.FeatureCols, opt.Categorical = false, "", ""
			opt.Relations[1] = source.Relation{Src: "user", Name: "boss", Dst: "user",
				File: "users.csv"}
			if err := ingestTyped(t, fs, opt, table); err != nil {
				t.Fatal(name, err)
			}
			r := open(t, fs, "store")
			for i, id := range ids {
				if r.ids[i] != "user:"+id {
					t.Fatalf("%s: node %d is %s, want user:%s", name, i, r.ids[i], id)
				}
			}
			var got []string
			for _, e := range r.edges(layout.In) {
				got = append(got, e.src+" "+r.meta.EdgeTypes[e.typ]+" "+e.dst)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s, %d: edges\n%s\nwant\n%s", name, table, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
			if n := r.meta.Labels.ClassCounts; n[0] != 30 || n[1] != 30 {
				t.Errorf("%s: labels %d", name, n)
			}
			files = append(files, fmt.Sprint(r.meta.IDs, r.meta.NodeTypes[0].Keys != nil,
				r.meta.Stats))
			checkMany(t, name, r)
			checkKeys(t, name, r)
		}
		if files[0] != files[1] {
			t.Errorf("%s: %s in memory, %s by sorting", name, files[0], files[1])
		}
	}
}

// checkKeys checks that ids are kept as a form's name says, and that they lead back to their rows.
func checkKeys(t *testing.T, name string, r *reading) {
	t.Helper()
	k := r.meta.NodeTypes[0].Keys
	switch {
	case name == "text" || name == "too large":
		if k != nil {
			t.Errorf("%s: ids are kept as %+v", name, k)
		}
		return
	case k == nil || r.meta.IDs.Kind != kv.IDsTyped ||
		(k.Rows != nil) != (name != "counted" && name != "largest") ||
		(k.Sorted != nil) != strings.HasPrefix(name, "sorted"):
		t.Errorf("%s: ids are kept as %+v", name, k)
		return
	}
	if k.Rows == nil {
		return
	}
	what, err := nodeids.Check(t.Context(), r.store, r.dev, k.Rows.Path)
	if what != "" || err != nil {
		t.Errorf("%s: %s, %v", name, what, err)
	}
	if k.Sorted == nil {
		return
	}
	for _, wrong := range []*kv.TableColumn{k.Rows, k.Places} { // not ascending, and others
		r.meta.NodeTypes[0].Keys = &kv.KeysMeta{Rows: k.Rows, Sorted: wrong, Places: k.Places}
		what, err = nodeids.Check(t.Context(), r.store, r.dev, k.Rows.Path)
		if what == "" || err != nil {
			t.Errorf("%s: nothing is wrong with %s in place of %s, %v", name, wrong.Path,
				k.Sorted.Path, err)
		}
	}
}

// checkMany looks all ids of a store up together, among others that it lacks, and each by itself.
func checkMany(t *testing.T, name string, r *reading) {
	t.Helper()
	dict, err := nodeids.Open(t.Context(), r.store, r.dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dict.Close()
	names := append(slices.Clone(r.ids), "user:01", "user:", "user:-1", "nobody:1", "item:none",
		"", fmt.Sprint("user:", uint64(math.MaxInt64)), "user:2", "user:1059", r.ids[7])
	want := map[string]int64{}
	for i, id := range r.ids {
		want[id] = int64(i)
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(names), func(i, j int) {
		names[i], names[j] = names[j], names[i]
	})
	nodes := make([]int64, len(names))
	if err := ids.InternalMany(t.Context(), dict, names, nodes); err != nil {
		t.Fatal(name, err)
	}
	for i, id := range names {
		node, is := want[id]
		if !is {
			node = ids.None
		}
		if nodes[i] != node {
			t.Errorf("%s: %q is node %d among others, want %d", name, id, nodes[i], node)
		}
		v, err := dict.Internal(t.Context(), id)
		if is != (err == nil) || is && int64(v) != node {
			t.Errorf("%s: %q is node %d by itself, %v", name, id, v, err)
		}
	}
}

// TestKeyErrors: the row of an id that is there twice is named, and that of an end without a row,
// whatever form ids have.
func TestKeyErrors(t *testing.T) {
	for name, ids := range keyForms() {
		users := "id,label\n" + strings.Join(ids, ",a\n") + ",b\n"
		twice := strings.Replace(users, ids[40]+",a", ids[20]+",a", 1)
		for _, c := range []struct{ users, end, want string }{
			{twice, ids[1], "users.csv line 42: another row has the id " + ids[20] + " too"},
			{users, "4567", "orders.csv line 3: user 4567 has no row in the table of user"},
			{users, "x7", "orders.csv line 3: user x7 has no row in the table of user"},
			{users, "0" + ids[1], "orders.csv line 3: user 0" + ids[1] + " has no row"},
			{users, "", `orders.csv line 3: column "user", an id, is empty`},
		} {
			for _, table := range []int64{0, 64} {
				fs := typedFiles(t, map[string]string{"users.csv": c.users,
					"orders.csv": "user,item\n" + ids[0] + ",x\n" + c.end + ",3\n"})
				opt := typedOptions()
				opt.FeatureCols, opt.Categorical, opt.Header = "", "", "yes"
				err := ingestTyped(t, fs, opt, table)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s, %d: %v, want %q", name, table, err, c.want)
				}
			}
		}
	}
}

// TestKeysLaterText: where a later id is no integer, all ids of the type are text, and it is said.
func TestKeysLaterText(t *testing.T) {
	var users strings.Builder
	users.WriteString("id,label\n")
	for i := range 6000 {
		fmt.Fprintf(&users, "%d,a\n", i+3)
	}
	users.WriteString("x,b\n")
	fs, opt := typedFiles(t, map[string]string{"users.csv": users.String()}), typedOptions()
	var notes strings.Builder
	opt.FeatureCols, opt.Categorical, opt.Notes = "", "", &notes
	if err := ingestTyped(t, fs, opt, 0); err != nil {
		t.Fatal(err)
	}
	r := open(t, fs, "store")
	if r.ids[6000] != "user:x" || r.meta.IDs.Kind != kv.IDsString ||
		!strings.Contains(notes.String(), "users.csv line 6002 is no integer") {
		t.Errorf("node %s, ids %s: %s", r.ids[6000], r.meta.IDs.Kind, notes.String())
	}
}
