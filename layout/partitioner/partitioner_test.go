package partitioner

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// graphOf returns a graph of lists in memory, which Scan hands out in parts of at most most
// entries. A node without a label has the number of classes.
func graphOf(lists [][]kv.NodeID, labels []uint32, classes, most int) *Graph {
	g := &Graph{Nodes: uint64(len(lists)), Classes: classes, Count: make([]uint64, classes+1)}
	for i := range lists {
		g.Entries += uint64(len(lists[i]))
		g.Count[labels[i]]++
	}
	g.Labels = func(_ context.Context, first kv.NodeID, out []uint32) error {
		copy(out, labels[first:])
		return nil
	}
	g.Scan = func(_ context.Context, fn func(kv.NodeID, bool, *listfile.Lists) error) error {
		for v, list := range lists {
			for at := 0; at == 0 || at < len(list); at += most {
				part := list[at:min(at+most, len(list))]
				l := &listfile.Lists{Nbrs: part, Off: []uint64{0, uint64(len(part))}}
				if err := fn(kv.NodeID(v), at > 0, l); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return g
}

// communities returns lists, both ways, of a graph whose nodes have most neighbors in a community
// of their own, which is nodes that are equal modulo many, and labels that have nothing to do with
// these. One node in three has no label.
func communities(seed uint64, nodes, many, degree int) (lists [][]kv.NodeID, labels []uint32) {
	r := rand.New(rand.NewPCG(seed, 1))
	lists, labels = make([][]kv.NodeID, nodes), make([]uint32, nodes)
	for v := range nodes {
		for range degree / 2 {
			u := r.IntN(nodes)
			if r.IntN(10) > 0 {
				u = u/many*many + v%many
			}
			if u < nodes {
				lists[v], lists[u] = append(lists[v], kv.NodeID(u)), append(lists[u], kv.NodeID(v))
			}
		}
		labels[v] = uint32(r.IntN(3))
	}
	return lists, labels
}

// slowDeal is the twin of Deal: it looks at all partitions for each node.
func slowDeal(lists [][]kv.NodeID, labels []uint32, g *Graph, opt Options) []int {
	n, k := float64(len(lists)), opt.Parts
	if opt.Method != GAP {
		labels, g = make([]uint32, len(lists)), &Graph{Entries: g.Entries,
			Count: []uint64{uint64(len(lists))}}
	}
	size := make([][]int, len(g.Count))
	for i := range size {
		size[i] = make([]int, k)
	}
	alpha := math.Sqrt(float64(k)) * float64(g.Entries) / 2 / math.Pow(n, 1.5)
	of := slices.Repeat([]int{-1}, len(lists))
	for range opt.Passes {
		for v, list := range lists {
			size := size[labels[v]]
			if of[v] >= 0 {
				size[of[v]]--
			}
			same := float64(g.Count[labels[v]])
			most := math.Ceil(1.05 * same / float64(k))
			best, score := -1, 0.0
			for p := range k {
				near := 0.0
				for _, u := range list {
					if of[u] == p && int(u) != v {
						near++
					}
				}
				s := near - 1.5*alpha*math.Sqrt(float64(size[p])*(n/same))
				if opt.Method == LDG {
					s = near * (1 - float64(size[p])/most)
				}
				if float64(size[p]) < most && (best < 0 || s > score || s == score &&
					size[p] < size[best]) {
					best, score = p, s
				}
			}
			of[v] = best
			size[best]++
		}
	}
	return of
}

// TestDeal compares partitions with those of the twin, with lists in parts too.
func TestDeal(t *testing.T) {
	for _, method := range Methods {
		for _, c := range []struct{ nodes, parts, passes, most int }{
			{300, 7, 1, 1000}, {300, 7, 3, 3}, {90, 90, 2, 1}, {50, 1, 1, 5}, {400, 33, 2, 2},
		} {
			lists, labels := communities(uint64(c.nodes), c.nodes, 9, 12)
			g := graphOf(lists, labels, 2, c.most)
			opt := Options{Method: method, Parts: c.parts, Passes: c.passes,
				Budget: mem.NewBudget(1 << 30)}
			p, err := Deal(t.Context(), g, opt)
			if err != nil {
				t.Fatal(err)
			}
			for v, want := range slowDeal(lists, labels, g, opt) {
				if int(p.Of[v]) != want {
					t.Fatalf("%s, %+v: node %d is in partition %d, want %d", method, c, v, p.Of[v],
						want)
				}
			}
			if err := p.Close(); err != nil || opt.Budget.Used() != 0 {
				t.Errorf("%v, and %d bytes stay counted", err, opt.Budget.Used())
			}
		}
	}
}

// TestQuality: communities are found, again better when lists are read again, partitions have no
// more than their share of nodes, and of each label with GAP alone.
func TestQuality(t *testing.T) {
	lists, labels := communities(1, 6000, 16, 20)
	for v := range labels { // half of the communities have each
		labels[v] = uint32(v % 16 / 8)
	}
	g := graphOf(lists, labels, 2, 1000)
	for _, method := range Methods {
		var cuts []float64
		for _, passes := range []int{1, 4} {
			p, err := Deal(t.Context(), g, Options{Method: method, Parts: 16, Passes: passes})
			if err != nil {
				t.Fatal(err)
			}
			q, err := Judge(t.Context(), g, p.Of, 16)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %d passes: %+v", method, passes, *q)
			if cuts = append(cuts, q.Cut); q.Nodes > slack+.01 {
				t.Errorf("%s: a partition has %g times its share of nodes", method, q.Nodes)
			}
			if method == GAP && q.Labels > slack+.01 || method != GAP && q.Labels < 1.5 {
				t.Errorf("%s: a partition has %g times its share of a label", method, q.Labels)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if cuts[1] > cuts[0] || cuts[1] > .7 { // by chance 15 of 16 are cut
			t.Errorf("%s cuts %v of the edges", method, cuts)
		}
	}
}

// TestJudge: what is judged is what is counted by hand.
func TestJudge(t *testing.T) {
	lists := [][]kv.NodeID{{1, 2, 0}, {0}, {0, 3}, {2}}
	g := graphOf(lists, []uint32{0, 0, 1, 1}, 1, 2)
	q, err := Judge(t.Context(), g, []uint16{0, 0, 0, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	// Two of six entries are cut, and a loop is none; six entries of seven are in one partition.
	if want := (Quality{2. / 6, 1.5, 12. / 7, 1}); *q != want {
		t.Errorf("%+v, want %+v", *q, want)
	}
}

// TestErrors: what makes no sense is refused, and nothing stays counted.
func TestErrors(t *testing.T) {
	lists, labels := communities(1, 100, 4, 4)
	g := graphOf(lists, labels, 2, 10)
	for _, opt := range []Options{{Method: GAP, Parts: 0, Passes: 1},
		{Method: GAP, Parts: 101, Passes: 1}, {Method: LDG, Parts: 2}, {Parts: 2, Passes: 1}} {
		if _, err := Deal(t.Context(), g, opt); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	budget, full := mem.NewBudget(1<<10), &mem.LimitError{}
	opt := Options{Method: GAP, Parts: 50, Passes: 1, Budget: budget}
	if _, err := Deal(t.Context(), g, opt); !errors.As(err, &full) || budget.Used() != 0 {
		t.Errorf("%v, and %d bytes stay counted", err, budget.Used())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	opt.Budget = mem.NewBudget(1 << 20)
	if _, err := Deal(ctx, g, opt); !errors.Is(err, context.Canceled) || opt.Budget.Used() != 0 {
		t.Errorf("cancelled: %v, and %d bytes stay counted", err, opt.Budget.Used())
	}
}

// TestSizes: the partition with fewest nodes is on top, whatever is added and removed.
func TestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := newSizes(13)
	for range 3000 {
		p := r.IntN(13)
		if s.of[p] > 0 && r.IntN(3) == 0 {
			s.remove(p, 1)
		} else {
			s.add(p, 1)
		}
		if want := slices.Index(s.of, slices.Min(s.of)); s.least() != want {
			t.Fatalf("%v: %d is on top, not %d", s.of, s.least(), want)
		}
	}
}

// TestOfStore: only training nodes have labels: their classes, or one for all of them.
func TestOfStore(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(g *layouttest.Graph)
		classes int
		want    []uint32 // of the first five nodes, with nodes 1 and 3 to train
	}{
		{"classes", func(*layouttest.Graph) {}, 3, []uint32{3, 2, 3, 0, 3}},
		{"an unknown class", func(g *layouttest.Graph) { g.Labels[3] = -1 }, 3,
			[]uint32{3, 2, 3, 3, 3}},
		{"numbers", func(g *layouttest.Graph) {
			g.Classes, g.Labels, g.Targets = nil, nil, make([]float32, g.Nodes)
		}, 1, []uint32{1, 0, 1, 0, 1}},
	} {
		g := layouttest.Random(1, 6000, 50000)
		g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, g.Nodes)
		g.Labels[1], g.Labels[2] = 2, 1
		g.Splits = map[string][]layout.NodeID{"train": {1, 3, 5000}}
		c.change(&g)
		files := openfiles.New(layouttest.Build(t, vfs.NewMem(), "s", g), layouttest.Device(t), nil)
		of, err := OfStore(t.Context(), files, "")
		if err != nil {
			t.Fatal(err)
		}
		got := make([]uint32, 5)
		err = of.Labels(t.Context(), 0, got)
		if err != nil || !slices.Equal(got, c.want) || of.Classes != c.classes {
			t.Errorf("%s: labels %v of %d classes, want %v of %d; %v", c.what, got, of.Classes,
				c.want, c.classes, err)
		}
		if at := of.Count[c.classes]; at < 5997 || at > 5998 {
			t.Errorf("%s: counts %v", c.what, of.Count)
		}
		p, err := Deal(t.Context(), of, Options{Method: GAP, Parts: 3, Passes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if p.Of[1] == p.Of[3] && c.classes == 1 {
			t.Errorf("%s: two of three training nodes are in one partition of three", c.what)
		}
		if err := errors.Join(p.Close(), files.Close()); err != nil {
			t.Error(err)
		}
	}
}
