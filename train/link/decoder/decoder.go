// Package decoder holds the models that score an edge from the vectors of its ends and of its
// relation: shallow models of link prediction.
//
// All of them can be cut in two. The known end and the relation of an edge make a query, a row of
// the same width as an entity's, and a Measure compares the query with any candidate for the other
// end. So one query is compared with thousands of candidates as a product of matrices, or by a
// kernel over pairs of rows, and a decoder is no more than how its query is made, and the gradient
// of that.
//
// Rows are float32 of the width dim that the user gives. Complex numbers, of ComplEx and RotatE,
// are stored as their dim/2 real parts followed by their dim/2 imaginary parts.
package decoder

import (
	"errors"
	"fmt"
	"slices"
)

// Decoder is how an edge is scored. Query and Gradient work on single rows; none of the slices may
// overlap. Methods may be called from any goroutine.
type Decoder interface {
	// Measure is how a query is compared with a candidate.
	Measure() Measure
	// RelationDim is the width of a relation's learned row at entity width dim, and FormDim that of
	// the form in which queries read it; both are 0 if there are no relations.
	RelationDim(dim int) int
	FormDim(dim int) int
	// Form writes the form of a relation's row: what of it is the same for all edges.
	Form(form, r []float32)
	// FormGrad writes to dr the gradient in the row, from that in its form.
	FormGrad(dr, dform, r []float32)
	// Query writes the query of the entity x and a relation's form: for the tail of an edge whose
	// head is x, or, if head is set, for the head of an edge whose tail is x.
	Query(q, x, form []float32, head bool)
	// QueryGrad writes to dx and dform the gradients of a loss, from its gradient in the query.
	QueryGrad(dx, dform, dq, x, form []float32, head bool)
	// Score is the score of an edge by the formula of the decoder's paper: the specification that
	// queries and measures are tested with.
	Score(h, r, t []float32) float64
}

// Options choose a variant.
type Options struct {
	// Norm is that of TransE and RotatE: 1 or 2.
	Norm int
}

// kinds are the decoders by name.
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

// Names lists the decoders.
func Names() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// New returns the decoder of a name for rows of a width.
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

// plainForm is embedded by decoders that read relations as they are learned.
type plainForm struct{}

// Form copies the row.
func (plainForm) Form(form, r []float32) { copy(form, r) }

// FormGrad copies the gradient.
func (plainForm) FormGrad(dr, dform, _ []float32) { copy(dr, dform) }
