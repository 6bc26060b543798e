// Package rank judges models of link prediction: the rank of the true end of an edge among all
// entities, or some of them, the share of edges that score above random pairs, and the best answers
// to a query.
package rank

import (
	"gdb/compute/kernel"
	"gdb/train/link/decoder"
	"gdb/train/link/triples"
)

// Scorer scores all entities as answers to queries. It is for one goroutine at a time.
type Scorer struct {
	Pool    *kernel.Pool
	Decoder decoder.Decoder
	// Dim is the width of entities, of which there are Count, one after the other in Entities.
	Dim      int
	Count    int
	Entities []float32
	// Forms has the forms of relations, one after the other. With reciprocal relations a query for
	// a head is one for a tail by another relation, whose form comes Relations later.
	Forms      []float32
	Relations  int
	Reciprocal bool

	matrices decoder.Matrices
}

// entity is a row.
func (s *Scorer) entity(e uint32) []float32 { return s.Entities[int(e)*s.Dim:][:s.Dim] }

// query writes the row of a query.
func (s *Scorer) query(to []float32, q triples.Query) { s.Query(to, s.entity(q.Entity), q) }

// Query writes the row of a query whose known end has the vector x: Entities is not read.
func (s *Scorer) Query(to, x []float32, q triples.Query) {
	width, relation := s.Decoder.FormDim(s.Dim), int(q.Relation)
	head := q.Head
	if head && s.Reciprocal {
		relation, head = relation+s.Relations, false
	}
	s.Decoder.Query(to, x, s.Forms[relation*width:][:width], head)
}

// scores writes the scores of m queries with n candidates.
func (s *Scorer) scores(to, queries, candidates []float32, m, n int) {
	s.matrices.Pool, s.matrices.Measure, s.matrices.D = s.Pool, s.Decoder.Measure(), s.Dim
	s.matrices.Scores(to, queries, candidates, m, n)
}

// gather copies rows of entities.
func (s *Scorer) gather(to []float32, entities []uint32) {
	for i, e := range entities {
		copy(to[i*s.Dim:][:s.Dim], s.entity(e))
	}
}

// Pairs writes the scores of edges. With reciprocal relations it is that of the query for the tail.
func (s *Scorer) Pairs(to []float32, edges []triples.Triple) {
	const part = 256
	measure := s.Decoder.Measure()
	s.Pool.Run((len(edges)+part-1)/part, func(p int) {
		q := make([]float32, s.Dim)
		for i := p * part; i < min(len(edges), (p+1)*part); i++ {
			e := edges[i]
			s.query(q, triples.Query{Entity: e.Head, Relation: e.Relation})
			to[i] = measure.Pair(q, s.entity(e.Tail))
		}
	})
}
