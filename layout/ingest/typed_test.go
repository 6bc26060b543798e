package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable/edgetabletest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

// typedTables are the files of a small typed graph. The ids of users and items overlap; tags have
// no table; colors have no numbers.
var typedTables = map[string]string{
	"users.csv":  "id,age,country,label\n7,30,de,a\n3,50,fr,b\n5,40,de,a\n",
	"items.csv":  "sku,price\nx,10\n3,20\n",
	"colors.csv": "id,tone\nred,warm\n",
	"orders.csv": "user,item,rating,time\n7,x,5,100\n3,3,1,200\n7,3,2,300\n",
	"tags.csv":   "item_id,tag,weight\nx,new,0.5\n3,old,2\nx,old,3\n",
}

func typedOptions() Options {
	return Options{Out: "store", Options: source.Options{
		NodeTables: []source.NodeTable{{Type: "user", File: "users.csv"},
			{Type: "color", File: "colors.csv"}, {Type: "item", File: "items.csv"}},
		Relations: []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "orders.csv"},
			{Src: "item", Name: "has", Dst: "tag", File: "tags.csv"}},
		Reverse: true, FeatureCols: "*", Categorical: "user.country,color.tone", IDCol: "item.sku",
		LabelCol: "user.label"}}
}

// typedFiles writes tables, some of which are changed, to a file system in memory.
func typedFiles(t testing.TB, change map[string]string) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	for name, text := range typedTables {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if other, has := change[name]; has {
			text = other
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// ingestTyped ingests; table is the memory for ids, of which 64 are too few for any.
func ingestTyped(t *testing.T, fs vfs.FS, opt Options, table int64) error {
	t.Helper()
	src, err := source.Open(t.Context(), fs, &opt.Options)
	if err != nil {
		return err
	}
	p, err := newPipeline(fs, src, opt)
	if err != nil {
		return err
	}
	if table > 0 {
		p.Memory.Table = table
	}
	_, err = p.run(context.Background())
	return err
}

func TestTyped(t *testing.T) {
	for _, table := range []int64{0, 64} { // numbered in memory, and by sorting
		fs := typedFiles(t, nil)
		if err := ingestTyped(t, fs, typedOptions(), table); err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, "store")
		m := r.meta
		if want := []string{"user:7", "user:3", "user:5", "color:red", "item:x", "item:3",
			"tag:new", "tag:old"}; !slices.Equal(r.ids, want) {
			t.Errorf("nodes %q, want %q", r.ids, want)
		}
		if got, want := fmt.Sprint(m.Typed(), m.EdgeTypes, m.Relations),
			"true [buys has rev_buys rev_has] [{0 2} {2 3} {2 0} {3 2}]"; got != want {
			t.Errorf("relations %s, want %s", got, want)
		}
		var types []string
		for _, t := range m.NodeTypes {
			types = append(types, fmt.Sprint(t.Name, t.First, t.Nodes))
		}
		if want := "[user0 3 color3 1 item4 2 tag6 2]"; fmt.Sprint(types) != want {
			t.Errorf("types %q, want %q", types, want)
		}
		var edges []string
		for _, e := range r.edges(layout.In) {
			edges = append(edges, fmt.Sprintf("%s %s %s %g %d", e.src, m.EdgeTypes[e.typ], e.dst,
				e.weight, e.time))
		}
		slices.Sort(edges)
		want := []string{"user:7 buys item:x 1 100", "user:3 buys item:3 1 200",
			"user:7 buys item:3 1 300", "item:x rev_buys user:7 1 100",
			"item:3 rev_buys user:3 1 200", "item:3 rev_buys user:7 1 300"}
		for e, w := range map[string]string{"item:x has tag:new": "0.5", "item:3 has tag:old": "2",
			"item:x has tag:old": "3", "tag:new rev_has item:x": "0.5",
			"tag:old rev_has item:3": "2", "tag:old rev_has item:x": "3"} {
			want = append(want, e+" "+w+" -9223372036854775808") // before all times
		}
		if slices.Sort(want); !slices.Equal(edges, want) {
			t.Errorf("edges\n%s\nwant\n%s", strings.Join(edges, "\n"), strings.Join(want, "\n"))
		}
		checkTypedFeatures(t, r)
		if l := m.Labels; l.Labeled != 3 || l.OfType != "user" ||
			fmt.Sprint(l.Classes) != "[a b]" {
			t.Errorf("labels %+v", l)
		}
	}
}

// checkTypedFeatures: each type has columns of its own, in the order of its table.
func checkTypedFeatures(t *testing.T, r *reading) {
	t.Helper()
	f := r.meta.Features[0]
	var dims []int
	for _, s := range f.Sections {
		dims = append(dims, s.Dim)
	}
	if want := []int{3, 1, 1, 0}; f.Dim != 3 || !slices.Equal(dims, want) {
		t.Fatalf("widths %d of %d, want %d of 3", dims, f.Dim, want)
	}
	if got, want := fmt.Sprint(r.meta.NodeTypes[0].Features, r.meta.NodeTypes[2].Features),
		"[{age 0} {country=de 0} {country=fr 0}] [{price 0}]"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
	rows := r.rows(f)
	for v, want := range [][]float32{{-1.2247448, 0.7071068, -0.7071067},
		{1.2247448, -1.4142135, 1.4142135}, {0, 0.7071068, -0.7071067}, {1}, {-1}, {1}, {}, {}} {
		row := rows[3*v : 3*v+3]
		for k := range row {
			w := float32(0)
			if k < len(want) {
				w = want[k]
			}
			if d := row[k] - w; d > 1e-5 || d < -1e-5 {
				t.Errorf("row of %s is %g, want %g", r.ids[v], row, want)
			}
		}
	}
}

// TestTypedColumns: all columns but the ids are stored, each as what it is, with its gaps.
func TestTypedColumns(t *testing.T) {
	fs := typedFiles(t, map[string]string{"users.csv": "id,age,zip,ok,day,at,score,note,label\n" +
		"7,30,01234,true,2024-02-29,2024-02-29T01:02:03.5Z,1.5,a b,a\n" +
		"3,,99,,1969-12-31,1969-12-31 23:59:59,-2e3,,b\n5,-4,x,false,,,nan,c,a\n"})
	opt := typedOptions()
	opt.FeatureCols, opt.Categorical = "", ""
	if err := ingestTyped(t, fs, opt, 0); err != nil {
		t.Fatal(err)
	}
	r := open(t, fs, "store")
	want := map[string]string{
		"age int64":     "30 null -4",
		"zip string":    "01234 99 x",
		"ok bool":       "1 null 0",
		"day date":      "19782 -1 null",
		"at timestamp":  "1709168523500000 -1000000 null",
		"score float64": "1.5 -2000 NaN",
		"note string":   "a b null c",
		"label string":  "a b a",
	}
	for _, c := range r.meta.NodeTypes[0].Columns {
		got := strings.Join(r.column(c), " ")
		if got != want[c.Name+" "+c.Type] {
			t.Errorf("column %s %s: %s", c.Name, c.Type, got)
		}
		delete(want, c.Name+" "+c.Type)
	}
	if len(want) > 0 {
		t.Errorf("not stored: %v", want)
	}
	price := r.meta.NodeTypes[2].Columns[0]
	if got := strings.Join(r.column(price), " "); got != "10 20" || price.Type != "int64" {
		t.Errorf("prices %s", got)
	}
}

// column reads a column whole, as text.
func (r *reading) column(c kv.TableColumn) (out []string) {
	r.t.Helper()
	f, err := columnfile.Open(context.Background(), r.store, r.dev, c, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	err = f.Scan(context.Background(), 0, c.Rows, nil, func(_ uint64, v *columnfile.Values) error {
		for i := range v.Rows {
			out = append(out, edgetabletest.Cell(v, i))
		}
		return nil
	})
	if err = errors.Join(err, f.Close()); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// TestTypedWrong: what is wrong in tables is said with its place, and nothing is left behind.
func TestTypedWrong(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		opt   func(o *Options)
		want  string
	}{
		"a foreign key without a row": {files: map[string]string{
			"orders.csv": "user,item\n7,x\n8,x\n"},
			want: "orders.csv line 3: user 8 has no row in the table of user"},
		"of the other end": {files: map[string]string{"orders.csv": "user,item\n7,x\n7,y\n"},
			want: "orders.csv line 3: item y has no row"},
		"of an empty table": {files: map[string]string{"users.csv": "id,age,country,label\n"},
			want: "user 7 has no row"},
		"two rows of one key": {files: map[string]string{"items.csv": "sku,price\nx,1\n3,2\nx,3\n"},
			want: "items.csv line 4: another row has the id x too"},
		"in the first table": {files: map[string]string{
			"users.csv": "id,age,country,label\n7,1,a,a\n7,2,a,b\n3,1,a,a\n"},
			want: "users.csv line 3: another row has the id 7 too"},
		"undirected": {opt: func(o *Options) { o.Undirected = true }, want: "--reverse"},
		"another order": {opt: func(o *Options) { o.Partitioner, o.Partitions = "random", 2 },
			want: "those of a type follow each other"},
		"edges without types": {opt: func(o *Options) { o.Relations[0].Src = "" },
			want: "--edges SRC:REL:DST=FILE"},
		"columns without a type": {opt: func(o *Options) { o.LabelCol = "label" },
			want: "write TYPE.COLUMN, where TYPE is one of user, color, item"},
		"columns of an unknown type": {opt: func(o *Options) { o.LabelCol = "tag.x" },
			want: "one of user, color, item"},
		"a column that is not there": {opt: func(o *Options) { o.LabelCol = "user.lable" },
			want: "lable"},
		"a file of labels": {opt: func(o *Options) { o.Labels = "l.csv" },
			want: "--label-col TYPE.COLUMN"},
		"labels of two types": {files: map[string]string{
			"items.csv": "sku,price,label\nx,1,a\n3,2,b\n"},
			opt: func(o *Options) { o.LabelCol = "" }, want: "--label-col TYPE.COLUMN"},
		"a type of two tables": {opt: func(o *Options) { o.NodeTables[2].Type = "user" },
			want: "has a table already"},
		"text in a column of numbers": {
			files: map[string]string{"items.csv": "sku,price\nx,1\n" + manyRows() + "3,cheap\n"},
			opt:   func(o *Options) { o.FeatureCols = "" },
			want: `column "price" has "cheap", and is int64 by its first rows; ` +
				"--column-types item.price="},
		"text in a column of edges": {
			files: map[string]string{"orders.csv": "user,item,count\n" +
				strings.Repeat("7,x,2\n", 5000) + "7,x,two\n"},
			want: `orders.csv line 5002: column "count" has "two", and is int64 by its first ` +
				"rows; --column-types buys.count="},
		"a type of an unknown column": {
			opt:  func(o *Options) { o.ColumnTypes = "user.agge=string" },
			want: "user.agge: no table has a column"},
		"an unknown type": {opt: func(o *Options) { o.ColumnTypes = "user.age=decimal" },
			want: "where KIND is one of"},
		"one name twice": {opt: func(o *Options) { o.Relations[1].Name = "rev_buys" },
			want: "two relations are called rev_buys"},
	} {
		for _, table := range []int64{0, 64} {
			fs, opt := typedFiles(t, c.files), typedOptions()
			if c.opt != nil {
				c.opt(&opt)
			}
			err := ingestTyped(t, fs, opt, table)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if _, err := fs.Stat("store"); err == nil {
				t.Errorf("%s: something is left of the store", name)
			}
		}
	}
}

// manyRows are more rows of items than are looked at before a table is read.
func manyRows() string {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "y%d,%d\n", i, i)
	}
	return b.String()
}

