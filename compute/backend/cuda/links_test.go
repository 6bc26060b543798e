//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/decoder"
	"gdb/internal/mem"
)

// TestLinks: queries of every decoder, their scores and losses, gradients, and steps of rows are on
// a device what they are on the CPU, but for rounding.
func TestLinks(t *testing.T) {
	cpu, gpu := mustOpen(t)
	for i, name := range []string{"distmult", "complex", "transe", "rotate", "dot", "distmult",
		"transe", "rotate", "complex"} {
		loss := decoder.LossNames()[i%4]
		d, err := decoder.New(name, 12, decoder.Options{Norm: 1 + i/5})
		if err != nil {
			t.Fatal(err)
		}
		l := backend.Links{Name: name, Decoder: d, Head: i%2 == 1,
			Chunk:   []int{1, 3, 8, 21}[i%4],
			Loss:    decoder.Loss{Name: loss, Margin: 2, Temperature: 0.5},
			Dropout: 0.25 * float64(i%3), Key: 99, First: 5,
			Regularizer: backend.Regularizer(i % 3)}
		compare(t, cpu, gpu, fmt.Sprintf("%d: %s, %s", i, name, loss),
			func(o *trial) { o.links(&l, 21, 12) })
	}
}

// links compares rows of queries with those of 7 negatives for each share, and takes the steps of
// their rows.
func (o *trial) links(l *backend.Links, rows, dim int) {
	const relations, width = 4, 7
	be, shares := o.be, (rows+l.Chunk-1)/l.Chunk
	rel, form := l.Decoder.RelationDim(dim), l.Decoder.FormDim(dim)
	vectors, negatives := o.draw(2*rows, dim), o.draw(shares*width, dim)
	ends, answers := vectors.Slice(0, rows), vectors.Slice(rows, rows)
	relation, forms := o.draw(relations, rel), be.Scratch(relations, form)
	of := o.words(rows, relations)
	backend.Forms(be, l, forms, relation)
	q, dq := be.Scratch(rows, dim), be.Scratch(rows, dim)
	backend.Queries(be, l, q, ends, forms, of)
	scores, own := be.Scratch(rows, width), be.Scratch(rows, 1)
	backend.LinkScores(be, l, scores, q, negatives)
	backend.Exclude(be, scores, o.words(3, rows*width))
	backend.Answers(be, l, own, q, answers)
	o.gives(forms, q, scores, own)
	o.ranks(scores)
	g, gOwn := be.Scratch(rows, width), be.Scratch(rows, 1)
	for _, more := range []bool{false, true} {
		backend.LinkLoss(be, l, g, gOwn, scores, own, 0.1, more)
	}
	o.gives(g, gOwn)
	o.lossAll(l)
	dVectors, dNegatives, dForms := o.draw(2*rows, dim), be.Scratch(shares*width, dim),
		be.Scratch(rows, form)
	backend.LinkScoresGrad(be, l, dq, dNegatives, g, scores, q, negatives)
	backend.AnswersGrad(be, l, dq, dVectors.Slice(rows, rows), gOwn, own, q, answers)
	backend.QueriesGrad(be, l, dVectors.Slice(0, rows), dForms, dq, ends, forms, of)
	o.gives(dVectors, dNegatives, dForms)
	if dRelation := be.Scratch(relations, rel); rel > 0 {
		backend.FormsGrad(be, l, dRelation, o.draw(relations, form), relation)
		o.gives(dRelation)
	}
	o.rowSteps(l, dVectors, vectors)
}

// lossAll compares queries with all candidates, into other memory and into that of their scores.
func (o *trial) lossAll(l *backend.Links) {
	if l.Loss.Validate(true) != nil {
		return
	}
	scores, g := o.draw(5, 70), o.be.Scratch(5, 70)
	answers := o.be.Segments(backend.Lists{Off: []uint32{0, 1, 1, 4, 5, 8},
		Idx: []uint32{69, 0, 32, 64, 7, 1, 2, 3}})
	backend.LinkLossAll(o.be, l, g, scores, answers, 0.1)
	backend.LinkLossAll(o.be, l, scores, scores, answers, 0.1)
	o.gives(g, scores)
}

// ranks counts what scores above targets, some of which are among the candidates.
func (o *trial) ranks(scores backend.Tensor) {
	const targets = 30
	known := backend.Lists{Off: []uint32{0}}
	for i := range scores.Rows {
		for c := range i % scores.Cols {
			known.Idx = append(known.Idx, uint32(c))
		}
		known.Off = append(known.Off, uint32(len(known.Idx)))
	}
	of, own := make([]uint32, 2*targets), o.values(targets)
	for i := range own {
		of[2*i], of[2*i+1] = uint32(o.r.IntN(scores.Rows)), backend.NoPlace
		if i%2 == 0 {
			of[2*i+1] = uint32(2 + o.r.IntN(scores.Cols-2))
		}
	}
	counts := o.be.Scratch(targets, backend.RankCounts)
	backend.LinkRanks(o.be, counts, scores, &backend.RankTargets{
		Own: o.be.Host(own, targets, 1), Of: backend.Words(o.be, of), Known: o.be.Segments(known),
		First: 2})
	o.gives(counts)
}

// rowSteps regularizes gradients of rows, and takes steps of some.
func (o *trial) rowSteps(l *backend.Links, grad, rows backend.Tensor) {
	at, weights := []uint32{9, 2, 30}, []float32{1, 0, 0.5}
	words := o.be.Host(mem.View[float32](mem.BytesOf(at)), 3, 1)
	some := grad.Slice(0, 3)
	backend.Regularize(o.be, l, some, rows, words, o.be.Host(weights, 3, 1))
	backend.Regularize(o.be, l, some, rows, backend.Tensor{}, o.be.Host(weights, 3, 1))
	o.gives(some)
	m := backend.Moments{M: o.draw(grad.Rows, grad.Cols), V: o.draw(grad.Rows, grad.Cols)}
	backend.Zero(o.be, m.M)
	backend.Zero(o.be, m.V)
	backend.AdamRows(o.be, rows, m, some, words, backend.AdamStep{Step: 2, Rate: 0.1, Beta1: 0.9,
		Beta2: 0.999, Eps: 1e-8})
	backend.AdagradRows(o.be, rows, m.V, some, words, backend.AdamStep{Rate: 0.1, Eps: 1e-10})
	o.gives(rows, m.M, m.V)
}
