package columns

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// day is 2021-07-05, a Monday, in days since 1970.
const day = 18813

// tableColumn is a column of a table.
type tableColumn struct {
	Name, Type, Role string
	Values           columnfile.Values
}

// column returns a column with the values that add appends to each row; nil rows are null.
func column[T any](name, typ string, values []*T, add func(v *columnfile.Values, x T)) (
	c tableColumn) {
	c.Name, c.Type = name, typ
	for _, x := range values {
		if x == nil {
			c.Values.AddNull(typ)
			continue
		}
		add(&c.Values, *x)
		c.Values.AddRow(true)
	}
	return c
}

func ints(name, typ string, values ...*int64) tableColumn {
	return column(name, typ, values, func(v *columnfile.Values, x int64) {
		v.Ints = append(v.Ints, x)
	})
}

func texts(name string, values ...*string) tableColumn {
	return column(name, columnfile.String, values, func(v *columnfile.Values, x string) {
		v.Strings.Add([]byte(x))
	})
}

// one and word are pointers to values.
func one(x int64) *int64    { return &x }
func word(s string) *string { return &s }
func some(n int) (all []*int64) {
	for i := range n {
		all = append(all, one(int64(i)))
	}
	return all
}

// shop has four users, of which the first three train, with columns of all kinds, 70 items with
// texts, and a type without a table.
func shop() (g layouttest.Graph, tables [][]tableColumn) {
	users := []tableColumn{
		ints("age", columnfile.Int64, one(10), one(20), nil, one(1000)),
		ints("born", columnfile.Date, one(day), one(day), one(day+1), one(day+7)),
		ints("seen", columnfile.Timestamp, one(day*microsOfDay), one(day*microsOfDay+microsOfDay/4),
			one(day*microsOfDay), one(day*microsOfDay)),
		ints("ok", columnfile.Bool, one(1), one(0), one(1), one(1)),
		texts("city", word("b"), word("a"), word("b"), word("z")),
		ints("same", columnfile.Int64, one(5), one(5), one(5), one(6)),
		ints("shop_id", columnfile.Int64, one(5), one(7), one(5), one(6)),
		texts("kind", word("x"), word("y"), word("x"), word("y")),
	}
	users[7].Role = "label"
	var names, titles []*string
	for i := range 70 {
		names = append(names, word("brand"+string(rune('0'+i))))
		titles = append(titles, word(strings.Repeat("red Shoe ", 1+i)))
	}
	items := []tableColumn{texts("brand", names...), texts("title", titles...),
		ints("rank", columnfile.Int64, some(70)...)}
	g = layouttest.Graph{Nodes: 75, Dim: 3, Features: make([]float32, 75*3),
		Types: []layouttest.Type{{Name: "user", Nodes: 4, Dim: 3}, {Name: "item", Nodes: 70},
			{Name: "tag", Nodes: 1}},
		EdgeTypes: []string{"buys"}, Relations: []kv.RelationMeta{{Src: 0, Dst: 1}},
		Labels: make([]int32, 75), Classes: []string{"x", "y"}}
	for i := range 12 {
		g.Features[i] = float32(i)
	}
	return g, [][]tableColumn{users, items}
}

// mustShop builds the shop's store, whose stored features of users are a number and a vector of 2.
func mustShop(t *testing.T) *layout.Store {
	t.Helper()
	g, tables := shop()
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	for i, table := range tables {
		mustColumns(t, s, &s.Meta().NodeTypes[i], table)
	}
	s.Meta().NodeTypes[0].Features = []kv.ColumnMeta{{Name: "age"}, {Name: "face", Dim: 2}}
	s.Meta().Labels.OfType = "user"
	return s
}

// mustColumns writes the columns of a type.
func mustColumns(t *testing.T, s *layout.Store, of *kv.NodeTypeMeta, table []tableColumn) {
	t.Helper()
	of.Roles = map[string]string{}
	for i := range table {
		c := &table[i]
		path := of.Name + "-" + c.Name
		w, err := columnfile.NewWriter(s.FS(), s.Path(path), columnfile.Spec{UUID: s.Meta().UUID,
			Name: c.Name, Path: path, Type: c.Type})
		if err == nil {
			err = w.Append(&c.Values)
		}
		if err != nil {
			t.Fatal(err)
		}
		meta, _, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if of.Columns = append(of.Columns, meta); c.Role != "" {
			of.Roles[c.Name] = c.Role
		}
	}
}

