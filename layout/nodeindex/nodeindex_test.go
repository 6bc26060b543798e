package nodeindex

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// people is a store of nodes with columns of each type, drawn by a seed, and the texts and numbers
// that they have; "" for null.
func people(t testing.TB, n int) (fs *vfs.MemFS, st *layout.Store, rows [][]string) {
	fs, r := vfs.NewMem(), rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	text.WriteString("id,name,age,score,born,nice\n")
	for i := range n {
		row := []string{fmt.Sprintf("n%d", r.IntN(n/2+1)), fmt.Sprint(r.IntN(40) - 20),
			fmt.Sprint(float64(r.IntN(40)-20) / 4), fmt.Sprintf("20%02d-01-02", r.IntN(30)),
			fmt.Sprint(r.IntN(2) == 0)}
		if i%7 == 3 {
			row[i%5] = ""
		}
		rows = append(rows, row)
		fmt.Fprintf(&text, "p%d,%s\n", i, strings.Join(row, ","))
	}
	layouttest.WriteFile(t, fs, "pets.csv", []byte("id,kind\n1,cat\n"))
	layouttest.WriteFile(t, fs, "people.csv", []byte(text.String()))
	layouttest.WriteFile(t, fs, "knows.csv", []byte("src,dst\n1,p0\n"))
	o := source.Options{Memory: 128 << 20, NodeTables: []source.NodeTable{
		{Type: "pet", File: "pets.csv"}, {Type: "person", File: "people.csv"}},
		Relations: []source.Relation{{Src: "pet", Name: "of", Dst: "person", File: "knows.csv"}}}
	if _, err := ingest.Run(context.Background(), fs, ingest.Options{Options: o,
		Out: "s.gdb"}); err != nil {
		t.Fatal(err)
	}
	return fs, mustOpen(t, fs), rows
}