// TestUnreachedLabels: what has labels and no in-edges is said, unless --reverse adds some.
func TestUnreachedLabels(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		var notes strings.Builder
		opt := typedOptions()
		opt.Reverse, opt.Notes = reverse, &notes
		if err := ingestTyped(t, typedFiles(t, nil), opt, 0); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(notes.String(), "no edges lead to user") == reverse {
			t.Errorf("reverse %t: %s", reverse, notes.String())
		}
	}
}

// TestSameRelationNames: relations of one name between other types are told apart by these.
func TestSameRelationNames(t *testing.T) {
	fs, opt := typedFiles(t, nil), typedOptions()
	opt.Relations[1].Name = "buys"
	if err := ingestTyped(t, fs, opt, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"user:buys:item", "item:buys:tag", "item:rev_buys:user", "tag:rev_buys:item"}
	if got := open(t, fs, "store").meta.EdgeTypes; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m := open(t, fs, "store").meta; m.Relations[2] != (kv.RelationMeta{Src: 2, Dst: 0}) {
		t.Errorf("the reverse joins %v", m.Relations[2])
	}
}

// shopUser is a row of a table of columns.
type shopUser struct {
	ID    int64     `parquet:"id"`
	Zip   string    `parquet:"zip"`
	Since time.Time `parquet:"since,timestamp(microsecond)"`
	Born  int32     `parquet:"born,date"`
	Score *float64  `parquet:"score,optional"`
	Count uint32    `parquet:"count"`
	Open  bool      `parquet:"open"`
}

