package live

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/layout"
	"gdb/layout/edgetable"
	"gdb/layout/edgetable/edgetabletest"
	"gdb/layout/export"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/parts"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// typedHistory is a random typed graph that gets edges, and how it is ingested.
type typedHistory struct {
	opt   ingest.Options
	nodes map[string]string            // text of tables, by type
	parts []map[source.Relation]string // text of tables, by relation
}

// typedRelations are the relations; columns of their tables follow the ends.
var typedRelations = []source.Relation{{Src: "user", Name: "buys", Dst: "item"},
	{Src: "user", Name: "likes", Dst: "item"}, {Src: "user", Name: "follows", Dst: "user"},
	{Src: "user", Name: "trusts", Dst: "user"}, {Src: "item", Name: "has", Dst: "tag"}}

func newTypedHistory(r *rand.Rand) *typedHistory {
	h := &typedHistory{nodes: map[string]string{}}
	users, items := 5+r.IntN(10), 5+r.IntN(10)
	text := "id,age,kind,part\n"
	for i := range users {
		text += fmt.Sprintf("%d,%d,%s,%s\n", i*3+2, 20+i%7, []string{"x", "y", ""}[i%3],
			[]string{"train", "val", "test", ""}[i%4])
	}
	h.nodes["user"], text = text, "sku,price,name\n"
	for i := range items {
		text += fmt.Sprintf("s%d,%g,%s\n", i, float64(i)/3, []string{"a", "", "b c"}[i%3])
	}
	h.nodes["item"] = text
	o := &h.opt
	o.Both, o.Reverse = r.IntN(2) == 0, r.IntN(2) == 0
	o.FeatureCols, o.LabelCol, o.SplitCol = "user.age,item.price", "user.kind", "user.part"
	o.IDCol, o.Memory = "item.sku", 1<<30
	weighted, edges := r.IntN(2) == 0, map[string]bool{}
	for i := range 4 { // see withTags
		edges[fmt.Sprintf("has s0,t%d", i)] = true
	}
	for i := range 2 + r.IntN(4) {
		p := map[source.Relation]string{}
		for _, rel := range typedRelations {
			if i == 0 || r.IntN(3) > 0 {
				text := typedEdges(r, rel, users, items, weighted, edges)
				if i == 0 || strings.Contains(text, "\n") {
					p[rel] = text
				}
			}
		}
		h.parts = append(h.parts, p)
	}
	return h
}

// typedEdges returns a table of edges of a relation.
//
//lint:parameters how large the graph is, and what was drawn before
func typedEdges(r *rand.Rand, rel source.Relation, users, items int, weighted bool,
	before map[string]bool) string {
	heads := map[string]string{"buys": "user,item,rating,note", "likes": "user,sku",
		"follows": "src,dst", "trusts": "src,dst,since", "has": "item,tag,certain"}
	head := heads[rel.Name]
	if weighted && rel.Name != "follows" {
		head += ",weight"
	}
	var rows []string
	for k := range r.IntN(30) {
		node := func(typ string) string {
			switch typ {
			case "user":
				return fmt.Sprint(r.IntN(users)*3 + 2)
			case "item":
				return fmt.Sprintf("s%d", r.IntN(items))
			}
			return fmt.Sprintf("t%d", r.IntN(4))
		}
		e := node(rel.Src) + "," + node(rel.Dst)
		if key := rel.Name + " " + e; weighted && before[key] {
			continue // parallel edges of other weights have no order
		} else {
			before[key] = true
		}
		switch rel.Name {
		case "buys":
			e += fmt.Sprintf(",%d,%s", r.IntN(6),
				[]string{"", "good", strings.Repeat("n", r.IntN(40))}[k%3])
		case "trusts":
			e += fmt.Sprintf(",20%02d-01-02", k)
		case "has":
			e += fmt.Sprintf(",%t", k%2 == 0)
		}
		if weighted && rel.Name != "follows" {
			e += fmt.Sprintf(",%d", 1+k%5)
		}
		rows = append(rows, e)
	}
	return strings.Join(append([]string{head}, rows...), "\n")
}

