package rank_test

import (
	"testing"

	"gdb/kv"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// TestAnswersOf: the nodes of the type at the end of the relation may answer.
func TestAnswersOf(t *testing.T) {
	if rank.AnswersOf(&kv.Meta{Nodes: 9, EdgeTypes: []string{"r"}}) != nil {
		t.Error("a store without types restricts answers")
	}
	of := rank.AnswersOf(&kv.Meta{Format: kv.TypedVersion, Nodes: 9,
		EdgeTypes: []string{"buys", "rev_buys"},
		NodeTypes: []kv.NodeTypeMeta{{Name: "user", Nodes: 6}, {Name: "item", First: 6, Nodes: 3}},
		Relations: []kv.RelationMeta{{Src: 0, Dst: 1}, {Src: 1, Dst: 0}}})
	users, items := rank.Span{Count: 6}, rank.Span{First: 6, Count: 3}
	for q, want := range map[triples.Query]rank.Span{{}: items, {Head: true}: users,
		{Relation: 1}: users, {Relation: 1, Head: true}: items} {
		if got := of(q); got != want {
			t.Errorf("%+v may be answered by %v, want %v", q, got, want)
		}
	}
}
