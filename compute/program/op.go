package program

// Kind is what an operation computes.
type Kind uint8

// The kinds. In comments the operands are x, y, … in their order; an operation with an accumulator
// adds to it instead of writing a new value.
const (
	opNone Kind = iota

	// Dense operations.
	opMatMul     // x·y
	opMatMulTA   // xᵀ·y
	opMatMulTB   // x·yᵀ
	opHeadMul    // x·y for each head: columns of x by head, and of y
	opHeadMulTA  // xᵀ·y for each head
	opHeadMulTB  // x·yᵀ for each head
	opAdd        // x + y: y is added to x in place
	opColumnSum  // the sum of the rows of x
	opHeadMean   // the mean of the heads of x
	opHeadMeanGr // its gradient
	opColumns    // some columns of x, from first on
	opColumnsGr  // its gradient
	opScale      // x times Scalar
	opRowScale   // rows of x times the values of y (rows,1)
	opShift      // x plus Scalar
	opCopy       // x
	opEmbed      // zeros, and then the rows of x
	opNarrow     // x as bfloat16
	opWiden      // x as float32

	// Element-wise operations, in place.
	opBias     // x + a row y
	opBiasReLU // max(0, x + a row y)
	opReLU
	opReLUGrad // x where y, an output, is positive; with Rate, of ReLU and then Dropout
	opELU
	opELUGrad // x times the derivative at an output y
	opGELU    // not in place: its gradient needs the input
	opGELUGrad
	opLeakyReLU
	opLeakyReLUGrad
	opDropout // its own gradient, with the same Site
	opLayerNorm
	opLayerNormGrad
	opBatchNorm // of x, by the batch; adds to statistics, its last operand
	opBatchNormGrad
	opNormApply // of x, by statistics

	// Over entries, without their lists.
	opTypeRows     // the rows of x by the types y of entries
	opTypeRowsGrad // the sums of the rows x of entries of each type y

	// Over lists.
	opPullMean // the mean of the rows of x in each list
	opPullMeanGrad
	opPullMeanDropped // opPullMean of rows that are dropped out as they are read
	opPullSum
	opPullSumGrad
	opPullMax
	opPullMaxGrad
	opPullWeighted      // the sum of the rows of x times the entries' weights y, by head
	opPullWeightedGradX // from x the gradient of the output, and weights y
	opEntryDot          // from x (lists) and y (rows): their products for each entry and head
	opScores            // x of the entry's row + y of its list, and leaky ReLU
	opScoresGrad        // leaky ReLU's gradient: x where the score y is positive
	opEntryToList       // the sum of the entries x of each list
	opEntryToRow        // the sum of the entries x of each row
	opScores2           // GATv2: z · leaky(x of the row + y of the list)
	opScores2GradList
	opScores2GradRow
	opSoftmax // over the entries of each list, in place
	opProduct // x of the entry's row times y of its list, which are not learned
	opSoftmaxGrad
)

// isProduct says whether a kind is a product of matrices.
func isProduct(k Kind) bool { return k >= opMatMul && k <= opHeadMulTB }

// Reduce is how a list's rows become one.
type Reduce uint8

// The reductions. The mean, the sum and the largest of an empty list are zero.
const (
	Mean Reduce = iota
	Sum
	Max
)

// op is one operation.
type op struct {
	kind Kind
	in   []Value
	// acc is the value that the result is added to, in its place; 0 for none. It may have more rows
	// than the result: then its last ones are added to.
	acc Value
	out Value
	// extra are more results: the rows of maxima, statistics of a norm, gradients of parameters.
	extra  []Value
	list   List
	heads  int
	first  int     // column
	shared bool    // all heads read the whole row
	scalar float32 // Rate, slope, factor
	rate   float32 // of a dropout that follows an activation in half precision
	site   int     // number of a dropout
	// inPlace is the operand whose memory the result takes, by its number; -1 for none.
	inPlace int
	// copies says that the operand in whose place the result comes is read again: it is copied.
	copies bool
	// tail says that a dropout is of the last rows of a matrix that is not there: its positions
	// begin where they do.
	tail bool
}
