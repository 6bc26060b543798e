// Package rank judges models of link prediction. It computes the rank of the true end of an edge
// among all entities, or some of them, the share of edges that score above random pairs, and the
// best answers to a query.
package rank

import (
	"context"
	"fmt"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/train/link/triples"
)

// Scorer scores entities as answers to queries. It may be used by one goroutine at a time.
type Scorer struct {
	Pool    *kernel.Pool
	Decoder decoder.Decoder
	// Dim is the number of columns of entities' rows.
	Dim int
	// Forms holds the forms of relations, one after the other. With reciprocal relations a query
	// for a head becomes a query for a tail by another relation, whose form comes Relations later.
	Forms      []float32
	Relations  int
	Reciprocal bool
	// Answers returns which entities may answer a query; nil is all. See AnswersOf.
	Answers func(q triples.Query) Span
	// On scores queries in evaluations, with a device: nil does so with Pool. Rows has the rows of
	// all entities there, if they are in its memory.
	On   backend.Backend
	Rows backend.Tensor
}

// Query writes the row of a query to to; x is the vector of the query's known end.
func (s *Scorer) Query(to, x []float32, q triples.Query) {
	width, relation := s.Decoder.FormDim(s.Dim), int(q.Relation)
	head := q.Head
	if head && s.Reciprocal {
		relation, head = relation+s.Relations, false
	}
	s.Decoder.Query(to, x, s.Forms[relation*width:][:width], head)
}

// Pairs writes the scores of edges to to: with reciprocal relations, of the queries for the tails.
// Vectors that are not in memory are gathered for some edges at a time, in about passBytes.
func Pairs(ctx context.Context, s *Scorer, v Vectors, to []float32, edges []triples.Triple,
	passBytes int64) error {
	if all := v.All(); all != nil {
		s.pairs(to, all, edges)
		return nil
	}
	once := max(1, int(passBytes/int64(8*s.Dim+24))) // two rows an edge, and copies of it
	for lo := 0; lo < len(edges); lo += once {
		some := edges[lo:min(lo+once, len(edges))]
		rows, moved, err := gathered(ctx, s.Dim, v, some)
		if err != nil {
			return fmt.Errorf("rank: %w", err)
		}
		s.pairs(to[lo:], rows, moved)
	}
	return nil
}

// gathered returns the rows of the ends of edges, and the edges with ends numbered by these rows.
func gathered(ctx context.Context, dim int, v Vectors,
	edges []triples.Triple) (rows []float32, moved []triples.Triple, err error) {
	var ends []uint32
	for _, e := range edges {
		ends = append(ends, e.Head, e.Tail)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	rows, moved = make([]float32, len(ends)*dim), slices.Clone(edges)
	for i := range moved {
		head, _ := slices.BinarySearch(ends, moved[i].Head)
		tail, _ := slices.BinarySearch(ends, moved[i].Tail)
		moved[i].Head, moved[i].Tail = uint32(head), uint32(tail)
	}
	return rows, moved, v.Gather(ctx, rows, ends)
}

// pairs writes the scores of edges, whose ends are numbers of rows, to to.
func (s *Scorer) pairs(to, rows []float32, edges []triples.Triple) {
	const part = 256
	measure := s.Decoder.Measure()
	s.Pool.Run((len(edges)+part-1)/part, func(p int) {
		q := make([]float32, s.Dim)
		for i := p * part; i < min(len(edges), (p+1)*part); i++ {
			e := edges[i]
			s.Query(q, rows[int(e.Head)*s.Dim:][:s.Dim],
				triples.Query{Entity: e.Head, Relation: e.Relation})
			to[i] = measure.Pair(q, rows[int(e.Tail)*s.Dim:][:s.Dim])
		}
	})
}
