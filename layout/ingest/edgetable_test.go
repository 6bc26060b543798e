package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgetable"
	"gdb/layout/edgetable/edgetabletest"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

// edgeRowsOf reads all edges of a relation with the columns of their table, as
// "source destination time value …", by the place of each entry in its list.
func (r *reading) edgeRowsOf(relation int) (out []string) {
	r.t.Helper()
	var entries []edgetable.Entry
	err := listfile.Scan(r.t.Context(), r.store, r.dev, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				place := map[int]uint32{}
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					of, text := 0, r.ids[l.Nbrs[k]]+" "+r.ids[int(first)+i]
					if r.meta.Typed() {
						of = int(l.Types[k])
					}
					if l.Times != nil {
						text += fmt.Sprint(" ", l.Times[k])
					}
					if of == relation {
						entries = append(entries, edgetable.Entry{Node: first + layout.NodeID(i),
							Place: place[of]})
						out = append(out, text)
					}
					place[of]++
				}
			}
			return nil
		})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Reverse(entries) // any order will do
	cells := edgetabletest.Cells(r.t, r.store, relation, entries)
	slices.Reverse(cells)
	for i, c := range cells {
		out[i] += c
	}
	slices.Sort(out)
	return out
}

// manyOrders are edges with columns that say which edge they are of, and what a plain reading of
// them gives. Some edges are there several times, and differ in their columns alone.
func manyOrders(n int) (text string, want []string) {
	var b strings.Builder
	b.WriteString("user,item,rating,time,note\n")
	users, items := []string{"7", "3", "5"}, []string{"x", "3"}
	for i := range n {
		user, item := users[i*i%3], items[i/3%2]
		rating, note := fmt.Sprint(float64(i%7)/2), fmt.Sprintf("n%d", i)
		shown, noted := rating, note
		if i%5 == 0 {
			rating, shown = "", "null"
		}
		if i%11 == 0 {
			note, noted = "", "null"
		}
		fmt.Fprintf(&b, "%s,%s,%s,%d,%s\n", user, item, rating, i%13, note)
		want = append(want, fmt.Sprintf("user:%s item:%s %d %s %s", user, item, i%13, shown, noted))
	}
	slices.Sort(want)
	return b.String(), want
}

// TestEdgeTable: the columns of edges are found by the places of entries, whatever the order of the
// source, with ids in memory and sorted, in one pass and in several.
func TestEdgeTable(t *testing.T) {
	text, want := manyOrders(3000)
	for _, table := range []int64{0, 64} {
		fs := typedFiles(t, map[string]string{"orders.csv": text})
		if err := ingestTyped(t, fs, typedOptions(), table); err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, "store")
		if got := r.edgeRowsOf(0); !slices.Equal(got, want) {
			t.Errorf("edges %.200q, want %.200q", got, want)
		}
		var back []string
		for _, e := range want {
			f := strings.Fields(e)
			f[0], f[1] = f[1], f[0]
			back = append(back, strings.Join(f, " "))
		}
		slices.Sort(back)
		if got := r.edgeRowsOf(2); !slices.Equal(got, back) {
			t.Errorf("reverse edges %.200q, want %.200q", got, back)
		}
		if got := r.meta.EdgeTable(1); got != nil {
			t.Errorf("a table without columns is stored: %+v", got)
		}
		var columns []string
		for _, c := range r.meta.EdgeTable(0).Columns {
			columns = append(columns, fmt.Sprint(c.Name, " ", c.Type, " ", c.Nulls))
		}
		if want := []string{"rating float64 600", "note string 273"}; !slices.Equal(columns, want) {
			t.Errorf("columns %q, want %q", columns, want)
		}
	}
}