func mustOpen(t testing.TB, fs vfs.FS) *layout.Store {
	st, err := layout.Open(context.Background(), fs, "s.gdb")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func mustBuild(t testing.TB, st *layout.Store, property string) kv.IndexMeta {
	t.Helper()
	m, err := Build(context.Background(), st, layouttest.Device(t), mem.NewBudget(64<<20),
		"person", property)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// valueOf is a text of the source as Find takes it.
func valueOf(typ, text string) any {
	var n int64
	var x float64
	switch typ {
	case columnfile.Int64:
		fmt.Sscan(text, &n)
		return n
	case columnfile.Float64:
		fmt.Sscan(text, &x)
		return x
	case columnfile.Bool:
		return map[string]int64{"true": 1, "false": 0}[text]
	case columnfile.Date:
		var y int
		fmt.Sscanf(text, "20%d", &y)
		days := int64(10957)
		for k := range y {
			days += 365
			if k%4 == 0 {
				days++
			}
		}
		return days + 1
	}
	return text
}

// TestFind: each value finds the nodes that have it, and those of no other type.
func TestFind(t *testing.T) {
	_, st, rows := people(t, 500)
	s := NewSet(st)
	defer s.Close()
	ctx := context.Background()
	for k, property := range []string{"name", "age", "score", "born", "nice"} {
		m := mustBuild(t, st, property)
		want := map[string][]layout.NodeID{}
		some := uint64(0)
		for i, row := range rows {
			if row[k] != "" {
				want[row[k]] = append(want[row[k]], layout.NodeID(i+1))
				some++
			}
		}
		if m.Values != some || m.Bytes == 0 {
			t.Errorf("%s: %+v, want %d values", property, m, some)
		}
		r, err := open(ctx, st, m)
		if err != nil {
			t.Fatal(err)
		}
		for text, nodes := range want {
			got, ok, err := r.Find(valueOf(m.Type, text), 500, nil)
			if !ok || err != nil || !slices.Equal(got, nodes) {
				t.Errorf("%s %s: %v, %v, %v; want %v", property, text, got, ok, err, nodes)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	all, err := s.All(ctx)
	if err != nil || len(all) != 5 || all[0].Name() != "person.age" {
		t.Errorf("%v, %v", all, err)
	}
}

// TestNumbers: numbers of the other type find what they equal, those that are not exact are not
// answered, and values of other types find nothing.
func TestNumbers(t *testing.T) {
	_, st, rows := people(t, 200)
	ctx := context.Background()
	age, score, name := mustBuild(t, st, "age"), mustBuild(t, st, "score"), mustBuild(t, st, "name")
	s := NewSet(st)
	defer s.Close()
	count := func(k int, text string) (n int) {
		for _, row := range rows {
			if row[k] == text {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		of   kv.IndexMeta
		v    any
		want int
		ok   bool
	}{
		{age, 5.0, count(1, "5"), true}, {age, 5.5, 0, true}, {age, "5", 0, true},
		{age, math.NaN(), 0, true}, {age, 1e300, 0, false}, {age, math.Inf(1), 0, false},
		{score, int64(2), count(2, "2"), true}, {score, math.Copysign(0, -1), count(2, "0"), true},
		{score, int64(1)<<53 + 1, 0, false}, {score, math.NaN(), 0, true},
		{score, -4.75, count(2, "-4.75"), true}, {name, int64(5), 0, true}, {name, 5.0, 0, true},
		{name, "", 0, true}, {name, "n", 0, true},
	} {
		r, why, err := s.Of(ctx, "person", c.of.Property)
		if r == nil || why != "" || err != nil {
			t.Fatal(r, why, err)
		}
		if got, ok, err := r.Find(c.v, 1000, nil); err != nil || ok != c.ok || len(got) != c.want {
			t.Errorf("%s %v: %v, %v, %v; want %d, %v", c.of.Property, c.v, got, ok, err, c.want,
				c.ok)
		}
	}
	r, _, _ := s.Of(ctx, "person", "age")
	n := count(1, "5")
	had := []layout.NodeID{9}
	if got, ok, err := r.Find(int64(5), n-1, had); ok || err != nil || !slices.Equal(got, had) {
		t.Errorf("more than %d: %v, %v, %v", n-1, got, ok, err)
	}
	if got, ok, err := r.Find(int64(5), n, had); !ok || err != nil || len(got) != n+1 {
		t.Errorf("%d: %v, %v, %v", n, got, ok, err)
	}
}

// TestTexts: keys of texts keep their order, also with zero bytes and where one begins another, and
// are cut off.
func TestTexts(t *testing.T) {
	texts := []string{"", "\x00", "\x00\x00", "\x00a", "a", "a\x00", "a\x00b", "a\x01", "aa", "b",
		"b\xff"}
	for i, a := range texts {
		for j, b := range texts {
			x, y := string(appendText(nil, []byte(a))), string(appendText(nil, []byte(b)))
			if (i < j) != (x < y) || i != j && strings.HasPrefix(y, x) {
				t.Errorf("%q %q: keys %q %q", a, b, x, y)
			}
		}
	}
	long := strings.Repeat("x", textMost)
	if string(appendText(nil, []byte(long))) != string(appendText(nil, []byte(long+"y"))) {
		t.Error("long texts are not cut off")
	}
	for i, x := range []float64{math.Inf(-1), -2, -1, -1e-300, 0, 1e-300, 1, 2, math.Inf(1)} {
		for j, y := range []float64{math.Inf(-1), -2, -1, -1e-300, 0, 1e-300, 1, 2, math.Inf(1)} {
			if (i < j) != (string(appendFloat(nil, x)) < string(appendFloat(nil, y))) {
				t.Errorf("%v and %v", x, y)
			}
		}
	}
}

// TestBounded: values that do not fit in memory are sorted in runs, with the same file.
func TestBounded(t *testing.T) {
	fs, st, _ := people(t, 120_000)
	large := mustBuild(t, st, "name")
	want := readFile(t, fs, st.Path(large.Path))
	budget := mem.NewBudget(8 << 20)
	m, err := Build(context.Background(), st, layouttest.Device(t), budget, "person", "name")
	if err != nil {
		t.Fatal(err)
	}
	m.Created = large.Created
	if got := readFile(t, fs, st.Path(m.Path)); m != large || len(got) != len(want) {
		t.Errorf("%+v, want %+v", m, large)
	}
	if budget.Used() != 0 || budget.Peak() > 8<<20 {
		t.Errorf("%d bytes used, %d at most", budget.Used(), budget.Peak())
	}
	if names, err := fs.List(st.Path("tmp")); err != nil || slices.Contains(names, "index") {
		t.Errorf("left behind: %q, %v", names, err)
	}
}

func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRefused: what cannot be indexed is said, with what was meant.
func TestRefused(t *testing.T) {
	_, st, _ := people(t, 10)
	for name, want := range map[string]string{"person.nam": "did you mean name?",
		"persn.name": "did you mean person?", "person.id": "is found without an index",
		"person.xyzzy": "but name, age"} {
		label, property, _ := strings.Cut(name, ".")
		_, err := Build(context.Background(), st, layouttest.Device(t), mem.NewBudget(0), label,
			property)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if err := Drop(context.Background(), st, "person", "name"); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
}

// TestUnusable: an index of another snapshot, whose file is gone or of another store, or that was
// dropped, is not used.
func TestUnusable(t *testing.T) {
	fs, st, _ := people(t, 100)
	ctx := context.Background()
	m := mustBuild(t, st, "age")
	of := func() (bool, string, error) {
		s := NewSet(st)
		r, why, err := s.Of(ctx, "person", "age")
		return r != nil, why, errors.Join(err, s.Close())
	}
	if used, why, err := of(); !used || why != "" || err != nil {
		t.Error(used, why, err)
	}
	later := m
	later.Snapshot = 3
	if err := st.Catalog().PutIndex(ctx, later); err != nil {
		t.Fatal(err)
	}
	if used, why, err := of(); used || why != "it is of snapshot 3, and this is 0" || err != nil {
		t.Error(used, why, err)
	}
	other := m
	other.Type = columnfile.Float64
	if err := st.Catalog().PutIndex(ctx, other); err != nil {
		t.Fatal(err)
	}
	if used, _, err := of(); used || !errors.Is(err, kv.ErrDamaged) ||
		!strings.Contains(err.Error(), "of another store, snapshot or column") {
		t.Error(used, err)
	}
	m = mustBuild(t, st, "age") // again
	s := NewSet(st)
	r, _, err := s.Of(ctx, "person", "age")
	if err != nil {
		t.Fatal(err)
	}
	if err := Drop(ctx, st, "person", "age"); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := r.Find(int64(5), 100, nil); !ok || err != nil || len(got) == 0 {
		t.Errorf("a reader of a dropped one: %v, %v, %v", got, ok, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if used, why, err := of(); used || why != "" || err != nil {
		t.Error(used, why, err)
	}
	if err := st.Catalog().PutIndex(ctx, m); err != nil {
		t.Fatal(err)
	}
	if used, why, err := of(); used || why != "its file is gone" || err != nil {
		t.Error(used, why, err)
	}
	if _, err := fs.Stat(st.Path(m.Path)); err == nil {
		t.Error("the file is there")
	}
}

// TestDamage flips bits of the file: what is found is right, or an error that says what to do.
func TestDamage(t *testing.T) {
	fs, st, _ := people(t, 300)
	ctx := context.Background()
	m := mustBuild(t, st, "age")
	path := st.Path(m.Path)
	good := readFile(t, fs, path)
	r, err := open(ctx, st, m)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := r.Find(int64(5), 300, nil)
	if err = errors.Join(err, r.Close()); err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	found := 0
	for i := 0; i < len(good); i += 7 {
		bad := slices.Clone(good)
		bad[i] ^= 1 << (i % 8)
		layouttest.WriteFile(t, fs, path, bad)
		r, err := open(ctx, st, m)
		var got []layout.NodeID
		if err == nil {
			got, _, err = r.Find(int64(5), 300, nil)
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			found++
		}
		if err == nil && !slices.Equal(got, want) ||
			err != nil && (!errors.Is(err, kv.ErrDamaged) ||
				!strings.Contains(err.Error(), "index STORE person.age")) {
			t.Errorf("byte %d: %v, %v", i, got, err)
		}
	}
	if found < 10 {
		t.Errorf("%d errors", found)
	}
}

// BenchmarkFind measures a warm look-up of a text that one node has.
func BenchmarkFind(b *testing.B) {
	_, st, rows := people(b, 200_000)
	m := mustBuild(b, st, "name")
	r, err := open(context.Background(), st, m)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	i := 0
	for b.Loop() {
		if i++; rows[i%len(rows)][0] == "" {
			continue
		}
		if _, ok, err := r.Find(rows[i%len(rows)][0], 1000, nil); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
