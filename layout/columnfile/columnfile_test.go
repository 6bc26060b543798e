package columnfile_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

type shape struct {
	name, typ string
	dim       int
	add       func(r *rand.Rand, v *columnfile.Values, i int)
}

// shapes are kinds of contents: each tests another coding.
var shapes = []shape{
	{"any", columnfile.Int64, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Ints = append(v.Ints, int64(r.Uint64()))
	}},
	{"small", columnfile.Int64, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Ints = append(v.Ints, r.Int64N(1000)-500)
	}},
	{"widening", columnfile.Int64, 0, func(r *rand.Rand, v *columnfile.Values, i int) {
		v.Ints = append(v.Ints, r.Int64()>>max(0, 63-i/300)-5)
	}},
	{"constant", columnfile.Date, 0, func(_ *rand.Rand, v *columnfile.Values, _ int) {
		v.Ints = append(v.Ints, 19000)
	}},
	{"bits", columnfile.Bool, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Ints = append(v.Ints, r.Int64N(2))
	}},
	{"rising", columnfile.Timestamp, 0, func(r *rand.Rand, v *columnfile.Values, i int) {
		v.Ints = append(v.Ints, 1e15+int64(i)*1e6+r.Int64N(1e6))
	}},
	{"real", columnfile.Float64, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Floats = append(v.Floats, r.NormFloat64())
	}},
	{"odd", columnfile.Float64, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		odd := []float64{math.Copysign(0, -1), math.Inf(1), 0, 1, 1 << 60, math.MaxFloat64}
		v.Floats = append(v.Floats, odd[r.IntN(len(odd))])
	}},
	{"whole", columnfile.Float64, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Floats = append(v.Floats, float64(r.IntN(9)-4))
	}},
	{"prices", columnfile.Float64, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Floats = append(v.Floats, float64(r.IntN(20000))/100)
	}},
	{"few", columnfile.String, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Strings.Add(fmt.Appendf(nil, "kind %d", r.IntN(30)))
	}},
	{"keys", columnfile.String, 0, func(_ *rand.Rand, v *columnfile.Values, i int) {
		v.Strings.Add(fmt.Appendf(nil, "key %08d", i))
	}},
	{"noise", columnfile.String, 0, func(r *rand.Rand, v *columnfile.Values, _ int) {
		b := make([]byte, r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		v.Strings.Add(b)
	}},
	{"many", columnfile.String, 0, func(r *rand.Rand, v *columnfile.Values, i int) {
		// A dictionary that is full after a while.
		n := 9
		if i > 9000 {
			n = 1 << 20
		}
		v.Strings.Add(fmt.Appendf(nil, "%0200d", r.IntN(n)))
	}},
	{"words", columnfile.Sparse, 4714, func(r *rand.Rand, v *columnfile.Values, _ int) {
		v.Sparse.Add(indices(r, 28, 4714), nil)
	}},
	{"weights", columnfile.Sparse, 1 << 32, func(r *rand.Rand, v *columnfile.Values, i int) {
		index := indices(r, 9, 1<<32)
		var value []float32
		for range index {
			value = append(value, r.Float32())
		}
		if i%3000 > 1500 {
			value = nil // blocks of ones
		}
		v.Sparse.Add(index, value)
	}},
}

