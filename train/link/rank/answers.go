package rank

import (
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/train/link/triples"
)

// Span is the entities from First on that may answer a query.
type Span struct{ First, Count int }

// has reports whether an entity is in the span.
func (s Span) has(e uint32) bool { return int(e) >= s.First && int(e) < s.First+s.Count }

// At draws an entity of the span.
func (s Span) At(draw *rng.Stream) uint32 {
	return uint32(s.First) + uint32(draw.Below(uint64(s.Count)))
}

// within returns the rows of an ascending block that are in the span: from lo to before hi.
func (s Span) within(b *Block) (lo, hi int) {
	if b.Count == 0 {
		return 0, 0
	}
	first := int(b.Entity(0))
	lo, hi = s.First-first, s.First+s.Count-first
	return min(max(0, lo), b.Count), min(max(0, hi), b.Count)
}

// AnswersOf returns which entities may answer a query to a store: of a typed one, the nodes of the
// type that the relation joins there. It returns nil where all may.
func AnswersOf(m *kv.Meta) func(q triples.Query) Span {
	if !m.Typed() {
		return nil
	}
	return func(q triples.Query) Span {
		relation := m.Relations[q.Relation]
		t := m.NodeTypes[relation.Dst]
		if q.Head {
			t = m.NodeTypes[relation.Src]
		}
		return Span{First: int(t.First), Count: int(t.Nodes)}
	}
}

// Span returns which of count entities may answer a query.
func (s *Scorer) Span(q triples.Query, count int) Span {
	if s.Answers == nil {
		return Span{Count: count}
	}
	return s.Answers(q)
}
