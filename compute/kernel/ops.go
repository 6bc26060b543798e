package kernel

import "sync/atomic"

// ops are the parts of the kernels that differ between levels. Each works on one goroutine, on
// slices that are as long as they must be and, where there are rows, not empty; the exported
// functions cut the work into parts.
type ops struct {
	tiles *tileSet // of products; nil: plain
	sums  *sumSet  // of rows; nil: plain
	links *linkSet // of link prediction, fused; nil: plain

	bias     func(y, bias []float32, rows, n int)
	biasReLU func(y, bias []float32, rows, n int)
	reluGrad func(dy, y []float32, scale float32)
	dropout  func(y []float32, d *DropoutPlan, first uint32)
	add      func(dst, src []float32)
	scale    func(x []float32, s float32)
	rowMax   func(x []float32) float32
	expSum   func(out, x []float32, shift float32) float32
	adam     func(w, g, m, v []float32, c *adamPlan)
	sgd      func(w, g []float32, lr, weightDecay float32)
	adagrad  func(w, g, s []float32, lr, eps, weightDecay float32)

	times     func(y, x []float32, f float32)
	addScaled func(dst, src []float32, a float32)
	leaky     func(x []float32, slope float32)
	leakyGrad func(dx, y []float32, slope float32)
	elu       func(x []float32)
	eluGrad   func(dx, y []float32)
	gelu      func(y, x []float32)
	geluGrad  func(dx, x []float32)

	edgeScores  func(s, src, dst []float32, l *Lists, slope float32)
	subtractMax func(a []float32, off []uint32, heads int)
	divideSum   func(a []float32, off []uint32, heads int)
	edgeToDst   func(out, s []float32, off []uint32, heads int)
	edgeToSrc   func(sum, s []float32, entry []uint32)

	sum         func(x []float32) float32
	squares     func(x []float32, mean float32) float32
	normRow     func(y, x, gamma, beta []float32, mean, inverse float32)
	layerSums   func(dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) (p, s float32)
	layerGrad   func(dx, dy, x, gamma []float32, mean, inverse, plain, scaled float32)
	addSquares  func(sum, x, mean []float32)
	normColumns func(y, x, mean, factor, beta []float32)
	batchSums   func(dgamma, dbeta, dy, x, mean, inverse []float32)
	batchGrad   func(dx, dy, x, mean, a, b, c []float32)

	// Of link prediction: see lines.go, distance.go and linkrow.go. Without prefetch rows are not
	// asked for ahead.
	prefetch      func(table *float32, rows *uint32, count int, bytes uintptr)
	product       func(y, a, b []float32)
	addCube       func(g, x []float32, f float32)
	dot           func(a, b []float32) float32
	manhattan     func(a, b []float32) float32
	manhattanGrad func(da, db, a, b []float32, w float32)
	modulus       func(ar, ai, br, bi []float32) float32
	modulusGrad   func(da, db, a, b []float32, half, n uint64, w float32)
}

// active is the level in use; tests change it.
var active atomic.Pointer[ops]

func level() *ops { return active.Load() }

// Level is a set of instructions that kernels are written for.
type Level int

// The levels, each faster than those before it that the same CPU has.
const (
	Plain  Level = iota // Go
	AVX2                // AVX2 and FMA of amd64: 8 floats at once
	AVX512              // AVX-512F of amd64: 16 floats at once
	NEON                // Advanced SIMD of arm64: 4 floats at once
)

var levelNames = []string{"plain", "avx2", "avx512", "neon"}

// String returns the name that GDB_KERNEL takes.
func (l Level) String() string { return levelNames[l] }

// sumSet is the sums of one level, each by the number of vectors less one.
type sumSet struct {
	lanes    int
	segment  []segmentFunc
	weighted []weightedFunc
	column   []columnFunc
	edgeSum  []edgeFunc
	edgeDot  []edgeFunc

	score        []scoreFunc // see scoreFunc
	scoreGrad    []scoreFunc
	scoreOwnGrad []scoreFunc

	max     []maxFunc
	maxGrad []maxGradFunc
}

// adamPlan holds the constants of one step of Adam, in the order in which assembly reads them.
type adamPlan struct {
	l2        float32 // 0: weight decay added to the gradient, or 0
	beta1     float32 // 4
	rest1     float32 // 8: 1-beta1
	beta2     float32 // 12
	rest2     float32 // 16: 1-beta2
	rootScale float32 // 20: 1/sqrt(1-beta2^step)
	eps       float32 // 24
	shrink    float32 // 28: 1, less lr times the decoupled weight decay
	rate      float32 // 32: lr/(1-beta1^step)
}

// linkSet is the assembly of these functions at a level.
type linkSet struct {
	productGrad     func(dx, dAnswer, dr, dq, q, x, r *float32, grad float32, add uint64, n int)
	scores          func(*pairsArgs)
	grads, gradsOwn func(*pairsArgs)
	adagradRows     func(*adagradRowsArgs)
}

// tileFunc computes a column of tiles of C (+)= A·B. A tile has as many rows as the function's name
// says and one or two vectors, of which the last has lanes values in C. Value (i,t) of A is at
// a+i·ars+t·aks, row t of B at b+t·bks and row i of C at c+i·ldc, all in bytes, and one of ars and
// aks is 4: NEON reads vectors of A. tiles and k are at least 1. B is read in whole vectors, but
// with AVX-512 only in the lanes that count. The largest tiles ask memory for the line at next,
// then at next+nextStep, in each of their k steps; next moves a line on from tile to tile.
type tileFunc func(tiles, k int, a *float32, ars, aks uintptr, b *float32, bks uintptr,
	c *float32, ldc uintptr, lanes int, mode uint64, next, nextStep uintptr)

