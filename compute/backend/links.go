package backend

import "gdb/compute/decoder"

// Links says how queries for the ends of edges are made and compared with entities. Some queries
// that follow one another share their negatives, which are a matrix of as many blocks of rows as
// there are shares.
type Links struct {
	// Name is the decoder's, and Decoder does what it says.
	Name    string
	Decoder decoder.Decoder
	Loss    decoder.Loss
	// Head says that queries ask for heads, as their decoder does that.
	Head bool
	// Chunk is how many queries share a block of negatives; the last ones may be fewer.
	Chunk int
	// Dropout is the share of a query's values that is dropped: which ones, follows from Key and
	// from the number of the query, of which the first has First.
	Dropout float64
	Key     uint64
	First   int
	// Regularizer is how rows are kept small.
	Regularizer Regularizer
}

// Regularizer is a sum over the values of rows: of what, says its value.
type Regularizer int

// The regularizers.
const (
	Squares      Regularizer = iota
	Cubes                    // of their sizes
	ModulusCubes             // of the moduli of complex numbers
)

// Operations of link prediction.
var (
	formsOp = &Op{Name: "link-forms", Fits: func(o *Operands) bool {
		return o.Out.Rows == o.In[0].Rows
	}}
	formsGradOp = &Op{Name: "link-forms-grad", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[1].Len() && o.In[0].Rows == o.In[1].Rows
	}}
	queriesOp = &Op{Name: "link-queries", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.In[2].Len() == o.Out.Rows
	}}
	queriesGradOp = &Op{Name: "link-queries-grad", Fits: func(o *Operands) bool {
		return queriesOp.Fits(o) && o.In[3].Len() == o.Out.Len() && o.Extra[0].Rows == o.Out.Rows
	}}
	answersOp = &Op{Name: "link-answers", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Rows && o.In[0].Len() == o.In[1].Len()
	}}
	answersGradOp = &Op{Name: "link-answers-grad", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[2].Len() && o.Extra[0].Len() == o.Out.Len()
	}}
	linkScoresOp = &Op{Name: "link-scores", Fits: func(o *Operands) bool {
		return o.Out.Rows == o.In[0].Rows && o.In[1].Rows == o.Out.Cols*o.Link.shares(o.Out.Rows)
	}}
	linkScoresGradOp = &Op{Name: "link-scores-grad", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[2].Len() && o.Extra[0].Len() == o.In[3].Len()
	}}
	excludeOp  = &Op{Name: "link-exclude"}
	linkLossOp = &Op{Name: "link-loss", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.In[1].Len() == o.In[0].Rows &&
			o.Extra[0].Len() == o.In[0].Rows
	}}
	linkLossAllOp = &Op{Name: "link-loss-all", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.Lists.Lists == o.In[0].Rows
	}}
	linkRanksOp = &Op{Name: "link-ranks", Fits: func(o *Operands) bool {
		return o.Out.Cols == RankCounts && o.Out.Rows == o.In[1].Len() &&
			o.In[2].Len() == 2*o.Out.Rows && o.Lists.Lists == o.In[0].Rows
	}}
	regularizeOp = &Op{Name: "link-regularize", Fits: func(o *Operands) bool {
		return o.In[2].Len() == o.Out.Rows && o.In[0].Cols == o.Out.Cols
	}}
	// sumListsOp has the name of an operation of programs, which has the kernels.
	sumListsOp = &Op{Name: "pull-sum", Fits: func(o *Operands) bool {
		return o.Out.Rows == o.Lists.Lists && o.Out.Cols == o.In[0].Cols
	}}
	adagradRowsOp = &Op{Name: "adagrad-rows", Fits: func(o *Operands) bool {
		return o.In[1].Len() == o.In[0].Rows && o.Out.Cols == o.In[0].Cols &&
			o.Out.Len() == o.Extra[0].Len()
	}}
	adamRowsOp = &Op{Name: "adam-rows", Fits: func(o *Operands) bool {
		return adagradRowsOp.Fits(o) && o.Out.Len() == o.Extra[1].Len()
	}}
)

// shares returns how many blocks of negatives a number of queries has.
func (l *Links) shares(queries int) int { return (queries + l.Chunk - 1) / max(1, l.Chunk) }

// Forms writes the forms of relations, given their rows.
func Forms(be Backend, l *Links, forms, rows Tensor) {
	be.Run(formsOp, &Operands{Out: forms, In: [4]Tensor{rows}, Link: l})
}

// FormsGrad writes the gradient of relations' rows, given that of their forms.
func FormsGrad(be Backend, l *Links, grad, dForms, rows Tensor) {
	be.Run(formsGradOp, &Operands{Out: grad, In: [4]Tensor{dForms, rows}, Link: l})
}

// Queries writes queries: of the rows of their known ends, and of the form whose number formOf has
// for each, as bits.
func Queries(be Backend, l *Links, queries, ends, forms, formOf Tensor) {
	be.Run(queriesOp, &Operands{Out: queries, In: [4]Tensor{ends, forms, formOf}, Link: l})
}

