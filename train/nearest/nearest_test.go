package nearest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/ivf"
	"gdb/train/link/triples"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// builtStore is a store with features of planted clusters, some of them far from the origin.
func builtStore(t testing.TB, n, dim int) (*layout.Store, []float32) {
	r := rand.New(rand.NewPCG(1, 1))
	g := layouttest.Random(3, n, 2*n)
	g.Dim, g.Features = dim, make([]float32, n*dim)
	for i := range n {
		for j := range dim {
			g.Features[i*dim+j] = float32((i%30*(j+3))%17) + float32(r.NormFloat64())
		}
	}
	return layouttest.Build(t, vfs.NewMem(), "s", g), g.Features
}

func closeness(by string, a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	switch by {
	case ivf.Dot:
		return dot
	case ivf.Euclid:
		return -math.Sqrt(max(0, aa+bb-2*dot))
	}
	return dot / math.Sqrt(aa*bb)
}

// TestNearest: scores agree with the definition, in order; Exact gives the closest, and an index
// nearly all of them; Among leaves out the others, however few it allows.
func TestNearest(t *testing.T) {
	const n, dim, top = 5000, 10, 12
	st, x := builtStore(t, n, dim)
	dev := layouttest.Device(t)
	of := triples.VectorsOf{Features: st.Meta().Features[0].Name}
	row := func(i int) []float32 { return x[i*dim:][:dim] }
	for _, by := range ivf.Closenesses() {
		budget := mem.NewBudget(128 << 20)
		m, err := Build(t.Context(), st, dev, Options{Of: of, By: by, Recall: 0.95, Threads: 2,
			Seed: 1, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if m.Recall < 0.95 || m.Name() != of.String() || m.By != by || budget.Used() != 0 {
			t.Errorf("%s: %+v, %d bytes in use", by, m, budget.Used())
		}
		v, err := Open(t.Context(), st, dev, of, budget)
		if err != nil {
			t.Fatal(err)
		}
		if what, why := v.Index(by, top); what == "" || why != "" || v.Closeness() != by {
			t.Errorf("%s: %q, %q", by, what, why)
		}
		if what, why := v.Index(by, 1<<16); what != "" || !strings.Contains(why, "candidates") {
			t.Errorf("%s: of too many answers: %q, %q", by, what, why)
		}
		many, err := v.Nearest(t.Context(), triples.Nearest{Node: 3, By: by, Top: 4500})
		if err != nil || len(many) != 4500 && m.Probes == m.Lists {
			t.Errorf("%s: %d of 4500 answers, %v", by, len(many), err)
		}
		found := 0
		for _, share := range []uint32{1, 1000} {
			for node := range uint32(20) {
				ask := triples.Nearest{Node: node * 211, By: by, Top: top}
				if share > 1 {
					ask.Among = func(v uint32) bool { return v%share == 7 }
					ask.Allowed = n / uint64(share)
				}
				want, err := v.Exact(t.Context(), ask)
				got, err2 := v.Nearest(t.Context(), ask)
				if err = errors.Join(err, err2); err != nil {
					t.Fatal(err)
				}
				if share > 1 && len(want) != n/int(share) {
					t.Fatalf("%s: %d answers of %d", by, len(want), n/share)
				}
				for i, a := range append(slices.Clone(got), want...) {
					score := closeness(by, row(int(ask.Node)), row(int(a.Entity)))
					if a.Entity == ask.Node || ask.Among != nil && !ask.Among(a.Entity) ||
						math.Abs(score-float64(a.Score)) > 1e-3*(1+math.Abs(score)) {
						t.Errorf("%s: answer %d of %d: %v, want %g", by, i, ask.Node, a, score)
					}
				}
				for _, w := range want {
					if slices.ContainsFunc(got, func(a triples.Answer) bool {
						return a.Entity == w.Entity
					}) {
						found++
					}
				}
			}
		}
		if all := 20 * (top + n/1000); found < all*9/10 {
			t.Errorf("%s: %d of %d are found", by, found, all)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if budget.Used() != 0 {
			t.Errorf("%d bytes are still counted", budget.Used())
		}
	}
}

// TestDrop takes an index away, with its file.
func TestDrop(t *testing.T) {
	st, _ := builtStore(t, 300, 4)
	dev, of := layouttest.Device(t), triples.VectorsOf{Features: st.Meta().Features[0].Name}
	m, err := Build(t.Context(), st, dev, Options{Of: of, Recall: 0.9, Threads: 1,
		Budget: mem.NewBudget(64 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	found, files, bytes, err := Check(t.Context(), st, dev)
	if len(found) != 0 || files != 1 || bytes != m.Bytes || err != nil {
		t.Errorf("a check says %v, %d files, %d bytes, %v", found, files, bytes, err)
	}
	layouttest.Flip(t, st.FS(), st.Path(m.Path), m.Bytes-30000, 1)
	found, _, _, err = Check(t.Context(), st, dev)
	if len(found) != 1 || found[0].Path != m.Path || err != nil {
		t.Errorf("a check of a flipped bit says %v, %v", found, err)
	}
	if err := Drop(t.Context(), st, of); err != nil {
		t.Fatal(err)
	}
	if _, err := st.FS().Stat(st.Path(m.Path)); err == nil {
		t.Error("the file is still there")
	}
	if err := Drop(t.Context(), st, of); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("dropped again: %v", err)
	}
	var not *UsageError
	_, err = Open(t.Context(), st, dev, triples.VectorsOf{Features: "none"}, nil)
	if !errors.As(err, &not) || !strings.Contains(err.Error(), of.Features) {
		t.Errorf("other features: %v", err)
	}
}

// TestDeleted: a node that was deleted is no answer, of an index or of all.
func TestDeleted(t *testing.T) {
	st, _ := builtStore(t, 300, 4)
	dev := layouttest.Device(t)
	of := triples.VectorsOf{Features: st.Meta().Features[0].Name}
	budget := mem.NewBudget(128 << 20)
	if _, err := Build(t.Context(), st, dev, Options{Of: of, Recall: 0.95, Threads: 2,
		Budget: budget}); err != nil {
		t.Fatal(err)
	}
	v, err := Open(t.Context(), st, dev, of, budget)
	if err != nil {
		t.Fatal(err)
	}
	ask := triples.Nearest{Node: 7, By: v.Closeness(), Top: 3}
	all, err := v.Exact(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	v.deleted = roaring.BitmapOf(all[0].Entity)
	for what, search := range map[string]func(context.Context,
		triples.Nearest) ([]triples.Answer, error){"all": v.Exact, "index": v.Nearest} {
		got, err := search(t.Context(), ask)
		if err != nil || len(got) != 3 || got[0].Entity == all[0].Entity ||
			what == "all" && got[0] != all[1] {
			t.Errorf("%s: %v %v, without %v of %v", what, got, err, all[0], all)
		}
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestIndexLeavesOutDeleted: an index has the vectors of the nodes that are there, and equals one
// of these alone but for the numbers of nodes.
func TestIndexLeavesOutDeleted(t *testing.T) {
	const n, dim = 5000, 4
	st, x := builtStore(t, n, dim)
	dev, of := layouttest.Device(t), triples.VectorsOf{Features: st.Meta().Features[0].Name}
	rows, err := openSource(t.Context(), st, dev, of, nil)
	if err != nil {
		t.Fatal(err)
	}
	deleted := roaring.BitmapOf(0, 1, 7, scanRows-1, scanRows, n-1)
	deleted.AddRange(100, 400)
	all := there(rows, deleted)
	var nodes []uint32
	err = all.Each(t.Context(), func(some []uint32, rows []float32) error {
		for i, v := range some {
			if !slices.Equal(rows[i*dim:][:dim], x[v*dim:][:dim]) {
				t.Errorf("node %d has %v, want %v", v, rows[i*dim:][:dim], x[v*dim:][:dim])
			}
		}
		nodes = append(nodes, some...)
		return nil
	})
	want := roaring.New()
	want.AddRange(0, n)
	want.AndNot(deleted)
	if err != nil || !slices.Equal(nodes, want.ToArray()) || all.Count != len(nodes) ||
		all.Dim != dim {
		t.Errorf("%d of %d rows of %d nodes, %v", len(nodes), all.Count, want.GetCardinality(), err)
	}
	opt := ivf.Options{Place: ivf.Place{Store: st, Dev: dev, Path: "prep/some.ivf"},
		By: ivf.Euclid, Recall: 0.9, Threads: 2, Seed: 1}
	opt.Budget = mem.NewBudget(128 << 20)
	made, err := ivf.Build(t.Context(), all, opt)
	if err != nil || made.Vectors != want.GetCardinality() {
		t.Fatalf("%+v, %v", made, err)
	}
	dense := opt
	dense.Path = "prep/dense.ivf"
	same, err := ivf.Build(t.Context(), ivf.Rows{Count: len(nodes), Dim: dim,
		Each: func(ctx context.Context, fn func(nodes []uint32, rows []float32) error) error {
			count := uint32(0)
			return all.Each(ctx, func(some []uint32, rows []float32) error {
				ranks := make([]uint32, len(some))
				for i := range ranks {
					ranks[i] = count + uint32(i)
				}
				count += uint32(len(some))
				return fn(ranks, rows)
			})
		}}, dense)
	if err != nil || same != made {
		t.Errorf("%+v, %v, want %+v", same, err, made)
	}
	index, err := ivf.Open(t.Context(), opt.Place, opt.Budget, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Check(t.Context(), n); err != nil {
		t.Error(err)
	}
	if err := index.Check(t.Context(), n-65); err == nil {
		t.Error("nodes that are not there were not found")
	}
	if err := errors.Join(index.Close(), rows.Close()); err != nil {
		t.Error(err)
	}
}
