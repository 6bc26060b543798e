package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/listfile"
)

// edgeRowsOf reads all edges of a relation with the columns of their table, as
// "source destination time value …", by the place of each entry in its list.
func (r *reading) edgeRowsOf(relation int) (out []string) {
	r.t.Helper()
	ctx := r.t.Context()
	table, err := edgetable.Open(ctx, r.store, r.dev, relation, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	var entries []edgetable.Entry
	err = listfile.Scan(ctx, r.store, r.dev, layout.In,
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
	rows, err := table.Rows(ctx, entries, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Reverse(rows)
	for c, meta := range table.Columns() {
		var v columnfile.Values
		if err := table.Gather(ctx, rows, c, &v); err != nil {
			r.t.Fatal(err)
		}
		for i := range out {
			out[i] += " " + cell(&v, i)
		}
		all := r.column(meta)
		for i, row := range rows {
			if !strings.HasSuffix(out[i], " "+all[row]) {
				r.t.Errorf("row %d of %s is %q by a scan, and %q", row, meta.Name, all[row], out[i])
			}
		}
	}
	if err := table.Close(); err != nil {
		r.t.Fatal(err)
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