// QueriesGrad adds the gradient of the known ends to dEnds, and writes a row of the gradient of its
// form for each query to dForms. dQueries is changed.
//
//lint:parameters the matrices of one function
func QueriesGrad(be Backend, l *Links, dEnds, dForms, dQueries, ends, forms, formOf Tensor) {
	be.Run(queriesGradOp, &Operands{Out: dEnds, Extra: [2]Tensor{dForms},
		In: [4]Tensor{ends, forms, formOf, dQueries}, Link: l})
}

// Answers writes the score of each query with its answer.
func Answers(be Backend, l *Links, scores, queries, answers Tensor) {
	be.Run(answersOp, &Operands{Out: scores, In: [4]Tensor{queries, answers}, Link: l})
}

// AnswersGrad adds the gradient of these scores, g, to that of queries, and writes that of answers.
//
//lint:parameters the matrices of one function
func AnswersGrad(be Backend, l *Links, dQueries, dAnswers, g, scores, queries, answers Tensor) {
	be.Run(answersGradOp, &Operands{Out: dQueries, Extra: [2]Tensor{dAnswers},
		In: [4]Tensor{g, scores, queries, answers}, Link: l})
}

// LinkScores writes the scores of queries with their negatives: a row for each query.
func LinkScores(be Backend, l *Links, scores, queries, negatives Tensor) {
	be.Run(linkScoresOp, &Operands{Out: scores, In: [4]Tensor{queries, negatives}, Link: l})
}

// LinkScoresGrad writes the gradients of queries and of negatives by those of their scores, g,
// which are changed.
//
//lint:parameters the matrices of one function
func LinkScoresGrad(be Backend, l *Links, dQueries, dNegatives, g, scores, queries,
	negatives Tensor) {
	be.Run(linkScoresGradOp, &Operands{Out: dQueries, Extra: [2]Tensor{dNegatives},
		In: [4]Tensor{g, scores, queries, negatives}, Link: l})
}

// Exclude replaces scores by decoder.Excluded, at the places that at has as bits.
func Exclude(be Backend, scores, at Tensor) {
	if at.Len() > 0 {
		be.Run(excludeOp, &Operands{Out: scores, In: [4]Tensor{at}})
	}
}

// LinkLoss computes the sum of the losses of queries, each times weight, by the scores of their
// negatives and of their answers, and writes the gradients of both. With more, the sum is added to
// that of the queries before.
//
//lint:parameters the matrices of one function
func LinkLoss(be Backend, l *Links, g, gAnswers, scores, answers Tensor, weight float32,
	more bool) {
	be.Run(linkLossOp, &Operands{Out: g, Extra: [2]Tensor{gAnswers},
		In: [4]Tensor{scores, answers}, Scalar: weight, Acc: more, Link: l})
}

// LinkLossAll computes the sum of the losses of queries, each times weight, by their scores with
// all candidates, and writes the gradient of the scores, which may have their memory. The list of a
// query has its answers among the candidates.
//
//lint:parameters the matrices of one function
func LinkLossAll(be Backend, l *Links, g, scores Tensor, answers Segments, weight float32) {
	be.Run(linkLossAllOp, &Operands{Out: g, In: [4]Tensor{scores}, Lists: answers,
		Scalar: weight, Link: l})
}

// RankCounts is how many numbers LinkRanks counts of a target: the candidates that score above it,
// those that score the same, and how many of either are known to be true.
const RankCounts = 4

// NoPlace is the place of a target that is not among the candidates.
const NoPlace = ^uint32(0)

// RankTargets are the answers of queries whose ranks are asked for.
type RankTargets struct {
	// Own has the scores of targets. Of has for each, as bits, the number of its query, and its own
	// column, or NoPlace: a target does not count itself.
	Own, Of Tensor
	Known   Segments // the columns that are known to be true, a list for each query
	First   int      // the columns before it do not count
}

// LinkRanks counts, for each target, candidates by their scores, of which a query has a row.
func LinkRanks(be Backend, counts, scores Tensor, t *RankTargets) {
	be.Run(linkRanksOp, &Operands{Out: counts, In: [4]Tensor{scores, t.Own, t.Of}, Lists: t.Known,
		First: t.First})
}

// SumLists writes the sum of the rows of each list.
func SumLists(be Backend, out, rows Tensor, lists Segments) {
	be.Run(sumListsOp, &Operands{Out: out, In: [4]Tensor{rows}, Lists: lists})
}

// Regularize adds the gradient of a regularizer to that of rows, each times its weight. The place
// of row i in rows is at[i], as bits, or i if at is empty.
func Regularize(be Backend, l *Links, grad, rows, at, weights Tensor) {
	be.Run(regularizeOp, &Operands{Out: grad, In: [4]Tensor{rows, at, weights}, Link: l})
}

// AdagradRows takes a step of Adagrad for the rows of w whose numbers at has, as bits, each once;
// g has their gradients, which are changed.
func AdagradRows(be Backend, w, sums, g, at Tensor, s AdamStep) {
	be.Run(adagradRowsOp, &Operands{Out: w, In: [4]Tensor{g, at}, Extra: [2]Tensor{sums}, Step: s})
}

// AdamRows takes one of Adam.
func AdamRows(be Backend, w Tensor, m Moments, g, at Tensor, s AdamStep) {
	be.Run(adamRowsOp, &Operands{Out: w, In: [4]Tensor{g, at}, Extra: [2]Tensor{m.M, m.V}, Step: s})
}
