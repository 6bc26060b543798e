package topology_test

import (
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSessionBytes: what is planned for a session is what it takes to read a frontier and some
// entries of each list, with the quarter that scratch memory has to spare, or less.
func TestSessionBytes(t *testing.T) {
	g := layouttest.Skewed()
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	for _, opt := range []topology.Options{{CacheBytes: 64 << 20}, {Resident: true},
		{Resident: true, Form: topology.Packed}, {Resident: true, Form: topology.Compact}} {
		opt.Budget = mem.NewBudget(0)
		topo := mustTopology(t, s, layout.In, opt)
		opened := opt.Budget.Used()
		ses := topo.NewSession()
		const draws = 5
		var nodes []layout.NodeID
		for v := range 3000 {
			nodes = append(nodes, layout.NodeID(v*g.Nodes/3000))
		}
		deg, off, pos := make([]uint32, len(nodes)), []uint32{0}, []uint32(nil)
		if err := ses.Degrees(t.Context(), nodes, deg); err != nil {
			t.Fatal(err)
		}
		inner := int64(0)
		for _, n := range deg {
			for k := range min(n, draws) {
				pos = append(pos, k)
			}
			inner += int64(min(n, 1))
			off = append(off, uint32(len(pos)))
		}
		if err := ses.Gather(t.Context(), off, pos, make([]layout.NodeID, len(pos))); err != nil {
			t.Fatal(err)
		}
		form := opt.Form
		if opt.Resident && form == "" {
			form = topology.Plain
		}
		planned := topology.SessionBytes(form, inner, int64(len(pos))) * 5 / 4
		if taken := opt.Budget.Used() - opened; taken > planned+planned/16 ||
			planned > 0 && taken == 0 {
			t.Errorf("form %q: a session takes %d bytes, planned were %d", form, taken, planned)
		}
		ses.Release()
	}
}
