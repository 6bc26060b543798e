package paged

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const nodeCount, edgeCount, partCount, rowsOfPart = 61, 500, 6, 11

type edge struct{ from, to uint32 }

// mustStore writes a store that is nothing but train edges.
func mustStore(t *testing.T) (*layout.Store, []edge) {
	t.Helper()
	fs, draw := vfs.NewMem(), rand.New(rand.NewPCG(3, 4))
	m := &kv.Meta{UUID: kv.UUID{4}, Nodes: nodeCount,
		EdgeSplits: []kv.EdgeSplitMeta{{Name: "train", Count: edgeCount}}}
	path := edgefile.Path("train")
	if err := fs.MkdirAll("s/edges", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := layout.CreateFile(fs, "s/"+path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := edgefile.NewWriter(f, edgefile.SpecOf(m, edgefile.Kind("train")), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []edge
	for range edgeCount {
		e := edge{draw.Uint32N(nodeCount), draw.Uint32N(nodeCount)}
		all = append(all, e)
		if err := w.Add(e.from, e.to, 0); err != nil {
			t.Fatal(err)
		}
	}
	err = w.Finish()
	meta, failed := f.Finish(path, edgefile.Kind("train"))
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{meta}
	return layout.NewStore(fs, "s", m), all
}

// mustOpen opens a set.
func mustOpen(t *testing.T, budget *mem.Budget, undirected bool) (*Neighbors, []edge) {
	t.Helper()
	store, all := mustStore(t)
	b, _, err := partition.OpenBuckets(t.Context(), store, devtest.Open(t, blockdev.Options{}),
		partition.BucketOptions{Partition: partition.Spec{Nodes: nodeCount, Parts: partCount,
			Random: true,
			Seed:   7}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewNeighbors(b, partCount*rowsOfPart, undirected, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, all
}

// TestLists compares the lists of sets, one after the other, with those of the edges that lie
// between their partitions. Partitions lie where they happen to in the buffer.
func TestLists(t *testing.T) {
	s, all := mustOpen(t, mem.NewBudget(0), false)
	draw := rand.New(rand.NewPCG(1, 2))
	for _, parts := range [][]int{{0, 1, 2}, {1, 2, 3}, {1, 2, 3}, {5}, {}, {0, 1, 2, 3, 4, 5}} {
		frames := draw.Perm(partCount)
		row := func(part int) uint32 { return uint32(frames[part] * rowsOfPart) }
		if err := s.Load(t.Context(), parts, row); err != nil {
			t.Fatal(err)
		}
		sameLists(t, s, all, numbersOf(t, s, parts, row))
	}
	if want := uint64(2 * edgeCount); s.Edges() >= want {
		t.Errorf("%d edges were read, want fewer than %d: those that stay are not read", s.Edges(),
			want)
	}
}

// TestOrders: through all sets of epochs in either order, partitions in frames that are taken from
// those that left, the lists are those that a set of nothing before has.
func TestOrders(t *testing.T) {
	for _, policy := range []partition.Policy{partition.Beta, partition.TwoLevel} {
		o, err := partition.NewOrder(partition.OrderSpec{Policy: policy, Parts: partCount,
			Capacity: 3,
			Logical:  partCount, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := mustOpen(t, mem.NewBudget(0), false)
		frames := map[int]int{}
		for epoch := range 3 {
			e := o.Epoch(epoch)
			for i := range e.Sets() {
				parts := e.Partitions(i)
				exchangeFrames(frames, parts)
				row := func(part int) uint32 { return uint32(frames[part] * rowsOfPart) }
				fresh, all := mustOpen(t, mem.NewBudget(0), false)
				for _, x := range []*Neighbors{s, fresh} {
					if err := x.Load(t.Context(), parts, row); err != nil {
						t.Fatal(err)
					}
				}
				for d := range s.lists {
					if !slices.Equal(s.lists[d].start, fresh.lists[d].start) ||
						!slices.Equal(s.lists[d].entries, fresh.lists[d].entries) {
						t.Fatalf("%s, epoch %d, set %d %v: direction %d differs", policy, epoch, i,
							parts, d)
					}
				}
				sameLists(t, s, all, numbersOf(t, s, parts, row))
			}
		}
	}
}

// exchangeFrames gives frames of partitions that left to those that came.
func exchangeFrames(frames map[int]int, parts []int) {
	maps.DeleteFunc(frames, func(part, _ int) bool { return !slices.Contains(parts, part) })
	for _, part := range parts {
		for frame := 0; ; frame++ {
			if _, there := frames[part]; there {
				break
			}
			if !slices.Contains(slices.Collect(maps.Values(frames)), frame) {
				frames[part] = frame
			}
		}
	}
}

// numbersOf are the numbers of the nodes of partitions.
func numbersOf(t *testing.T, s *Neighbors, parts []int,
	row func(part int) uint32) map[uint32]uint32 {
	t.Helper()
	number := map[uint32]uint32{}
	for v := range uint32(nodeCount) {
		part, r := s.m.Place(layout.NodeID(v))
		if at := row(part) + uint32(r); slices.Contains(parts, part) {
			number[v] = s.Number(at)
			if n := number[v]; s.Row(n) != at || s.Node(n) != v {
				t.Fatalf("number %d is of row %d, node %d, want %d, %d", n, s.Row(n), s.Node(n), at,
					v)
			}
		}
	}
	return number
}

// sameLists fails unless the lists hold exactly the given edges between nodes with these numbers.
func sameLists(t *testing.T, s *Neighbors, all []edge, number map[uint32]uint32) {
	t.Helper()
	for d, r := range s.Readers(true) {
		want := map[layout.NodeID][]layout.NodeID{}
		for _, e := range all {
			from, a := number[e.from]
			to, b := number[e.to]
			if d == 0 {
				from, to = to, from
			}
			if of := layout.NodeID(from); a && b {
				want[of] = append(want[of], layout.NodeID(to))
			}
		}
		session := r.NewSession()
		for _, v := range number {
			node := layout.NodeID(v)
			degree := []uint32{0}
			if err := session.Degrees(t.Context(), []layout.NodeID{node}, degree); err != nil {
				t.Fatal(err)
			}
			pos := make([]uint32, degree[0])
			for i := range pos {
				pos[i] = uint32(i)
			}
			got := make([]layout.NodeID, degree[0])
			err := session.Gather(t.Context(), []uint32{0, degree[0]}, pos, got)
			whole, failed := session.Lists(t.Context(), []layout.NodeID{node})
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, whole.Nbrs) {
				t.Fatalf("node %d: %v one by one, %v as a list", v, got, whole.Nbrs)
			}
			slices.Sort(got)
			slices.Sort(want[node])
			if !slices.Equal(got, want[node]) {
				t.Fatalf("direction %d, node %d: %v, want %v", d, v, got, want[node])
			}
		}
		session.Release()
	}
}

// TestOrder: the lists of a set do not depend on the sets before it.
func TestOrder(t *testing.T) {
	var first [][]layout.NodeID
	for _, before := range [][]int{{}, {2, 3}, {1, 4, 5}} {
		s, _ := mustOpen(t, mem.NewBudget(0), false)
		for _, parts := range [][]int{before, {1, 3, 5}} {
			err := s.Load(t.Context(), parts, func(part int) uint32 {
				return uint32((part + len(before)) % partCount * rowsOfPart)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		now := [][]layout.NodeID{s.lists[0].entries, s.lists[1].entries}
		if first == nil {
			first = now
		}
		for d := range now {
			if !slices.Equal(now[d], first[d]) {
				t.Errorf("after %v, direction %d: %v, want %v", before, d, now[d], first[d])
			}
		}
	}
}

// TestUndirected: lists have the edges of both directions.
func TestUndirected(t *testing.T) {
	s, all := mustOpen(t, mem.NewBudget(0), true)
	err := s.Load(t.Context(), []int{0, 1, 2, 3, 4, 5}, func(part int) uint32 {
		return uint32(part * rowsOfPart)
	})
	if err != nil {
		t.Fatal(err)
	}
	degrees := map[uint32]int{}
	for _, e := range all {
		degrees[e.from]++
		degrees[e.to]++
	}
	for number := range uint32(nodeCount) {
		_, got, _ := s.lists[0].place(layout.NodeID(number))
		if want := degrees[s.Node(number)]; int(got) != want {
			t.Errorf("node %d has %d neighbors, want %d", s.Node(number), got, want)
		}
	}
}

// TestMemory: what is held is counted, and given back.
func TestMemory(t *testing.T) {
	budget := mem.NewBudget(mem.HeapCost(RowBytes*partCount*rowsOfPart + 10*NeighborBytes))
	s, _ := mustOpen(t, budget, false)
	row := func(part int) uint32 { return uint32(part * rowsOfPart) }
	if err := s.Load(t.Context(), []int{0, 1, 2, 3, 4, 5}, row); err == nil {
		t.Error("edges past the budget are held")
	}
	if err := s.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes are left: %v", budget.Used(), err)
	}
	budget = mem.NewBudget(0)
	s, _ = mustOpen(t, budget, false)
	if err := s.Load(t.Context(), []int{0, 1, 2, 3, 4, 5}, row); err != nil {
		t.Fatal(err)
	}
	want := mem.HeapCost(RowBytes*partCount*rowsOfPart + edgeCount*NeighborBytes)
	if budget.Used() != want {
		t.Errorf("%d bytes are counted, want %d", budget.Used(), want)
	}
	held := len(s.at) + len(s.rows) + len(s.ids) + len(s.lists[0].start) + len(s.lists[1].start) - 2
	if per := 4 * held / nodeCount; per != RowBytes {
		t.Errorf("%d bytes are held a row, want %d", per, RowBytes)
	}
}
