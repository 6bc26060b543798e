package topology_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkAttributes compares what runs parallel to some entries with what is in memory: lists are
// what the session reads of whole ones.
func checkAttributes(t fatal, s topology.Session, g *layouttest.Graph, lists,
	whole [][]listfile.Edge, nodes []layout.NodeID, r *rand.Rand) {
	t.Helper()
	ctx, deg := context.Background(), make([]uint32, len(nodes))
	if err := s.Degrees(ctx, nodes, deg); err != nil {
		t.Fatalf("degrees: %v", err)
	}
	off, pos, want, owner := []uint32{0}, []uint32{}, []listfile.Edge{}, []layout.NodeID{}
	for _, v := range nodes {
		for range min(len(lists[v]), 1+r.IntN(12)) {
			p := r.IntN(len(lists[v]))
			pos, want, owner = append(pos, uint32(p)), append(want, lists[v][p]), append(owner, v)
		}
		off = append(off, uint32(len(pos)))
	}
	to := topology.Attributes{Places: make([]uint32, len(pos))}
	if g.Weighted {
		to.Weights = make([]float32, len(pos))
	}
	if len(g.EdgeTypes) > 0 {
		to.Types = make([]uint32, len(pos))
	}
	for range 2 { // with Gather between
		if err := s.(topology.AttributeReader).GatherAttributes(ctx, off, pos, to); err != nil {
			t.Fatalf("attributes: %v", err)
		}
		for i, e := range want {
			if got := whole[owner[i]][to.Places[i]]; got != e {
				t.Fatalf("entry %d is at %d, which is %v, want %v", i, to.Places[i], got, e)
			}
			if g.Weighted && to.Weights[i] != e.Weight {
				t.Fatalf("entry %d weighs %v, want %v", i, to.Weights[i], e.Weight)
			}
			if len(g.EdgeTypes) > 0 && to.Types[i] != uint32(e.Type) {
				t.Fatalf("entry %d is of type %d, want %d", i, to.Types[i], e.Type)
			}
		}
		clear(to.Places)
		clear(to.Weights)
		clear(to.Types)
		got := make([]layout.NodeID, len(pos))
		if err := s.Gather(ctx, off, pos, got); err != nil {
			t.Fatalf("gather after attributes: %v", err)
		}
		for i, e := range want {
			if got[i] != e.Nbr {
				t.Fatalf("gather after attributes: entry %d is %d, want %d", i, got[i], e.Nbr)
			}
		}
	}
}

func TestTypesAreRefusedWithoutThem(t *testing.T) {
	g := layouttest.Random(1, 50, 100)
	s := layouttest.Build(t, vfs.NewMem(), "plain", g)
	_, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In,
		topology.Options{Resident: true, Types: true})
	if !errors.Is(err, topology.ErrNoTypes) {
		t.Errorf("resident: %v", err)
	}
	for _, c := range []struct {
		opt  topology.Options
		want string
	}{{topology.Options{}, topology.ErrNoTypes.Error()},
		{topology.Options{Resident: true}, "without the types"}} {
		ses := mustTopology(t, s, layout.In, c.opt).NewSession()
		err = ses.(topology.AttributeReader).GatherAttributes(t.Context(), []uint32{0}, nil,
			topology.Attributes{Types: make([]uint32, 1)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.opt, err)
		}
		ses.Release()
	}
}
