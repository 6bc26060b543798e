package rowcache

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scanOf gives the lists of g in calls of four nodes, and node 0's, a hub, in two parts.
func scanOf(g *sampletest.Graph) TopologyScan {
	return func(fn func(layout.NodeID, bool, *listfile.Lists) error) error {
		hub := g.List(0)
		half := uint64(len(hub) / 2)
		parts := []struct {
			first layout.NodeID
			cont  bool
			lists [][]layout.NodeID
		}{{0, false, [][]layout.NodeID{hub[:half]}}, {0, true, [][]layout.NodeID{hub[half:]}}}
		for v := layout.NodeID(1); uint64(v) < g.Nodes(); v++ {
			if v%4 == 1 {
				parts = append(parts, parts[0])
				parts[len(parts)-1].first, parts[len(parts)-1].lists = v, nil
			}
			last := &parts[len(parts)-1]
			last.lists = append(last.lists, g.List(v))
		}
		for _, p := range parts {
			part := sampletest.FromLists(p.lists...)
			l := &listfile.Lists{Off: part.Off, Nbrs: part.Nbrs}
			if err := fn(p.first, p.cont, l); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestHotNodes(t *testing.T) {
	lists := make([][]layout.NodeID, 50)
	for v := range lists {
		for i := range (v * 7) % 13 {
			lists[v] = append(lists[v], layout.NodeID((v*i+i)%40))
		}
	}
	for i := range layout.NodeID(15) {
		lists[0] = append(lists[0], 3*i+1)
	}
	g := sampletest.FromLists(lists...)
	degree, use := map[layout.NodeID]int{}, map[layout.NodeID]int{}
	for v, l := range lists {
		if len(l) > 0 {
			degree[layout.NodeID(v)] = len(l)
		}
		for _, u := range l {
			use[u]++
		}
	}
	budget := mem.NewBudget(0)
	for _, limit := range []int{0, 1, 2, 10, 1000} {
		got, err := HotByDegree(t.Context(), scanOf(g), limit)
		if err != nil || !slices.Equal(got, plainHot(degree, limit)) {
			t.Errorf("by degree, limit %d: %v, %v; want %v", limit, got, err,
				plainHot(degree, limit))
		}
		got, err = HotByUse(t.Context(), scanOf(g), g.Nodes(), limit, budget)
		if err != nil || !slices.Equal(got, plainHot(use, limit)) {
			t.Errorf("by use, limit %d: %v, %v; want %v", limit, got, err, plainHot(use, limit))
		}
	}
	failed := errors.New("disk gone")
	broken := func(func(layout.NodeID, bool, *listfile.Lists) error) error { return failed }
	_, err := HotByDegree(t.Context(), broken, 3)
	_, err2 := HotByUse(t.Context(), broken, 50, 3, budget)
	if !errors.Is(err, failed) || !errors.Is(err2, failed) || budget.Used() != 0 {
		t.Errorf("errors %v, %v, %d bytes still counted", err, err2, budget.Used())
	}
}

func plainHot(count map[layout.NodeID]int, limit int) (out []layout.NodeID) {
	for v := range count {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b layout.NodeID) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return int(a) - int(b)
	})
	return out[:min(limit, len(out))]
}

func TestHotByTrial(t *testing.T) {
	trial := func(fn func(nodes []layout.NodeID) error) error {
		return errors.Join(fn([]layout.NodeID{7, 3, 5}), fn([]layout.NodeID{5, 9}),
			fn([]layout.NodeID{9, 2, 5}))
	}
	for limit, want := range [][]layout.NodeID{{}, {5}, {5, 9}, {5, 9, 2}, {5, 9, 2, 3},
		{5, 9, 2, 3, 7}, {5, 9, 2, 3, 7}} {
		got, err := HotByTrial(t.Context(), trial, 10, limit, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, %v, want %v", limit, got, err, want)
		}
	}
	bad := errors.New("no trial")
	if _, err := HotByTrial(t.Context(), func(func([]layout.NodeID) error) error { return bad }, 10,
		1,
		nil); !errors.Is(err, bad) {
		t.Errorf("a failed trial gives %v", err)
	}
}

// TestHottestOfMany keeps more nodes than are sorted at once, and ends with its context.
func TestHottestOfMany(t *testing.T) {
	const nodes, limit = 3 * hotPartLeast, 2*hotPartLeast + 5
	count := map[layout.NodeID]int{}
	each := func(fn func([]layout.NodeID) error) error {
		for v := layout.NodeID(0); v < nodes; v += 2 {
			times := int(v*2654435761>>24)%5 + 1
			count[v] = times
			for range times {
				if err := fn([]layout.NodeID{v, v + 1}); err != nil {
					return err
				}
			}
			count[v+1] = times
		}
		return nil
	}
	got, err := HotByTrial(t.Context(), each, nodes, limit, nil)
	if err != nil || !slices.Equal(got, plainHot(count, limit)) {
		t.Errorf("%d nodes, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := HotByTrial(ctx, each, nodes, limit, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("counted after the end: %v", err)
	}
	h := newHottest(3)
	h.offer(1, 1)
	if _, err := h.nodes(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("sorted after the end: %v", err)
	}
}

// TestFindAbout: by all blocks they are the hot nodes, by some of them nodes that are hot.
func TestFindAbout(t *testing.T) {
	g := layouttest.ManyLists()
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	dev := layouttest.Device(t)
	const limit = 200
	want, err := FindHot(t.Context(), s, dev, limit, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FindHotAbout(t.Context(), s, dev, limit, 1, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d nodes by all blocks, %v; want %d", len(got), err, len(want))
	}
	some, err := FindHotAbout(t.Context(), s, dev, limit, 3, nil)
	if err != nil || len(some) == 0 {
		t.Errorf("%d nodes by some blocks, %v", len(some), err)
	}
}