// TestTypedParquet: a table of columns says what its columns are, whatever their values look like,
// and times keep their fractions.
func TestTypedParquet(t *testing.T) {
	fs, score := typedFiles(t, nil), 0.1
	f, err := fs.Create("users.parquet", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[shopUser](f)
	_, err = w.Write([]shopUser{
		{ID: 7, Zip: "123", Since: time.UnixMicro(1700000000123456), Born: 11000, Score: &score},
		{ID: 3, Zip: "", Since: time.UnixMicro(-1), Born: -1, Count: 1<<32 - 1, Open: true},
		{ID: 5, Zip: "07", Since: time.UnixMicro(0)}})
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	opt := typedOptions()
	opt.NodeTables[0].File, opt.FeatureCols, opt.Categorical = "users.parquet", "", ""
	opt.LabelCol = "none"
	if err := ingestTyped(t, fs, opt, 0); err != nil {
		t.Fatal(err)
	}
	r := open(t, fs, "store")
	var got []string
	for _, c := range r.meta.NodeTypes[0].Columns {
		got = append(got, c.Name+" "+c.Type+": "+strings.Join(r.column(c), " "))
	}
	if want := []string{"zip string: 123 null 07",
		"since timestamp: 1700000000123456 -1 0", "born date: 11000 -1 0",
		"score float64: 0.1 null null", "count int64: 0 4294967295 0",
		"open bool: 0 1 0"}; !slices.Equal(got, want) {
		t.Errorf("columns\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
