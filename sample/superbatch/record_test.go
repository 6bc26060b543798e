package superbatch

import (
	"reflect"
	"slices"
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

// TestDegreesInRecords: degrees of a batch come back, leave none for one without, and have to be
// those of all nodes.
func TestDegreesInRecords(t *testing.T) {
	plain, want := smallBatch(), smallBatch()
	want.Dense.Degrees = []uint32{1, 0, 70, 3, 1 << 31}
	got := smallBatch()
	for _, b := range []*sample.Batch{want, plain, want} {
		var edges codec.Enc
		encodeEdges(&edges, &b.Dense, nil)
		if err := decodeEdges(edges.B, &got.Dense); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Dense.Degrees, b.Dense.Degrees) ||
			sample.BatchHash(got) != sample.BatchHash(b) {
			t.Errorf("degrees %d, want %d", got.Dense.Degrees, b.Dense.Degrees)
		}
	}
	want.Dense.Degrees = want.Dense.Degrees[:4]
	var edges codec.Enc
	encodeEdges(&edges, &want.Dense, nil)
	if err := decodeEdges(edges.B, &got.Dense); err == nil {
		t.Error("degrees of four of five nodes were taken")
	}
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

// FuzzRecords decodes anything as the records of a batch: it is refused, or within its bounds.
func FuzzRecords(f *testing.F) {
	b := smallBatch()
	var nodes, edges codec.Enc
	encodeNodes(&nodes, b)
	encodeEdges(&edges, &b.Dense, nil)
	b.Dense.Degrees = []uint32{1, 0, 70, 3, 9}
	var degrees codec.Enc
	encodeEdges(&degrees, &b.Dense, nil)
	for _, s := range [][]byte{nodes.B, edges.B, degrees.B, nil} {
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
	})
}
