package live

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// batchStore makes a typed store with features, labels, weights, times and columns of edges, of
// tables with what a test adds or without.
func batchStore(t *testing.T, fs vfs.FS, out, users, buys string) {
	t.Helper()
	writeText(t, fs, "user.csv", "no,age,kind,part,town\n1,2,x,train,Rome\n2,,y,val,Bonn\n"+
		"3,4,x,train,\n"+users)
	writeText(t, fs, "item.csv", "sku,name\na,Pen\nb,\n")
	writeText(t, fs, "buys.csv", "who,what,price,at,note\n1,a,1.5,2026-01-02,\n"+
		"2,b,2,2026-01-03,gift\n"+buys)
	opt := ingest.Options{Out: out}
	opt.Memory, opt.Reverse, opt.IDCol = 1<<30, true, "user.no,item.sku"
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "user.csv"},
		{Type: "item", File: "item.csv"}}
	opt.LabelCol, opt.SplitCol, opt.FeatureCols = "user.kind", "user.part", "user.age"
	opt.Fill, opt.SrcCol, opt.DstCol = "zero,indicator", "buys.who", "buys.what"
	opt.WeightCol, opt.TimeCol = "buys.price", "buys.at"
	opt.Relations = buysFrom("buys.csv")
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
}

// commitBatch appends a batch to the store in s.
func commitBatch(t *testing.T, fs vfs.FS, fill func(b *Batch) error) (*Added, error) {
	t.Helper()
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s.Meta())
	if err := fill(b); err != nil {
		t.Fatal(err)
	}
	opt := ingest.Options{}
	opt.Memory = 1 << 30
	return AppendBatch(t.Context(), fs, "s", b, opt)
}

func cells(name string, of ...string) Column { return Column{Name: name, Cells: of} }

// addUsers adds a new user, whose town has all that needs quotes, and a known one.
func addUsers(b *Batch) error {
	columns := func(age, town string) []Column {
		return []Column{cells("town", town), cells("age", age), cells("kind", "y")}
	}
	return errors.Join(
		b.AddNodes(Nodes{Type: "user", IDs: []string{"7"}, Columns: columns("", `#a, "b"`)}),
		b.AddNodes(Nodes{Type: "user", IDs: []string{"2"}, Columns: columns("9", "")}))
}

func addBuys(b *Batch) error {
	return b.AddEdges(Edges{Relation: "user:buys:item", Src: []string{"7", "1"},
		Dst: []string{"a", "b"}, Columns: []Column{cells("price", "4", "5"),
			cells("note", "", "new"), cells("at", "2026-02-01", "2026-01-01")}})
}

// TestTypedBatch: nodes and edges in memory make the store that an ingest of tables with them
// makes, and a level where they are edges alone.
func TestTypedBatch(t *testing.T) {
	fs := vfs.NewMem()
	batchStore(t, fs, "s", "", "")
	added, err := commitBatch(t, fs, func(b *Batch) error {
		return errors.Join(addUsers(b), addBuys(b))
	})
	if err != nil || added.Nodes != 1 || added.Replaced != 1 || added.Edges != 4 || !added.Anew {
		t.Fatalf("%+v, %v", added, err)
	}
	if s := added.Source; s.Format != "memory" || len(s.Paths) > 0 {
		t.Errorf("the level was made of %+v", s)
	}
	more := func(b *Batch) error {
		return b.AddEdges(Edges{Relation: "user:buys:item", Src: []string{"3"}, Dst: []string{"a"},
			Columns: []Column{cells("price", "6"), cells("at", "2026-03-01")}})
	}
	if added, err = commitBatch(t, fs, more); err != nil || added.Anew || added.Edges != 2 ||
		added.Snapshot != 2 {
		t.Fatalf("%+v, %v", added, err)
	}
	none := func(*Batch) error { return nil }
	if added, err = commitBatch(t, fs, none); err != nil || added.Snapshot != 2 {
		t.Fatalf("a commit of nothing: %+v, %v", added, err)
	}
	batchStore(t, fs, "once", "7,,y,,\"#a, \"\"b\"\"\"\n", "7,a,4,2026-02-01,\n"+
		"1,b,5,2026-01-01,new\n3,a,6,2026-03-01,\n")
	opt := ingest.Options{}
	opt.Memory = 1 << 30
	writeText(t, fs, "known.csv", "no,age,kind,town\n2,9,y,\n")
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "known.csv"}}
	if _, err := Append(t.Context(), fs, "once", opt); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	if got, want := typedContents(t, fs, "s", r), typedContents(t, fs, "once", r); got != want {
		t.Errorf("%s\nof an ingest of all:\n%s", got, want)
	}
	if names, err := fs.List("s/tmp"); err != nil || len(names) != 1 {
		t.Errorf("in tmp are %v, %v", names, err)
	}
}