// options writes tables to files, and returns how they are read. Those of all nodes are among them
// if it is the first part.
func (h *typedHistory) options(t *testing.T, fs vfs.FS, p map[source.Relation]string,
	first bool) ingest.Options {
	t.Helper()
	opt := ingest.Options{Options: source.Options{Memory: 1 << 30}}
	tables := map[string]string{}
	if first {
		opt = h.opt
		for _, typ := range []string{"user", "item"} {
			tables[typ+".csv"] = h.nodes[typ]
			opt.NodeTables = append(opt.NodeTables, source.NodeTable{Type: typ, File: typ + ".csv"})
		}
	}
	for _, rel := range typedRelations {
		if text, has := p[rel]; has {
			rel.File = rel.Name + ".csv"
			tables[rel.File] = text
			opt.Relations = append(opt.Relations, rel)
		}
	}
	for name, text := range tables {
		writeText(t, fs, name, text)
	}
	return opt
}

// writeText writes a file.
func writeText(t *testing.T, fs vfs.FS, name, text string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte(text + "\n"))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// whole returns the tables of all parts as one.
func (h *typedHistory) whole() map[source.Relation]string {
	all := map[source.Relation]string{}
	for _, p := range h.parts {
		for rel, text := range p {
			if _, rows, _ := strings.Cut(text, "\n"); all[rel] != "" && rows != "" {
				all[rel] = strings.TrimSuffix(all[rel], "\n") + "\n" + rows
			} else if all[rel] == "" {
				all[rel] = text
			}
		}
	}
	return all
}

func (h *typedHistory) ingest(t *testing.T, fs vfs.FS, p map[source.Relation]string, out string) {
	t.Helper()
	opt := h.options(t, fs, p, true)
	opt.Out = out
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
}

// TestAppendTyped: a typed store that edges were appended to is, to all who read it, what an ingest
// of all tables at once makes, and is written by a compaction byte for byte as by that.
func TestAppendTyped(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			if seed%3 == 0 {
				fewLevels(t, 2)
			}
			h, fs := newTypedHistory(r), vfs.NewMem()
			h.withTags(t)
			h.ingest(t, fs, h.parts[0], "live")
			h.ingest(t, fs, h.whole(), "once")
			for _, p := range h.parts[1:] {
				opt := h.options(t, fs, p, false)
				if len(opt.Relations) == 0 {
					continue
				}
				if _, err := Append(t.Context(), fs, "live", opt); err != nil {
					t.Fatal(err)
				}
			}
			sound(t, fs, "live")
			want := typedContents(t, fs, "once", r)
			if got := typedContents(t, fs, "live", r); got != want {
				t.Errorf("appended:\n%s\nat once:\n%s", got, want)
			}
			if got := exported(t, fs, "live", "x"); got != exported(t, fs, "once", "y") {
				t.Error("the files of an export differ from those of a store of all at once")
			}
			m, err := Compact(t.Context(), fs, "live", parts.OrderOptions{Memory: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			if got := typedContents(t, fs, "live", r); got != want {
				t.Errorf("compacted:\n%s\nat once:\n%s", got, want)
			}
			once := h.options(t, fs, h.whole(), true)
			once.Out, once.UUID = "same", m.UUID
			other, err := ingest.Run(t.Context(), fs, once)
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, fs, "live", m, "same", other)
			sound(t, fs, "live")
			got, plain := reflect.ValueOf(made(m)), reflect.ValueOf(made(other))
			for i := range got.NumField() {
				if a, b := got.Field(i), plain.Field(i); !reflect.DeepEqual(a.Interface(),
					b.Interface()) {
					t.Errorf("%s: %+v, of an ingest %+v", got.Type().Field(i).Name, a, b)
				}
			}
		})
	}
}

// withTags makes the first part name all tags, which have no table, in the order of all parts.
func (h *typedHistory) withTags(t *testing.T) {
	t.Helper()
	rel := typedRelations[4]
	row := "\ns0,t%d,true"
	if strings.Contains(h.parts[0][rel], "weight") {
		row += ",9"
	}
	head, rows, _ := strings.Cut(h.parts[0][rel], "\n")
	for i := range 4 {
		head += fmt.Sprintf(row, i)
	}
	if h.parts[0][rel] = head; rows != "" {
		h.parts[0][rel] += "\n" + rows
	}
}