// indices returns fewer than most ascending numbers below dim.
func indices(r *rand.Rand, most int, dim uint64) (out []uint32) {
	for range r.IntN(most) {
		out = append(out, uint32(r.Uint64N(dim)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// random returns n rows, of which one in nulls is null; 0 is for none.
func random(r *rand.Rand, s int, n, nulls int) (v columnfile.Values) {
	for i := range n {
		if nulls == 0 || r.IntN(nulls) > 0 {
			shapes[s].add(r, &v, i)
			v.AddRow(true)
			continue
		}
		v.AddNull(shapes[s].typ)
	}
	return v
}

// mustStore writes a column, in batches of any size, to a store that has nothing else.
func mustStore(t testing.TB, fs vfs.FS, s int, v *columnfile.Values) (*layout.Store,
	kv.TableColumn) {
	t.Helper()
	m := &kv.Meta{UUID: kv.UUID{1, 2, 3}}
	if err := fs.MkdirAll("s", 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := columnfile.NewWriter(fs, "s/x.col", columnfile.Spec{UUID: m.UUID, Name: "x",
		Path: "x.col", Type: shapes[s].typ, Dim: shapes[s].dim})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 3))
	for from := 0; from < v.Rows; {
		to := min(v.Rows, from+r.IntN(5000))
		var part columnfile.Values
		part.Append(v, from, to)
		if err := w.Append(&part); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	c, f, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{f}
	return layout.NewStore(fs, "s", m), c
}

// row returns a row so that it can be compared.
func row(v *columnfile.Values, i int) any {
	switch {
	case v.Null(i):
		return nil
	case len(v.Ints) > 0:
		return v.Ints[i]
	case len(v.Floats) > 0:
		return v.Floats[i]
	case len(v.Strings.Off) > 0:
		return string(v.Strings.At(i))
	}
	l := &v.Sparse
	index, value := l.Index[l.Off[i]:l.Off[i+1]], []float32(nil)
	for k := l.Off[i]; k < l.Off[i+1]; k++ {
		if len(l.Value) == 0 {
			value = append(value, 1)
		} else {
			value = append(value, l.Value[k])
		}
	}
	return fmt.Sprint(index, value)
}

// same compares rows.
func same(t *testing.T, what string, got, want *columnfile.Values, rows []uint64) {
	t.Helper()
	if got.Rows != len(rows) {
		t.Fatalf("%s: %d rows, want %d", what, got.Rows, len(rows))
	}
	for i, k := range rows {
		if g, w := row(got, i), row(want, int(k)); !reflect.DeepEqual(g, w) {
			t.Fatalf("%s: row %d is %v, want %v", what, k, g, w)
		}
	}
}

// sequence returns the numbers from … to-1.
func sequence(from, to int) (out []uint64) {
	for i := from; i < to; i++ {
		out = append(out, uint64(i))
	}
	return out
}

// TestRead reads what was written of every type: all rows, any ranges, and any rows.
func TestRead(t *testing.T) {
	dev := layouttest.Device(t)
	for s := range shapes {
		for _, n := range []int{0, 1, 499, 8192, 8193, 20000} {
			for _, nulls := range []int{0, 1, 20} {
				name := fmt.Sprintf("%s/n=%d/nulls=%d", shapes[s].name, n, nulls)
				r := rand.New(rand.NewPCG(uint64(n), uint64(s)))
				want := random(r, s, n, nulls)
				store, c := mustStore(t, vfs.NewMem(), s, &want)
				if c.Rows != uint64(n) || nulls == 0 && c.Nulls > 0 || nulls == 1 &&
					c.Nulls != uint64(n) {
					t.Fatalf("%s: %+v", name, c)
				}
				budget := mem.NewBudget(64 << 20)
				f, err := columnfile.Open(t.Context(), store, dev, c, budget)
				if err != nil {
					t.Fatal(name, err)
				}
				checkReads(t, name, f, &want, r)
				if err := f.Close(); err != nil || budget.Used() != 0 {
					t.Error(name, budget.Used(), err)
				}
			}
		}
	}
}

func checkReads(t *testing.T, name string, f *columnfile.Reader, want *columnfile.Values,
	r *rand.Rand) {
	t.Helper()
	n := want.Rows
	for k := range 6 {
		from, to := 0, n
		if k > 0 {
			from = r.IntN(n + 1)
			to = from + r.IntN(n+1-from)
		}
		var got columnfile.Values
		err := f.Scan(t.Context(), uint64(from), uint64(to-from), nil,
			func(at uint64, v *columnfile.Values) error {
				if at != uint64(from+got.Rows) {
					t.Fatalf("%s: row %d after %d", name, at, from+got.Rows)
				}
				got.Append(v, 0, v.Rows)
				return nil
			})
		if err != nil {
			t.Fatal(name, err)
		}
		same(t, name+" scan", &got, want, sequence(from, to))
	}
	if err := f.Scan(t.Context(), uint64(n), 1, nil, nil); err == nil {
		t.Error(name, "a row more than there are was read")
	}
	var got columnfile.Values
	for _, some := range []int{0, 1, 7, 3000} {
		rows := make([]uint64, min(some, n*some))
		for i := range rows {
			rows[i] = r.Uint64N(uint64(n))
		}
		for range 2 {
			if err := f.Gather(t.Context(), rows, &got); err != nil {
				t.Fatal(name, err)
			}
			same(t, name+" gather", &got, want, rows)
			slices.Sort(rows)
		}
	}
	if err := f.Gather(t.Context(), []uint64{uint64(n)}, &got); err == nil {
		t.Error(name, "a row that is not there was read")
	}
}

// TestMany writes more blocks than a page describes, and reads them from several goroutines.
func TestMany(t *testing.T) {
	want := random(rand.New(rand.NewPCG(5, 5)), 0, 200_000, 300)
	store, c := mustStore(t, vfs.NewMem(), 0, &want)
	budget, dev := mem.NewBudget(64<<20), layouttest.Device(t)
	f, err := columnfile.Open(t.Context(), store, dev, c, budget)
	if err != nil {
		t.Fatal(err)
	}
	reads := dev.Stats().Reads
	if err := f.Gather(t.Context(), []uint64{123_456}, &columnfile.Values{}); err != nil {
		t.Fatal(err)
	}
	if n := dev.Stats().Reads - reads; n != 1 || f.BytesRead() > 5<<10 {
		t.Errorf("a row takes %d reads, of %d bytes", n, f.BytesRead())
	}
	var work sync.WaitGroup
	for k := range 6 {
		work.Go(func() {
			checkReads(t, "many", f, &want, rand.New(rand.NewPCG(uint64(k), 1)))
		})
	}
	work.Wait()
	if err := f.Close(); err != nil || budget.Used() != 0 || f.Blocks() < 400 {
		t.Error(budget.Used(), f.Blocks(), err)
	}
}

// TestRange scans for ranges of values: all rows in the range come, and rising values let most
// blocks be skipped.
func TestRange(t *testing.T) {
	const n = 300_000
	for name, want := range map[string]*columnfile.Range{
		"rising": columnfile.IntRange(1e15+1e11, 1e15+1.01e11),
		"small":  columnfile.IntRange(500, 900), // there are none
		"keys":   columnfile.StringRange("key 0000100", "key 00001000"),
		"real":   columnfile.FloatRange(3, math.Inf(1)),
	} {
		s := slices.IndexFunc(shapes, func(x shape) bool { return x.name == name })
		v := random(rand.New(rand.NewPCG(5, 5)), s, n, 10)
		store, c := mustStore(t, vfs.NewMem(), s, &v)
		f, err := columnfile.Open(t.Context(), store, layouttest.Device(t), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, found := 0, 0
		err = f.Scan(t.Context(), 5, n-5, want, func(at uint64, part *columnfile.Values) error {
			for i := range part.Rows {
				if g, w := row(part, i), row(&v, int(at)+i); g != w {
					t.Fatalf("%s: row %d is %v, want %v", name, int(at)+i, g, w)
				}
				found += inside(name, part, i)
			}
			got += part.Rows
			return nil
		})
		all := 0
		for i := 5; i < n; i++ {
			all += inside(name, &v, i)
		}
		if err != nil || found != all || name != "real" && got > n/10 ||
			name == "small" && got > 0 {
			t.Errorf("%s: %d rows, of which %d of %d in the range: %v", name, got, found, all, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// inside returns 1 if a row is in the range of TestRange.
func inside(name string, v *columnfile.Values, i int) int {
	switch x := row(v, i).(type) {
	case int64:
		if name == "rising" && x >= 1e15+1e11 && x <= 1e15+1.01e11 {
			return 1
		}
	case float64:
		if x >= 3 {
			return 1
		}
	case string:
		if x >= "key 0000100" && x <= "key 00001000" {
			return 1
		}
	}
	return 0
}

// TestRefused holds that a writer refuses rows that are not of the column's type.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		typ  string
		dim  int
		v    columnfile.Values
		want string
	}{
		{columnfile.Bool, 0, columnfile.Values{Rows: 1, Ints: []int64{2}}, "not a bool"},
		{columnfile.Date, 0, columnfile.Values{Rows: 1, Ints: []int64{1 << 31}}, "32 bits"},
		{columnfile.Int64, 0, columnfile.Values{Rows: 2, Ints: []int64{2}}, "1 values"},
		{columnfile.Int64, 0, columnfile.Values{Floats: []float64{2}}, "not of the type"},
		{columnfile.Int64, 0, columnfile.Values{Rows: 65, Ints: make([]int64, 65),
			Valid: []uint64{1}}, "words of Valid"},
		{columnfile.String, 0, columnfile.Values{Rows: 1, Strings: columnfile.Strings{
			Off: []uint32{0, 1}, Bytes: []byte("a")}, Valid: []uint64{0}}, "null: true"},
		{columnfile.String, 0, columnfile.Values{Rows: 1, Strings: columnfile.Strings{
			Off: []uint32{0, 2}, Bytes: []byte("a")}}, "from 0 to 2 of 1"},
		{columnfile.Sparse, 9, columnfile.Values{Rows: 1, Sparse: columnfile.Lists{
			Off: []uint32{0, 2}, Index: []uint32{3, 3}}}, "index 3 after 3"},
		{columnfile.Sparse, 9, columnfile.Values{Rows: 1, Sparse: columnfile.Lists{
			Off: []uint32{0, 1}, Index: []uint32{9}}}, "of 9 dimensions"},
		{columnfile.Sparse, 9, columnfile.Values{Rows: 1, Sparse: columnfile.Lists{
			Off: []uint32{0, 1}, Index: []uint32{8}, Value: []float32{1, 2}}}, "2 values of 1"},
	} {
		w, err := columnfile.NewWriter(vfs.NewMem(), "x.col", columnfile.Spec{Name: "x",
			Path: "x.col", Type: c.typ, Dim: c.dim})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.typ, err, c.want)
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}
	for _, spec := range []columnfile.Spec{{Type: "text"}, {Type: columnfile.Sparse},
		{Type: columnfile.Int64, Dim: 3}} {
		if _, err := columnfile.NewWriter(vfs.NewMem(), "x.col", spec); err == nil {
			t.Errorf("%+v", spec)
		}
	}
}

// TestDamage flips bits all over a file and cuts it: reading all says that it is damaged.
func TestDamage(t *testing.T) {
	dev := layouttest.Device(t)
	for _, s := range []int{1, 10, 12, 14} {
		fs := vfs.NewMem()
		want := random(rand.New(rand.NewPCG(1, 1)), s, 9000, 50)
		store, c := mustStore(t, fs, s, &want)
		whole := layouttest.ReadFile(t, fs, "s/x.col")
		read := func() error {
			f, err := columnfile.Open(t.Context(), store, dev, c, nil)
			if err != nil {
				return err
			}
			err = f.Scan(t.Context(), 0, c.Rows, nil,
				func(uint64, *columnfile.Values) error { return nil })
			return errors.Join(err, f.Close())
		}
		for off := int64(0); off < int64(len(whole)); off += 197 {
			layouttest.Flip(t, fs, "s/x.col", off, 4)
			// Zeros between blocks and pages are read by gdb check only.
			padding := slices.Max(whole[off:(off|511)+1]) == 0 && off < int64(len(whole)-2*4096)
			if err := read(); !errors.Is(err, layout.ErrCorrupt) && !padding {
				t.Errorf("%s: a flipped bit at %d: %v", shapes[s].name, off, err)
			}
			layouttest.Flip(t, fs, "s/x.col", off, 4)
		}
		for _, n := range []int{0, 512, 4096, len(whole) / 2 &^ 511, len(whole) - 512} {
			layouttest.WriteFile(t, fs, "s/x.col", whole[:n])
			if err := read(); !errors.Is(err, layout.ErrCorrupt) {
				t.Errorf("%s: %d of %d bytes: %v", shapes[s].name, n, len(whole), err)
			}
		}
		layouttest.WriteFile(t, fs, "s/x.col", whole)
		other := c
		other.Nulls++
		if _, err := columnfile.Open(t.Context(), store, dev, other, nil); !errors.Is(err,
			layout.ErrCorrupt) {
			t.Error(err)
		}
	}
}

// TestStops holds that an error of the caller and a cancelled context end a read, and that the
// reader can be used afterwards.
func TestStops(t *testing.T) {
	want := random(rand.New(rand.NewPCG(5, 5)), 0, 100_000, 0)
	store, c := mustStore(t, vfs.NewMem(), 0, &want)
	f, err := columnfile.Open(t.Context(), store, layouttest.Device(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for range 10 {
		seen := 0
		err := f.Scan(t.Context(), 0, c.Rows, nil, func(uint64, *columnfile.Values) error {
			if seen++; seen == 5 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || seen != 5 {
			t.Fatal(seen, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Gather(ctx, sequence(0, 100_000), &columnfile.Values{}); !errors.Is(err,
			context.Canceled) {
			t.Fatal(err)
		}
	}
	checkReads(t, "after stops", f, &want, rand.New(rand.NewPCG(1, 1)))
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestBudget holds that a reader that finds no memory says so and leaves none behind.
func TestBudget(t *testing.T) {
	want := random(rand.New(rand.NewPCG(5, 5)), 0, 100_000, 0)
	store, c := mustStore(t, vfs.NewMem(), 0, &want)
	budget := mem.NewBudget(3 << 20) // of one buffer
	f, err := columnfile.Open(t.Context(), store, layouttest.Device(t), c, budget)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for k := range 3 {
		work.Go(func() {
			checkReads(t, "in 3 MiB", f, &want, rand.New(rand.NewPCG(uint64(k), 1)))
		})
	}
	work.Wait()
	if err := f.Close(); err != nil || budget.Used() != 0 || budget.Peak() < 2<<20 {
		t.Error(err, budget.Used(), budget.Peak())
	}
	for _, limit := range []int64{4096, 64 << 10, 1 << 20} {
		budget := mem.NewBudget(limit)
		f, err := columnfile.Open(t.Context(), store, layouttest.Device(t), c, budget)
		if err == nil {
			err = errors.Join(f.Gather(t.Context(), []uint64{1}, &columnfile.Values{}), f.Close())
		}
		var short *mem.LimitError
		if !errors.As(err, &short) || budget.Used() != 0 {
			t.Errorf("%d bytes: %v, %d are in use", limit, err, budget.Used())
		}
	}
}
