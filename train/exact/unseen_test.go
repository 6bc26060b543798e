package exact

import (
	"fmt"
	"testing"

	"gdb/kv"
	"gdb/sample"
	"gdb/sample/loader"
)

// TestSmallGraphOrder: lists of unseen nodes stand as lists of a typed store do, by the types that
// edges come from, then by relation, then by node, and unseen nodes stand behind the known ones of
// their type.
func TestSmallGraphOrder(t *testing.T) {
	m := &kv.Meta{Format: kv.TypedVersion, Nodes: 10,
		NodeTypes: []kv.NodeTypeMeta{{Name: "a", Nodes: 6}, {Name: "b", Nodes: 4, First: 6}}}
	s := newSmallGraph(&loader.Source{Meta: m}, &Unseen{Types: []int{1, 0},
		Lists:     [][]sample.NodeID{{8, 5, 11, 2, 5}, {10}},
		Relations: [][]uint32{{2, 1, 0, 1, 0}, {3}}})
	if got, want := fmt.Sprint(s.of, s.firsts, s.order), "[0 1 -2 2 -1] [0 3] [1 0]"; got != want {
		t.Errorf("nodes %s, want %s", got, want)
	}
	want := "[[{1 0} {2 0} {0 1} {1 1} {3 2}] [{4 3}]]"
	if got := fmt.Sprint(s.lists); got != want {
		t.Errorf("lists %s, want %s", got, want)
	}
}
