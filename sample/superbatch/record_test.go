package superbatch

import (
	"reflect"
	"testing"

	"gdb/internal/codec"
	"gdb/internal/dense"
	"gdb/sample"
)

func smallBatch() *sample.Batch {
	return &sample.Batch{Epoch: 3, Index: 9, Dense: sample.Dense{
		Lists: dense.Lists{NodeIDOffsets: []uint32{0, 2, 3, 5}, NbrOffsets: []uint32{0, 1, 1, 4},
			ReprMap: []uint32{0, 2, 1, 3}},
		NodeIDs: []sample.NodeID{70, 8, 9, 4, 100}, Nbrs: []sample.NodeID{70, 9, 8, 4}}}
}

// withExtras is a small batch with those of all kinds whose bit is set.
func withExtras(bits int) *sample.Batch {
	b := smallBatch()
	d := &b.Dense
	if bits&1 != 0 {
		d.Degrees = []uint32{1, 0, 9, 2, 3}
	}
	if bits&2 != 0 {
		d.WeightSums = []float32{0.5, 0, -1, 3e8, 2}
	}
	if bits&4 != 0 {
		d.Weights = []float32{0.25, 1, -7, 1e-30}
	}
	if bits&8 != 0 {
		d.Types = []uint32{3, 0, 65535, 1}
	}
	if bits&16 != 0 {
		d.Places = []sample.Place{{At: 1, Length: 7}, {Length: 1}, {At: 1 << 31, Length: 1<<32 - 1},
			{At: 2, Length: 3}}
	}
	return b
}

// TestExtraRecords: what batches have on request is as it was, also in memory that had other kinds.
func TestExtraRecords(t *testing.T) {
	got := smallBatch()
	for bits := range 32 {
		want, edges := withExtras(bits), codec.Enc{}
		encodeEdges(&edges, &want.Dense, nil)
		if err := decodeEdges(edges.B, &got.Dense); err != nil {
			t.Fatal(err)
		}
		if sample.BatchHash(got) != sample.BatchHash(want) {
			t.Errorf("kinds %b: %+v, want %+v", bits, got.Dense, want.Dense)
		}
		want.Dense.Types, want.Dense.Degrees = want.Dense.Types[:bits>>3&1], nil
		edges.B = edges.B[:0]
		encodeEdges(&edges, &want.Dense, nil)
		if err := decodeEdges(edges.B, &smallBatch().Dense); err == nil && bits&8 != 0 {
			t.Error("types of one neighbor of four were taken")
		}
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
	all := codec.Enc{}
	encodeEdges(&all, &withExtras(31).Dense, nil)
	for _, s := range [][]byte{nodes.B, edges.B, all.B, nil} {
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
