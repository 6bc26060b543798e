package topology_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// meaningStore is a store of several blocks whose block 1, of the lists or of the index, is changed
// under a checksum that is right.
func meaningStore(t *testing.T, file, kind string, change func(b []byte)) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", layouttest.Random(3, 600, 12000))
	layouttest.Rewrite(t, fs, s.Path(file), func(b []byte) []byte {
		block := b[codec.HeaderBytes:][:4096]
		change(block)
		sum := codec.BlockSum(kind, s.Meta().UUID, 1, block[4:])
		binary.LittleEndian.PutUint32(block, sum)
		return b
	})
	return s
}

// readAllLists reads every list by a reader, and scans them.
func readAllLists(t *testing.T, s *layout.Store, opt topology.Options) error {
	t.Helper()
	dev := layouttest.Device(t)
	topo, err := topology.Open(t.Context(), s, dev, layout.In, opt)
	if err != nil {
		return err
	}
	defer topo.Close()
	nodes := make([]layout.NodeID, s.Meta().Nodes)
	for i := range nodes {
		nodes[i] = layout.NodeID(i)
	}
	ses := topo.NewSession()
	defer ses.Release()
	_, err = ses.Lists(t.Context(), nodes)
	return err
}

// foreignStore is a store of 600 nodes of which one has a neighbor of its own, such as none of
// them: its blocks were written for a graph with more nodes.
func foreignStore(t *testing.T, id uint32) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	g := layouttest.Random(3, 600, 4000)
	s := layouttest.Build(t, fs, "s", g)
	w, err := listfile.NewWriter(fs, "other", listfile.Spec{UUID: s.Meta().UUID, Nodes: 1 << 32})
	if err != nil {
		t.Fatal(err)
	}
	lists := g.Lists(layout.In)
	for v, l := range lists {
		for i, e := range l {
			if v == len(lists)-1 && i == len(l)-1 {
				e.Nbr = layout.NodeID(id)
			}
			if err := w.AddEdge(layout.NodeID(v), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	var other []byte
	layouttest.Rewrite(t, fs, "other.csc", func(b []byte) []byte { other = b; return b })
	layouttest.Rewrite(t, fs, s.Path("topology/in.csc"), func(b []byte) []byte {
		if len(b) != len(other) {
			t.Fatalf("%d bytes, want %d", len(other), len(b))
		}
		return append(b[:codec.HeaderBytes:codec.HeaderBytes], other[codec.HeaderBytes:]...)
	})
	return s
}

// TestForeignNeighborsAreDamage: a neighbor that is no node is found by all readers where the block
// is read, whatever the checksum says.
func TestForeignNeighborsAreDamage(t *testing.T) {
	for _, id := range []uint32{600, 1 << 31, 1<<32 - 1} {
		s := foreignStore(t, id)
		for name, opt := range map[string]topology.Options{"resident": {Resident: true},
			"packed":  {Resident: true, Form: topology.Packed},
			"compact": {Resident: true, Form: topology.Compact},
			"paged":   {}, "with a neighbor cache": {NeighborBytes: 1 << 20}} {
			err := readAllLists(t, s, opt)
			if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(),
				"of 600 nodes") {
				t.Errorf("neighbor %d, %s: %v, want damage", id, name, err)
			}
		}
		err := listfile.Scan(t.Context(), s, layouttest.Device(t), layout.In,
			func(layout.NodeID, bool, *listfile.Lists) error { return nil })
		if !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("neighbor %d, scanned: %v, want damage", id, err)
		}
		r, err := inspect.Check(t.Context(), layouttest.Device(t), s, inspect.CheckOptions{})
		if err != nil || len(r.Findings) != 1 || r.Findings[0].Block != 2 {
			t.Errorf("neighbor %d: findings %+v, %v", id, r, err)
		}
	}
}

// TestIndexOrder: the first nodes of blocks ascend and are nodes of the graph.
func TestIndexOrder(t *testing.T) {
	first := func(k int, change func(before, v uint32) uint32) func(b []byte) {
		return func(b []byte) {
			at := b[4+8*k:]
			before := uint32(0)
			if k > 0 {
				before = binary.LittleEndian.Uint32(b[8*k-4:])
			}
			binary.LittleEndian.PutUint32(at, change(before, binary.LittleEndian.Uint32(at)))
		}
	}
	for name, c := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"a node too far":  {first(2, func(_, _ uint32) uint32 { return 600 }), "first node 600"},
		"one below":       {first(2, func(before, _ uint32) uint32 { return before - 1 }), "after"},
		"another's block": {first(2, func(_, v uint32) uint32 { return v + 1 }), "the index says"},
	} {
		s := meaningStore(t, "topology/in.idx", layout.KindIndexIn, c.change)
		err := readAllLists(t, s, topology.Options{})
		if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want damage with %q", name, err, c.want)
		}
	}
	// What the index may have, its reader takes: the same node twice begins the blocks of a hub.
	s := meaningStore(t, "topology/in.idx", layout.KindIndexIn, func([]byte) {})
	if err := readAllLists(t, s, topology.Options{}); err != nil {
		t.Error(err)
	}
}

// TestTooFewEdges: a file that ends before the store's edges do is damage, also where each block is
// sound.
func TestTooFewEdges(t *testing.T) {
	for _, more := range []int{-1, 1} {
		s := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(3, 600, 4000))
		s.Meta().Edges += uint64(more)
		err := readAllLists(t, s, topology.Options{Resident: true})
		if !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("%+d edges: %v, want damage", more, err)
		}
	}
}