// tileSet is the tiles of one level.
type tileSet struct {
	lanes int   // of a vector
	rows  []int // of the tiles, descending to 1
	// fetches is how many of the largest tiles it takes to fetch a line of as many rows as a tile
	// has steps: narrow tiles are more and shorter, and memory gives no more in their time.
	fetches int
	fn      [2][]tileFunc // by vectors-1, then as rows
	pack    [2]packFunc   // to panels of two vectors, and of the rows of the largest tile
	few     fewFunc       // products with few columns
	fewTA   fewTAFunc
}

// packFunc copies rows of n values, which lie stride bytes apart, to panels of columns. A panel
// holds a fixed number of columns, row after row; panels are panel bytes apart, and the last is
// padded with zeros. rows and n are at least 1.
type packFunc func(panels, src *float32, rows, n int, stride, panel uintptr)

// fewFunc computes rows of C (+)= A·B with up to fewOnce columns. Rows of A and C are ars and ldc
// bytes apart; b is of packFew.
type fewFunc func(rows, k int, a *float32, ars uintptr, b, c *float32, ldc uintptr, columns int,
	accumulate uint64)

// fewTAFunc adds the products of rows of A and B, which are ars and brs bytes apart, to sums, which
// lie as packFew packs. Columns 1 to 3 of B are col1 to col3 bytes from column 0.
type fewTAFunc func(rows, k int, a *float32, ars uintptr, b *float32, brs, col1, col2, col3 uintptr,
	sums *float32)

// DropoutPlan is what the draws of one block of positions need. The fields are read by assembly at
// the offsets written beside them.
type DropoutPlan struct {
	add       uint32  // 0: added to the position
	xor       uint32  // 4: mixed in half way
	threshold uint32  // 8: a draw below it, of 24 bits, drops the value
	scale     float32 // 12: for the values that are kept
}

// draw returns 24 random bits for a position.
func (d *DropoutPlan) draw(position uint32) uint32 {
	x := position*drawStep + d.add
	x = (x ^ x>>16) * drawMul1
	x = (x ^ x>>15 ^ d.xor) * drawMul2
	return (x ^ x>>16) >> 8
}

// segmentFunc sums rows of x: row i of out is the sum, or the mean, of the rows
// idx[off[i]:off[i+1]]. Rows are stride bytes apart in both; the function's name says how many
// vectors are read of each; lanes counts the values of the last. There is at least one segment.
type segmentFunc func(out, x *float32, off, idx *uint32, segments int, stride uintptr, lanes int,
	mean uint64)

// weightedFunc adds to row i of out, or writes there, the rows of x of the same numbers, each times
// its weight.
type weightedFunc func(out, x, weight *float32, off, idx *uint32, segments int, stride uintptr,
	lanes int, accumulate uint64)

// columnFunc writes the sum of rows that follow one another, at least one, to out.
type columnFunc func(out, x *float32, rows int, stride uintptr, lanes int)

// edgeFunc works on rows of lists: the one that each list has of its own, of heads that lie ownHead
// bytes apart, and the rows of x of its entries, xRow bytes apart, whose heads lie xHead bytes
// apart. Of each head it reads as many vectors as its name says. It writes to own the sum of the
// rows times their edge values, or to the edge values the products of own with the rows; accumulate
// adds to the old values. There are at least one list and one head. values begins with the values
// of the first entry.
type edgeFunc func(own, x, values *float32, off, idx *uint32, lists, heads int,
	xRow, xHead, ownHead uintptr, lanes int, accumulate uint64)

// scoreFunc is an edgeFunc with leaky of the sum of own and a row in the place of the row. It
// writes to the edge values the products of att with that, or to out, which is as own, att times
// the derivative of leaky summed over the entries, each times its edge value. Then, if it is of
// scoreGrad, it adds to sum the gradient in att.
type scoreFunc func(own, x, values *float32, off, idx *uint32, lists, heads int,
	xRow, xHead, ownHead uintptr, lanes int, accumulate uint64, att, out, sum *float32,
	slope float32)

// maxFunc writes the largest values of rows of x, and to arg the numbers of the rows that have
// them, as segmentFunc writes sums. Rows of arg are argStride bytes apart.
type maxFunc func(out, x *float32, arg, off, idx *uint32, segments int,
	stride, argStride uintptr, lanes int)

// maxGradFunc adds to row i of out, or writes there, the rows of x that segment i names, once each,
// in the columns in which the same row of arg is first+i.
type maxGradFunc func(out, x *float32, arg, off, idx *uint32, segments int, stride uintptr,
	lanes int, first uint32, accumulate uint64)

// pairsArgs is what the assembly reads; go_asm.h has the places of the fields.
type pairsArgs struct {
	table                          *float32
	heads, tails, noTails, noHeads *uint32
	r, s                           *float32
	forTails, forHeads             *float32
	dHeads, dTails                 *float32
	dNoTails, dNoHeads             *float32
	dR, dS                         *float32
	count, dim                     int
	noStep                         uintptr // from the number of a negative to the next, in bytes
}

// strides say where the values of A are, in floats.
type strides struct{ row, step int }

// The multipliers of draw: the first is 2^32 divided by the golden ratio, the others come from the
// 32-bit mixer that Chris Wellons found by search (lowbias32).
const (
	drawStep = 0x9e3779b9
	drawMul1 = 0x7feb352d
	drawMul2 = 0x846ca68b
)

// adagradRowsArgs is what the assembly reads; go_asm.h has the places of the fields.
type adagradRowsArgs struct {
	weights, squares, gradients *float32
	at, off, places             *uint32
	values, cubes               *float32 // nil for none
	count, dim                  int
	placesEnd                   uintptr // Off[count]
	rate, eps                   float32
}
