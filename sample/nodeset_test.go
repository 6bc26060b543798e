package sample

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

// TestSet holds a set against a roaring bitmap: members, order and numbers.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Uint64Range(1, 5000).Draw(t, "total")
		members := rapid.SliceOf(rapid.Uint32Range(0, uint32(total-1))).Draw(t, "members")
		want := roaring.BitmapOf(members...)
		s, err := NewNodeSet(total, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Free(); err != nil {
				t.Fatal(err)
			}
		}()
		s.AddSet(want)
		s.Number()
		if s.Rows(total) != int(want.GetCardinality()) {
			t.Fatalf("%d members, want %d", s.Rows(total), want.GetCardinality())
		}
		buf := make([]NodeID, rapid.IntRange(1, 700).Draw(t, "buffer"))
		row := uint32(0)
		for next := s.Nodes(total); ; {
			nodes := next(buf)
			if len(nodes) == 0 {
				break
			}
			for _, v := range nodes {
				if !want.Contains(uint32(v)) || s.Row(uint32(v)) != row ||
					uint64(row) != want.Rank(uint32(v))-1 {
					t.Fatalf("node %d has row %d, in turn %d", v, s.Row(uint32(v)), row)
				}
				row++
			}
		}
		if int(row) != s.Rows(total) {
			t.Fatalf("iterated over %d of %d", row, s.Rows(total))
		}
	})
}

// TestLastNode: the last of 2^32 nodes is a member like others.
func TestLastNode(t *testing.T) {
	const total, last = uint64(1) << 32, uint32(1<<32 - 1)
	s, err := NewNodeSet(total, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Free(); err != nil {
			t.Error(err)
		}
	}()
	s.AddSet(roaring.BitmapOf(5, 1<<31, last))
	s.Number()
	got := s.Nodes(total)(make([]NodeID, 4))
	if len(got) != 3 || uint32(got[2]) != last || s.Row(last) != 2 || s.Row(1<<31) != 1 {
		t.Errorf("members %v, rows %d and %d", got, s.Row(1<<31), s.Row(last))
	}
}