// TestTypedBatchRefused: what a typed store does not take is refused by its name, at once where the
// catalog tells, else by the commit, which adds nothing and names no file of its own.
func TestTypedBatchRefused(t *testing.T) {
	fs := vfs.NewMem()
	batchStore(t, fs, "s", "", "")
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	b, ids := NewBatch(s.Meta()), []string{"1"}
	buys := func(e Edges) error {
		e.Relation, e.Src = "user:buys:item", ids
		return b.AddEdges(e)
	}
	plain := NewBatch(&kv.Meta{IDs: s.Meta().IDs})
	if err := addUsers(b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{b.AddEdges(Edges{Src: ids, Dst: ids}), `relation "": the store has no such relation; it ` +
			"has user:buys:item"},
		{buys(Edges{}), "1 edges with 0 destinations"},
		{buys(Edges{Dst: ids, Weights: []float32{1}}), "Types, Weights and Times: the"},
		{buys(Edges{Dst: ids, Times: []int64{1}}), "Types, Weights and Times: the"},
		{buys(Edges{Dst: ids, Types: ids}), "Types, Weights and Times: the"},
		{buys(Edges{Dst: ids, Columns: []Column{cells("note")}}),
			"0 cells of the column note for 1"},
		{buys(Edges{Dst: ids, Columns: []Column{cells("src", ids...)}}),
			"two columns are called src"},
		{buys(Edges{Dst: ids, Columns: []Column{cells("", ids...)}}), "a column has no name"},
		{b.AddNodes(Nodes{IDs: ids}), `type "": the store has no such type; it has user, item`},
		{b.AddNodes(Nodes{Type: "user", IDs: ids, Features: []float32{1}}),
			"Features, Labels and Splits: the"},
		{b.AddNodes(Nodes{Type: "user", IDs: ids, Labels: ids}),
			"Features, Labels and Splits: the"},
		{b.AddNodes(Nodes{Type: "user", IDs: ids, Splits: ids}),
			"Features, Labels and Splits: the"},
		{b.AddNodes(Nodes{Type: "user", IDs: ids, Columns: []Column{cells("age", ids...)}}),
			"other columns than those that were given before"},
		{plain.AddNodes(Nodes{Type: "user", IDs: ids}), "the store has no types of nodes"},
		{plain.AddEdges(Edges{Relation: "buys", Src: ids, Dst: ids}), "the store has no types"},
	} {
		if !errors.Is(c.err, ErrUsage) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	before := typedContents(t, fs, "s", r)
	for _, c := range []struct {
		fill func(b *Batch) error
		want string
	}{
		{func(b *Batch) error {
			return b.AddNodes(Nodes{Type: "user", IDs: ids,
				Columns: []Column{cells("size", ids...)}})
		}, "nodes-user.csv: it has a column size"},
		{func(b *Batch) error {
			return b.AddNodes(Nodes{Type: "user", IDs: []string{"4", "4"}})
		}, "4"},
		{func(b *Batch) error {
			return b.AddEdges(Edges{Relation: "user:buys:item", Src: ids, Dst: ids})
		}, `edges-user-buys-item.csv line 2`},
	} {
		_, err := commitBatch(t, fs, c.fill)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "tmp/live") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if got := typedContents(t, fs, "s", r); got != before {
		t.Errorf("refused commits changed the store: %s\nwas %s", got, before)
	}
}