func mustFit(t *testing.T, s *layout.Store) *Encoders {
	t.Helper()
	e, err := Fit(context.Background(), s, layouttest.Device(t), roaring.BitmapOf(0, 1, 2),
		mem.NewBudget(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestFit: what is chosen for each kind of column, by the rows of train alone.
func TestFit(t *testing.T) {
	e := mustFit(t, mustShop(t))
	want := []string{
		"features of user: face[2], age (number, gaps), born (day), seen (time), ok (truth), " +
			"city (2 words): 19 values; without same (one value), shop_id (a key by its name), " +
			"kind (label)",
		"features of item: brand (hashed to 64), title (text to 64), rank (number): 129 values",
		"features of tag: none: 0 values"}
	for i := range want {
		if got := e.Types[i].String(); got != want[i] {
			t.Errorf("%s\nwant %s", got, want[i])
		}
	}
	age, city := e.Types[0].Columns[0], e.Types[0].Columns[4]
	if age.Mean != 15 || age.Deviation != 5 {
		t.Errorf("age has the mean %g and the deviation %g, want 15 and 5", age.Mean, age.Deviation)
	}
	if !slices.Equal(city.Words, []string{"b", "a"}) {
		t.Errorf("cities are %q", city.Words)
	}
}

// TestNames: each value of a row has a name, in the order of the values.
func TestNames(t *testing.T) {
	e := mustFit(t, mustShop(t))
	want := []string{"face[0]", "face[1]", "age", "age.missing", "born", "born.year.sin",
		"born.year.cos", "born.week.sin", "born.week.cos", "seen", "seen.year.sin", "seen.year.cos",
		"seen.week.sin", "seen.week.cos", "seen.day.sin", "seen.day.cos", "ok", "city=b", "city=a"}
	if got := e.Types[0].Names(); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	item := e.Types[1].Names()
	if len(item) != e.Types[1].Dim() || item[0] != "brand#0" || item[127] != "title#63" ||
		item[128] != "rank" {
		t.Errorf("%q", item)
	}
}

// TestWrite: rows of a file are what encoders say.
func TestWrite(t *testing.T) {
	s := mustShop(t)
	e := mustFit(t, s)
	dev, budget := layouttest.Device(t), mem.NewBudget(64<<20)
	encoded, err := e.Open(context.Background(), s, dev, budget)
	if err != nil || budget.Used() != 0 {
		t.Fatalf("%v; %d bytes are still reserved", err, budget.Used())
	}
	meta := encoded.Meta().Features[0]
	r, err := rowfile.Open(context.Background(), encoded, dev, meta, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := make([]float32, 75*meta.Dim)
	if err := r.Scan(context.Background(), 0, 75, rows); err != nil {
		t.Fatal(err)
	}
	row := func(v int) []float32 { return rows[v*meta.Dim : (v+1)*meta.Dim] }
	// The year's 185th day after 184; a Monday; midnight, or six in the morning.
	sin, cos := math.Sincos(2 * math.Pi * 185 / 365)
	born := []float32{-1 / float32(math.Sqrt2), float32(sin), float32(cos), 0, 1}
	seen := []float32{-1 / float32(math.Sqrt2), float32(sin), float32(cos), 0, 1, 0, 1}
	near(t, "user 0", row(0)[:19], slices.Concat([]float32{1, 2, -1, 0}, born, seen,
		[]float32{1, 1, 0}))
	sin7, cos7 := math.Sincos(2 * math.Pi / 7)
	if got := row(2); got[2] != 0 || got[3] != 1 {
		t.Errorf("a user without age has %v, want 0 1", got[2:4])
	}
	near(t, "user 2 was born on a Tuesday", row(2)[7:9], []float32{float32(sin7), float32(cos7)})
	near(t, "user 1 was seen at six", row(1)[14:16], []float32{1, 0})
	// Rows that do not train are scaled by those that do, and words that these lack are none.
	near(t, "user 3", row(3)[2:4], []float32{197, 0})
	near(t, "city of user 3", row(3)[17:19], []float32{0, 0})
	checkHashes(t, rows[4*meta.Dim:], meta.Dim)
	near(t, "rank of item 69", row(73)[128:129], []float32{34.5 / float32(math.Sqrt(4899./12))})
	if slices.ContainsFunc(row(74), func(x float32) bool { return x != 0 }) {
		t.Errorf("a tag has the row %v", row(74))
	}
}

// checkHashes checks the brand and the title of items.
func checkHashes(t *testing.T, rows []float32, dim int) {
	t.Helper()
	used := map[int]bool{}
	for i := range 70 {
		brand, title := rows[i*dim:i*dim+64], rows[i*dim+64:i*dim+128]
		at := slices.Index(brand, 1)
		if used[at] = true; at < 0 || slices.Max(brand[at+1:]) > 0 && at < 63 {
			t.Errorf("the brand of item %d is %v", i, brand)
		}
		length := 0.0
		for _, x := range title {
			length += float64(x) * float64(x)
		}
		if math.Abs(length-1) > 1e-5 {
			t.Errorf("the title of item %d has the length %g", i, length)
		}
		near(t, "a title again and again", title, rows[64:128])
	}
	if len(used) < 35 {
		t.Errorf("70 brands have %d values", len(used))
	}
}

// TestText: letters in large or small are the same, a letter more is another text.
func TestText(t *testing.T) {
	of := func(s string) []float32 {
		e := newEncoder(&Column{Kind: Text, Buckets: 64}, columnfile.String)
		v := texts("", word(s)).Values
		out := make([]float32, 64)
		e.encode(&v, 0, out)
		return out
	}
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	a := of("Blue Suede shoes")
	if x := dot(a, of("blue suede SHOES")); math.Abs(x-1) > 1e-5 {
		t.Errorf("a text in other letters is as like as %g", x)
	}
	if x := dot(a, of("blue suede shoe")); x < .6 || x > .99 {
		t.Errorf("a text with a letter less is as like as %g", x)
	}
	if x := dot(a, of("zürich und görlitz")); math.Abs(x) > .4 {
		t.Errorf("another text is as like as %g", x)
	}
	if out := of(" "); dot(out, out) != 0 {
		t.Errorf("an empty text is %v", out)
	}
}

// TestLacking: a store without a column that a run was trained on is refused by its name.
func TestLacking(t *testing.T) {
	s := mustShop(t)
	e := mustFit(t, s)
	e.Types[0].Columns[1].Name = "height"
	_, err := e.Open(context.Background(), s, layouttest.Device(t), mem.NewBudget(64<<20))
	if err == nil || !strings.Contains(err.Error(), `columns of user: column "height"`) {
		t.Errorf("error %v", err)
	}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || math.Abs(float64(got[i]-want[i])) > 2e-4 {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}
