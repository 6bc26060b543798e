package partitioner

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
)

// slowHubs is the twin of Hubs, which looks at one list at a time. It returns the scores too.
func slowHubs(lists [][]kv.NodeID, by Score, train []kv.NodeID, steps int) (order []kv.NodeID,
	now []float64) {
	now = make([]float64, len(lists))
	for _, v := range train {
		now[v] = 1
	}
	if by == PageRank {
		steps = 10
		for v := range now {
			now[v] = 1
		}
	}
	if by == Degree {
		steps = 1
	}
	for range steps {
		next := make([]float64, len(lists))
		for v, list := range lists {
			for _, u := range list {
				switch by {
				case Influence:
					next[u] += now[v] / float64(len(list)+1)
				case PageRank:
					next[u] += .85 * now[v] / float64(len(list))
				case Degree:
					next[u]++
				}
			}
			switch by {
			case Influence:
				next[v] += now[v] / float64(len(list)+1)
			case PageRank:
				next[v] += .15
			}
		}
		now = next
	}
	order = make([]kv.NodeID, len(lists))
	for v := range order {
		order[v] = kv.NodeID(v)
	}
	slices.SortStableFunc(order, func(a, b kv.NodeID) int { return cmp.Compare(now[b], now[a]) })
	return slices.DeleteFunc(order, func(v kv.NodeID) bool { return now[v] == 0 }), now
}

// TestHubs compares hubs with those of the twin, of lists that come in parts of any size.
func TestHubs(t *testing.T) {
	lists, labels := communities(3, 90, 5, 6)
	lists[7], lists[8] = nil, nil
	for v := range kv.NodeID(60) {
		lists[20] = append(lists[20], v)
	}
	train := []kv.NodeID{4, 20, 33}
	for _, by := range Scores {
		for _, most := range []int{1, 4, 100} {
			g := graphOf(lists, labels, 3, most)
			want, scores := slowHubs(lists, by, train, 2)
			for _, count := range []int{0, 1, 9, 500} {
				budget := mem.NewBudget(1 << 20)
				got, err := Hubs(t.Context(), g, HubOptions{By: by, Train: train, Steps: 2,
					Count: count, Budget: budget})
				if err != nil || budget.Used() != 0 {
					t.Fatalf("%s: %v, %d bytes left", by, err, budget.Used())
				}
				if len(got) != min(count, len(want)) {
					t.Fatalf("%s: %d hubs, want %d of %d", by, len(got), count, len(want))
				}
				for i, h := range got {
					near := math.Abs(scores[h.Node]/scores[want[i]]-1) < 1e-5
					if h.Node != want[i] && (by == Degree || !near) ||
						int(h.Entries) != len(lists[h.Node]) {
						t.Errorf("%s, parts of %d: hub %d is %d with %d entries, want %d with %d",
							by, most, i, h.Node, h.Entries, want[i], len(lists[want[i]]))
					}
				}
			}
		}
	}
	g := graphOf(lists, labels, 3, 9)
	o := HubOptions{By: "fame", Count: 5}
	if _, err := Hubs(t.Context(), g, o); !errors.Is(err, ErrOptions) {
		t.Errorf("fame: %v", err)
	}
	o = HubOptions{By: Degree, Count: 5, Budget: mem.NewBudget(64)}
	if _, err := Hubs(t.Context(), g, o); err == nil {
		t.Error("no error in 64 bytes")
	}
}
