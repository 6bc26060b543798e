// Package decoder holds decoders: they compute the score of an edge from the vectors of its ends
// and of its relation. On their own they are the shallow models of link prediction.
//
// Each decoder has two halves. From the known end and the relation of an edge it makes a query, a
// row as wide as an entity's; a Measure then compares the query with a candidate for the other end.
// So one query is compared with thousands of candidates as a product of matrices, or by a kernel
// over pairs of rows, and a decoder only defines how a query is made, and the gradient of that.
//
// Rows are float32 values, dim of them as the user gives it. Complex numbers, of ComplEx and
// RotatE, are stored as dim/2 real parts followed by dim/2 imaginary parts.
//
// A Loss compares the score of an edge with the scores of its negatives, which are the same edge
// with another end. It works on rows of scores: one edge and its negatives.
//
// Initial vectors are each a function of a key alone, so that rows can be drawn again wherever they
// are needed.
package decoder

import (
	"errors"
	"fmt"
	"slices"
)

// Decoder says how an edge is scored. Query and the gradients work on single rows; none of the
// slices may overlap. Methods may be called from any goroutine.
type Decoder interface {
	// Measure returns how a query is compared with a candidate.
	Measure() Measure
	// RelationDim returns how many values a relation's learned row has if an entity's has
	// dim, and FormDim how many its form has, in which queries read it. Both are 0 if there
	// are no relations.
	RelationDim(dim int) int
	FormDim(dim int) int
	// Form writes the form of a relation's row: everything about it that is the same for all edges.
	Form(form, r []float32)
	// FormGrad writes to dr the gradient with respect to the row, given that with
	// respect to its form.
	FormGrad(dr, dform, r []float32)
	// Query writes the query for the entity x and a relation's form: for the tail of an edge whose
	// head is x or, if head is set, for the head of an edge whose tail is x.
	Query(q, x, form []float32, head bool)
	// QueryGrad writes to dx and dform the gradients of a loss, given its gradient with
	// respect to the query.
	QueryGrad(dx, dform, dq, x, form []float32, head bool)
	// Score returns the score of an edge by the formula in the decoder's paper. It is the
	// specification against which queries and measures are tested.
	Score(h, r, t []float32) float64
}

// Options choose a variant of a decoder.
type Options struct {
	// Norm is the norm of TransE and RotatE: 1 or 2.
	Norm int
}

// kinds lists the decoders by name.
var kinds = []struct {
	name string
	make func(o Options) Decoder
}{
	{"distmult", func(Options) Decoder { return distMult{} }},
	{"complex", func(Options) Decoder { return complEx{} }},
	{"transe", func(o Options) Decoder { return transE{norm: o.Norm} }},
	{"rotate", func(o Options) Decoder { return rotatE{o.Norm} }},
	{"dot", func(Options) Decoder { return dot{} }},
}

// New returns the decoder of a name, for rows of dim values.
func New(name string, dim int, o Options) (Decoder, error) {
	if !slices.Contains([]int{1, 2}, o.Norm) {
		return nil, fmt.Errorf("norm %d: give 1 or 2", o.Norm)
	}
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		if dim < 1 {
			return nil, fmt.Errorf("--dim %d: give at least 1", dim)
		}
		if (name == "complex" || name == "rotate") && dim%2 != 0 {
			return nil, fmt.Errorf("dim %d: %s has complex numbers, of two values each: give an "+
				"even number", dim, name)
		}
		return k.make(o), nil
	}
	return nil, errors.New("unknown decoder " + name)
}

// plainForm is embedded in decoders that read relations as they are learned.
type plainForm struct{}

// Form copies the row.
func (plainForm) Form(form, r []float32) { copy(form, r) }

// FormGrad copies the gradient.
func (plainForm) FormGrad(dr, dform, _ []float32) { copy(dr, dform) }
