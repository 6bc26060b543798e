package serve

import (
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/layouttest"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestBodiesOfAnotherKind: a request whose body is not what it should be is told so, and the client
// goes on.
func TestBodiesOfAnotherKind(t *testing.T) {
	k := start(t, coraStore(t), Options{}).connect(t)
	k.open(protocol.Open{Fanout: []int{2}, Batch: 500, Seed: 1})
	for _, kind := range []protocol.Kind{protocol.KindHello, protocol.KindOpen, protocol.KindStart,
		protocol.KindNext, protocol.KindLeave, protocol.KindSample, protocol.KindNeighbors,
		protocol.KindEdges, protocol.KindQuery, protocol.KindNodes} {
		_, _, err := k.ask(kind, []int{1}, nil)
		if err == nil || !strings.Contains(err.Error(), "cannot unmarshal array") {
			t.Errorf("request %d: %v", kind, err)
		}
		k.must(protocol.KindStats, nil, nil, protocol.KindStatsNow)
	}
}

// TestLeave: a client that leaves an epoch gives back what it names, gets no more batches, and
// begins the next epoch; what it does not have it cannot give back.
func TestLeave(t *testing.T) {
	k := start(t, coraStore(t), Options{}).connect(t)
	_, _, err := k.ask(protocol.KindLeave, protocol.Next{}, nil)
	if err == nil || !strings.Contains(err.Error(), "open a loader first") {
		t.Errorf("before a loader is open: %v", err)
	}
	k.open(protocol.Open{Fanout: []int{2}, Batch: 50, Seed: 1})
	for epoch := range uint64(2) {
		k.start(epoch, 0)
		b, err := k.next()
		if err != nil || b == nil || b.Epoch != epoch || b.Index != 0 {
			t.Fatalf("the first batch of epoch %d is %+v: %v", epoch, b, err)
		}
		if _, _, err := k.ask(protocol.KindLeave, protocol.Next{Done: []uint32{99}},
			nil); err == nil || !strings.Contains(err.Error(), "arena 99") {
			t.Errorf("an arena that is not there is given back: %v", err)
		}
		k.must(protocol.KindLeave, protocol.Next{Done: []uint32{b.Arena}}, nil, protocol.KindDone)
		if _, err := k.next(); err == nil || !strings.Contains(err.Error(), "no epoch was begun") {
			t.Errorf("a batch after the epoch was left: %v", err)
		}
		if _, _, err := k.ask(protocol.KindSample, protocol.Sample{Done: []uint32{b.Arena}},
			nil); err == nil || !strings.Contains(err.Error(), "does not have") {
			t.Errorf("an arena is given back twice: %v", err)
		}
	}
}

// TestLookupsWithoutRoom: where others have the memory of lookups, each kind of request is told so,
// and answered once there is room again.
func TestLookupsWithoutRoom(t *testing.T) {
	g := layouttest.Random(3, 30, 90)
	g.Dim, g.Features = 7, layouttest.Features(30, 7)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 30)
	r := start(t, layouttest.Build(t, vfs.NewMem(), "s", g), Options{})
	k, nodes := r.connect(t), mem.BytesOf([]uint32{1, 2, 3})
	k.must(protocol.KindRows, nil, nodes, protocol.KindArrays) // the database is open
	for kind, of := range map[protocol.Kind]struct {
		body any
		data []byte
	}{
		protocol.KindRows:      {nil, nodes},
		protocol.KindLabels:    {nil, nodes},
		protocol.KindNames:     {nil, nodes},
		protocol.KindNeighbors: {protocol.Neighbors{Fanout: 2}, nodes},
		protocol.KindNodes:     {protocol.Names{Names: []string{"1"}}, nil},
	} {
		k.settle()
		held := r.lookup.Limit() - r.lookup.Used()
		if err := r.lookup.Reserve("others", held); err != nil {
			t.Fatal(err)
		}
		_, _, err := k.ask(kind, of.body, of.data)
		if r.lookup.Release(held); err == nil || !strings.Contains(err.Error(), "are in use") {
			t.Errorf("request %d without room: %v", kind, err)
		}
		if _, _, err := k.ask(kind, of.body, of.data); err != nil {
			t.Errorf("request %d with room: %v", kind, err)
		}
	}
}