// mustOpenOn opens a store, and a device to read it, which the caller closes.
func mustOpenOn(t *testing.T, fs vfs.FS, dir string) (*layout.Store, blockdev.Device) {
	t.Helper()
	s, err := layout.OpenLive(t.Context(), fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, dev
}

// typedContents returns all that a typed store has, as text: also the columns of edges, and lists
// in all forms.
func typedContents(t *testing.T, fs vfs.FS, dir string, r *rand.Rand) string {
	t.Helper()
	s, dev := mustOpenOn(t, fs, dir)
	defer dev.Close()
	b := &strings.Builder{}
	b.WriteString(contentsOf(t, s, r))
	for _, form := range []topology.Form{topology.Packed, topology.Compact} {
		lists(t, b, s, dev, layout.In, topology.Options{Resident: true, Form: form}, r)
	}
	of := make([][]edgetable.Entry, len(s.Meta().Relations))
	err := topology.Scan(t.Context(), s, dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			next := map[uint16]uint32{}
			for _, rel := range l.Types[l.Off[i]:l.Off[i+1]] {
				of[rel] = append(of[rel], edgetable.Entry{Node: first + layout.NodeID(i),
					Place: next[rel]})
				next[rel]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for rel, entries := range of {
		shuffled := slices.Clone(entries)
		r.Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		cells := map[edgetable.Entry]string{}
		for i, c := range edgetabletest.Cells(t, s, rel, shuffled) {
			cells[shuffled[i]] = c
		}
		for _, e := range entries {
			fmt.Fprintln(b, s.Meta().EdgeTypes[rel], e, cells[e])
		}
	}
	return b.String()
}

// exported exports a store, and returns the bytes of all files.
func exported(t *testing.T, fs vfs.FS, dir, out string) (all string) {
	t.Helper()
	s, dev := mustOpenOn(t, fs, dir)
	defer dev.Close()
	err := export.Export(t.Context(), s, dev, fs, export.Options{Out: out, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"nodes", "edges"} {
		names, err := fs.List(fs.PathJoin(out, sub))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			b, err := files.ReadSmall(fs, fs.PathJoin(out, sub, name), 1<<26)
			if err != nil {
				t.Fatal(err)
			}
			all += name + string(b)
		}
	}
	return all
}

// TestAppendTypedRefused: what a typed store cannot take is refused in words, and nothing of it is
// left.
func TestAppendTypedRefused(t *testing.T) {
	r, fs := rand.New(rand.NewPCG(1, 1)), vfs.NewMem()
	h := newTypedHistory(r)
	h.withTags(t)
	h.ingest(t, fs, h.parts[0], "live")
	buys, likes := typedRelations[0], typedRelations[1]
	likes.Name = "hates"
	for _, c := range []struct {
		rel  source.Relation
		text string
		want string
	}{{buys, "user,item,rating,note\n1,s0,1,x", "the store has no node user:1"},
		{buys, "user,item,stars\n2,s0,1\n2,s1,1", "has a column stars"},
		{buys, "user,item,rating\n2,s0,good\n2,s1,1", "good"},
		{buys, "user,item,rating,time\n2,s0,1,5\n2,s1,1,6", "the store have none: --time-col none"},
		{likes, "user,item\n2,s0\n2,s1", "no such relation"}} {
		writeText(t, fs, "more.csv", c.text)
		c.rel.File = "more.csv"
		_, err := Append(t.Context(), fs, "live", ingest.Options{Options: source.Options{
			Relations: []source.Relation{c.rel}, Memory: 1 << 30}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.want)
		}
	}
	for _, c := range []struct{ typ, text, want string }{
		{"shop", "id,age\n1,2", "no nodes of type shop"},
		{"user", "id,height\n1,2\n3,4", "has a column height"},
		{"user", "id,age\n1,2\n1,4", "another row has the id 1"},
		{"user", "id,age\n1,", "no number in the column age"},
		{"user", "id,age,kind\n100,3,z", `label "z"`},
		{"user", "id,age,part\n100,3,later", `have a split "later"`}} {
		writeText(t, fs, "more.csv", c.text)
		_, err := Append(t.Context(), fs, "live", ingest.Options{Options: source.Options{
			NodeTables: []source.NodeTable{{Type: c.typ, File: "more.csv"}}, Memory: 1 << 30}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.want)
		}
	}
	if _, err := Delete(t.Context(), fs, "live", Deletion{DeleteNodes: "user.csv"}); err == nil ||
		!strings.Contains(err.Error(), "--delete-nodes TYPE=FILE") {
		t.Errorf("delete: %v", err)
	}
	s, err := layout.OpenLive(t.Context(), fs, "live")
	if err != nil {
		t.Fatal(err)
	}
	left, err := fs.List("live/tmp")
	if len(s.Levels()) > 0 || err != nil || !slices.Equal(left, []string{"live.lock"}) {
		t.Errorf("%d levels and in tmp %v, %v", len(s.Levels()), left, err)
	}
}