// TestEdgeTableWrongEntries: entries that no list has are errors, and so is a relation without a
// table.
func TestEdgeTableWrongEntries(t *testing.T) {
	fs := typedFiles(t, nil) // items x and 3 are nodes 4 and 5, and have 1 and 2 orders
	if err := ingestTyped(t, fs, typedOptions(), 0); err != nil {
		t.Fatal(err)
	}
	r := open(t, fs, "store")
	table, err := edgetable.Open(t.Context(), r.store, r.dev, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		entry edgetable.Entry
		want  string
	}{{edgetable.Entry{Node: 4, Place: 1}, "has rows 0 to 1 of"},
		{edgetable.Entry{Node: 5, Place: 2}, "has rows 1 to 3 of"},
		{edgetable.Entry{Node: 6}, "no list"}, {edgetable.Entry{Node: 0}, "no list"}} {
		_, err := table.Rows(t.Context(), []edgetable.Entry{{Node: 5, Place: 1}, c.entry}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.entry, err, c.want)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := edgetable.Open(t.Context(), r.store, r.dev, 1, nil); err == nil {
		t.Error("a relation without columns has a table")
	}
}

// TestNoEdgeTable: a store whose edges have no other columns has none of their files.
func TestNoEdgeTable(t *testing.T) {
	fs := typedFiles(t, map[string]string{"orders.csv": "user,item,time\n7,x,1\n"})
	if err := ingestTyped(t, fs, typedOptions(), 0); err != nil {
		t.Fatal(err)
	}
	m := open(t, fs, "store").meta
	isEdges := func(f kv.FileMeta) bool { return strings.HasPrefix(f.Path, "columns/edges") }
	if len(m.EdgeTables) > 0 || slices.ContainsFunc(m.Files, isEdges) {
		t.Errorf("tables %+v, files %+v", m.EdgeTables, m.Files)
	}
}

// TestEdgeTableUntyped: all edges of a store without types of nodes are in one table, with the
// columns of all files; edges that are added the other way have the same columns.
func TestEdgeTableUntyped(t *testing.T) {
	for _, undirected := range []bool{false, true} {
		for _, shuffled := range []bool{false, true} {
			fs := vfs.NewMem()
			var want []string
			for _, f := range []string{"a", "b"} {
				text := "src,dst,n,only" + f + "\n"
				for i := range 500 {
					src, dst, n := i*i%40, 41+i%37, fmt.Sprint(i)
					if f == "b" {
						n += ".5"
					}
					text += fmt.Sprintf("%d,%d,%s,%s%d\n", src, dst, n, f, i)
					row := fmt.Sprintf(" %s %s%d null", n, f, i)
					if f == "b" {
						row = fmt.Sprintf(" %s null %s%d", n, f, i)
					}
					want = append(want, fmt.Sprint(src, " ", dst, row))
					if undirected {
						want = append(want, fmt.Sprint(dst, " ", src, row))
					}
				}
				if err := files.WriteAtomic(fs, f+".csv", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			opt := Options{Out: "store", Undirected: undirected, KeepDuplicates: true,
				Options: source.Options{Sources: []string{"a.csv", "b.csv"}}}
			if shuffled {
				opt.Partitioner, opt.Partitions = "random", 3
			}
			if _, err := Run(t.Context(), fs, opt); err != nil {
				t.Fatal(err)
			}
			slices.Sort(want)
			if got := open(t, fs, "store").edgeRowsOf(0); !slices.Equal(got, want) {
				t.Errorf("undirected %t, shuffled %t: edges %.200q, want %.200q", undirected,
					shuffled, got, want)
			}
		}
	}
}

// TestEdgeTableMerged: of parallel edges that become one, the row of the first of the least weight
// is kept.
func TestEdgeTableMerged(t *testing.T) {
	fs := vfs.NewMem()
	text := "src,dst,weight,note\n1,2,3,a\n1,2,1,b\n1,2,1,c\n2,1,5,d\n"
	if err := files.WriteAtomic(fs, "e.csv", []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), fs, Options{Out: "store", Merge: "sum",
		Options: source.Options{Sources: []string{"e.csv"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := open(t, fs, "store").edgeRowsOf(0)
	if want := []string{"1 2 b", "2 1 d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// shopOrder is a row of a table of edges in columns.
type shopOrder struct {
	User  int64     `parquet:"user"`
	Item  string    `parquet:"item"`
	At    time.Time `parquet:"at,timestamp(microsecond)"`
	Day   int32     `parquet:"day,date"`
	Score *float64  `parquet:"score,optional"`
	Zip   string    `parquet:"zip"`
	Gift  bool      `parquet:"gift"`
}

// TestEdgeTableParquet: a table of columns says what the columns of edges are.
func TestEdgeTableParquet(t *testing.T) {
	fs, score := typedFiles(t, nil), 0.25
	f, err := fs.Create("orders.parquet", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[shopOrder](f)
	_, err = w.Write([]shopOrder{
		{User: 7, Item: "x", At: time.UnixMicro(1700000000123456), Day: 11000, Score: &score,
			Zip: "01"},
		{User: 3, Item: "3", At: time.UnixMicro(-1), Day: -1, Zip: "12", Gift: true}})
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	opt := typedOptions()
	opt.Relations[0].File = "orders.parquet"
	if err := ingestTyped(t, fs, opt, 0); err != nil {
		t.Fatal(err)
	}
	got := open(t, fs, "store").edgeRowsOf(0)
	if want := []string{"user:3 item:3 -1 -1 null 12 1",
		"user:7 item:x 1700000000123456 11000 0.25 01 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
