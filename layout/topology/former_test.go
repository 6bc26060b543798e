package topology_test

import (
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// formerList is the list of a node in the files of testdata/former, which were written before lists
// were coded: some are hubs.
func formerList(v int) (l []listfile.Edge) {
	n := v % 5
	if v%1000 == 7 {
		n = 2500
	}
	for i := range n {
		l = append(l, listfile.Edge{Nbr: layout.NodeID((v*31 + i*17) % 3000), Type: uint16(i % 3),
			Weight: float32(v%7) + float32(i%4)/4, Time: int64(v)*1000 - int64(i)})
	}
	slices.SortStableFunc(l, func(a, b listfile.Edge) int { return int(a.Nbr) - int(b.Nbr) })
	return l
}

// formerStore has the files of testdata/former/NAME.
func formerStore(t *testing.T, name string, g *layouttest.Graph) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	m := &kv.Meta{Format: kv.FormatVersion, UUID: g.UUID, Nodes: uint64(g.Nodes),
		Edges: uint64(len(g.Edges)), BlockBytes: 4096, Directions: []string{"in"},
		EdgeTypes: g.EdgeTypes, Weighted: g.Weighted, Timestamped: g.Timed}
	if err := fs.MkdirAll("topology", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []struct{ name, kind string }{{"in.csc", layout.KindTopologyIn},
		{"in.idx", layout.KindIndexIn}} {
		path := "testdata/former/" + name + "/" + file.name + ".gz"
		in, err := os.Open(path) //lint:os a file of the test
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		out, err := layout.CreateFile(fs, "topology/"+file.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Write(b); err != nil {
			t.Fatal(err)
		}
		meta, err := out.Finish("topology/"+file.name, file.kind)
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, meta)
	}
	return layout.NewStore(fs, "", m)
}

// TestFormerLayout reads stores of the former layout by all readers, and checks them.
func TestFormerLayout(t *testing.T) {
	for _, name := range []string{"plain", "attributes"} {
		g := layouttest.Graph{Nodes: 3000}
		if name == "attributes" {
			g.EdgeTypes, g.Weighted, g.Timed = []string{"a", "b", "c"}, true, true
		}
		copy(g.UUID[:], "a former version")
		for v := range g.Nodes {
			for _, e := range formerList(v) {
				g.Edges = append(g.Edges, layouttest.Edge{Src: e.Nbr, Dst: layout.NodeID(v),
					Type: e.Type, Weight: e.Weight, Time: e.Time})
			}
		}
		s := formerStore(t, name, &g)
		lists, r := g.Lists(layout.In), rand.New(rand.NewPCG(9, 9))
		nodes := make([]layout.NodeID, g.Nodes)
		for i := range nodes {
			nodes[i] = layout.NodeID(i)
		}
		for _, opt := range []topology.Options{{Resident: true},
			{Resident: true, Form: topology.Packed}, {}, {CacheBytes: 2 * 4096},
			{NeighborBytes: 64 << 10}} {
			opt.Weights, opt.Types = g.Weighted, len(g.EdgeTypes) > 0
			topo := mustTopology(t, s, layout.In, opt)
			ses := topo.NewSession()
			checkSession(t, ses, lists, nodes, r)
			checkAttributes(t, ses, &g, lists, lists, nodes, r)
			checkPart(t, ses, &g, lists, r)
			ses.Release()
		}
		edges := 0
		err := listfile.Scan(t.Context(), s, layouttest.Device(t), layout.In,
			func(_ layout.NodeID, _ bool, l *listfile.Lists) error {
				edges += len(l.Nbrs)
				return nil
			})
		if err != nil || edges != len(g.Edges) {
			t.Errorf("%s: %d edges of %d scanned, %v", name, edges, len(g.Edges), err)
		}
	}
}
