package superbatch

import (
	"reflect"
	"testing"

	"gdb/internal/codec"
	"gdb/sample"
)

func smallBatch() *sample.Batch {
	return &sample.Batch{Epoch: 3, Index: 9, Dense: sample.Dense{
		NodeIDOffsets: []uint32{0, 2, 3, 5}, NodeIDs: []sample.NodeID{70, 8, 9, 4, 100},
		NbrOffsets: []uint32{0, 1, 1, 4}, Nbrs: []sample.NodeID{70, 9, 8, 4},
		ReprMap: []uint32{0, 2, 1, 3}}}
}

func TestBatchRecords(t *testing.T) {
	want := smallBatch()
	var nodes, edges codec.Enc
	encodeNodes(&nodes, want)
	encodeEdges(&edges, &want.Dense, nil)
	got := &sample.Batch{}
	for range 2 { // also into memory that is used again
		if err := decodeNodes(nodes.B, got, 3, 9, 101); err != nil {
			t.Fatal(err)
		}
		if err := decodeEdges(edges.B, &got.Dense); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
	if err := decodeNodes(nodes.B, got, 3, 8, 101); err == nil {
		t.Error("a record of another batch was taken")
	}
	if err := decodeNodes(nodes.B, got, 3, 9, 100); err == nil {
		t.Error("a node out of range was taken")
	}
	want.Dense.ReprMap[3] = uint32(len(want.Dense.NodeIDs))
	edges.B = edges.B[:0]
	encodeEdges(&edges, &want.Dense, nil)
	if err := decodeEdges(edges.B, &smallBatch().Dense); err == nil {
		t.Error("a neighbor out of range was taken")
	}
}

func TestChangesRecord(t *testing.T) {
	want := Changes{From: []uint32{0, 4, 0, 1, 0}, Keep: []uint32{0, 4}, Slots: []uint32{7, 2},
		Hits: 2}
	var e codec.Enc
	want.encode(&e, nil)
	var got Changes
	for range 2 {
		if err := got.decode(e.B, 5, 8); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	for _, limits := range [][2]int{{4, 8}, {6, 8}, {5, 7}, {5, 3}} {
		if err := got.decode(e.B, limits[0], limits[1]); err == nil {
			t.Errorf("taken for %d nodes and %d slots", limits[0], limits[1])
		}
	}
}

// FuzzRecords decodes anything as every kind of record: it is refused, or within its bounds.
func FuzzRecords(f *testing.F) {
	b := smallBatch()
	var nodes, edges, changes codec.Enc
	encodeNodes(&nodes, b)
	encodeEdges(&edges, &b.Dense, nil)
	c := Changes{From: []uint32{0, 4, 0, 1, 0}, Keep: []uint32{0, 4}, Slots: []uint32{7, 2}}
	c.encode(&changes, nil)
	part := []byte{3<<6 | 1, 0, 3<<6 | 63, 0, 0, 0, 0, 0, 0, 0, 0, 0} // of one node, twice
	for _, s := range [][]byte{nodes.B, edges.B, changes.B, part, nil} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var d sample.Batch
		if err := decodeNodes(payload, &d, 3, 9, 1000); err == nil {
			again := codec.Enc{}
			encodeNodes(&again, &d)
			if err := decodeNodes(again.B, &d, 3, 9, 1000); err != nil {
				t.Errorf("encoded again: %v", err)
			}
		}
		d.Dense = smallBatch().Dense
		if err := decodeEdges(payload, &d.Dense); err == nil {
			for i, r := range d.Dense.ReprMap {
				if d.Dense.Nbrs[i] != d.Dense.NodeIDs[r] {
					t.Error("a neighbor is not its node")
				}
			}
		}
		var c Changes
		if err := c.decode(payload, 5, 8); err == nil && len(c.From) != 5 {
			t.Error("changes of another number of nodes")
		}
		w := nextWorker{nextPass: &nextPass{accesses: &accesses{starts: []uint32{0, 2, 40}},
			nextUses: &nextUses{ranges: ranges{shift: 9, count: 1, window: 64}, bits: 6}},
			last: make([]uint32, 1<<9), next: make([]uint32, 64)}
		w.begin()
		if next, err := w.find(payload, 0); err == nil && len(payload) != 2*len(next)+8 {
			t.Error("next uses of another number of accesses")
		}
	})
}
