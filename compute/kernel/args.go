package kernel

// The types of this file are what kernels are given besides their matrices. Each kernel says which
// fields it reads.

// Shape holds the sizes of a product, which the kernels' comments name in lower case, and whether
// the product is added to C or written over it. Heads counts products of these sizes that stand
// side by side; 0 is one.
type Shape struct {
	M, K, N int
	Heads   int
	Add     bool
}

// heads returns at least 1.
func (s Shape) heads() int { return max(1, s.Heads) }

// Lists are lists of entries, as segments are: entry e of list i, which are those from Off[i] to
// Off[i+1]-1, names row Idx[e] of a matrix, and counts as row At[e] where rows are dropped out.
type Lists struct {
	Off, Idx, At []uint32
	// Rows have Heads parts of Cols values side by side; with Shared all heads read the same Cols.
	Heads, Cols int
	Shared      bool
}

// count returns the number of lists, and entries the number of their entries.
func (l *Lists) count() int { return len(l.Off) - 1 }

func (l *Lists) entries() int { return int(l.Off[len(l.Off)-1] - l.Off[0]) }

// empty reports whether there are no lists, or no values in their rows.
func (l *Lists) empty() bool { return len(l.Off) < 2 || l.Heads*l.Cols == 0 }

// width returns the number of values of a row.
func (l *Lists) width() int {
	if l.Shared {
		return l.Cols
	}
	return l.Heads * l.Cols
}

// at returns where the row that entry e names has its values for head h.
func (l *Lists) at(e uint32, h int) int {
	if l.Shared {
		h = 0
	}
	return int(l.Idx[e])*l.width() + h*l.Cols
}

// RowGrad says how gradients are added to rows over transposed lists: rows are as in Lists, and the
// first Fresh of them are overwritten instead, whatever they hold.
type RowGrad struct {
	Heads, Cols int
	Shared      bool
	Fresh       int
}

// Scores2 is what the scores of GATv2 are made of: of rows and of lists, (·,heads*d), attention
// (1,heads*d), and the slope below zero.
type Scores2 struct {
	Src, Dst, Att []float32
	Slope         float32
}

// Drop is a dropout of values, whose first has the position First: see Dropout.
type Drop struct {
	Rate  float32
	First int
	Key   uint64
}

// Columns says which columns a kernel copies: in each of Rows rows, Count columns, from column From
// of rows of FromWidth values to column To of rows of ToWidth values.
type Columns struct {
	Rows, Count     int
	To, ToWidth     int
	From, FromWidth int
}

// Norm is what a norm of a matrix of Rows and Cols is given. Gradients are written to DGamma and
// DBeta.
type Norm struct {
	Rows, Cols         int
	Gamma, Beta, Stats []float32
	DGamma, DBeta      []float32
	Eps                float32
}

// Pairs are rows whose distances are asked for: each of Q(m,d) from each of C(n,d).
type Pairs struct {
	Kind       Distance
	Q, C       []float32
	M, N, Cols int
}

// AdamStep is one step of Adam, counted from 1. Decoupled weight decay (AdamW) shrinks the weights;
// otherwise it is added to the gradient. Other optimizers read some of it.
type AdamStep struct {
	Step                                 int
	Rate, Beta1, Beta2, Eps, WeightDecay float32
	Decoupled                            bool
}

// Distance is one that is summed over the columns of two rows, so that all distances of two
// matrices are no product.
type Distance int

// SegmentsPart returns how many segments make a part, by their mean length.
func SegmentsPart(off []uint32, d int) int {
	segments := len(off) - 1
	length := int(off[segments]-off[0])/segments + 1
	return max(1, segmentPart/max(1, length*d))
}

// CheckSegments panics unless the segments ascend, lie in idx and name rows of x: assembly reads
// what they say. It costs under a hundredth of reading the rows.
func CheckSegments(off, idx []uint32, rows int) {
	checkOffsets(off)
	for _, r := range idx[off[0]:off[len(off)-1]] {
		if int(r) >= rows {
			panic("BUG: a segment names a row that is not there")
		}
	}
}

// segmentPart is how many values a part of a segment kernel reads, about: a segment is never cut.
const segmentPart = 64 << 10

// checkOffsets panics unless off ascends.
func checkOffsets(off []uint32) {
	for i, o := range off[1:] {
		if o < off[i] {
			panic("BUG: segment offsets descend")
		}
	}
}
